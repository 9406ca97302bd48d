/* See dump_claim.h. */
#include "injector/jit/dump_claim.h"

#include "injector/array.h"
#include "injector/jit/dump_machine.h"
#include "injector/jit/dump_name.h"
#include "injector/jit/file_owner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A dump's first records and its process's FORK or EXIT can be stamped by clocks that are this far apart. */
#define FIT_SLACK_NS UINT64_C(100000000)

static bool same_file(const struct perf_map *a, const struct perf_map *b)
{
    if (a->has_inode && b->has_inode)
        return a->maj == b->maj && a->min == b->min && a->ino == b->ino;
    return strcmp(a->filename, b->filename) == 0;
}

/* ---- Collecting ---- */

static struct dump_claim *add_claim(struct dump_claims *claims, const struct profile_map *map,
                                    uint32_t number)
{
    struct dump_claim *items =
        array_room(claims->items, claims->count, &claims->capacity, sizeof *items);
    if (!items)
        return NULL;
    claims->items = items;
    struct dump_claim *claim = &items[claims->count++];
    *claim = (struct dump_claim){.number = number, .map = map};
    claim->life = process_life_at(claims->lives, map->map.pid,
                                  (struct life_moment){map->time_ns, map->record.number});
    return claim;
}

/* Which claim MAP, of a file jit-<NUMBER>.dump, belongs to: one for each file of a life, however often it is mapped.
 * Returns SIZE_MAX without memory. */
static size_t claim_of(struct dump_claims *claims, const struct profile_map *map, uint32_t number)
{
    uint32_t life = process_life_at(claims->lives, map->map.pid,
                                    (struct life_moment){map->time_ns, map->record.number});
    for (size_t i = claims->count; i-- > 0 && claims->items[i].life == life;)
        if (same_file(&claims->items[i].map->map, &map->map) &&
            jit_dump_same_name(claims->items[i].map->map.filename, map->map.filename))
            return i;
    return add_claim(claims, map, number) ? claims->count - 1 : SIZE_MAX;
}

static int add_marker(struct dump_claims *claims, uint64_t offset, size_t claim)
{
    struct dump_marker *markers = array_room(claims->markers, claims->marker_count,
                                             &claims->marker_capacity, sizeof *markers);
    if (!markers)
        return -1;
    claims->markers = markers;
    markers[claims->marker_count++] = (struct dump_marker){offset, claim};
    return 0;
}

/* perf record -d also sees the mappings of whoever merely reads a dump: those are not executable. */
int dump_claims_collect(struct dump_claims *claims, const struct profile *profile,
                        const struct process_lives *lives, struct findings *findings)
{
    *claims = (struct dump_claims){.profile = profile,
                                   .lives = lives,
                                   .any_owner = claims->any_owner,
                                   .no_lines = claims->no_lines};
    for (size_t i = 0; i < profile->map_count; i++) {
        const struct profile_map *map = &profile->maps[i];
        uint32_t number;
        if (!jit_dump_name_pid(map->map.filename, &number) ||
            (map->map.data && number != map->map.pid))
            continue;
        size_t claim = claim_of(claims, map, number);
        if (claim == SIZE_MAX || add_marker(claims, map->record.offset, claim))
            return failure(findings, "out of memory");
    }
    return 0;
}

/* ---- When a dump was written ---- */

size_t dump_claim_fit(const struct process_life *life, const struct jit_dump *dump,
                      const struct jit_clock *clock, uint64_t slack_ns, size_t limit, size_t *total)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    size_t fitting = 0, seen = 0;
    uint64_t begin = life->begin.time_ns > slack_ns ? life->begin.time_ns - slack_ns : 0;
    uint64_t end = life->end_ns < UINT64_MAX - slack_ns ? life->end_ns + slack_ns : UINT64_MAX;
    enum jit_dump_end end_of_walk;
    while (fitting < limit && ((end_of_walk = jit_dump_next(&walk, &record)) == JIT_DUMP_MORE ||
                               end_of_walk == JIT_DUMP_TORN)) {
        if (end_of_walk == JIT_DUMP_TORN || record.id != JIT_CODE_LOAD)
            continue;
        uint64_t time_ns = jit_clock_to_perf(clock, record.timestamp);
        seen++;
        fitting += time_ns >= begin && time_ns <= end;
    }
    if (total)
        *total = seen;
    return fitting;
}

static const struct process_life *life_of(const struct dump_claims *claims,
                                          const struct dump_claim *claim)
{
    return &claims->lives->items[claim->life];
}

static size_t fit_of(const struct dump_claims *claims, const struct dump_claim *claim)
{
    return dump_claim_fit(life_of(claims, claim), &claim->dump, &claim->clock, 0, SIZE_MAX, NULL);
}

/* ---- Evidence for a number that is not the pid ---- */

enum evidence { SPEAKS_FOR, SPEAKS_AGAINST, SAYS_NOTHING };

/* Is it in a pid namespace that is not everybody's? */
static enum evidence ask_namespaces(const struct dump_claims *claims,
                                    const struct dump_claim *claim)
{
    const struct profile *profile = claims->profile;
    uint32_t pid = life_of(claims, claim)->pid;
    uint64_t own = profile_namespace_of(profile, pid, claim->map->time_ns);
    enum evidence evidence = SAYS_NOTHING;
    for (size_t i = 0; own && i < profile->namespace_count; i++) {
        if (profile->namespaces[i].pid == pid)
            continue;
        if (profile->namespaces[i].inode != own)
            return SPEAKS_FOR;
        evidence = SPEAKS_AGAINST;
    }
    return evidence;
}

/* Does it take the number for its pid, where it still lives? */
static enum evidence ask_proc(const struct dump_claims *claims, const struct dump_claim *claim)
{
    uint32_t namespace_pid;
    if (!dump_place_lives(claims->profile, life_of(claims, claim), &namespace_pid))
        return SAYS_NOTHING;
    return namespace_pid == claim->number ? SPEAKS_FOR : SPEAKS_AGAINST;
}

/* Can nobody else be meant?  (Of several that mapped the file the judges below choose.)  Only a parent with that pid, which had
 * mapped its dump before the recording. */
static enum evidence ask_ancestors(const struct dump_claims *claims, const struct dump_claim *claim)
{
    uint32_t life = life_of(claims, claim)->parent;
    for (; life != NO_LIFE; life = claims->lives->items[life].parent)
        if (claims->lives->items[life].pid == claim->number)
            return SPEAKS_AGAINST;
    return SPEAKS_FOR;
}

static bool is_foreign(const struct dump_claims *claims, const struct dump_claim *claim)
{
    return claim->number != life_of(claims, claim)->pid;
}

/* The first witness that says anything decides. */
static bool has_evidence(const struct dump_claims *claims, const struct dump_claim *claim)
{
    enum evidence evidence = ask_proc(claims, claim);
    if (evidence == SAYS_NOTHING)
        evidence = ask_namespaces(claims, claim);
    if (evidence == SAYS_NOTHING)
        evidence = ask_ancestors(claims, claim);
    return claim->dump.pid == claim->number && evidence == SPEAKS_FOR;
}

/* ---- Finding the files ---- */

void dump_claim_refuse(const struct dump_claims *claims, struct dump_claim *claim,
                       enum finding_kind kind, const char *why, struct findings *findings)
{
    const char *path = claim->place.path ? claim->place.path : claim->map->map.filename;
    finding(findings, kind, "%s: process %" PRIu32 ": %s", path, life_of(claims, claim)->pid, why);
    claim->state = CLAIM_REFUSED;
    claim->refusal = kind;
}

/* A forked child that maps its parent's dump again shares it: the parent's claim, or LOAD.pid, says what is whose. */
static bool is_shared(const struct dump_claims *claims, const struct dump_claim *claim)
{
    for (size_t i = 0; i < claims->count; i++) {
        const struct dump_claim *other = &claims->items[i];
        if (life_of(claims, other)->pid == claim->number && other != claim &&
            same_file(&other->map->map, &claim->map->map) &&
            process_life_descends(claims->lives, claim->life, other->life))
            return true;
    }
    return false;
}

/* Whether the dump's header is of a time at which the pid had another life that claims a dump of this name: then that one
 * wrote the file. */
static bool opened_in_another_life(const struct dump_claims *claims, const struct dump_claim *claim)
{
    uint64_t opened_ns = claim->dump.timestamp;
    for (size_t i = 0; i < claims->count; i++) {
        const struct dump_claim *other = &claims->items[i];
        const struct process_life *life = life_of(claims, other);
        if (other->life != claim->life && life->pid == life_of(claims, claim)->pid &&
            jit_dump_same_name(other->map->map.filename, claim->map->map.filename) &&
            opened_ns >= life->begin.time_ns && opened_ns <= life->end_ns)
            return true;
    }
    return false;
}

/* Anybody can put a file where another user's process had its dump. */
static bool is_trusted(const struct dump_claims *claims, const struct jit_dump *dump)
{
    return claims->any_owner || file_owner_is_trusted(dump->owner_uid, claims->profile->file->path);
}

/* The log is made before the clock is known, which the stamps in it tell: a large dump is walked once.  Not where each case is
 * told as it is found, since the dump may turn out to be another's. */
static int read_log(const struct dump_claims *claims, struct dump_claim *claim,
                    struct findings *findings)
{
    static const struct jit_clock as_it_is = {0};
    if (findings->verbose)
        return 0;
    claim->is_read = true;
    claim->log.no_lines = claims->no_lines;
    claim->told.progress = findings->progress;
    int result = code_log_add(&claim->log, &claim->dump, 0, &as_it_is, &claim->told);
    findings->progress = claim->told.progress;
    return result ? failure(findings, "%s", claim->told.failure) : 0;
}

static void open_claim(struct dump_claims *claims, struct dump_claim *claim,
                       struct findings *findings)
{
    char cause[256];
    if (jit_dump_open(&claim->dump, claim->place.path, cause, sizeof cause)) {
        finding(findings, FINDING_DUMP_UNUSABLE, "%s: %s", claim->place.path, cause);
        claim->state = CLAIM_REFUSED;
        claim->refusal = FINDING_DUMP_UNUSABLE;
        return;
    }
    if (!is_trusted(claims, &claim->dump)) {
        finding(findings, FINDING_DUMP_OWNER, "%s: belongs to the user with id %" PRIu32,
                claim->place.path, claim->dump.owner_uid);
        claim->state = CLAIM_REFUSED;
        claim->refusal = FINDING_DUMP_OWNER;
        return;
    }
    if (is_foreign(claims, claim) && !has_evidence(claims, claim)) {
        finding(findings, FINDING_DUMP_NOT_OURS, "%s: was mapped by process %" PRIu32,
                claim->map->map.filename, life_of(claims, claim)->pid);
        claim->state = CLAIM_REFUSED;
        claim->refusal = FINDING_DUMP_NOT_OURS;
        return;
    }
    dump_machine_correct(&claim->dump, claims->profile->file, findings);
    if (read_log(claims, claim, findings))
        return;
    char text[512];
    const struct process_life *life = life_of(claims, claim);
    const struct stamp_range stamps = code_log_stamps(&claim->log);
    const struct jit_clock_question question = {
        .profile = claims->profile,
        .dump = &claim->dump,
        .stamps = claim->is_read ? &stamps : NULL,
        .pid = life->pid,
        .read_live = clock_live_read,
        .life = {life->begin.time_ns, life->end_ns},
        .in_another_life = opened_in_another_life(claims, claim),
        .may_be_anothers = true,
    };
    const char *why = jit_clock_choose(&claim->clock, &question, text, findings);
    claim->state = why ? CLAIM_REFUSED : CLAIM_FOUND;
    claim->refusal = FINDING_CLOCK_USELESS;
    if (why)
        finding(findings, FINDING_DUMP_UNUSABLE, "%s: %s", claim->place.path, why);
}

static int find_file(struct dump_claims *claims, struct dump_claim *claim, const char *root,
                     struct findings *findings)
{
    enum dump_place_result result;
    if (is_foreign(claims, claim) && is_shared(claims, claim)) {
        claim->state = CLAIM_GIVEN;
        return 0;
    }
    if (dump_place_find(&claim->place, claims->profile, life_of(claims, claim), claim->map,
                        is_foreign(claims, claim), root, &result))
        return failure(findings, "out of memory");
    if (result == DUMP_PLACE_REPLACED) {
        dump_claim_refuse(claims, claim, FINDING_DUMP_REPLACED,
                          "the file there is not the one that it mapped", findings);
    } else if (result == DUMP_PLACE_MISSING) {
        char text[DUMP_PLACE_TEXT_BYTES];
        dump_place_missing(text, claims->profile, claim->map, is_foreign(claims, claim), root);
        finding(findings, FINDING_DUMP_MISSING, "%s: %s", claim->map->map.filename, text);
        claim->state = CLAIM_REFUSED;
        claim->refusal = FINDING_DUMP_MISSING;
    } else {
        open_claim(claims, claim, findings);
    }
    return 0;
}

/* ---- Judging ---- */

static bool are_rivals(const struct dump_claim *a, const struct dump_claim *b)
{
    return a->state == CLAIM_FOUND && b->state == CLAIM_FOUND && a->place.dev == b->place.dev &&
           a->place.ino == b->place.ino && a->life != b->life;
}

/* Whether B has the better right to the file that both claim. */
static bool is_better(const struct dump_claims *claims, const struct dump_claim *a,
                      const struct dump_claim *b, bool *equal)
{
    *equal = false;
    if (a->place.exact != b->place.exact)
        return b->place.exact;
    bool a_fits = fit_of(claims, a) > 0, b_fits = fit_of(claims, b) > 0;
    if (a_fits != b_fits)
        return b_fits;
    if (life_of(claims, a)->pid == life_of(claims, b)->pid)
        return life_moment_before(life_of(claims, a)->begin, life_of(claims, b)->begin);
    *equal = true;
    return false;
}

static void judge_rivals(struct dump_claims *claims, struct findings *findings)
{
    enum { WINS, LOSES, TIES };
    uint8_t *verdicts = calloc(claims->count + 1, 1);
    for (size_t i = 0; verdicts && i < claims->count; i++)
        for (size_t j = 0; j < claims->count; j++) {
            bool equal;
            if (!are_rivals(&claims->items[i], &claims->items[j]))
                continue;
            if (is_better(claims, &claims->items[i], &claims->items[j], &equal))
                verdicts[i] = LOSES;
            else if (equal && verdicts[i] == WINS)
                verdicts[i] = TIES;
        }
    for (size_t i = 0; verdicts && i < claims->count; i++) {
        struct dump_claim *claim = &claims->items[i];
        if (verdicts[i] == LOSES)
            dump_claim_refuse(
                claims, claim, FINDING_DUMP_REPLACED,
                "the file there is that of another process, or of a later life of this one",
                findings);
        else if (verdicts[i] == TIES)
            dump_claim_refuse(claims, claim, FINDING_DUMP_AMBIGUOUS,
                              "could be its dump, and that of another process too", findings);
    }
    if (!verdicts)
        failure(findings, "out of memory");
    free(verdicts);
}

/* All of it was written before the process was there, or after it ended. */
static void judge_time(struct dump_claims *claims, struct dump_claim *claim,
                       struct findings *findings)
{
    size_t total;
    if (claim->state == CLAIM_FOUND &&
        dump_claim_fit(life_of(claims, claim), &claim->dump, &claim->clock, FIT_SLACK_NS, 1,
                       &total) == 0 &&
        total > 0)
        dump_claim_refuse(claims, claim, FINDING_DUMP_REPLACED,
                          "the file there was written when the process was not there", findings);
}

int dump_claims_settle(struct dump_claims *claims, const char *root, struct findings *findings)
{
    for (size_t i = 0; i < claims->count; i++)
        if (claims->items[i].state == CLAIM_OPEN &&
            find_file(claims, &claims->items[i], root, findings))
            return -1;
    judge_rivals(claims, findings);
    for (size_t i = 0; i < claims->count; i++)
        judge_time(claims, &claims->items[i], findings);
    return findings->failure[0] ? -1 : 0;
}

void dump_claims_free(struct dump_claims *claims)
{
    for (size_t i = 0; i < claims->count; i++) {
        jit_dump_close(&claims->items[i].dump);
        free(claims->items[i].place.path);
        code_log_free(&claims->items[i].log);
        findings_free(&claims->items[i].told);
    }
    free(claims->items);
    free(claims->markers);
    *claims = (struct dump_claims){0};
}
