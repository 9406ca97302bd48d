/* See given_dump.h. */
#include "injector/log/owner/given_dump.h"

#include "injector/arrays/array.h"
#include "injector/log/clock/clock_choice.h"
#include "injector/log/jitdump/dump_name.h"
#include "injector/log/owner/dump_machine.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_one(struct given_dump *given, const char *path, struct findings *findings)
{
    char cause[256];
    uint32_t number;
    given->path = strdup(path);
    if (!given->path)
        return report_failure(findings, "out of memory");
    given->life = NO_LIFE;
    given->usable = jit_dump_open(&given->dump, given->path, cause, sizeof cause) == 0;
    if (given->usable)
        return 0;
    if (!jit_dump_name_pid(path, &number))
        return report_failure(findings, "%s: %s", path, cause);
    report_finding(findings, FINDING_DUMP_UNUSABLE, "%s: %s", path, cause);
    return 0;
}

/* A file that is given twice is read once. */
static void forget_repeated(const struct given_dumps *given, struct given_dump *last)
{
    for (size_t i = 0; i + 1 < given->count; i++)
        if (given->items[i].usable && given->items[i].dump.dev == last->dump.dev &&
            given->items[i].dump.ino == last->dump.ino)
            last->usable = false;
}

static int add(struct given_dumps *given, const char *path, struct findings *findings)
{
    struct given_dump *last = &given->items[given->count++];
    if (open_one(last, path, findings))
        return -1;
    forget_repeated(given, last);
    return 0;
}

/* Who gives libjitdump's dump means its stage as well, which is read first: what is in it moves to
 * the dump while the process goes on. */
static int add_stage(struct given_dumps *given, const char *path, struct findings *findings)
{
    struct stat status;
    char *stage = jit_dump_name_stage(path);
    if (!stage)
        return report_failure(findings, "out of memory");
    int result =
        stat(stage, &status) == 0 && S_ISREG(status.st_mode) ? add(given, stage, findings) : 0;
    free(stage);
    struct given_dump *last = given->count ? &given->items[given->count - 1] : NULL;
    if (last && last->usable && jit_dump_name_is_stage_of(last->path, path))
        last->usable = !jit_dump_is_empty(&last->dump);
    return result;
}

int given_dumps_open(struct given_dumps *given, char *const *paths, size_t count,
                     struct findings *findings)
{
    given->count = 0;
    given->items = calloc(2 * count + 1, sizeof *given->items);
    if (!given->items)
        return report_failure(findings, "out of memory");
    for (size_t i = 0; i < count; i++)
        if (add_stage(given, paths[i], findings) || add(given, paths[i], findings))
            return -1;
    return 0;
}

/* ---- Whose is it? ---- */

/* The name of a file that is called jit-<n>.dump takes precedence over its header. */
enum claim_match { MATCH_FILE, MATCH_NAME, MATCH_HEADER, CLAIM_MATCHES };

/* Whether DUMP is what stands at MAP's path below PREFIX. */
static bool stands_at(const struct jit_dump *dump, const char *prefix, const struct perf_map *map)
{
    struct stat status;
    char path[PATH_MAX];
    int bytes = snprintf(path, sizeof path, "%s%.*s", prefix,
                         (int)perf_map_name_length(map->filename), map->filename);
    return bytes > 0 && (size_t)bytes < sizeof path && stat(path, &status) == 0 &&
           status.st_dev == dump->dev && status.st_ino == dump->ino;
}

/* Whether GIVEN is the very file of CLAIM; if the recording does not tell, or is of another
 * machine, what stands at its path. */
static bool is_file(const struct given_dump *given, const struct dump_claims *claims,
                    const struct dump_claim *claim)
{
    const struct perf_map *map = &claim->map->map;
    enum file_identity identity = FILE_UNKNOWN;
    if (map->has_inode)
        identity = dump_origin_compare(&claims->origin, map, &given->dump);
    if (identity != FILE_UNKNOWN)
        return identity == FILE_SAME;
    return (claims->root && stands_at(&given->dump, claims->root, map)) ||
           (!map->has_inode && stands_at(&given->dump, "", map));
}

static bool matches(const struct given_dump *given, const struct dump_claims *claims,
                    const struct dump_claim *claim, enum claim_match match)
{
    /* A process has one name for its dump and the stage of that. */
    if (match != MATCH_FILE &&
        jit_dump_name_is_stage(given->path) != jit_dump_name_is_stage(claim->map->map.filename))
        return false;
    switch (match) {
    case MATCH_FILE:
        return is_file(given, claims, claim);
    case MATCH_NAME:
        return perf_map_same_name(claim->map->map.filename, given->path);
    default:
        return claim->number == given->dump.pid;
    }
}

/* A given dump and a claim that it may stand for, and the evidence for that. */
struct pair {
    struct given_dump *given;
    struct dump_claim *claim;
    enum claim_match match;
    uint64_t distance_ns; /* of the dump's header from the claim's mapping, or DISTANCE_UNKNOWN */
    size_t fit;           /* how much of the dump was loaded in the claim's life */
};

struct pairs {
    struct pair *items;
    size_t count, capacity;
};

static int add_pair(struct pairs *pairs, struct given_dump *given, struct dump_claims *claims,
                    struct dump_claim *claim, enum claim_match match)
{
    if (array_reserve(pairs->items, pairs->count, pairs->capacity))
        return -1;
    pairs->items[pairs->count++] = (struct pair){
        given, claim, match, dump_claim_distance(claims, claim, &given->dump, &given->clock),
        dump_origin_fit(&claims->lives->items[claim->life], &given->dump, &given->clock, 0,
                        SIZE_MAX, NULL)};
    return 0;
}

/* All claims that GIVEN may stand for: those that match best. */
static int add_pairs(struct pairs *pairs, struct given_dump *given, struct dump_claims *claims)
{
    uint32_t number;
    size_t before = pairs->count;
    int end = jit_dump_name_pid(given->path, &number) ? MATCH_HEADER : CLAIM_MATCHES;
    for (int match = MATCH_FILE; match < end && pairs->count == before; match++)
        for (size_t i = 0; i < claims->count; i++)
            if (matches(given, claims, &claims->items[i], (enum claim_match)match) &&
                add_pair(pairs, given, claims, &claims->items[i], (enum claim_match)match))
                return -1;
    return 0;
}

/* Whether A is the better pair; if nothing tells which of them is right, they are EQUAL.  Of two
 * lives of one pid that fit equally well the later one left the file: it has overwritten what the
 * earlier one left. */
static bool is_better_pair(const struct process_lives *lives, const struct pair *a,
                           const struct pair *b, bool *equal)
{
    const struct process_life *life = &lives->items[a->claim->life];
    const struct process_life *other = &lives->items[b->claim->life];
    *equal = false;
    if (a->match != b->match)
        return a->match < b->match;
    if ((a->fit > 0) != (b->fit > 0))
        return a->fit > 0;
    if (a->distance_ns != b->distance_ns)
        return a->distance_ns < b->distance_ns;
    if (a->given != b->given) {
        *equal = a->claim == b->claim && a->distance_ns == DISTANCE_UNKNOWN;
        return false;
    }
    if (a->fit != b->fit)
        return a->fit > b->fit;
    *equal = life->pid != other->pid;
    return life_moment_before(other->begin, life->begin);
}

static bool is_open(const struct pair *pair)
{
    return pair->given->usable && pair->given->life == NO_LIFE && !pair->claim->chosen;
}

/* The best of the pairs that are open, or NULL. */
static struct pair *best_pair(const struct pairs *pairs, const struct process_lives *lives)
{
    bool equal;
    struct pair *best = NULL;
    for (size_t i = 0; i < pairs->count; i++)
        if (is_open(&pairs->items[i]) &&
            (!best || is_better_pair(lives, &pairs->items[i], best, &equal)))
            best = &pairs->items[i];
    return best;
}

static void leave_out(struct given_dump *given, const char *why, struct findings *findings)
{
    report_finding(findings, FINDING_DUMP_UNPLACED, "%s: its header's pid is %" PRIu32 "; %s",
                   given->path, given->dump.pid, why);
    given->usable = false;
}

/* Leave out the dump of BEST, and all that are as good for the same claim, if there is a pair that
 * is as good.  Returns whether it did. */
static bool leave_out_equals(const struct pairs *pairs, const struct process_lives *lives,
                             const struct pair *best, struct findings *findings)
{
    bool any = false;
    for (size_t i = 0; i < pairs->count; i++) {
        bool equal;
        struct pair *pair = &pairs->items[i];
        if (pair == best || !is_open(pair) || is_better_pair(lives, best, pair, &equal) || !equal)
            continue;
        any = true;
        if (pair->given != best->given)
            leave_out(pair->given, "another one could be that of the same process", findings);
    }
    if (any)
        leave_out(best->given, "it could be that of another process, too", findings);
    return any;
}

/* Whether A's claim is another given dump's, which is the very file that was mapped, and A's dump
 * is of the same process all the same: its header has that process's pid, and it was written in
 * that life.  A process can write several of one name into several directories, and a recording
 * that lost its beginning need not name them all. */
static bool is_another_of_its_process(const struct pairs *pairs, const struct process_lives *lives,
                                      const struct pair *a)
{
    if (lives->items[a->claim->life].pid != a->given->dump.pid || a->fit == 0)
        return false;
    for (size_t i = 0; i < pairs->count; i++) {
        const struct pair *b = &pairs->items[i];
        if (b->claim == a->claim && b->given->match == b->claim && b->match == MATCH_FILE)
            return true;
    }
    return false;
}

/* The dumps that got no claim: such a one of a process whose claim another one has, and all others
 * are left out. */
static void place_rest(const struct pairs *pairs, const struct process_lives *lives,
                       struct findings *findings)
{
    for (size_t i = 0; i < pairs->count; i++) {
        const struct pair *pair = &pairs->items[i];
        if (pair->given->usable && pair->given->life == NO_LIFE &&
            is_another_of_its_process(pairs, lives, pair))
            pair->given->life = pair->claim->life;
    }
    for (size_t i = 0; i < pairs->count; i++)
        if (pairs->items[i].given->usable && pairs->items[i].given->life == NO_LIFE)
            leave_out(pairs->items[i].given,
                      "each process that may have written it has another one that fits better",
                      findings);
}

/* The pair of GIVEN and CLAIM, or NULL: a dump's pairs stand side by side, by claim. */
static struct pair *pair_of(const struct pairs *pairs, const struct given_dump *given,
                            const struct dump_claim *claim)
{
    size_t low = 0, high = pairs->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct pair *pair = &pairs->items[middle];
        if (pair->given < given || (pair->given == given && pair->claim < claim))
            low = middle + 1;
        else
            high = middle;
    }
    struct pair *pair = &pairs->items[low];
    return low < pairs->count && pair->given == given && pair->claim == claim ? pair : NULL;
}

/* Whether the dumps of A and B fit better, taken together, in A_THERE and B_THERE, where each has
 * the other's claim. */
static bool fit_better_exchanged(const struct pair *a, const struct pair *b,
                                 const struct pair *a_there, const struct pair *b_there)
{
    if (!a_there || !b_there || a->match == MATCH_FILE || b->match == MATCH_FILE)
        return false;
    int fit = (a->fit > 0) + (b->fit > 0), fit_there = (a_there->fit > 0) + (b_there->fit > 0);
    if (fit != fit_there)
        return fit_there > fit;
    if (a_there->distance_ns == DISTANCE_UNKNOWN || b_there->distance_ns == DISTANCE_UNKNOWN)
        return false;
    return a_there->distance_ns + b_there->distance_ns < a->distance_ns + b->distance_ns;
}

static void choose(struct pair *pair)
{
    pair->given->life = pair->claim->life;
    pair->given->match = pair->claim;
    pair->claim->chosen = true;
}

/* Let two dumps have each other's claim if both fit better so: a process that waits for a processor
 * between its header and its mapping is further from its own dump than another one that began at
 * that moment.  Returns whether any did. */
static bool exchange(const struct pairs *pairs, struct pair **chosen, size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            struct pair *i_there = pair_of(pairs, chosen[i]->given, chosen[j]->claim);
            struct pair *j_there = pair_of(pairs, chosen[j]->given, chosen[i]->claim);
            if (!fit_better_exchanged(chosen[i], chosen[j], i_there, j_there))
                continue;
            choose(chosen[i] = i_there);
            choose(chosen[j] = j_there);
            any = true;
        }
    return any;
}

/* Choose the best pairs first, into CHOSEN, and then exchange: each time the whole fits better,
 * so that this comes to an end. */
static void choose_pairs(const struct pairs *pairs, struct pair **chosen,
                         const struct process_lives *lives, struct findings *findings)
{
    struct pair *best;
    size_t count = 0;
    while ((best = best_pair(pairs, lives)))
        if (!leave_out_equals(pairs, lives, best, findings))
            choose(chosen[count++] = best);
    while (exchange(pairs, chosen, count))
        continue;
}

/* The best pairs first: each dump to one claim, and no two to the same. */
static int choose_claims(struct given_dumps *given, struct dump_claims *claims,
                         struct findings *findings)
{
    struct pairs pairs = {0};
    struct pair **chosen = calloc(given->count + 1, sizeof(struct pair *));
    int result = chosen ? 0 : -1;
    for (size_t i = 0; i < given->count && !result; i++)
        if (given->items[i].usable)
            result = add_pairs(&pairs, &given->items[i], claims);
    if (!result)
        choose_pairs(&pairs, chosen, claims->lives, findings);
    place_rest(&pairs, claims->lives, findings);
    free(pairs.items);
    free(chosen);
    return result ? report_failure(findings, "out of memory") : 0;
}

/* Nobody mapped a dump of its name, or of its header's pid.  Of several lives, the one in which
 * most of it was loaded; of those that fit equally well the later one. */
static int choose_by_pid(struct given_dump *given, const struct dump_claims *claims,
                         struct findings *findings)
{
    size_t count, most = 0;
    uint32_t number = given->dump.pid;
    jit_dump_name_pid(given->path, &number);
    uint32_t first = process_lives_of(claims->lives, number, &count);
    for (uint32_t i = 0; first != NO_LIFE && i < count; i++) {
        size_t fit = dump_origin_fit(&claims->lives->items[first + i], &given->dump, &given->clock,
                                     0, SIZE_MAX, NULL);
        if (given->life != NO_LIFE && fit < most)
            continue;
        given->life = first + i;
        most = fit;
    }
    if (given->life == NO_LIFE)
        return report_failure(findings, "%s: process %" PRIu32 " of %s is not in this recording",
                              claims->records->file->path, number, given->path);
    return 0;
}

/* ---- What it stands for ---- */

/* It was renamed, and nothing is left at the path that the claim has. */
static bool is_renamed(const struct given_dump *given, const struct dump_claims *claims,
                       const struct dump_claim *claim)
{
    struct jit_dump left;
    char cause[256];
    if (given->dump.pid != claim->number)
        return false;
    bool gone = jit_dump_open(&left, claim->map->map.filename, cause, sizeof cause) ||
                dump_origin_compare(&claims->origin, &claim->map->map, &left) == FILE_OTHER;
    jit_dump_close(&left);
    uint64_t distance_ns = dump_claim_distance(claims, claim, &given->dump, &given->clock);
    return gone && (distance_ns == DISTANCE_UNKNOWN || distance_ns <= HEADER_SLACK_NS);
}

static bool stands_for(const struct given_dump *given, const struct dump_claims *claims,
                       const struct dump_claim *claim)
{
    return matches(given, claims, claim, MATCH_FILE) || matches(given, claims, claim, MATCH_NAME) ||
           is_renamed(given, claims, claim);
}

/* Its own claim; or, if it was chosen by its pid, one of its process that has no other. */
static void stand_in(struct given_dump *given, struct dump_claims *claims)
{
    for (size_t i = 0; !given->match && i < claims->count; i++) {
        struct dump_claim *claim = &claims->items[i];
        if (claim->state == CLAIM_OPEN && claim->life == given->life && !claim->chosen &&
            is_renamed(given, claims, claim))
            given->match = claim;
    }
    if (given->match && given->match->state == CLAIM_OPEN &&
        stands_for(given, claims, given->match))
        given->match->state = CLAIM_SETTLED;
    if (given->match)
        given->match->closed = jit_dump_is_closed(&given->dump);
}

static void note(const struct given_dump *given, const struct dump_claims *claims,
                 struct findings *findings)
{
    uint32_t pid = claims->lives->items[given->life].pid;
    if (given->match)
        report_note(findings, "%s: given by hand, read as what process %" PRIu32 " mapped as %s",
                    given->path, pid, given->match->map->map.filename);
    else
        report_note(findings, "%s: given by hand, read as a dump of process %" PRIu32, given->path,
                    pid);
}

static int add_life(struct process_lives *lives, const struct records *records, uint32_t pid,
                    struct findings *findings)
{
    size_t count;
    if (process_lives_of(lives, pid, &count) != NO_LIFE || !records_has_sample_of(records, pid))
        return 0;
    return process_lives_add(lives, pid, findings);
}

int given_dumps_add_lives(const struct given_dumps *given, struct process_lives *lives,
                          const struct records *records, struct findings *findings)
{
    for (size_t i = 0; i < given->count; i++) {
        uint32_t number = given->items[i].dump.pid;
        jit_dump_name_pid(given->items[i].path, &number);
        if (given->items[i].usable && add_life(lives, records, number, findings))
            return -1;
    }
    return 0;
}

/* Of the claims that GIVEN matches like that, the one in whose life it was written if its times are
 * the profile's: there its clock needs no search.  If it is in none, the first one; NULL: there is
 * none. */
static const struct dump_claim *likely_claim(const struct given_dump *given,
                                             const struct dump_claims *claims,
                                             enum claim_match match)
{
    const struct jit_clock same = {0};
    const struct dump_claim *first = NULL, *nearest = NULL;
    uint64_t least_ns = UINT64_MAX;
    for (size_t i = 0; i < claims->count; i++) {
        const struct dump_claim *claim = &claims->items[i];
        const struct process_life *life = &claims->lives->items[claim->life];
        if (!matches(given, claims, claim, match))
            continue;
        first = first ? first : claim;
        uint64_t distance_ns = dump_claim_distance(claims, claim, &given->dump, &same);
        if ((nearest && distance_ns >= least_ns) ||
            dump_origin_fit(life, &given->dump, &same, 0, 1, NULL) == 0)
            continue;
        nearest = claim;
        least_ns = distance_ns;
    }
    return nearest ? nearest : first;
}

/* Whose mapping of the dump tells what its clock is: before that is known, no life can be chosen by
 * the times in it. */
static uint32_t likely_pid(const struct given_dump *given, const struct dump_claims *claims)
{
    uint32_t number = given->dump.pid;
    for (int match = MATCH_FILE; match < MATCH_HEADER; match++) {
        const struct dump_claim *claim = likely_claim(given, claims, (enum claim_match)match);
        if (claim)
            return claims->lives->items[claim->life].pid;
    }
    jit_dump_name_pid(given->path, &number);
    return number;
}

/* The only life of PID, if the recording does not tell how it began; else zeros. */
static struct clock_life life_of_unknown_beginning(const struct process_lives *lives, uint32_t pid)
{
    size_t count;
    uint32_t first = process_lives_of(lives, pid, &count);
    if (first == NO_LIFE || count > 1)
        return (struct clock_life){0};
    const struct process_life *life = &lives->items[first];
    if (life->execed || life->parent != NO_LIFE)
        return (struct clock_life){0};
    return (struct clock_life){0, life->end_ns};
}

/* Refuse the claims of others to files that were assigned to another. */
static void refuse_others(const struct given_dumps *given, struct dump_claims *claims,
                          struct findings *findings)
{
    for (size_t i = 0; i < claims->count; i++)
        for (size_t g = 0; g < given->count && claims->items[i].state == CLAIM_OPEN; g++) {
            const struct given_dump *item = &given->items[g];
            if (item->usable && is_file(item, claims, &claims->items[i]))
                dump_claim_refuse(claims, &claims->items[i], FINDING_DUMP_REPLACED,
                                  "the file there, given by hand, went to another process, or a "
                                  "later life of this one",
                                  findings);
        }
}

static struct clock_question clock_question_of(const struct given_dump *given,
                                               const struct dump_claims *claims)
{
    uint32_t pid = likely_pid(given, claims);
    return (struct clock_question){
        .records = claims->records,
        .dump = &given->dump,
        .pid = pid,
        .read_live = clock_live_read,
        .life = life_of_unknown_beginning(claims->lives, pid),
        .shared = &claims->clocks,
    };
}

/* A copy, or a file by another name, may be another's, and shows nothing. */
static void learn_clock(const struct given_dump *given, struct dump_claims *claims)
{
    const struct clock_question question = clock_question_of(given, claims);
    if (likely_claim(given, claims, MATCH_FILE))
        clock_learn(&claims->clocks, &question);
}

static void choose_clock(struct given_dump *given, struct dump_claims *claims,
                         struct findings *findings)
{
    char text[512], machine[DUMP_MACHINE_TEXT_BYTES];
    const struct clock_question question = clock_question_of(given, claims);
    dump_machine_correct(&given->dump, claims->records->file, findings);
    const char *why = dump_machine_refusal(&given->dump, machine);
    if (!why)
        why = clock_choose(&given->clock, &question, text, findings);
    given->usable = why == NULL;
    if (why)
        report_finding(findings, FINDING_DUMP_UNUSABLE, "%s: %s", given->path, why);
}

int given_dumps_assign(struct given_dumps *given, struct dump_claims *claims,
                       struct findings *findings)
{
    for (size_t i = 0; i < given->count && given->count + claims->count > 2; i++)
        if (given->items[i].usable)
            learn_clock(&given->items[i], claims);
    for (size_t i = 0; i < given->count; i++)
        if (given->items[i].usable)
            choose_clock(&given->items[i], claims, findings);
    if (choose_claims(given, claims, findings))
        return -1;
    for (size_t i = 0; i < given->count; i++) {
        struct given_dump *item = &given->items[i];
        if (item->usable && item->life == NO_LIFE && choose_by_pid(item, claims, findings))
            return -1;
    }
    for (size_t i = 0; i < given->count; i++)
        if (given->items[i].usable) {
            stand_in(&given->items[i], claims);
            note(&given->items[i], claims, findings);
        }
    refuse_others(given, claims, findings);
    return 0;
}

void given_dumps_free(struct given_dumps *given)
{
    for (size_t i = 0; i < given->count; i++) {
        jit_dump_close(&given->items[i].dump);
        free(given->items[i].path);
    }
    free(given->items);
}
