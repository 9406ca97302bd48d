/* See given_dump.h. */
#include "injector/log/owner/given_dump.h"

#include "injector/log/clock/clock_choice.h"
#include "injector/log/jitdump/dump_name.h"
#include "injector/log/owner/dump_machine.h"
#include "injector/text/file_name.h"
#include "injector/text/plural.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Opening ---- */

static int open_one(struct given_dump *given, const char *path, uint32_t pid,
                    struct findings *findings)
{
    char cause[256];
    uint32_t number;
    *given = (struct given_dump){.path = strdup(path), .pid = pid, .life = NO_LIFE};
    if (!given->path)
        return report_failure(findings, "out of memory");
    given->usable = jit_dump_open(&given->dump, given->path, cause, sizeof cause) == 0;
    if (given->usable)
        return 0;
    if (!jit_dump_name_pid(path, &number))
        return report_failure(findings, "--jitdump %s: %s", path, cause);
    report_finding(findings, FINDING_DUMP_UNUSABLE, "%s: %s", path, cause);
    return 0;
}

/* A file that is given twice is read once, unless it is for two processes. */
static void forget_repeated(const struct given_dumps *given, struct given_dump *last)
{
    for (size_t i = 0; i + 1 < given->count; i++) {
        struct given_dump *item = &given->items[i];
        if (!item->usable || item->dump.dev != last->dump.dev || item->dump.ino != last->dump.ino ||
            (item->pid && last->pid && item->pid != last->pid))
            continue;
        item->pid = item->pid ? item->pid : last->pid;
        last->usable = false;
    }
}

static int add(struct given_dumps *given, const char *path, uint32_t pid, struct findings *findings)
{
    struct given_dump *last = &given->items[given->count++];
    if (open_one(last, path, pid, findings))
        return -1;
    forget_repeated(given, last);
    return 0;
}

/* A user who names libjitdump's dump means its stage as well.  The stage is read first, because its
 * records move to the dump while the process goes on. */
static int add_stage(struct given_dumps *given, const struct given_file *body,
                     struct findings *findings)
{
    struct stat status;
    char *stage = jit_dump_name_stage(body->path);
    if (!stage)
        return report_failure(findings, "out of memory");
    int result = 0;
    if (stat(stage, &status) == 0 && S_ISREG(status.st_mode)) {
        result = add(given, stage, body->pid, findings);
        struct given_dump *last = &given->items[given->count - 1];
        last->usable = last->usable && !jit_dump_is_empty(&last->dump);
    }
    free(stage);
    return result;
}

int given_dumps_open(struct given_dumps *given, const struct given_file *files, size_t count,
                     struct findings *findings)
{
    given->count = 0;
    given->items = calloc(2 * count + 1, sizeof *given->items);
    if (!given->items)
        return report_failure(findings, "out of memory");
    for (size_t i = 0; i < count; i++) {
        if (!*files[i].path)
            return report_failure(findings, "--jitdump %s names no file: --jitdump PID:FILE",
                                  files[i].text);
        if (add_stage(given, &files[i], findings) ||
            add(given, files[i].path, files[i].pid, findings))
            return -1;
    }
    return 0;
}

/* The pid that it was given, or the one in its name, or else in its header. */
static uint32_t pid_of(const struct given_dump *given)
{
    uint32_t number = given->dump.pid;
    jit_dump_name_pid(given->path, &number);
    return given->pid ? given->pid : number;
}

int given_dumps_add_lives(const struct given_dumps *given, struct process_lives *lives,
                          const struct records *records, struct findings *findings)
{
    for (size_t i = 0; i < given->count; i++) {
        size_t count;
        uint32_t pid = pid_of(&given->items[i]);
        if (given->items[i].usable && process_lives_of(lives, pid, &count) == NO_LIFE &&
            records_has_sample_of(records, pid) && process_lives_add(lives, pid, findings))
            return -1;
    }
    return 0;
}

/* ---- Which claims it matches ---- */

/* Whether DUMP is the file at MAP's path below PREFIX. */
static bool stands_at(const struct jit_dump *dump, const char *prefix, const struct perf_map *map)
{
    struct stat status;
    char path[PATH_MAX];
    int bytes = snprintf(path, sizeof path, "%s%.*s", prefix,
                         (int)perf_map_name_length(map->filename), map->filename);
    return bytes > 0 && (size_t)bytes < sizeof path && stat(path, &status) == 0 &&
           status.st_dev == dump->dev && status.st_ino == dump->ino;
}

/* Whether GIVEN is the very file of CLAIM.  If the recording does not tell, or is of another
 * machine, whether it is the file at CLAIM's path. */
static bool is_file(const struct given_dump *given, const struct dump_claims *claims,
                    const struct dump_claim *claim)
{
    const struct perf_map *map = &claim->map->map;
    const char *root = claims->options.root;
    enum file_identity identity = FILE_UNKNOWN;
    if (map->has_inode)
        identity = dump_origin_compare(&claims->origin, map, &given->dump);
    if (identity != FILE_UNKNOWN)
        return identity == FILE_SAME;
    return (root && stands_at(&given->dump, root, map)) ||
           (!map->has_inode && stands_at(&given->dump, "", map));
}

static bool matches(const struct given_dump *given, const struct dump_claims *claims,
                    const struct dump_claim *claim, enum claim_match match)
{
    if (match == MATCH_FILE)
        return is_file(given, claims, claim);
    /* A process has one name for its dump and the stage of that. */
    if (jit_dump_name_is_stage(given->path) != jit_dump_name_is_stage(claim->map->map.filename))
        return false;
    if (match == MATCH_HEADER)
        return claim->number == given->dump.pid;
    return perf_map_same_name(claim->map->map.filename, given->path) &&
           (claim->named || claim->number == given->dump.pid);
}

/* How the claims that match best do; CLAIM_MATCHES: none does.  The name of a file that is called
 * jit-<n>.dump takes precedence over its header. */
static enum claim_match best_match(const struct given_dump *given, const struct dump_claims *claims)
{
    uint32_t number;
    int end = jit_dump_name_pid(given->path, &number) ? MATCH_HEADER : CLAIM_MATCHES;
    for (int match = MATCH_FILE; match < end; match++)
        for (size_t i = 0; i < claims->count; i++)
            if (matches(given, claims, &claims->items[i], (enum claim_match)match))
                return (enum claim_match)match;
    return CLAIM_MATCHES;
}

/* ---- Its clock ---- */

/* The process whose mapping of the dump shows the dump's clock: without it no life can be chosen by
 * the times in the dump.  If these are the profile's, the process in whose life they lie. */
static uint32_t likely_pid(const struct given_dump *given, const struct dump_claims *claims)
{
    const struct jit_clock same = {0};
    const struct process_life *first = NULL;
    for (size_t i = 0; !given->pid && given->how < MATCH_HEADER && i < claims->count; i++) {
        const struct process_life *life = dump_claim_life(claims, &claims->items[i]);
        if (!matches(given, claims, &claims->items[i], given->how))
            continue;
        if (dump_origin_fit(life, &given->dump, &same, 0, 1, NULL))
            return life->pid;
        first = first ? first : life;
    }
    return first ? first->pid : pid_of(given);
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

static void choose_clocks(struct given_dumps *given, struct dump_claims *claims,
                          struct findings *findings)
{
    /* A copy, or a file by another name, may be another's, and shows nothing. */
    for (size_t i = 0; i < given->count && given->count + claims->count > 2; i++)
        if (given->items[i].usable && given->items[i].how == MATCH_FILE) {
            const struct clock_question question = clock_question_of(&given->items[i], claims);
            clock_learn(&claims->clocks, &question);
        }
    for (size_t i = 0; i < given->count; i++)
        if (given->items[i].usable)
            choose_clock(&given->items[i], claims, findings);
}

/* ---- Whose is it? ---- */

/* The lives that a dump may be of, ascending. */
struct candidates {
    uint32_t *lives;
    size_t count;
    bool *marked; /* by life: it becomes one */
};

/* Claims of one life need not stand side by side. */
static void collect(struct candidates *candidates, const struct given_dump *given,
                    const struct dump_claims *claims)
{
    size_t count;
    bool any = false;
    for (size_t i = 0; !given->pid && given->how < CLAIM_MATCHES && i < claims->count; i++)
        if (matches(given, claims, &claims->items[i], given->how))
            candidates->marked[claims->items[i].life] = any = true;
    uint32_t first = process_lives_of(claims->lives, pid_of(given), &count);
    for (uint32_t i = 0; !any && first != NO_LIFE && i < count; i++)
        candidates->marked[first + i] = true;
    candidates->count = 0;
    for (uint32_t life = 0; life < claims->lives->count; life++) {
        if (candidates->marked[life])
            candidates->lives[candidates->count++] = life;
        candidates->marked[life] = false;
    }
}

/* A process that was forked from the dump's writer has mapped the very file, too. */
static bool is_writer(const struct given_dump *given, const struct process_life *life)
{
    return given->how == MATCH_FILE && life->pid == given->dump.pid;
}

static bool fits(const struct given_dump *given, const struct process_life *life)
{
    return dump_origin_fit(life, &given->dump, &given->clock, 0, 1, NULL) > 0;
}

/* Keep those that have TRAIT, if any has it.  Returns whether any has. */
static bool narrow(struct candidates *candidates, const struct process_lives *lives,
                   const struct given_dump *given,
                   bool (*trait)(const struct given_dump *, const struct process_life *))
{
    size_t kept = 0;
    for (size_t i = 0; i < candidates->count; i++)
        if (trait(given, &lives->items[candidates->lives[i]])) {
            uint32_t life = candidates->lives[i];
            candidates->lives[i] = candidates->lives[kept];
            candidates->lives[kept++] = life;
        }
    candidates->count = kept ? kept : candidates->count;
    return kept > 0;
}

enum { LIFE_BYTES = 96 };

/* "7 (node, since 12.345678)" */
static void describe(char text[LIFE_BYTES], const struct dump_claims *claims, uint32_t index)
{
    char comm[PROCESS_COMM_BYTES];
    const struct process_life *life = &claims->lives->items[index];
    process_life_comm(claims->lives, claims->records, index, comm);
    if (life->begin.time_ns)
        snprintf(text, LIFE_BYTES, "%" PRIu32 " (%s, since %" PRIu64 ".%06" PRIu64 ")", life->pid,
                 comm, life->begin.time_ns / 1000000000, life->begin.time_ns % 1000000000 / 1000);
    else
        snprintf(text, LIFE_BYTES, "%" PRIu32 " (%s, there before the recording)", life->pid, comm);
}

static int refuse_several(const struct candidates *candidates, const struct given_dump *given,
                          const struct dump_claims *claims, struct findings *findings)
{
    enum { MOST = 5 };
    char list[MOST * (LIFE_BYTES + 4) + 32] = "", life[LIFE_BYTES];
    size_t at = 0;
    for (size_t i = 0; i < candidates->count && i < MOST; i++, at = strlen(list)) {
        describe(life, claims, candidates->lives[i]);
        snprintf(list + at, sizeof list - at, "%s%s", i ? " or " : "", life);
    }
    if (candidates->count > MOST)
        snprintf(list + at, sizeof list - at, " or %zu other%s", candidates->count - MOST,
                 plural(candidates->count - MOST));
    return report_failure(findings,
                          "%s: could be the dump of process %s; say whose it is with --jitdump "
                          "PID:FILE",
                          given->path, list);
}

static int choose_life(struct given_dump *given, struct candidates *candidates,
                       const struct dump_claims *claims, struct findings *findings)
{
    const struct process_life *lives = claims->lives->items;
    collect(candidates, given, claims);
    if (candidates->count == 0)
        return report_failure(findings, "%s: process %" PRIu32 " of %s is not in this recording",
                              claims->records->file->path, pid_of(given), given->path);
    if (!given->pid)
        narrow(candidates, claims->lives, given, is_writer);
    bool any_fits = narrow(candidates, claims->lives, given, fits);
    uint32_t newest = candidates->lives[candidates->count - 1];
    bool one_process = lives[candidates->lives[0]].pid == lives[newest].pid;
    if (candidates->count > 1 && !given->pid && (any_fits || !one_process))
        return refuse_several(candidates, given, claims, findings);
    given->life = newest;
    return 0;
}

/* A stage stands before its body, and is of the same process. */
static int choose_lives(struct given_dumps *given, const struct dump_claims *claims,
                        struct findings *findings)
{
    size_t most = claims->lives->count + 1;
    struct candidates candidates = {.lives = malloc(most * sizeof *candidates.lives),
                                    .marked = calloc(most, sizeof *candidates.marked)};
    int result =
        candidates.lives && candidates.marked ? 0 : report_failure(findings, "out of memory");
    for (size_t i = given->count; i-- > 0 && !result;) {
        struct given_dump *item = &given->items[i], *next = item + 1;
        if (!item->usable)
            continue;
        if (i + 1 < given->count && next->usable &&
            jit_dump_name_is_stage_of(item->path, next->path))
            item->life = next->life;
        else
            result = choose_life(item, &candidates, claims, findings);
    }
    free(candidates.lives);
    free(candidates.marked);
    return result;
}

/* ---- What it stands for ---- */

/* The claim of GIVEN's life that it matches best; of those that match equally one that no other
 * dump has. */
static struct dump_claim *claim_of(const struct given_dump *given, const struct dump_claims *claims)
{
    struct dump_claim *best = NULL;
    for (int match = MATCH_FILE; match < CLAIM_MATCHES && !best; match++)
        for (size_t i = 0; i < claims->count; i++) {
            struct dump_claim *claim = &claims->items[i];
            if (claim->life == given->life && (!best || best->chosen) &&
                matches(given, claims, claim, (enum claim_match)match))
                best = best && claim->chosen ? best : claim;
        }
    return best;
}

/* Whether nothing but GIVEN's name and header tells that it is of its life. */
static bool is_inferred(const struct given_dump *given)
{
    return !given->pid && given->how != MATCH_FILE;
}

/* Choose the claims of the first mappings: none of them goes to another dump. */
static void choose_claims(struct given_dumps *given, const struct dump_claims *claims)
{
    for (int inferred = 0; inferred <= 1; inferred++)
        for (size_t i = 0; i < given->count; i++) {
            struct given_dump *item = &given->items[i];
            if (!item->usable || is_inferred(item) != inferred)
                continue;
            item->match = claim_of(item, claims);
            if (item->match)
                item->match->chosen = true;
        }
}

/* Whether A and B could be the same dump of one process, so that one is another run's. */
static bool are_rivals(const struct given_dump *a, const struct given_dump *b)
{
    if (!a->usable || !b->usable || a->life != b->life || a->match != b->match ||
        (!is_inferred(a) && !is_inferred(b)) || jit_dump_name_is_stage_of(a->path, b->path) ||
        jit_dump_name_is_stage_of(b->path, a->path))
        return false;
    return a->match || strcmp(file_name_of(a->path), file_name_of(b->path)) == 0;
}

static int refuse_rivals(const struct given_dumps *given, const struct dump_claims *claims,
                         struct findings *findings)
{
    char life[LIFE_BYTES];
    for (size_t i = 0; i < given->count; i++)
        for (size_t j = 0; j < i; j++) {
            if (!are_rivals(&given->items[j], &given->items[i]))
                continue;
            describe(life, claims, given->items[i].life);
            return report_failure(findings,
                                  "%s and %s: could each be the dump of process %s; say whose it "
                                  "is with --jitdump PID:FILE",
                                  given->items[j].path, given->items[i].path, life);
        }
    return 0;
}

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

static void stand_in(const struct given_dump *given, const struct dump_claims *claims,
                     struct findings *findings)
{
    uint32_t pid = claims->lives->items[given->life].pid;
    struct dump_claim *claim = given->match;
    if (!claim) {
        report_note(findings, "%s: given by hand, read as a dump of process %" PRIu32, given->path,
                    pid);
        return;
    }
    if (claim->state == CLAIM_OPEN &&
        (matches(given, claims, claim, MATCH_FILE) || matches(given, claims, claim, MATCH_NAME) ||
         is_renamed(given, claims, claim)))
        claim->state = CLAIM_SETTLED;
    claim->closed = jit_dump_is_closed(&given->dump);
    report_note(findings, "%s: given by hand, read as what process %" PRIu32 " mapped as %s",
                given->path, pid, claim->map->map.filename);
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

int given_dumps_assign(struct given_dumps *given, struct dump_claims *claims,
                       struct findings *findings)
{
    for (size_t i = 0; i < given->count; i++)
        if (given->items[i].usable)
            given->items[i].how = best_match(&given->items[i], claims);
    choose_clocks(given, claims, findings);
    if (choose_lives(given, claims, findings))
        return -1;
    choose_claims(given, claims);
    if (refuse_rivals(given, claims, findings))
        return -1;
    for (size_t i = 0; i < given->count; i++)
        if (given->items[i].usable)
            stand_in(&given->items[i], claims, findings);
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
