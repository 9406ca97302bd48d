/* See dump_rivals.h. */
#include "injector/log/owner/dump_rivals.h"

#include <stdlib.h>

/* Whether any of its functions was loaded in the life that claims it. */
static bool fits(const struct dump_claims *claims, const struct dump_claim *claim)
{
    return dump_origin_fit(dump_claim_life(claims, claim), &claim->dump, &claim->clock, 0, 1,
                           NULL) > 0;
}

static bool are_rivals(const struct dump_claim *a, const struct dump_claim *b)
{
    return a->state == CLAIM_FOUND && b->state == CLAIM_FOUND && a->dump.dev == b->dump.dev &&
           a->dump.ino == b->dump.ino && a->life != b->life;
}

/* Two that mapped files of their own: whether the copy's header was written when B did it, rather
 * than when A did. */
static bool is_nearer(const struct dump_claims *claims, const struct dump_claim *a,
                      const struct dump_claim *b, bool *equal)
{
    uint64_t from_a_ns = dump_claim_distance(claims, a, &a->dump, &a->clock);
    uint64_t from_b_ns = dump_claim_distance(claims, b, &b->dump, &b->clock);
    *equal = from_a_ns == from_b_ns;
    return from_b_ns < from_a_ns;
}

/* Whether B has the better right to the file that both claim. */
static bool is_better(const struct dump_claims *claims, const struct dump_claim *a,
                      const struct dump_claim *b, bool *equal)
{
    *equal = false;
    bool a_same = a->place.identity == FILE_SAME, b_same = b->place.identity == FILE_SAME;
    if (a_same != b_same)
        return b_same;
    bool a_fits = fits(claims, a), b_fits = fits(claims, b);
    if (a_fits != b_fits)
        return b_fits;
    if (dump_claim_life(claims, a)->pid == dump_claim_life(claims, b)->pid)
        return life_moment_before(dump_claim_life(claims, a)->begin,
                                  dump_claim_life(claims, b)->begin);
    *equal = a->map->map.has_inode && b->map->map.has_inode &&
             dump_claim_same_file(&a->map->map, &b->map->map);
    return !*equal && is_nearer(claims, a, b, equal);
}

/* Why CLAIM lost its file to another one. */
static const char *why_lost(const struct dump_claims *claims, const struct dump_claim *claim)
{
    const struct process_life *life = dump_claim_life(claims, claim);
    const struct dump_claim *next = claim + 1;
    bool goes_on = life->execed && next < claims->items + claims->count &&
                   dump_claim_life(claims, next)->pid == life->pid && are_rivals(claim, next);
    return goes_on ? DUMP_WRITTEN_ANEW
                   : "the file there is that of another process, or of a later life of this one";
}

enum outcome { WINS, LOSES, TIES };

/* A claim, by the file that it found. */
struct found_file {
    dev_t dev;
    ino_t ino;
    size_t claim;
};

static int compare_files(const void *left, const void *right)
{
    const struct found_file *a = left, *b = right;
    if (a->dev != b->dev)
        return a->dev < b->dev ? -1 : 1;
    if (a->ino != b->ino)
        return a->ino < b->ino ? -1 : 1;
    return a->claim < b->claim ? -1 : a->claim > b->claim;
}

/* The claims that found one, those of one file next to each other; to be freed.  NULL without
 * memory. */
static struct found_file *find_rivals(const struct dump_claims *claims, size_t *count)
{
    struct found_file *found = calloc(claims->count + 1, sizeof *found);
    *count = 0;
    for (size_t i = 0; found && i < claims->count; i++) {
        const struct dump_claim *claim = &claims->items[i];
        if (claim->state == CLAIM_FOUND)
            found[(*count)++] = (struct found_file){claim->dump.dev, claim->dump.ino, i};
    }
    if (found)
        qsort(found, *count, sizeof *found, compare_files);
    return found;
}

static void judge_rivals(const struct dump_claims *claims, const struct found_file *found,
                         size_t count, uint8_t *outcomes)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            const struct dump_claim *a = &claims->items[found[i].claim];
            const struct dump_claim *b = &claims->items[found[j].claim];
            uint8_t *outcome = &outcomes[found[i].claim];
            bool equal;
            if (!are_rivals(a, b))
                continue;
            if (is_better(claims, a, b, &equal))
                *outcome = LOSES;
            else if (equal && *outcome == WINS)
                *outcome = TIES;
        }
}

static void settle_rivals(struct dump_claims *claims, struct findings *findings)
{
    size_t count;
    struct found_file *found = find_rivals(claims, &count);
    uint8_t *outcomes = found ? calloc(claims->count + 1, 1) : NULL;
    for (size_t i = 0, next; outcomes && i < count; i = next) {
        for (next = i + 1;
             next < count && found[next].dev == found[i].dev && found[next].ino == found[i].ino;)
            next++;
        judge_rivals(claims, found + i, next - i, outcomes);
    }
    for (size_t i = 0; outcomes && i < claims->count; i++) {
        struct dump_claim *claim = &claims->items[i];
        if (outcomes[i] == LOSES)
            dump_claim_refuse(claims, claim, FINDING_DUMP_REPLACED, why_lost(claims, claim),
                              findings);
        else if (outcomes[i] == TIES)
            dump_claim_refuse(claims, claim, FINDING_DUMP_AMBIGUOUS,
                              "could be its dump, and that of another process too", findings);
    }
    if (!outcomes)
        report_failure(findings, "out of memory");
    free(outcomes);
    free(found);
}

/* All of it was written before the process was there, or after it ended. */
static void check_times(struct dump_claims *claims, struct dump_claim *claim,
                        struct findings *findings)
{
    size_t total;
    if (claim->state == CLAIM_FOUND &&
        dump_origin_fit(dump_claim_life(claims, claim), &claim->dump, &claim->clock, FIT_SLACK_NS,
                        1, &total) == 0 &&
        total > 0)
        dump_claim_refuse(claims, claim, FINDING_DUMP_REPLACED,
                          "the file there was written while the process did not exist", findings);
}

int dump_rivals_settle(struct dump_claims *claims, struct findings *findings)
{
    settle_rivals(claims, findings);
    for (size_t i = 0; i < claims->count; i++)
        check_times(claims, &claims->items[i], findings);
    return findings->failure[0] ? -1 : 0;
}
