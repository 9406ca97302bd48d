/* See given_dump.h. */
#include "injector/jit/given_dump.h"

#include "injector/jit/dump_name.h"

#include "injector/jit/dump_machine.h"
#include "injector/perf_data/perf_time.h"

#include <inttypes.h>
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
        return failure(findings, "out of memory");
    given->usable = jit_dump_open(&given->dump, given->path, cause, sizeof cause) == 0;
    if (given->usable)
        return 0;
    if (!jit_dump_name_pid(path, &number))
        return failure(findings, "%s: %s", path, cause);
    finding(findings, FINDING_DUMP_UNUSABLE, "%s: %s", path, cause);
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

int given_dumps_open(struct given_dumps *given, char *const *paths, size_t count,
                     struct findings *findings)
{
    given->count = 0;
    given->items = calloc(count + 1, sizeof *given->items);
    if (!given->items)
        return failure(findings, "out of memory");
    for (size_t i = 0; i < count; i++) {
        given->count++;
        if (open_one(&given->items[i], paths[i], findings))
            return -1;
        forget_repeated(given, &given->items[i]);
    }
    return 0;
}

/* ---- Whose is it? ---- */

/* The best life so far, and how much of the dump was loaded in it. */
struct choice {
    const struct process_lives *lives;
    const struct given_dump *given;
    uint32_t life;
    size_t fit;
};

/* Of lives that fit equally well the later one: it has overwritten what the earlier one left. */
static void consider(struct choice *choice, uint32_t life)
{
    const struct process_life *items = choice->lives->items;
    size_t fit = dump_origin_fit(&items[life], &choice->given->dump, &choice->given->clock, 0,
                                SIZE_MAX, NULL);
    bool later =
        choice->life == NO_LIFE || life_moment_before(items[choice->life].begin, items[life].begin);
    if (choice->life == NO_LIFE || fit > choice->fit || (fit == choice->fit && later)) {
        choice->life = life;
        choice->fit = fit;
    }
}

/* The name of a file that is called jit-<n>.dump is believed before its header. */
enum claim_match { MATCH_FILE, MATCH_NAME, MATCH_HEADER, CLAIM_MATCHES };

/* Whether GIVEN is the very file of CLAIM; if the recording does not tell, what stands at its path. */
static bool is_file(const struct given_dump *given, const struct dump_claims *claims,
                    const struct dump_claim *claim)
{
    struct stat status;
    if (claim->map->map.has_inode)
        return dump_origin_compare(&claims->origin, &claim->map->map, &given->dump) == FILE_SAME;
    return stat(claim->map->map.filename, &status) == 0 && status.st_dev == given->dump.dev &&
           status.st_ino == given->dump.ino;
}

static bool matches(const struct given_dump *given, const struct dump_claims *claims,
                    const struct dump_claim *claim, enum claim_match match)
{
    switch (match) {
    case MATCH_FILE:
        return is_file(given, claims, claim);
    case MATCH_NAME:
        return jit_dump_same_name(claim->map->map.filename, given->path);
    default:
        return claim->number == given->dump.pid;
    }
}

static void choose_claimant(struct choice *choice, const struct dump_claims *claims, bool named)
{
    int end = named ? MATCH_HEADER : CLAIM_MATCHES;
    for (int match = MATCH_FILE; match < end && choice->life == NO_LIFE; match++)
        for (size_t i = 0; i < claims->count; i++)
            if (matches(choice->given, claims, &claims->items[i], (enum claim_match)match))
                consider(choice, claims->items[i].life);
}

static void choose_by_pid(struct choice *choice, uint32_t pid)
{
    size_t count;
    uint32_t first = process_lives_of(choice->lives, pid, &count);
    for (uint32_t i = 0; i < count; i++)
        consider(choice, first + i);
}

static int choose_life(struct given_dump *given, const struct dump_claims *claims,
                       struct findings *findings)
{
    struct choice choice = {claims->lives, given, NO_LIFE, 0};
    uint32_t number = given->dump.pid;
    bool named = jit_dump_name_pid(given->path, &number);
    choose_claimant(&choice, claims, named);
    if (choice.life == NO_LIFE)
        choose_by_pid(&choice, number);
    if (choice.life == NO_LIFE)
        return failure(findings, "%s: process %" PRIu32 " of %s is not in this recording",
                       claims->profile->file->path, number, given->path);
    given->life = choice.life;
    return 0;
}

/* ---- What it stands for ---- */

/* The header's time, if that can be believed (V8's and CPython's is no CLOCK_MONOTONIC), is about the mapping's. */
static bool header_time_agrees(const struct given_dump *given, const struct dump_claim *claim,
                               const struct process_life *life)
{
    uint64_t header_ns = jit_clock_to_perf(&given->clock, given->dump.timestamp);
    uint64_t map_ns = claim->map->time_ns;
    if (header_ns < life->begin.time_ns || header_ns > life->end_ns || map_ns == 0 ||
        header_ns > perf_time_after(map_ns, 3600 * HEADER_SLACK_NS))
        return true;
    return header_ns <= perf_time_after(map_ns, HEADER_SLACK_NS) &&
           map_ns <= perf_time_after(header_ns, HEADER_SLACK_NS);
}

/* Nothing that CLAIM's process mapped is at its path. */
static bool is_gone(const struct dump_claims *claims, const struct dump_claim *claim)
{
    struct jit_dump left;
    char cause[256];
    bool gone = jit_dump_open(&left, claim->map->map.filename, cause, sizeof cause) ||
                dump_origin_compare(&claims->origin, &claim->map->map, &left) == FILE_OTHER;
    jit_dump_close(&left);
    return gone;
}

/* It was renamed, and nothing is left at the path that the claim has. */
static bool is_renamed(const struct given_dump *given, const struct dump_claims *claims,
                       const struct dump_claim *claim, const struct process_life *life)
{
    return !given->stands && given->dump.pid == claim->number &&
           is_gone(claims, claim) &&
           header_time_agrees(given, claim, life);
}

static void find_stand_ins(struct given_dumps *given, struct dump_claims *claims, bool renamed)
{
    for (size_t i = 0; i < claims->count; i++)
        for (size_t g = 0; g < given->count && claims->items[i].state == CLAIM_OPEN; g++) {
            struct given_dump *item = &given->items[g];
            struct dump_claim *claim = &claims->items[i];
            if (!item->usable || item->life != claim->life)
                continue;
            bool same = matches(item, claims, claim, MATCH_FILE) || matches(item, claims, claim, MATCH_NAME);
            if (renamed ? !is_renamed(item, claims, claim, &claims->lives->items[claim->life]) : !same)
                continue;
            claim->state = CLAIM_GIVEN;
            item->stands = true;
        }
}

static int add_life(struct process_lives *lives, const struct profile *profile, uint32_t pid,
                    struct findings *findings)
{
    size_t count;
    if (process_lives_of(lives, pid, &count) != NO_LIFE || !profile_has_sample_of(profile, pid))
        return 0;
    return process_lives_add(lives, pid, findings);
}

int given_dumps_add_lives(const struct given_dumps *given, struct process_lives *lives,
                          const struct profile *profile, struct findings *findings)
{
    for (size_t i = 0; i < given->count; i++) {
        uint32_t number = given->items[i].dump.pid;
        jit_dump_name_pid(given->items[i].path, &number);
        if (given->items[i].usable && add_life(lives, profile, number, findings))
            return -1;
    }
    return 0;
}

/* Whose mapping of the dump tells what its clock is: before that is known, no life can be chosen by the times in it. */
static uint32_t likely_pid(const struct given_dump *given, const struct dump_claims *claims)
{
    uint32_t number = given->dump.pid;
    for (int match = MATCH_FILE; match < MATCH_HEADER; match++)
        for (size_t i = 0; i < claims->count; i++)
            if (matches(given, claims, &claims->items[i], (enum claim_match)match))
                return claims->lives->items[claims->items[i].life].pid;
    jit_dump_name_pid(given->path, &number);
    return number;
}

/* Refuse the claims of others to files that were given to somebody. */
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
    for (size_t i = 0; i < given->count; i++) {
        struct given_dump *item = &given->items[i];
        if (!item->usable)
            continue;
        char text[512];
        const struct jit_clock_question question = {.profile = claims->profile,
                                                    .dump = &item->dump,
                                                    .pid = likely_pid(item, claims),
                                                    .read_live = clock_live_read};
        dump_machine_correct(&item->dump, claims->profile->file, findings);
        const char *why = jit_clock_choose(&item->clock, &question, text, findings);
        item->usable = why == NULL;
        if (why)
            finding(findings, FINDING_DUMP_UNUSABLE, "%s: %s", item->path, why);
        else if (choose_life(item, claims, findings))
            return -1;
    }
    find_stand_ins(given, claims, false);
    find_stand_ins(given, claims, true);
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
