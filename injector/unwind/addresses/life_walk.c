/* See life_walk.h. */
#include "injector/unwind/addresses/life_walk.h"

#include "injector/arrays/array.h"
#include "injector/arrays/run_sort.h"

#include <stdlib.h>

/* A life in which samples were taken, or in one of its children. */
struct walked_life {
    size_t first, count;        /* samples */
    uint32_t first_child, next; /* by their forks' time; NO_LIFE: no more */
    bool matters, is_child;
};

/* A life that is played as far as its next sample, or child. */
struct stop {
    uint32_t life;
    size_t next_sample; /* of its own */
    uint32_t next_child;
    struct address_space *space;
};

struct walker {
    struct life_walk *walk;
    const struct process_lives *lives;
    struct walked_life *items; /* by life */
    uint32_t *order;           /* a parent stands before its children */
    struct stop *stops;        /* the innermost last */
    size_t stop_count, stop_capacity;
};

/* ---- Order ---- */

/* The life whose addresses LIFE begins with, or NO_LIFE: its parent, or the program that its
 * process ran before.  While exec sets up the new program, the registers of the old one are what a
 * sample tells of the user, and they lead into the old one's maps. */
static uint32_t life_before(const struct process_lives *lives, uint32_t life)
{
    const struct process_life *items = lives->items;
    if (items[life].parent != NO_LIFE)
        return items[life].parent;
    return life && items[life - 1].pid == items[life].pid && items[life - 1].execed ? life - 1
                                                                                    : NO_LIFE;
}

static int sort_samples(struct walker *walker)
{
    struct life_walk *walk = walker->walk;
    struct walk_sample *sorted = malloc((walk->count + 1) * sizeof *sorted);
    size_t before = 0;
    if (!sorted)
        return -1;
    for (size_t i = 0; i < walk->count; i++)
        walker->items[walk->samples[i].life].count++;
    for (size_t i = 0; i < walker->lives->count; i++) {
        walker->items[i].first = before;
        before += walker->items[i].count;
        walker->items[i].count = 0;
    }
    for (size_t i = 0; i < walk->count; i++) {
        struct walked_life *item = &walker->items[walk->samples[i].life];
        sorted[item->first + item->count++] = walk->samples[i];
    }
    for (size_t i = 0; i < walker->lives->count; i++) {
        const struct walked_life *item = &walker->items[i];
        run_sort(sorted + item->first, walk->samples + item->first, item->count, sizeof *sorted);
    }
    free(walk->samples);
    walk->samples = sorted;
    return 0;
}

static void mark_lives(struct walker *walker)
{
    for (uint32_t i = 0; i < walker->lives->count; i++)
        for (uint32_t life = walker->items[i].count ? i : NO_LIFE;
             life != NO_LIFE && !walker->items[life].matters;
             life = life_before(walker->lives, life))
            walker->items[life].matters = true;
}

static int find_children(struct walker *walker)
{
    const struct process_lives *lives = walker->lives;
    walker->order = process_lives_order(lives);
    if (!walker->order)
        return -1;
    for (size_t i = 0; i < lives->count; i++)
        walker->items[i].first_child = walker->items[i].next = NO_LIFE;
    for (size_t i = lives->count; i-- > 0;) {
        uint32_t life = walker->order[i], parent = life_before(lives, life);
        if (!walker->items[life].matters || parent == NO_LIFE ||
            !life_moment_before(lives->items[parent].begin, lives->items[life].begin))
            continue;
        walker->items[life].is_child = true;
        walker->items[life].next = walker->items[parent].first_child;
        walker->items[parent].first_child = life;
    }
    return 0;
}

/* ---- Playing ---- */

static int enter(struct walker *walker, uint32_t life)
{
    const struct address_space *parent =
        walker->stop_count ? walker->stops[walker->stop_count - 1].space : NULL;
    struct stop *stops =
        array_room(walker->stops, walker->stop_count, &walker->stop_capacity, sizeof *stops);
    if (!stops)
        return -1;
    walker->stops = stops;
    struct address_space *space = calloc(1, sizeof *space);
    if (!space)
        return -1;
    stops[walker->stop_count++] = (struct stop){life, 0, walker->items[life].first_child, space};
    return address_space_begin(space, walker->walk->source, life, parent);
}

static void leave(struct walker *walker)
{
    struct stop *stop = &walker->stops[--walker->stop_count];
    address_space_end(stop->space);
    free(stop->space);
}

static int look(struct walker *walker, struct stop *stop)
{
    const struct walked_life *item = &walker->items[stop->life];
    const struct walk_sample *sample = &walker->walk->samples[item->first + stop->next_sample++];
    if (address_space_play(stop->space, sample->time_ns))
        return -1;
    return walker->walk->visit(walker->walk->context, sample, stop->space);
}

/* A child that was forked at the time of a sample was there before it. */
static bool child_is_next(const struct walker *walker, const struct stop *stop)
{
    const struct walked_life *item = &walker->items[stop->life];
    return stop->next_child != NO_LIFE &&
           (stop->next_sample == item->count ||
            walker->lives->items[stop->next_child].begin.time_ns <=
                walker->walk->samples[item->first + stop->next_sample].time_ns);
}

/* Go on in the innermost life to its next child or sample, or end it. */
static int go_on(struct walker *walker)
{
    struct stop *stop = &walker->stops[walker->stop_count - 1];
    uint32_t child = stop->next_child;
    if (child_is_next(walker, stop)) {
        if (address_space_play(stop->space, walker->lives->items[child].begin.time_ns))
            return -1;
        stop->next_child = walker->items[child].next;
        return enter(walker, child);
    }
    if (stop->next_sample < walker->items[stop->life].count)
        return look(walker, stop);
    leave(walker);
    return 0;
}

static int walk_family(struct walker *walker, uint32_t life)
{
    int result = enter(walker, life);
    while (!result && walker->stop_count)
        result = go_on(walker);
    while (walker->stop_count)
        leave(walker);
    return result;
}

int life_walk_go(struct life_walk *walk)
{
    struct walker walker = {.walk = walk, .lives = &walk->source->processes->lives};
    walker.items = calloc(walker.lives->count + 1, sizeof *walker.items);
    int result = walker.items ? sort_samples(&walker) : -1;
    if (!result) {
        mark_lives(&walker);
        result = find_children(&walker);
    }
    for (size_t i = 0; !result && i < walker.lives->count; i++) {
        const struct walked_life *item = &walker.items[walker.order[i]];
        if (item->matters && !item->is_child)
            result = walk_family(&walker, walker.order[i]);
    }
    free(walker.items);
    free(walker.order);
    free(walker.stops);
    return result;
}
