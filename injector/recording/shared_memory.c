/* See shared_memory.h. */
#include "injector/recording/shared_memory.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A runtime has one such mapping, or a few; more mappings than this are not read.
 */
enum { MAX_HOLDS_OF_LIFE = 64, MAX_HOLDS = 1 << 18 };

/* The holds that have been found, and of each life, by number, which are its. */
struct search {
    struct shared_memory *memory;
    const struct process_lives *lives;
    const struct records *records;
    size_t *first, *end; /* by life */
    bool *lost_exec;     /* by life: it ends as another program than it began */
};

/* ---- Objects ---- */

static uint64_t shift_of(const struct shared_hold *hold)
{
    return hold->map->map.pgoff - hold->map->map.start;
}

/* An order of objects, each with where it is in the address space.  The kernel's own objects share
 * a device, but System V memory and the others have different numbers. */
static int compare_objects(const struct shared_hold *a, const struct shared_hold *b)
{
    const struct perf_map *left = &a->map->map, *right = &b->map->map;
    if (left->ino != right->ino)
        return left->ino < right->ino ? -1 : 1;
    if (left->maj != right->maj)
        return left->maj < right->maj ? -1 : 1;
    if (left->min != right->min)
        return left->min < right->min ? -1 : 1;
    if (shift_of(a) != shift_of(b))
        return shift_of(a) < shift_of(b) ? -1 : 1;
    size_t bytes = perf_map_name_length(left->filename);
    size_t others = perf_map_name_length(right->filename);
    if (bytes != others)
        return bytes < others ? -1 : 1;
    return strncmp(left->filename, right->filename, bytes);
}

static bool is_shared(const struct perf_map *map)
{
    return map->has_inode && (map->flags & MAP_TYPE) == MAP_SHARED && map->len;
}

/* ---- Of one life after the other ---- */

static int add_hold(struct search *search, struct shared_hold hold)
{
    struct shared_memory *memory = search->memory;
    size_t *end = &search->end[hold.life];
    if (memory->count - search->first[hold.life] >= MAX_HOLDS_OF_LIFE ||
        memory->count >= MAX_HOLDS || hold.start >= hold.end)
        return 0;
    if (array_reserve(memory->holds, memory->count, memory->capacity))
        return -1;
    memory->holds[memory->count++] = hold;
    *end = memory->count;
    return 0;
}

/* Whether two maps are of one file, for all that is known: /proc may call it otherwise, in a
 * container say, or removed. */
static bool may_be_one_file(const struct perf_map *a, const struct perf_map *b)
{
    return (a->has_inode && b->has_inode && a->ino == b->ino) ||
           perf_map_same_name(a->filename, b->filename);
}

/* Whether the exec between is one of the records that a recording has overwritten: MAPS, a life's
 * that began by exec, are at the end (synthesized) without the file that was executed. */
static bool has_lost_exec(const struct recorded_map *maps, size_t count)
{
    const struct recorded_map *program = NULL;
    bool late = false;
    for (size_t i = 0; i < count && !program; i++)
        if (!maps[i].synthesized && maps[i].map.filename[0] == '/')
            program = &maps[i];
    for (size_t i = 0; i < count && program; i++) {
        if (maps[i].late && may_be_one_file(&maps[i].map, &program->map))
            return false;
        late = late || maps[i].late;
    }
    return late;
}

static bool began_by_exec(const struct process_lives *lives, uint32_t life)
{
    return life > 0 && lives->items[life - 1].pid == lives->items[life].pid &&
           lives->items[life - 1].execed;
}

/* Take the holds of LIFE's parent at the time of its fork.  Holds of a later program of the parent
 * are not among them. */
static int inherit(struct search *search, uint32_t life)
{
    const struct process_life *born = &search->lives->items[life];
    uint64_t at_ns = born->begin.time_ns;
    if (born->parent == NO_LIFE)
        return 0;
    for (size_t i = search->first[born->parent]; i < search->end[born->parent]; i++) {
        struct shared_hold hold = search->memory->holds[i];
        if (hold.from_ns > at_ns || hold.to_ns <= at_ns ||
            (hold.map->late && search->lost_exec[born->parent]))
            continue;
        hold.life = life;
        hold.inherited = true;
        hold.from_ns = at_ns;
        hold.to_ns = born->end_ns;
        if (add_hold(search, hold))
            return -1;
    }
    return 0;
}

/* MAP, which is of another object than HOLD number INDEX, takes its place in part or whole. */
static int cut(struct search *search, size_t index, const struct recorded_map *map)
{
    struct shared_hold *hold = &search->memory->holds[index];
    struct shared_hold below = *hold, above = *hold;
    uint64_t start = map->map.start, end = start + map->map.len;
    below.end = start;
    above.start = end;
    hold->start = start > hold->start ? start : hold->start;
    hold->end = end < hold->end ? end : hold->end;
    hold->to_ns = map->time_ns;
    return add_hold(search, below) || add_hold(search, above) ? -1 : 0;
}

/* A mapping of memory that is held already changes its protection (one that is not executable then
 * is recorded in some forms of perf record), or lets it grow.  Else a hold ends where something
 * else is mapped. */
static int take_map(struct search *search, uint32_t life, const struct recorded_map *map)
{
    const struct process_life *born = &search->lives->items[life];
    uint64_t start = map->map.start, end = start + map->map.len;
    struct shared_hold hold = {.life = life,
                               .from_ns = map->time_ns,
                               .to_ns = born->end_ns,
                               .start = start,
                               .end = end,
                               .map = map};
    bool shared = is_shared(&map->map), known = false;
    for (size_t i = search->first[life], count = search->end[life]; i < count; i++) {
        struct shared_hold *held = &search->memory->holds[i];
        if (held->start >= end || held->end <= start || held->to_ns <= map->time_ns)
            continue;
        bool same = shared && !known && compare_objects(held, &hold) == 0;
        if (!same && cut(search, i, map))
            return -1;
        if (!same)
            continue;
        held->start = start < held->start ? start : held->start;
        held->end = end > held->end ? end : held->end;
        known = true;
    }
    return shared && !known && !map->map.data ? add_hold(search, hold) : 0;
}

static int find_life(struct search *search, uint32_t life)
{
    const struct process_life *born = &search->lives->items[life];
    size_t count;
    const struct recorded_map *maps =
        process_life_maps(search->records, born->pid, born->begin, born->next, &count);
    search->first[life] = search->end[life] = search->memory->count;
    search->lost_exec[life] = began_by_exec(search->lives, life) && has_lost_exec(maps, count);
    int result = inherit(search, life);
    for (size_t i = 0; i < count && !result; i++)
        if (search->end[life] > search->first[life] || is_shared(&maps[i].map))
            result = take_map(search, life, &maps[i]);
    return result;
}

/* ---- Of all ---- */

static int by_object(const void *left, const void *right)
{
    const struct shared_hold *a = left, *b = right;
    int order = compare_objects(a, b);
    return order ? order : a->life < b->life ? -1 : a->life > b->life;
}

static int by_life(const void *left, const void *right)
{
    const struct shared_hold *a = left, *b = right;
    if (a->life != b->life)
        return a->life < b->life ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

/* Number the objects, and leave out those that only one life ever held. */
static void number_objects(struct shared_memory *memory)
{
    size_t kept = 0;
    qsort(memory->holds, memory->count, sizeof *memory->holds, by_object);
    for (size_t at = 0, count; at < memory->count; at += count) {
        const struct shared_hold *first = &memory->holds[at];
        for (count = 1; at + count < memory->count; count++)
            if (compare_objects(first, &memory->holds[at + count]))
                break;
        if (first->life == memory->holds[at + count - 1].life)
            continue;
        for (size_t i = 0; i < count; i++) {
            memory->holds[kept] = memory->holds[at + i];
            memory->holds[kept++].object = (uint32_t)memory->object_count;
        }
        memory->object_count++;
    }
    memory->count = kept;
}

static int index_objects(struct shared_memory *memory)
{
    number_objects(memory);
    memory->by_object = malloc((memory->count + 1) * sizeof *memory->by_object);
    memory->first = calloc(memory->object_count + 2, sizeof *memory->first);
    if (!memory->by_object || !memory->first)
        return -1;
    if (memory->count)
        qsort(memory->holds, memory->count, sizeof *memory->holds, by_life);
    uint32_t *next = memory->first + 1; /* where the next of each object goes */
    for (size_t i = 0; i < memory->count; i++)
        memory->first[memory->holds[i].object + 1]++;
    for (size_t i = 1; i <= memory->object_count; i++)
        memory->first[i] += memory->first[i - 1];
    memmove(next, memory->first, memory->object_count * sizeof *next);
    for (size_t i = 0; i < memory->count; i++)
        memory->by_object[next[memory->holds[i].object]++] = (uint32_t)i;
    return 0;
}

int shared_memory_find(struct shared_memory *memory, const struct process_lives *lives,
                       const uint32_t *order, const struct records *records)
{
    struct search search = {.memory = memory, .lives = lives, .records = records};
    *memory = (struct shared_memory){0};
    search.first = calloc(lives->count + 1, sizeof *search.first);
    search.end = calloc(lives->count + 1, sizeof *search.end);
    search.lost_exec = calloc(lives->count + 1, sizeof *search.lost_exec);
    int result = search.first && search.end && search.lost_exec ? 0 : -1;
    for (size_t i = 0; i < lives->count && !result; i++)
        result = find_life(&search, order[i]);
    free(search.first);
    free(search.end);
    free(search.lost_exec);
    if (!result && memory->count)
        result = index_objects(memory);
    return result;
}

const struct shared_hold *shared_memory_at(const struct shared_memory *memory, uint32_t life,
                                           uint64_t start, uint64_t end, uint64_t time_ns)
{
    const struct shared_hold *found = NULL;
    size_t at;
    array_bisect(at, memory->count, memory->holds[at].life < life);
    for (; at < memory->count && memory->holds[at].life == life; at++) {
        const struct shared_hold *hold = &memory->holds[at];
        if (hold->start > start)
            break;
        if (hold->end >= end && hold->to_ns > time_ns && (!found || hold->from_ns < found->from_ns))
            found = hold;
    }
    return found;
}

void shared_memory_free(struct shared_memory *memory)
{
    free(memory->holds);
    free(memory->by_object);
    free(memory->first);
    *memory = (struct shared_memory){0};
}
