/* See dump_claim.h. */
#include "injector/log/owner/dump_claim.h"

#include "injector/arrays/array.h"
#include "injector/arrays/number_map.h"
#include "injector/log/clock/clock_choice.h"
#include "injector/log/code/log_reader.h"
#include "injector/log/jitdump/dump_name.h"
#include "injector/log/owner/dump_machine.h"
#include "injector/log/owner/dump_place.h"
#include "injector/log/owner/dump_probe.h"
#include "injector/recording/host/live_process.h"
#include "injector/recording/host/trusted_owner.h"
#include "injector/recording/injected_map.h"
#include "injector/recording/perf_data/perf_time.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Whether a file may be read as a dump ---- */

/* Whether a file's contents may be read as a process's dump.
 *
 * If it is the very file that the process mapped, its owner does not matter.  Any user can put
 * another file in its place.  The owner of such a file must be trusted (trusted_owner.h) or, if the
 * recording does not identify the file, be the process's own user.
 */

enum dump_trust {
    DUMP_UNTRUSTED,  /* its owner could have written anything that perfjit reads */
    DUMP_OF_PROCESS, /* its owner is the process's user, who could have written to it anyway:
                      * trusted if it is the process's output */
    DUMP_TRUSTED     /* whatever it is */
};

/* The trust in DUMP, which stands for the mapping MAP of LIFE.  IDENTITY: whether it is that
 * file. */
static enum dump_trust dump_trust_of(const struct dump_origin *origin,
                                     const struct process_life *life, const struct perf_map *map,
                                     const struct jit_dump *dump, enum file_identity identity)
{
    struct live_process live;
    if (dump_origin_is_proven(origin, map, dump) ||
        owner_is_trusted(dump->owner_uid, origin->recording_owner))
        return DUMP_TRUSTED;
    bool own = identity != FILE_OTHER && dump_place_lives(origin->records, life, &live) &&
               live.uid == dump->owner_uid;
    return own ? DUMP_OF_PROCESS : DUMP_UNTRUSTED;
}

bool dump_claim_same_file(const struct perf_map *a, const struct perf_map *b)
{
    bool new_inode = a->generation && b->generation && a->generation != b->generation;
    if (a->has_inode && b->has_inode)
        return a->maj == b->maj && a->min == b->min && a->ino == b->ino && !new_inode;
    return strcmp(a->filename, b->filename) == 0;
}

/* ---- Collecting ---- */

/* Claims by the files that they are on.  A life may map any number of files, and of any names. */
struct claims_by_file {
    struct number_map newest; /* by key */
    uint32_t *before; /* by claim: the one before it with its inode, or NUMBER_MAP_NOTHING */
    size_t capacity;
};

enum claim_key { KEY_INODE, KEY_NAME, KEY_NAME_ALONE /* of a map without inode */ };

static uint64_t key_of(enum claim_key kind, uint32_t life, const struct perf_map *map)
{
    uint64_t key = ((uint64_t)life << 2 | kind) * UINT64_C(0x9e3779b97f4a7c15);
    if (kind == KEY_INODE)
        return key ^ map->ino * UINT64_C(0xff51afd7ed558ccd);
    for (const char *at = map->filename; *at; at++) /* FNV-1a */
        key = (key ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return key;
}

/* Note that CLAIM is on MAP's file.  IS_NEW: it was on none.  Returns 0, or -1 without memory. */
static int note_claim(struct claims_by_file *files, const struct dump_claims *claims,
                      uint32_t claim, const struct perf_map *map, bool is_new)
{
    const uint32_t life = claims->items[claim].life;
    const uint64_t inode = key_of(KEY_INODE, life, map);
    if (is_new && array_reserve(files->before, claim, files->capacity))
        return -1;
    if (is_new)
        files->before[claim] = number_map_get(&files->newest, inode);
    if (number_map_put(&files->newest, key_of(KEY_NAME, life, map), claim))
        return -1;
    if (!map->has_inode)
        return number_map_put(&files->newest, key_of(KEY_NAME_ALONE, life, map), claim);
    return is_new ? number_map_put(&files->newest, inode, claim) : 0;
}

static bool is_claim_on(const struct dump_claim *claim, uint32_t life, const struct perf_map *map)
{
    return claim->life == life && dump_claim_same_file(&claim->map->map, map) &&
           perf_map_same_name(claim->map->map.filename, map->filename);
}

/* The newest claim of LIFE on MAP's file, or NUMBER_MAP_NOTHING. */
static uint32_t find_claim(const struct claims_by_file *files, const struct dump_claims *claims,
                           uint32_t life, const struct perf_map *map)
{
    const enum claim_key names = map->has_inode ? KEY_NAME_ALONE : KEY_NAME;
    uint32_t by_name = number_map_get(&files->newest, key_of(names, life, map));
    if (by_name != NUMBER_MAP_NOTHING && !is_claim_on(&claims->items[by_name], life, map))
        by_name = NUMBER_MAP_NOTHING;
    if (!map->has_inode)
        return by_name;
    uint32_t by_inode = number_map_get(&files->newest, key_of(KEY_INODE, life, map));
    while (by_inode != NUMBER_MAP_NOTHING && !is_claim_on(&claims->items[by_inode], life, map))
        by_inode = files->before[by_inode];
    if (by_inode == NUMBER_MAP_NOTHING || by_name == NUMBER_MAP_NOTHING)
        return by_inode == NUMBER_MAP_NOTHING ? by_name : by_inode;
    return by_inode > by_name ? by_inode : by_name;
}

static struct dump_claim *add_claim(struct dump_claims *claims, const struct recorded_map *map,
                                    uint32_t number)
{
    if (array_reserve(claims->items, claims->count, claims->capacity))
        return NULL;
    struct dump_claim *claim = &claims->items[claims->count++];
    *claim = (struct dump_claim){.number = number, .map = map};
    claim->named = jit_dump_name_pid(map->map.filename, &number);
    claim->life = process_life_at(claims->lives, map->map.pid, life_moment_of(map));
    return claim;
}

/* The claim that MAP, of the dump of pid NUMBER, belongs to.  A life has one for each file, however
 * often the file is mapped.  Returns SIZE_MAX without memory. */
static size_t claim_of(struct dump_claims *claims, struct claims_by_file *files,
                       const struct recorded_map *map, uint32_t number)
{
    const uint32_t life = process_life_at(claims->lives, map->map.pid, life_moment_of(map));
    uint32_t claim = find_claim(files, claims, life, &map->map);
    const bool is_new = claim == NUMBER_MAP_NOTHING;
    if (!is_new && !claims->items[claim].map->synthesized)
        return claim;
    if (is_new && !add_claim(claims, map, number))
        return SIZE_MAX;
    claim = is_new ? (uint32_t)claims->count - 1 : claim;
    claims->items[claim].map = map;
    return note_claim(files, claims, claim, &map->map, is_new) ? SIZE_MAX : claim;
}

static int add_marker(struct dump_claims *claims, uint64_t offset, size_t claim)
{
    if (array_reserve(claims->markers, claims->marker_count, claims->marker_capacity))
        return -1;
    claims->markers[claims->marker_count++] = (struct dump_marker){offset, claim};
    return 0;
}

/* Whether MAP is of a dump, and its NUMBER.  perf record -d also sees the mappings of whoever
 * merely reads a dump: those are not executable. */
static bool is_marker(struct dump_probe *probe, const struct perf_map *map, uint32_t *number,
                      bool *failed)
{
    if (jit_dump_name_pid(map->filename, number))
        return !map->data || *number == map->pid;
    return dump_probe_may_be(map) && dump_probe_file(probe, map, number, failed);
}

int dump_claims_collect(struct dump_claims *claims, const struct dump_claim_options *options,
                        const struct records *records, const struct process_lives *lives,
                        struct findings *findings)
{
    bool failed = false;
    struct dump_probe probe = {.root = options->root};
    struct claims_by_file files = {.before = NULL};
    *claims = (struct dump_claims){.options = *options,
                                   .records = records,
                                   .lives = lives,
                                   .are_told = injected_image(records) != NULL};
    dump_origin_begin(&claims->origin, records);
    for (size_t i = 0; i < records->map_count && !failed; i++) {
        const struct recorded_map *map = &records->maps[i];
        uint32_t number;
        if (!is_marker(&probe, &map->map, &number, &failed))
            continue;
        size_t claim = claim_of(claims, &files, map, number);
        failed = claim == SIZE_MAX || add_marker(claims, map->record.offset, claim);
    }
    dump_probe_free(&probe);
    number_map_free(&files.newest);
    free(files.before);
    return failed ? report_failure(findings, "out of memory") : 0;
}

const struct process_life *dump_claim_life(const struct dump_claims *claims,
                                           const struct dump_claim *claim)
{
    return &claims->lives->items[claim->life];
}

/* ---- Evidence for a number that is not the pid ---- */

enum evidence { EVIDENCE_FOR, EVIDENCE_AGAINST, EVIDENCE_NONE };

/* Is it in a pid namespace that is not everybody's? */
static enum evidence ask_namespaces(const struct dump_claims *claims,
                                    const struct dump_claim *claim)
{
    const struct records *records = claims->records;
    uint32_t pid = dump_claim_life(claims, claim)->pid;
    uint64_t own = records_namespace_of(records, pid, claim->map->time_ns);
    enum evidence evidence = EVIDENCE_NONE;
    for (size_t i = 0; own && i < records->namespace_count; i++) {
        if (records->namespaces[i].pid == pid)
            continue;
        if (records->namespaces[i].inode != own)
            return EVIDENCE_FOR;
        evidence = EVIDENCE_AGAINST;
    }
    return evidence;
}

/* Does it take the number for its pid, where it still lives? */
static enum evidence ask_proc(const struct dump_claims *claims, const struct dump_claim *claim)
{
    struct live_process live;
    if (!dump_place_lives(claims->records, dump_claim_life(claims, claim), &live))
        return EVIDENCE_NONE;
    return live.namespace_pid == claim->number ? EVIDENCE_FOR : EVIDENCE_AGAINST;
}

/* Is every other process excluded?  (Of several that mapped the file is_better chooses.)  Only a
 * parent with that pid, which had mapped its dump before the recording. */
static enum evidence ask_ancestors(const struct dump_claims *claims, const struct dump_claim *claim)
{
    uint32_t life = dump_claim_life(claims, claim)->parent;
    for (; life != NO_LIFE; life = claims->lives->items[life].parent)
        if (claims->lives->items[life].pid == claim->number)
            return EVIDENCE_AGAINST;
    return EVIDENCE_FOR;
}

static bool is_foreign(const struct dump_claims *claims, const struct dump_claim *claim)
{
    return claim->number != dump_claim_life(claims, claim)->pid;
}

/* The first source that has evidence decides.  A process that maps a file of any other name need
 * not be its writer. */
static bool has_evidence(const struct dump_claims *claims, const struct dump_claim *claim)
{
    enum evidence evidence = ask_proc(claims, claim);
    if (evidence == EVIDENCE_NONE)
        evidence = ask_namespaces(claims, claim);
    if (evidence == EVIDENCE_NONE && claim->named)
        evidence = ask_ancestors(claims, claim);
    return claim->dump.pid == claim->number && evidence == EVIDENCE_FOR;
}

/* ---- Finding the files ---- */

static void refuse(struct dump_claim *claim, enum finding_kind kind)
{
    claim->state = CLAIM_REFUSED;
    claim->refusal = kind;
    claim->over = kind == FINDING_CLOCK_USELESS || kind == FINDING_DUMP_REPLACED ||
                  kind == FINDING_DUMP_TRUNCATED || kind == FINDING_DUMP_ANEW ||
                  (kind == FINDING_DUMP_UNUSABLE && claim->dump.ino);
}

static const char *path_of(const struct dump_claim *claim)
{
    return claim->place.path ? claim->place.path : claim->map->map.filename;
}

/* No dump is used for CLAIM: report that with PATH and the text.  For an injected recording this
 * was reported at its injection; processes that needed no dump then need none now. */
__attribute__((format(printf, 6, 7))) static void refuse_saying(
    const struct dump_claims *claims, struct dump_claim *claim, enum finding_kind kind,
    const char *path, struct findings *findings, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (claims->are_told)
        report_note(findings, "%s: %s", path, text);
    else
        report_finding(findings, kind, "%s: %s", path, text);
    refuse(claim, kind);
}

void dump_claim_refuse(const struct dump_claims *claims, struct dump_claim *claim,
                       enum finding_kind kind, const char *why, struct findings *findings)
{
    refuse_saying(claims, claim, kind, path_of(claim), findings, "process %" PRIu32 ": %s",
                  dump_claim_life(claims, claim)->pid, why);
}

/* Whether both had the file at one address when the recording began.  A child from before that has
 * no FORK, but its parent's mappings. */
static bool are_inherited(const struct dump_claim *claim, const struct dump_claim *other)
{
    return claim->map->synthesized && other->map->synthesized &&
           claim->map->map.start == other->map->map.start;
}

/* A forked child that maps its parent's dump again shares it: the parent's claim, or LOAD.pid,
 * names the owner of each record. */
static bool is_shared(const struct dump_claims *claims, const struct dump_claim *claim)
{
    for (size_t i = 0; i < claims->count; i++) {
        const struct dump_claim *other = &claims->items[i];
        if (dump_claim_life(claims, other)->pid == claim->number && other != claim &&
            dump_claim_same_file(&other->map->map, &claim->map->map) &&
            (process_life_descends(claims->lives, claim->life, other->life) ||
             are_inherited(claim, other)))
            return true;
    }
    return false;
}

/* Whether the dump's header is of a time at which the pid had another life that claims a dump of
 * this name: then that one wrote the file. */
static bool opened_in_another_life(const struct dump_claims *claims, const struct dump_claim *claim)
{
    uint64_t opened_ns = claim->dump.timestamp;
    uint32_t pid = dump_claim_life(claims, claim)->pid;
    const struct dump_claim *other = claim, *end = claims->items + claims->count;
    while (other > claims->items && dump_claim_life(claims, other - 1)->pid == pid)
        other--;
    for (; other < end && dump_claim_life(claims, other)->pid == pid; other++) {
        const struct process_life *life = dump_claim_life(claims, other);
        if (other->life != claim->life &&
            perf_map_same_name(other->map->map.filename, claim->map->map.filename) &&
            opened_ns >= life->begin.time_ns && opened_ns <= life->end_ns)
            return true;
    }
    return false;
}

/* Whether the process went on as another program, by exec, which wrote its dump into the same file.
 * By its times the dump is of that program's life. */
static bool written_anew(const struct dump_claims *claims, const struct dump_claim *claim)
{
    static const struct jit_clock as_it_is = {0};
    const struct process_life *life = dump_claim_life(claims, claim);
    const struct dump_claim *end = claims->items + claims->count;
    if (!life->execed || dump_origin_fit(life, &claim->dump, &as_it_is, 0, 1, NULL))
        return false;
    for (const struct dump_claim *other = claim + 1; other < end; other++) {
        const struct process_life *later = dump_claim_life(claims, other);
        if (later->pid != life->pid)
            return false;
        if (perf_map_same_name(other->map->map.filename, claim->map->map.filename) &&
            dump_origin_fit(later, &claim->dump, &as_it_is, FIT_SLACK_NS, 1, NULL))
            return true;
    }
    return false;
}

/* Whether nothing was recorded that CLAIM's dump could name, nor a time that its own could fit. */
static bool is_not_needed(const struct dump_claims *claims, const struct dump_claim *claim)
{
    const struct process_life *life = dump_claim_life(claims, claim);
    return life->begin.time_ns == 0 && life->end_ns == UINT64_MAX && claim->map->time_ns == 0 &&
           !records_has_samples(claims->records);
}

/* ---- Another file, or another's ---- */

uint64_t dump_claim_distance(const struct dump_claims *claims, const struct dump_claim *claim,
                             const struct jit_dump *dump, const struct jit_clock *clock)
{
    size_t count;
    const struct process_life *life = dump_claim_life(claims, claim);
    const struct recorded_map *maps =
        process_life_maps(claims->records, life->pid, life->begin, life->next, &count);
    uint64_t least_ns = DISTANCE_UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        if (!dump_claim_same_file(&maps[i].map, &claim->map->map))
            continue;
        uint64_t distance_ns = dump_origin_distance(&claims->origin, &maps[i], dump, clock);
        least_ns = distance_ns < least_ns ? distance_ns : least_ns;
    }
    return least_ns;
}

/* The time in which the recorded process can have written the sampled code. */
static struct process_life recorded_life(const struct dump_claims *claims,
                                         const struct dump_claim *claim)
{
    struct process_life life = *dump_claim_life(claims, claim);
    uint64_t last_ns = records_last_sample_ns(claims->records);
    if (claim->map->time_ns > life.begin.time_ns)
        life.begin.time_ns = claim->map->time_ns;
    if (life.end_ns == UINT64_MAX && last_ns)
        life.end_ns = last_ns;
    return life;
}

/* The reason why the contents of CLAIM's dump are not the process's output; NULL: nothing speaks
 * against it. */
static const char *why_no_copy(const struct dump_claims *claims, const struct dump_claim *claim)
{
    size_t total;
    struct process_life life = recorded_life(claims, claim);
    uint64_t distance_ns = dump_claim_distance(claims, claim, &claim->dump, &claim->clock);
    if (claim->dump.pid != claim->number)
        return "its header has another pid";
    if (claim->clock.frozen || claim->clock.by_marker)
        return "its times, which are not of the recording's clock, can't show whether it is a copy";
    if (distance_ns != DISTANCE_UNKNOWN && distance_ns > HEADER_SLACK_NS)
        return "its header was not written when the process mapped its dump";
    if (dump_origin_fit(&life, &claim->dump, &claim->clock, FIT_SLACK_NS, 1, &total) == 0 && total)
        return "nothing in it was written while the process was recorded";
    return NULL;
}

static bool is_stage(const struct dump_claim *claim)
{
    return jit_dump_name_is_stage(claim->map->map.filename);
}

static enum dump_trust trust_of(const struct dump_claims *claims, const struct dump_claim *claim)
{
    return claims->options.any_owner
               ? DUMP_TRUSTED
               : dump_trust_of(&claims->origin, dump_claim_life(claims, claim), &claim->map->map,
                               &claim->dump, claim->place.identity);
}

static void refuse_owner(const struct dump_claims *claims, struct dump_claim *claim,
                         struct findings *findings)
{
    const char *other = claim->place.identity == FILE_OTHER
                            ? "is not the file that the process mapped"
                            : "nothing proves that it is the file that the process mapped";
    refuse_saying(claims, claim, FINDING_DUMP_OWNER, claim->place.path, findings,
                  "belongs to the user with id %" PRIu32 ", and %s", claim->dump.owner_uid, other);
}

/* WHY: it can't be a copy; NULL: its records will show. */
static void judge_copy(const struct dump_claims *claims, struct dump_claim *claim,
                       enum dump_trust trust, const char *why, struct findings *findings)
{
    char text[256];
    if (!why)
        why = why_no_copy(claims, claim);
    if (why) {
        snprintf(text, sizeof text, "the file there is not the one that it mapped: %s", why);
        dump_claim_refuse(claims, claim, FINDING_DUMP_REPLACED, text, findings);
    } else if (trust != DUMP_TRUSTED) {
        refuse_owner(claims, claim, findings);
    } else {
        report_note(findings,
                    "%s: taken for a copy of what process %" PRIu32 " mapped, by what is in it",
                    claim->place.path, dump_claim_life(claims, claim)->pid);
    }
}

/* ---- Dumps that are begun anew ---- */

/* Mappings of one file that are further apart than this are not of one opening. */
#define ANEW_NS UINT64_C(10000000)

/* Whether both are of one path, whether removed or not. */
static bool same_path(const struct dump_claim *a, const struct dump_claim *b)
{
    const char *path = a->map->map.filename, *other = b->map->map.filename;
    size_t length = perf_map_name_length(path);
    return length == perf_map_name_length(other) && strncmp(path, other, length) == 0;
}

/* The claim of the same life to the file that it mapped at CLAIM's path next; NULL: there is
 * none. */
static const struct dump_claim *next_at_path(const struct dump_claims *claims,
                                             const struct dump_claim *claim)
{
    const struct dump_claim *end = claims->items + claims->count;
    for (const struct dump_claim *next = claim + 1; next < end && next->life == claim->life; next++)
        if (same_path(claim, next))
            return next;
    return NULL;
}

static void report_anew(const struct dump_claims *claims, const struct dump_claim *claim,
                        struct findings *findings)
{
    if (!claims->are_told)
        report_finding(findings, FINDING_DUMP_ANEW,
                       "%s: process %" PRIu32 " wrote it anew at %.6f s", path_of(claim),
                       dump_claim_life(claims, claim)->pid, (double)claim->anew_ns / 1e9);
}

/* Refuse CLAIM if the file at its path, which is another one, is what its process began later.
 * Returns whether that is so. */
static bool refuse_anew(const struct dump_claims *claims, struct dump_claim *claim,
                        struct findings *findings)
{
    const struct dump_claim *next = is_stage(claim) ? NULL : next_at_path(claims, claim);
    if (!next || (claim->dump.pid && claim->dump.pid != claim->number))
        return false;
    claim->anew_ns = next->map->time_ns;
    report_anew(claims, claim, findings);
    refuse(claim, FINDING_DUMP_ANEW);
    return true;
}

/* When the process mapped CLAIM's file as it is now, if it had mapped it before; else 0.  Its
 * header is of that time then. */
static uint64_t find_anew(const struct dump_claims *claims, const struct dump_claim *claim)
{
    const struct process_life *life = dump_claim_life(claims, claim);
    uint64_t header_ns = jit_clock_to_perf(&claim->clock, claim->dump.timestamp);
    uint64_t first_ns = 0, nearest_ns = 0;
    size_t count;
    const struct recorded_map *maps =
        process_life_maps(claims->records, life->pid, life->begin, life->next, &count);
    for (size_t i = 0; i < count; i++) {
        if (maps[i].synthesized || !dump_claim_same_file(&maps[i].map, &claim->map->map))
            continue;
        first_ns = first_ns ? first_ns : maps[i].time_ns;
        if (perf_time_apart(maps[i].time_ns, header_ns) < perf_time_apart(nearest_ns, header_ns))
            nearest_ns = maps[i].time_ns;
    }
    return first_ns && header_ns > first_ns && header_ns - first_ns > ANEW_NS &&
                   perf_time_apart(nearest_ns, header_ns) < (header_ns - first_ns) / 8
               ? nearest_ns
               : 0;
}

/* A dump that its process truncated has what was logged since. */
static void note_anew(const struct dump_claims *claims, struct dump_claim *claim,
                      struct findings *findings)
{
    if (is_stage(claim) || claim->clock.frozen || claim->clock.by_marker)
        return;
    claim->anew_ns = find_anew(claims, claim);
    if (claim->anew_ns)
        report_anew(claims, claim, findings);
}

/* The log is made before the clock is known, which its stamps decide: a large dump is walked once.
 * Not with -v, which prints each finding at once: the dump may turn out to be another's. */
static int read_log(const struct dump_claims *claims, struct dump_claim *claim,
                    struct findings *findings)
{
    static const struct jit_clock as_it_is = {0};
    if (findings->verbose)
        return 0;
    claim->is_read = true;
    claim->findings.progress = findings->progress;
    int result = code_log_read(&claim->log, &claim->dump, 0, &as_it_is, !claims->options.no_lines,
                               &claim->findings);
    findings->progress = claim->findings.progress;
    return result ? report_failure(findings, "%s", claim->findings.failure) : 0;
}

/* STAMPS: room for the dump's. */
static struct clock_question clock_question_of(const struct dump_claims *claims,
                                               const struct dump_claim *claim,
                                               struct stamp_range *stamps)
{
    const struct process_life *life = dump_claim_life(claims, claim);
    *stamps = code_log_stamps(&claim->log);
    return (struct clock_question){
        .records = claims->records,
        .dump = &claim->dump,
        .stamps = claim->is_read ? stamps : NULL,
        .pid = life->pid,
        .read_live = clock_live_read,
        .life = {life->begin.time_ns, life->end_ns},
        .in_another_life = opened_in_another_life(claims, claim),
        .may_be_anothers = true,
        .shared = &claims->clocks,
    };
}

static const char *choose_clock(const struct dump_claims *claims, struct dump_claim *claim,
                                char why[512], struct findings *findings)
{
    struct stamp_range stamps;
    const struct clock_question question = clock_question_of(claims, claim, &stamps);
    return clock_choose(&claim->clock, &question, why, findings);
}

/* A file that may be another's shows nothing. */
static void learn_clock(struct dump_claims *claims, const struct dump_claim *claim,
                        enum dump_trust trust)
{
    struct stamp_range stamps;
    const struct clock_question question = clock_question_of(claims, claim, &stamps);
    if (claims->count > 1 && claim->place.identity != FILE_OTHER && trust == DUMP_TRUSTED)
        clock_learn(&claims->clocks, &question);
}

/* Read the facts that must be known before the clock of any claim is chosen. */
static void read_claim(struct dump_claims *claims, struct dump_claim *claim,
                       struct findings *findings)
{
    char text[DUMP_MACHINE_TEXT_BYTES];
    if (is_foreign(claims, claim) && !has_evidence(claims, claim)) {
        refuse_saying(claims, claim, FINDING_DUMP_NOT_OURS, claim->map->map.filename, findings,
                      "was mapped by process %" PRIu32, dump_claim_life(claims, claim)->pid);
        return;
    }
    if (claim->place.identity == FILE_OTHER && refuse_anew(claims, claim, findings))
        return;
    enum dump_trust trust = trust_of(claims, claim);
    if (claim->place.identity != FILE_OTHER && trust == DUMP_UNTRUSTED) {
        refuse_owner(claims, claim, findings);
        return;
    }
    if (is_stage(claim) && jit_dump_is_empty(&claim->dump)) {
        claim->state = CLAIM_SETTLED; /* nor does it tell a time */
        return;
    }
    dump_machine_correct(&claim->dump, claims->records->file, findings);
    const char *why = dump_machine_refusal(&claim->dump, text);
    if (why) {
        refuse_saying(claims, claim, FINDING_DUMP_UNUSABLE, claim->place.path, findings, "%s", why);
        return;
    }
    if (read_log(claims, claim, findings))
        return;
    learn_clock(claims, claim, trust);
    claim->is_open = true;
}

static void judge_claim(const struct dump_claims *claims, struct dump_claim *claim,
                        struct findings *findings)
{
    char text[512];
    enum dump_trust trust = trust_of(claims, claim);
    const char *why = choose_clock(claims, claim, text, findings);
    claim->is_open = false;
    claim->state = CLAIM_FOUND;
    if (claim->place.identity == FILE_OTHER) {
        judge_copy(claims, claim, trust, why ? "its times are not of this recording" : NULL,
                   findings);
    } else if (trust != DUMP_TRUSTED && (why || why_no_copy(claims, claim))) {
        refuse_owner(claims, claim, findings);
    } else if (why && is_not_needed(claims, claim)) {
        claim->state = CLAIM_SETTLED;
    } else if (why && written_anew(claims, claim)) {
        dump_claim_refuse(claims, claim, FINDING_DUMP_REPLACED, DUMP_WRITTEN_ANEW, findings);
    } else if (why) {
        refuse_saying(claims, claim, FINDING_DUMP_UNUSABLE, claim->place.path, findings, "%s", why);
        refuse(claim, FINDING_CLOCK_USELESS);
    }
    if (claim->state == CLAIM_FOUND)
        note_anew(claims, claim, findings);
}

static void refuse_missing(const struct dump_claims *claims, struct dump_claim *claim,
                           const struct dump_place_question *question, struct findings *findings)
{
    char text[DUMP_PLACE_TEXT_BYTES];
    dump_place_missing(text, question);
    refuse_saying(
        claims, claim, FINDING_DUMP_MISSING, claim->map->map.filename, findings, "%s%s", text,
        is_stage(claim) ? "; the newest that its process recorded was in it, since that did "
                          "not close its dump"
                        : "");
}

/* The claim to the dump whose stage CLAIM is, or NULL. */
static const struct dump_claim *body_of(const struct dump_claims *claims,
                                        const struct dump_claim *claim)
{
    for (size_t i = 0; i < claims->count; i++)
        if (claims->items[i].life == claim->life &&
            jit_dump_name_is_stage_of(claim->map->map.filename, claims->items[i].map->map.filename))
            return &claims->items[i];
    return NULL;
}

/* A dump that was closed has all that was in its stage, and of one that can't be used enough has
 * been said.  Returns whether that is so. */
static bool settle_by_body(const struct dump_claims *claims, struct dump_claim *claim)
{
    const struct dump_claim *body = body_of(claims, claim);
    if (!body || (!body->closed && body->state != CLAIM_REFUSED))
        return false;
    if (body->state == CLAIM_REFUSED)
        refuse(claim, body->refusal);
    else
        claim->state = CLAIM_SETTLED;
    return true;
}

/* Nothing but the part in the buffer is missing of an empty dump, as of one that ends in a record.
 */
static void refuse_unusable(const struct dump_claims *claims, struct dump_claim *claim,
                            struct findings *findings)
{
    bool empty = claim->dump.ino && claim->dump.size == 0;
    refuse_saying(claims, claim, empty ? FINDING_DUMP_TRUNCATED : FINDING_DUMP_UNUSABLE,
                  claim->place.path, findings, "%s", claim->place.cause);
}

/* A header with another pid is told first: no clock mends it. */
static void refuse_replaced(const struct dump_claims *claims, struct dump_claim *claim,
                            struct findings *findings)
{
    char text[128];
    bool anothers = claim->dump.pid && claim->dump.pid != claim->number;
    snprintf(text, sizeof text,
             anothers ? "the file there is not the one that it mapped: its header has pid %" PRIu32
                      : "the file there is not the one that it mapped",
             claim->dump.pid);
    dump_claim_refuse(claims, claim, FINDING_DUMP_REPLACED, text, findings);
}

/* DEFERS: a stage that is not found stays open until its body is known. */
static int find_file(struct dump_claims *claims, struct dump_claim *claim, bool defers,
                     struct findings *findings)
{
    enum dump_place_result result;
    const struct dump_place_question question = {
        &claims->origin, dump_claim_life(claims, claim), claim->map,
        claim->number,   is_foreign(claims, claim),      claims->options.root};
    if (question.foreign && is_shared(claims, claim)) {
        claim->state = CLAIM_SETTLED;
        return 0;
    }
    if (dump_place_find(&claim->place, &question, &result))
        return report_failure(findings, "out of memory");
    claim->dump = claim->place.dump;
    claim->closed = result == DUMP_PLACE_FOUND && jit_dump_is_closed(&claim->dump);
    claim->place.dump = (struct jit_dump){0};
    if (result != DUMP_PLACE_FOUND && is_stage(claim) &&
        (defers || settle_by_body(claims, claim))) {
        free(claim->place.path);
        claim->place.path = NULL;
        return 0;
    }
    switch (result) {
    case DUMP_PLACE_FOUND:
        if (unwritten_source_append(&claims->options.unwritten, &claim->dump, question.life->pid,
                                    findings))
            return -1;
        read_claim(claims, claim, findings);
        break;
    case DUMP_PLACE_MISSING:
        refuse_missing(claims, claim, &question, findings);
        break;
    case DUMP_PLACE_REPLACED:
        if (!refuse_anew(claims, claim, findings))
            refuse_replaced(claims, claim, findings);
        break;
    case DUMP_PLACE_UNUSABLE:
        refuse_unusable(claims, claim, findings);
        break;
    }
    return 0;
}

/* The files of the claims that are still open: STAGES, or all others. */
static int find_files(struct dump_claims *claims, bool stages, bool defers,
                      struct findings *findings)
{
    for (size_t i = 0; i < claims->count; i++) {
        struct dump_claim *claim = &claims->items[i];
        if (claim->state == CLAIM_OPEN && !claim->is_open && is_stage(claim) == stages &&
            find_file(claims, claim, defers, findings))
            return -1;
    }
    return 0;
}

/* The claims whose files were found: how far the clocks are apart all of them show together. */
static void judge_claims(struct dump_claims *claims, struct findings *findings)
{
    for (size_t i = 0; i < claims->count && !findings->failure[0]; i++)
        if (claims->items[i].is_open)
            judge_claim(claims, &claims->items[i], findings);
}

/* While a process goes on, records move from its stage to its dump: a reader that looks at the dump
 * first could miss them. */
int dump_claims_settle(struct dump_claims *claims, struct findings *findings)
{
    if (find_files(claims, true, true, findings) || find_files(claims, false, false, findings))
        return -1;
    judge_claims(claims, findings);
    if (find_files(claims, true, false, findings))
        return -1;
    judge_claims(claims, findings);
    return findings->failure[0] ? -1 : 0;
}

void dump_claims_free(struct dump_claims *claims)
{
    for (size_t i = 0; i < claims->count; i++) {
        jit_dump_close(&claims->items[i].dump);
        free(claims->items[i].place.path);
        code_log_free(&claims->items[i].log);
        findings_free(&claims->items[i].findings);
    }
    free(claims->items);
    free(claims->markers);
    *claims = (struct dump_claims){0};
}
