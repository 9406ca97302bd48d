/* See address_space.h. */
#include "injector/unwind/addresses/address_space.h"

#include "injector/arrays/bisect.h"
#include "injector/log/jitdump/dump_name.h"

#include <stdlib.h>
#include <string.h>

/* At most this many ancestors are read; a life that has more has a copy of their state. */
enum { MOST_ASKED = 16 };

/* ---- The source ---- */

static int count_functions(struct space_source *source)
{
    const struct jit_processes *processes = source->processes;
    uint64_t count = 0;
    for (size_t i = 0; i < processes->count; i++) {
        source->first_function[i] = (uint32_t)count;
        count += source->timelines[i].log->function_count;
        if (count >= SPACE_FUNCTION)
            return -1;
        source->process_of[processes->items[i].life] = i;
    }
    source->function_count = (uint32_t)count;
    return 0;
}

int space_source_begin(struct space_source *source, const struct records *records,
                       const struct jit_processes *processes, const struct timeline *timelines)
{
    const struct process_lives *lives = &processes->lives;
    *source = (struct space_source){records, processes, timelines, NULL, NULL, 0};
    source->process_of = malloc((lives->count + 1) * sizeof *source->process_of);
    source->first_function = calloc(processes->count + 1, sizeof *source->first_function);
    if (!source->process_of || !source->first_function)
        return -1;
    for (size_t i = 0; i < lives->count; i++)
        source->process_of[i] = SIZE_MAX;
    return count_functions(source);
}

const struct jit_function *space_function(const struct space_source *source, uint32_t number,
                                          size_t *process)
{
    size_t behind;
    array_bisect(behind, source->processes->count, source->first_function[behind] <= number);
    *process = behind - 1;
    return &source->timelines[behind - 1]
                .log->functions[number - source->first_function[behind - 1]];
}

void space_source_free(struct space_source *source)
{
    free(source->process_of);
    free(source->first_function);
    *source = (struct space_source){0};
}

/* ---- A life ---- */

static const struct timeline *timeline_of(const struct address_space *space)
{
    return space->process == SIZE_MAX ? NULL : &space->source->timelines[space->process];
}

/* Take over all that SPACE and its ancestors have, the eldest first. */
static int copy_all(struct address_map *to, const struct address_space *space)
{
    struct address_place place;
    if (space->parent && copy_all(to, space->parent))
        return -1;
    const struct address_range *range = address_map_find(&space->map, 0, &place);
    for (; range; range = address_map_next(&space->map, &place))
        if (address_map_set(to, range->start, range->end, range->value))
            return -1;
    return 0;
}

int address_space_begin(struct address_space *space, const struct space_source *source,
                        uint32_t life, const struct address_space *parent)
{
    const struct process_life *lived = &source->processes->lives.items[life];
    *space = (struct address_space){.source = source,
                                    .life = life,
                                    .parent = parent,
                                    .process = source->process_of[life],
                                    .depth = parent ? parent->depth + 1 : 0};
    space->maps = process_life_maps(source->records, lived->pid, lived->begin, lived->next,
                                    &space->map_count);
    if (space->depth < MOST_ASKED)
        return 0;
    space->depth = 0;
    space->parent = NULL;
    return copy_all(&space->map, parent);
}

/* Give [START, END) to VALUE: the event that is being played does it. */
static int set_owner(struct address_space *space, uint64_t start, uint64_t end, uint32_t value)
{
    const uint64_t version = space->version + 1;
    const uint64_t first = start >> SPACE_BLOCK_BITS;
    if (start >= end)
        return 0;
    const uint64_t count = ((end - 1) >> SPACE_BLOCK_BITS) - first + 1;
    if (count >= SPACE_BLOCKS)
        space->all_changed = version;
    else
        for (uint64_t i = 0; i < count; i++)
            space->changed[(first + i) % SPACE_BLOCKS] = version;
    return address_map_set(&space->map, start, end, value);
}

static int play_map(struct address_space *space, const struct recorded_map *map)
{
    if (timeline_drops(timeline_of(space), map->record.offset) ||
        jit_dump_has_name(map->map.filename))
        return 0;
    /* A timeline knows whether memory of a process with JIT code is moved text. */
    const struct recorded_map *owner = map->text && space->process == SIZE_MAX ? map->text : map;
    return set_owner(space, map->map.start, map->map.start + map->map.len,
                     (uint32_t)(owner - space->source->records->maps));
}

static int play_change(struct address_space *space, const struct change *change)
{
    const struct jit_process *process = &space->source->processes->items[space->process];
    uint32_t value = SPACE_NOTHING;
    if (change->kind == CHANGE_FUNCTION)
        value = SPACE_FUNCTION | (space->source->first_function[space->process] + change->index);
    else if (change->kind == CHANGE_MAP)
        value = (uint32_t)(process->maps - space->source->records->maps) + change->index;
    return set_owner(space, change->start, change->end, value);
}

/* If a change and a mapping have the same time, the change comes first, as it does in the
 * output. */
int address_space_play(struct address_space *space, uint64_t time_ns)
{
    const struct timeline *timeline = timeline_of(space);
    size_t change_count = timeline ? timeline->change_count : 0;
    int result = 0;
    while (!result) {
        const struct change *change =
            space->next_change < change_count ? &timeline->changes[space->next_change] : NULL;
        const struct recorded_map *map =
            space->next_map < space->map_count ? &space->maps[space->next_map] : NULL;
        if (change && change->time_ns > time_ns)
            change = NULL;
        if (map && (map->time_ns > time_ns || (change && change->time_ns <= map->time_ns)))
            map = NULL;
        if (!map && !change)
            break;
        result = map ? play_map(space, map) : play_change(space, change);
        space->next_map += map != NULL;
        space->next_change += map == NULL;
        space->version++;
    }
    return result;
}

uint32_t address_space_at(const struct address_space *space, uint64_t addr)
{
    for (; space; space = space->parent) {
        const struct address_range *range = address_map_at(&space->map, addr);
        if (range)
            return range->value;
    }
    return SPACE_NOTHING;
}

uint64_t address_space_since(const struct address_space *space, uint64_t addr)
{
    const uint64_t of_block = space->changed[(addr >> SPACE_BLOCK_BITS) % SPACE_BLOCKS];
    return of_block > space->all_changed ? of_block : space->all_changed;
}

void address_space_end(struct address_space *space)
{
    address_map_free(&space->map);
}
