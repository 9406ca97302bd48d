/* See clock_choice.h. */
#include "injector/log/clock/clock_choice.h"

#include "injector/log/clock/clock_candidate.h"
#include "injector/recording/host/recording_host.h"
#include "injector/recording/perf_data/perf_time.h"
#include "injector/text/plural.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define MS  UINT64_C(1000000)
#define SEC (1000 * MS)

/* ---- What to choose from ---- */

struct chooser {
    const struct clock_question *question;
    struct clock_facts facts;
    enum clock_kind claimed; /* by the dump's flag */
    char *why;
};

static void read_facts(struct chooser *chooser)
{
    const struct clock_question *question = chooser->question;
    chooser->claimed = question->dump->flags & JITDUMP_FLAG_ARCH_TIMESTAMP ? CLOCK_KIND_CYCLES
                                                                           : CLOCK_KIND_MONOTONIC;
    chooser->facts = (struct clock_facts){
        .conv = question->records->time_conv,
        .profile_kind = clock_kind_of_profile(question->records->file),
        .shared = question->shared,
    };
    clock_evidence_read(&chooser->facts.evidence, question->records, question->dump,
                        question->stamps, question->pid, question->life);
}

/* Whether the dump's times are the profile's, or become them by perf's own formula. */
static bool is_direct(const struct chooser *chooser)
{
    const struct clock_facts *facts = &chooser->facts;
    return chooser->claimed == facts->profile_kind ||
           (chooser->claimed == CLOCK_KIND_CYCLES && facts->conv.known &&
            facts->profile_kind == CLOCK_KIND_PERF);
}

/* perf record writes the file's end right after the recording's: if by the clocks now that was
 * then, they are the recording's own, and the machine was not started anew in between. */
static bool was_written_then(const struct clock_facts *facts, const struct records *records)
{
    uint64_t written_ns = records->file->written_ns, last_ns = records_last_sample_ns(records);
    const struct clock_live *live = &facts->live;
    if (last_ns < facts->evidence.end_ns)
        last_ns = facts->evidence.end_ns;
    if (live->now[facts->profile_kind] < last_ns)
        return false;
    uint64_t age_ns = live->now[facts->profile_kind] - last_ns;
    uint64_t end_ns = live->now[CLOCK_KIND_REALTIME] - age_ns;
    return written_ns + SEC >= end_ns && written_ns <= end_ns + 10 * SEC;
}

/* A copy of the recording was written later, and a pipe's file too.  But a dump is mapped right
 * after its file was made. */
static bool was_born_then(const struct clock_facts *facts, const struct jit_dump *dump)
{
    const struct clock_live *live = &facts->live;
    uint64_t marker_ns = facts->evidence.marker_ns;
    if (!marker_ns || !dump->born_ns || live->now[facts->profile_kind] < marker_ns)
        return false;
    uint64_t age_ns = live->now[facts->profile_kind] - marker_ns;
    uint64_t mapped_ns = live->now[CLOCK_KIND_REALTIME] - age_ns;
    return dump->born_ns <= mapped_ns + SEC && mapped_ns <= dump->born_ns + SEC;
}

static bool is_same_boot(const struct clock_facts *facts, const struct clock_question *question)
{
    enum clock_kind kind = facts->profile_kind;
    return kind < CLOCK_KINDS && facts->live.known[kind] &&
           facts->live.known[CLOCK_KIND_REALTIME] &&
           (was_written_then(facts, question->records) || was_born_then(facts, question->dump));
}

static bool is_recorded_here(const struct records *records)
{
    struct recording_host host;
    recording_host_read(&host, records->file);
    return recording_host_is_here(&host);
}

/* The clocks of this machine say nothing of a recording of another one.  A container has a name of
 * its own, but its recording is of this boot. */
static void read_live(struct chooser *chooser, bool with_cycles)
{
    struct clock_facts *facts = &chooser->facts;
    const struct clock_question *question = chooser->question;
    question->read_live(&facts->live, with_cycles);
    facts->same_boot = is_same_boot(facts, question);
    if (!facts->same_boot && !is_recorded_here(question->records))
        facts->live = (struct clock_live){0};
}

/* Read the facts that take longer, and are needed when the clocks are not simply one. */
static bool read_more_facts(struct chooser *chooser, bool with_cycles)
{
    const struct clock_question *question = chooser->question;
    read_live(chooser, with_cycles);
    return clock_evidence_read_samples(&chooser->facts.evidence, question->records, question->dump,
                                       question->pid, question->life) == 0;
}

/* ---- Whether it fits ---- */

/* A wall clock is further away than this from a clock that counts from the machine's start. */
#define LONG_AFTER_NS (24 * 3600 * UINT64_C(1000000000))

/* How long the process waited between the header's time and the mapping, by CANDIDATE. */
static uint64_t waited_ns(const struct clock_facts *facts, const struct clock_candidate *candidate)
{
    uint64_t marker_ns = facts->evidence.marker_ns;
    uint64_t header_ns = jit_clock_to_perf(&candidate->clock, facts->evidence.header);
    return marker_ns == 0          ? 0
           : header_ns < marker_ns ? marker_ns - header_ns
                                   : header_ns - marker_ns;
}

/* Whether the header has nothing against the records' being of CANDIDATE's clock, wherever they
 * are. */
static bool is_sane(const struct clock_facts *facts, const struct clock_candidate *candidate)
{
    const struct clock_evidence *evidence = &facts->evidence;
    uint64_t header = evidence->header, first = evidence->stamps.first;
    bool near = header <= first && first - header < LONG_AFTER_NS;
    if (!near && clock_header_is_wall(evidence))
        return evidence->end_known && !evidence->sampled; /* what ran then was logged before */
    return evidence->marker_ns ? waited_ns(facts, candidate) <= 10 * MS : near;
}

static bool in_life(const struct clock_facts *facts, const struct clock_candidate *candidate,
                    uint64_t begin_ns)
{
    const struct clock_evidence *evidence = &facts->evidence;
    uint64_t slack_ns = perf_time_after(candidate->error_ns, 10 * MS);
    uint64_t first_ns = jit_clock_to_perf(&candidate->clock, evidence->stamps.first);
    uint64_t last_ns = jit_clock_to_perf(&candidate->clock, evidence->stamps.last);
    /* A recording that does not tell the process's end may have ended before it, even before its
     * first record; the header is of its beginning. */
    bool open =
        !evidence->ended && candidate->source == CLOCK_SOURCE_SAME && is_sane(facts, candidate);
    return perf_time_after(first_ns, slack_ns) >= begin_ns &&
           first_ns <= perf_time_after(evidence->end_ns, open ? LONG_AFTER_NS : slack_ns) &&
           (!evidence->ended || last_ns <= perf_time_after(evidence->end_ns, slack_ns));
}

/* The records lie between the marker and the end of the process. */
static bool fits(const struct clock_facts *facts, const struct clock_candidate *candidate)
{
    const struct clock_evidence *evidence = &facts->evidence;
    return in_life(facts, candidate,
                   evidence->marker_ns ? evidence->marker_ns : evidence->start_ns);
}

/* One clock, and yet the dump was opened long before or after it was mapped: it may be another that
 * runs close by. */
static bool is_suspicious(const struct clock_facts *facts, const struct clock_candidate *candidate)
{
    const struct clock_evidence *evidence = &facts->evidence;
    uint64_t header = evidence->header, marker = evidence->marker_ns;
    return candidate->source == CLOCK_SOURCE_SAME && marker && header <= evidence->stamps.first &&
           evidence->stamps.first - header < evidence->end_ns - marker &&
           waited_ns(facts, candidate) > 10 * MS;
}

static bool same_result(const struct clock_facts *facts, const struct jit_clock *a,
                        const struct jit_clock *b)
{
    const uint64_t stamps[] = {facts->evidence.stamps.first, facts->evidence.stamps.last};
    for (size_t i = 0; i < 2; i++) {
        uint64_t one = jit_clock_to_perf(a, stamps[i]), other = jit_clock_to_perf(b, stamps[i]);
        if ((one < other ? other - one : one - other) > MS)
            return false;
    }
    return true;
}

/* Whether KIND, another clock than the claimed one, fits and is proven.  No runtime can stamp by
 * perf's own clock. */
static bool is_other(const struct chooser *chooser, enum clock_kind kind,
                     struct clock_candidate *candidate)
{
    return kind != chooser->claimed && kind != CLOCK_KIND_PERF &&
           clock_candidate_make(candidate, &chooser->facts, kind) && candidate->proven &&
           fits(&chooser->facts, candidate) && !is_suspicious(&chooser->facts, candidate);
}

/* How long the process waited if CANDIDATE is its clock.  If the header is used instead of the
 * mapping, the clocks' present state may show that the header is of another time. */
static uint64_t claimed_wait_ns(const struct clock_facts *facts,
                                const struct clock_candidate *candidate)
{
    uint64_t waited = waited_ns(facts, candidate);
    return waited > candidate->unexplained_ns ? waited : candidate->unexplained_ns;
}

/* Any clock explains the header by some wait: the one that needs much less of it is it. */
static bool is_likelier(const struct clock_facts *facts, const struct clock_candidate *candidate,
                        const struct clock_candidate *other)
{
    uint64_t waited = claimed_wait_ns(facts, candidate);
    uint64_t other_waited = claimed_wait_ns(facts, other);
    return waited < other_waited / 3 && other_waited - waited > MS;
}

/* The likeliest of the clocks that may be it, and of those that come to the same (CLOCK_TAI is
 * CLOCK_REALTIME on most machines) the first.  Returns how many may be it as well as that one;
 * those that come to the same count once. */
static size_t find_others(const struct chooser *chooser, struct clock_candidate *found)
{
    const struct clock_facts *facts = &chooser->facts;
    struct clock_candidate fitting[CLOCK_KINDS];
    size_t fitting_count = 0, count = 1;
    for (int kind = 0; kind < CLOCK_KINDS; kind++)
        fitting_count += is_other(chooser, (enum clock_kind)kind, &fitting[fitting_count]);
    if (fitting_count == 0)
        return 0;
    *found = fitting[0];
    for (size_t i = 1; i < fitting_count; i++)
        if (is_likelier(facts, &fitting[i], found))
            *found = fitting[i];
    for (size_t i = 0; i < fitting_count; i++)
        count += !is_likelier(facts, found, &fitting[i]) &&
                 !same_result(facts, &found->clock, &fitting[i].clock);
    return count;
}

/* libxsmm says cycles and writes ns.  No -k, and no clock to compare with: the flag's clock does
 * not fit, and ns do. */
static bool find_unflagged(const struct chooser *chooser, struct clock_candidate *found)
{
    return chooser->claimed == CLOCK_KIND_CYCLES &&
           clock_candidate_make(found, &chooser->facts, CLOCK_KIND_MONOTONIC) &&
           fits(&chooser->facts, found);
}

/* ---- What is said about it ---- */

/* 1400312 as "1 400 312". */
static const char *grouped(char text[32], uint64_t number)
{
    char *at = text + 31;
    *at = '\0';
    for (int digits = 0; digits == 0 || number; digits++, number /= 10) {
        if (digits && digits % 3 == 0)
            *--at = ' ';
        *--at = (char)('0' + number % 10);
    }
    return at;
}

static const char *recorded(enum clock_kind kind)
{
    static const char *const words[CLOCK_KINDS + 1] = {
        [CLOCK_KIND_MONOTONIC] = "recorded with -k mono",
        [CLOCK_KIND_RAW] = "recorded with -k raw, not mono",
        [CLOCK_KIND_BOOTTIME] = "recorded with -k boottime, not mono",
        [CLOCK_KIND_REALTIME] = "recorded with -k realtime, not mono",
        [CLOCK_KIND_TAI] = "recorded with -k tai, not mono",
        [CLOCK_KIND_PERF] = "recorded without -k mono",
        [CLOCK_KIND_CYCLES] = "recorded by cycles",
        [CLOCK_KIND_UNKNOWN] = "recorded with a -k that perfjit does not know",
    };
    return words[kind];
}

static const char *by(enum clock_source source)
{
    static const char *const words[] = {
        [CLOCK_SOURCE_SAME] = "",
        [CLOCK_SOURCE_CONV] = "by perf's TIME_CONV",
        [CLOCK_SOURCE_MARKER] = "by the marker's mapping",
        [CLOCK_SOURCE_MARKER_LIVE] = "by the marker's mapping, and by this machine's clocks now",
        [CLOCK_SOURCE_LIVE] = "by this machine's clocks now",
        [CLOCK_SOURCE_BOUNDS] = "by the marker's mapping, which is older than the first record, "
                                "and the samples, which are newer than the code that they hit",
        [CLOCK_SOURCE_SHARED] = "by another dump of the recording",
    };
    return words[source];
}

static void report_offset(const struct chooser *chooser, const struct clock_candidate *candidate,
                          enum finding_kind kind, struct findings *findings)
{
    char offset_text[32], error_text[32];
    uint64_t first = chooser->facts.evidence.stamps.first;
    uint64_t records = jit_clock_to_perf(&candidate->clock, first);
    bool behind = first <= records;
    report_finding(findings, kind, "%s: %s: its clock is %s ns (± %s) %s the profile's, %s",
                   chooser->question->dump->path, recorded(chooser->facts.profile_kind),
                   grouped(offset_text, behind ? records - first : first - records),
                   grouped(error_text, candidate->error_ns), behind ? "behind" : "ahead of",
                   by(candidate->source));
}

static void report_cycles(const struct chooser *chooser, const struct clock_candidate *candidate,
                          enum finding_kind kind, struct findings *findings)
{
    char error_text[32];
    report_finding(findings, kind,
                   "%s: %s, and it is stamped in CPU cycles: converted %s%s (± %s ns)",
                   chooser->question->dump->path, recorded(chooser->facts.profile_kind),
                   candidate->clock.cycles ? "by perf's TIME_CONV, and " : "",
                   by(candidate->source), grouped(error_text, candidate->error_ns));
}

static void report_conversion(const struct chooser *chooser,
                              const struct clock_candidate *candidate, struct findings *findings)
{
    bool unsure = candidate->error_ns >= MS && chooser->facts.evidence.reused;
    enum finding_kind kind = unsure ? FINDING_CLOCK_UNSURE : FINDING_CLOCK_CONVERTED;
    if (candidate->source == CLOCK_SOURCE_SAME || candidate->source == CLOCK_SOURCE_CONV)
        return;
    if (candidate->kind == CLOCK_KIND_CYCLES)
        report_cycles(chooser, candidate, kind, findings);
    else
        report_offset(chooser, candidate, kind, findings);
}

static void report_wrong_flag(const struct chooser *chooser,
                              const struct clock_candidate *candidate, struct findings *findings)
{
    if (candidate->kind == chooser->claimed)
        return;
    report_finding(
        findings, FINDING_CLOCK_FLAG,
        "%s: its header's flags say that its times are %s; they are %s%s",
        chooser->question->dump->path, clock_kind_name(chooser->claimed),
        candidate->kind == CLOCK_KIND_MONOTONIC && !candidate->proven ? "nanoseconds, of " : "",
        clock_kind_name(candidate->kind));
}

/* ---- No clock ---- */

/* Its timestamps are unusable, HOW is said unless the recording's are: all its code is live from
 * the start, and of two functions at one address the one that was logged last. */
static void freeze(struct jit_clock *clock, const struct chooser *chooser, const char *how,
                   struct findings *findings)
{
    const struct clock_evidence *evidence = &chooser->facts.evidence;
    bool marked = evidence->marker_ns && perf_file_has_times(chooser->question->records->file);
    uint64_t start_ns = marked ? evidence->marker_ns : evidence->start_ns;
    *clock = (struct jit_clock){.frozen = true, .to_ref = start_ns};
    if (how)
        report_finding(findings, FINDING_CLOCK_USELESS, "%s: the times of its %zu record%s are %s",
                       chooser->question->dump->path, evidence->stamps.count,
                       plural(evidence->stamps.count), how);
}

/* Why stamps can't be times, if that is plain; else NULL. */
static const char *useless(const struct clock_evidence *evidence)
{
    if (evidence->stamps.last == 0)
        return "all 0";
    if (evidence->stamps.first == evidence->stamps.last && evidence->stamps.count > 1)
        return "all equal, and outside the life of the process";
    if (evidence->stamps.last < evidence->start_ns && evidence->stamps.last < SEC)
        return "all within the first second after boot, before any process existed";
    return NULL;
}

static const char *refuse(const struct chooser *chooser, size_t fitting)
{
    const struct clock_facts *facts = &chooser->facts;
    const struct clock_evidence *evidence = &facts->evidence;
    const char *claimed = clock_kind_name(chooser->claimed);
    if (fitting > 1)
        snprintf(chooser->why, 512,
                 "its times are not %s, as its flags say, and could be of more than one other "
                 "clock; have the runtime use CLOCK_MONOTONIC, and record with perf record -k mono",
                 claimed);
    else if (chooser->claimed == CLOCK_KIND_CYCLES && !facts->conv.known &&
             !facts->live.cycles_per_s)
        snprintf(
            chooser->why, 512,
            "its timestamps are CPU cycles, and their rate is unknown: the profile has no "
            "TIME_CONV record (virtual machines have none), and this machine has no such counter; "
            "let the runtime use CLOCK_MONOTONIC, and record with perf record -k mono");
    else
        snprintf(chooser->why, 512,
                 "its times do not fit a profile that was %s: by its flags they are %s, %" PRIu64
                 " to %" PRIu64 ", and the process is in the profile from %" PRIu64 " to %" PRIu64
                 "; have the runtime use CLOCK_MONOTONIC, and record with perf record -k mono",
                 recorded(facts->profile_kind), claimed, evidence->stamps.first,
                 evidence->stamps.last,
                 evidence->marker_ns ? evidence->marker_ns : evidence->start_ns, evidence->end_ns);
    return chooser->why;
}

/* ---- The choice ---- */

/* That CLOCK_MONOTONIC and the like went on as the header says was compared with how they stand
 * now; of cycles only the rate. */
static bool rests_on_marker(const struct clock_candidate *candidate)
{
    return candidate->source == CLOCK_SOURCE_MARKER || candidate->source == CLOCK_SOURCE_BOUNDS ||
           (candidate->source == CLOCK_SOURCE_MARKER_LIVE && candidate->kind == CLOCK_KIND_CYCLES);
}

static const char *accept(struct jit_clock *clock, const struct chooser *chooser,
                          const struct clock_candidate *candidate, struct findings *findings)
{
    *clock = candidate->clock;
    clock->by_marker = rests_on_marker(candidate);
    clock->unflagged = candidate->kind != chooser->claimed;
    report_wrong_flag(chooser, candidate, findings);
    report_conversion(chooser, candidate, findings);
    return NULL;
}

/* Header and records agree, and are all of a time before or after the process's life: another
 * process wrote the file.  (Well before or after, if that other process is not known: it may be a
 * clock that runs close by.) */
static bool is_anothers(const struct chooser *chooser)
{
    const struct clock_evidence *evidence = &chooser->facts.evidence;
    uint64_t header = evidence->header;
    uint64_t away_ns = chooser->question->in_another_life ? 0 : 2 * SEC;
    bool outside = perf_time_after(header, away_ns) < chooser->question->life.begin_ns ||
                   (evidence->ended && header > perf_time_after(evidence->end_ns, away_ns) &&
                    header - evidence->end_ns < LONG_AFTER_NS);
    return chooser->question->may_be_anothers && outside && header <= evidence->stamps.first &&
           evidence->stamps.first - header < LONG_AFTER_NS;
}

/* The CPU's counter starts with the machine, as CLOCK_MONOTONIC does: header and mapping say about
 * the same of its age. */
static bool are_cycles(const struct chooser *chooser, const struct clock_candidate *candidate)
{
    const struct clock_facts *facts = &chooser->facts;
    if (candidate->kind != CLOCK_KIND_CYCLES || !facts->live.cycles_per_s)
        return false;
    uint64_t header_ms = facts->evidence.header / (facts->live.cycles_per_s / 1000 + 1);
    uint64_t marker_ms = facts->evidence.marker_ns / MS;
    return header_ms <= marker_ms + marker_ms / 8 && marker_ms <= header_ms + header_ms / 8;
}

/* Whether FOUND is used, and not the flag's clock.  If only the mapping is late by the CLAIMED
 * clock, the machine may have been busy. */
static bool is_preferred(const struct chooser *chooser, const struct clock_candidate *found,
                         const struct clock_candidate *claimed)
{
    const struct clock_facts *facts = &chooser->facts;
    if (is_anothers(chooser) && !are_cycles(chooser, found))
        return false;
    bool only_late = claimed && is_suspicious(facts, claimed) && fits(facts, claimed);
    return !only_late || is_likelier(facts, found, claimed);
}

/* The clock that the flag names does not fit.  CLAIMED is NULL, or the flag's clock, which is used
 * if no other clock fits. */
static const char *choose_other(struct jit_clock *clock, struct chooser *chooser,
                                const struct clock_candidate *claimed, struct findings *findings)
{
    struct clock_candidate found;
    const struct clock_evidence *evidence = &chooser->facts.evidence;
    /* This time with the cycles, which were not read yet. */
    if (chooser->facts.live.cycles_per_s == 0)
        read_live(chooser, true);
    size_t count = find_others(chooser, &found);
    if (count == 0 && !claimed)
        count = find_unflagged(chooser, &found);
    if (count == 1 && is_preferred(chooser, &found, claimed))
        return accept(clock, chooser, &found, findings);
    if (claimed)
        return accept(clock, chooser, claimed, findings);
    if (count == 0 && useless(evidence)) {
        freeze(clock, chooser, useless(evidence), findings);
        return NULL;
    }
    return refuse(chooser, count);
}

/* Whether the CLAIMED clock is better than none: in the life of the process, but not where it
 * should be, or with everything but the samples for it. */
static bool is_last_resort(const struct chooser *chooser, const struct clock_candidate *claimed)
{
    const struct clock_facts *facts = &chooser->facts;
    if (claimed->source == CLOCK_SOURCE_SAME || claimed->source == CLOCK_SOURCE_CONV)
        return in_life(facts, claimed, facts->evidence.start_ns) || is_anothers(chooser);
    return claimed->doubted && fits(facts, claimed);
}

/* Cycles and -k: TIME_CONV and the header would make any times fit, so a clock without conversion
 * goes first. */
static bool is_plain_lie(const struct chooser *chooser, struct clock_candidate *candidate)
{
    return chooser->claimed == CLOCK_KIND_CYCLES &&
           chooser->facts.profile_kind == CLOCK_KIND_MONOTONIC &&
           clock_candidate_make(candidate, &chooser->facts, CLOCK_KIND_MONOTONIC) &&
           fits(&chooser->facts, candidate);
}

static bool is_right(const struct clock_facts *facts, const struct clock_candidate *candidate)
{
    return fits(facts, candidate) && !is_suspicious(facts, candidate) && !candidate->doubted;
}

static const char *choose(struct jit_clock *clock, struct chooser *chooser,
                          struct findings *findings)
{
    struct clock_candidate claimed, lie;
    const struct clock_facts *facts = &chooser->facts;
    if (is_plain_lie(chooser, &lie))
        return accept(clock, chooser, &lie, findings);
    bool direct = is_direct(chooser);
    if (!direct && !read_more_facts(chooser, chooser->claimed == CLOCK_KIND_CYCLES))
        return "not enough memory to read its times";
    bool possible = clock_candidate_make(&claimed, facts, chooser->claimed);
    if (possible && is_right(facts, &claimed))
        return accept(clock, chooser, &claimed, findings);
    if (direct && !read_more_facts(chooser, true))
        return "not enough memory to read its times";
    if (direct && possible && is_right(facts, &claimed)) /* now that the process's end is known */
        return accept(clock, chooser, &claimed, findings);
    bool usable = possible && is_last_resort(chooser, &claimed);
    return choose_other(clock, chooser, usable ? &claimed : NULL, findings);
}

/* ---- What other dumps can take from it ---- */

void clock_learn(struct shared_clocks *shared, const struct clock_question *question)
{
    struct chooser chooser = {.question = question};
    struct clock_candidate candidate;
    if (!perf_file_has_times(question->records->file))
        return;
    read_facts(&chooser);
    const struct clock_facts *facts = &chooser.facts;
    struct shared_clock *best = &shared->of[chooser.claimed];
    if (facts->profile_kind >= CLOCK_KINDS || is_direct(&chooser) || !facts->evidence.marker_ns ||
        facts->evidence.stamps.last == 0 || question->in_another_life)
        return;
    read_live(&chooser, chooser.claimed == CLOCK_KIND_CYCLES);
    if (!clock_candidate_make(&candidate, facts, chooser.claimed) || !candidate.paired ||
        !fits(facts, &candidate) || (best->known && best->candidate.error_ns <= candidate.error_ns))
        return;
    *best = (struct shared_clock){true, candidate, facts->evidence.stamps};
}

const char *clock_choose(struct jit_clock *clock, const struct clock_question *question,
                         char why[512], struct findings *findings)
{
    struct chooser chooser = {.question = question, .why = why};
    *clock = (struct jit_clock){0};
    read_facts(&chooser);
    if (chooser.facts.profile_kind == CLOCK_KIND_MIXED)
        return "the profile's events were recorded with different clocks, so that their times "
               "can't be compared; record all with perf record -k mono";
    if (chooser.facts.evidence.stamps.count == 0)
        return NULL;
    if (!perf_file_has_times(question->records->file)) {
        freeze(clock, &chooser, NULL, findings);
        return NULL;
    }
    if (chooser.facts.evidence.stamps.last == 0) {
        freeze(clock, &chooser, useless(&chooser.facts.evidence), findings);
        return NULL;
    }
    return choose(clock, &chooser, findings);
}
