/* See timeline.h. */
#include "injector/timeline/timeline.h"

#include "injector/array.h"
#include "injector/timeline/address_map.h"

#include <inttypes.h>
#include <string.h>

enum backing { BACKED_BY_MEMORY, BACKED_BY_FILE };

/* What has happened since the last sample and is not yet a change. */
struct moment {
    uint64_t time_ns; /* of its first event */
    uint32_t *loaded; /* functions, in the order of their loads */
    size_t loaded_count, loaded_capacity;
    struct address_range *unloaded;
    size_t unloaded_count, unloaded_capacity;
};

struct player {
    struct timeline *timeline;
    struct jit_process *process;
    struct findings *findings;
    struct address_map owners; /* live functions */
    struct address_map shown;  /* the last function that became a change there, dead or alive */
    struct address_map backed; /* enum backing: what the profile's mappings say */
    struct moment moment;
};

static int add_change(struct timeline *timeline, struct change change)
{
    struct change *changes = array_room(timeline->changes, timeline->change_count,
                                        &timeline->change_capacity, sizeof *changes);
    if (!changes)
        return -1;
    timeline->changes = changes;
    changes[timeline->change_count++] = change;
    return 0;
}

static int drop_record(struct timeline *timeline, uint64_t offset)
{
    uint64_t *dropped = array_room(timeline->dropped, timeline->dropped_count,
                                   &timeline->dropped_capacity, sizeof *dropped);
    if (!dropped)
        return -1;
    timeline->dropped = dropped;
    dropped[timeline->dropped_count++] = offset;
    return 0;
}

/* ---- The end of a moment: what of it can be seen becomes changes ---- */

/* One more than the highest generation that any part of FUNCTION's addresses has seen. */
static uint32_t next_generation(const struct player *player, const struct jit_function *function)
{
    uint32_t generation = 0;
    uint64_t end = function->addr + function->size;
    struct address_place place;
    const struct address_range *range = address_map_find(&player->shown, function->addr, &place);
    for (; range && range->start < end; range = address_map_next(&player->shown, &place)) {
        uint32_t seen = player->process->log.functions[range->value].generation;
        generation = seen + 1 > generation ? seen + 1 : generation;
    }
    return generation;
}

/* Add the changes that give FUNCTION what it still owns of its addresses. */
static int show_function(struct player *player, uint32_t index)
{
    struct jit_function *function = &player->process->log.functions[index];
    uint64_t end = function->addr + function->size;
    struct address_place place;
    const struct address_range *range = address_map_find(&player->owners, function->addr, &place);
    for (; range && range->start < end; range = address_map_next(&player->owners, &place)) {
        if (range->value != index)
            continue;
        function->visible = true;
        if (add_change(player->timeline, (struct change){player->moment.time_ns, range->start,
                                                         range->end, CHANGE_FUNCTION, index}))
            return -1;
    }
    if (!function->visible)
        return 0;
    function->generation = next_generation(player, function);
    function->reused = function->generation > 0;
    return address_map_set(&player->shown, function->addr, end, index);
}

static int show_unloaded(struct player *player)
{
    for (size_t i = 0; i < player->moment.unloaded_count; i++) {
        const struct address_range *range = &player->moment.unloaded[i];
        if (add_change(player->timeline, (struct change){player->moment.time_ns, range->start,
                                                         range->end, CHANGE_UNLOADED, 0}))
            return -1;
    }
    return 0;
}

static int end_moment(struct player *player)
{
    struct moment *moment = &player->moment;
    if (show_unloaded(player))
        return -1;
    for (size_t i = 0; i < moment->loaded_count; i++)
        if (show_function(player, moment->loaded[i]))
            return -1;
    moment->loaded_count = 0;
    moment->unloaded_count = 0;
    return 0;
}

static void begin_event(struct player *player, uint64_t time_ns)
{
    if (player->moment.loaded_count == 0 && player->moment.unloaded_count == 0)
        player->moment.time_ns = time_ns;
}

/* ---- Code events ---- */

/* The live function that owns ADDR, or NO_IMAGE. */
static uint32_t owner_at(const struct player *player, uint64_t addr)
{
    struct address_place place;
    const struct address_range *range = address_map_find(&player->owners, addr, &place);
    return range && range->start <= addr ? range->value : NO_IMAGE;
}

/* A runtime that logs everything again (.NET does when a tracer attaches) changes nothing but the code_index. */
static bool is_repeated(const struct player *player, const struct jit_function *function)
{
    uint32_t owner = owner_at(player, function->addr);
    if (owner == NO_IMAGE)
        return false;
    const struct jit_function *old = &player->process->log.functions[owner];
    struct address_place place;
    const struct address_range *range = address_map_find(&player->owners, function->addr, &place);
    return range->start == function->addr && range->end == function->addr + function->size &&
           old->addr == function->addr && old->size == function->size && old->code &&
           function->code && strcmp(old->name, function->name) == 0 &&
           memcmp(old->code, function->code, (size_t)function->size) == 0;
}

static int load(struct player *player, uint32_t index)
{
    const struct jit_function *function = &player->process->log.functions[index];
    struct moment *moment = &player->moment;
    if (function->size == 0)
        return 0;
    if (is_repeated(player, function)) {
        uint32_t owner = owner_at(player, function->addr);
        player->process->log.functions[owner].code_index = function->code_index;
        return 0;
    }
    uint32_t *loaded =
        array_room(moment->loaded, moment->loaded_count, &moment->loaded_capacity, sizeof *loaded);
    if (!loaded)
        return -1;
    moment->loaded = loaded;
    loaded[moment->loaded_count++] = index;
    return address_map_set(&player->owners, function->addr, function->addr + function->size, index);
}

static int add_unloaded(struct moment *moment, const struct address_range *range)
{
    struct address_range *unloaded = array_room(moment->unloaded, moment->unloaded_count,
                                                &moment->unloaded_capacity, sizeof *unloaded);
    if (!unloaded)
        return -1;
    moment->unloaded = unloaded;
    unloaded[moment->unloaded_count++] = *range;
    return 0;
}

/* End the residence of function INDEX: what it still owns is nobody's. */
static int end_function(struct player *player, uint32_t index)
{
    const struct jit_function *function = &player->process->log.functions[index];
    uint64_t end = function->addr + function->size;
    struct address_place place;
    const struct address_range *range;
    while ((range = address_map_find(&player->owners, function->addr, &place))) {
        while (range && range->start < end && range->value != index)
            range = address_map_next(&player->owners, &place);
        if (!range || range->start >= end)
            return 0;
        struct address_range owned = *range;
        if (add_unloaded(&player->moment, &owned) ||
            address_map_clear(&player->owners, owned.start, owned.end))
            return -1;
    }
    return 0;
}

static bool owns_index(const struct player *player, uint32_t owner, uint64_t code_index)
{
    return owner != NO_IMAGE && player->process->log.functions[owner].code_index == code_index;
}

static int move(struct player *player, const struct code_move *code_move)
{
    struct jit_function *functions = player->process->log.functions;
    struct jit_function *function = &functions[code_move->function];
    uint32_t owner = owner_at(player, code_move->old_addr);
    if (!owns_index(player, owner, function->code_index)) {
        finding(player->findings, FINDING_CODE_LOST,
                "%s: move of code_index %" PRIu64 " from 0x%" PRIx64 ", where no such function is",
                player->process->dump_paths[function->dump], function->code_index,
                code_move->old_addr);
        return 0;
    }
    function->name = functions[owner].name;
    function->code = function->size <= functions[owner].size ? functions[owner].code : NULL;
    function->first_fde = functions[owner].first_fde;
    function->fde_count = functions[owner].fde_count;
    if (end_function(player, owner))
        return -1;
    return load(player, code_move->function);
}

/* An unload may come late, when the addresses, or some of them, have a new owner: that one stays. */
static int unload(struct player *player, const struct code_unload *code_unload)
{
    uint64_t end = code_unload->addr + (code_unload->size ? code_unload->size : 1);
    struct address_place place;
    const struct address_range *range =
        address_map_find(&player->owners, code_unload->addr, &place);
    for (; range && range->start < end; range = address_map_next(&player->owners, &place))
        if (owns_index(player, range->value, code_unload->code_index))
            return end_function(player, range->value);
    uint32_t owner = owner_at(player, code_unload->addr);
    range = address_map_find(&player->shown, code_unload->addr, &place);
    if (owner == NO_IMAGE && code_unload->size && (!range || range->start > code_unload->addr))
        finding(player->findings, FINDING_CODE_LOST,
                "%s: unload of code_index %" PRIu64 " at 0x%" PRIx64 ", where no function ever was",
                player->process->dump_paths[0], code_unload->code_index, code_unload->addr);
    return 0;
}

static int play_code_event(struct player *player, const struct code_event *event)
{
    const struct code_log *log = &player->process->log;
    begin_event(player, event->time_ns);
    switch (event->kind) {
    case CODE_EVENT_LOAD:
        return load(player, event->index);
    case CODE_EVENT_MOVE:
        return move(player, &log->moves[event->index]);
    default:
        return unload(player, &log->unloads[event->index]);
    }
}

/* ---- The profile's own mappings ---- */

static bool covers_live_code(const struct player *player, uint64_t start, uint64_t end)
{
    struct address_place place;
    const struct address_range *range = address_map_find(&player->owners, start, &place);
    return range && range->start < end;
}

/* Add the part [START, END) of mapping INDEX again, but for the live code in it and the alignment in between. */
static int restore_part(struct player *player, uint32_t index, uint64_t start, uint64_t end)
{
    const struct profile_map *map = &player->process->maps[index];
    const uint64_t first = start;
    struct address_place place;
    const struct address_range *range = address_map_find(&player->owners, start, &place);
    while (start < end) {
        uint64_t stop = range && range->start < end ? range->start : end;
        struct change part = {map->time_ns, start, stop, CHANGE_MAP, index};
        bool alignment = stop - start <= CODE_GAP_BYTES && start != first && stop != end;
        if (start < stop && !alignment &&
            (end_moment(player) || add_change(player->timeline, part)))
            return -1;
        start = range && range->end < end ? range->end : end;
        if (stop == end)
            return 0;
        range = address_map_next(&player->owners, &place);
    }
    return 0;
}

/* Add again what mapping INDEX, whose record is dropped, covers and no earlier memory mapping did. */
static int restore_new_parts(struct player *player, uint32_t index)
{
    const struct profile_map *map = &player->process->maps[index];
    uint64_t start = map->map.start, end = map->map.start + map->map.len;
    struct address_place place;
    const struct address_range *range = address_map_find(&player->backed, start, &place);
    while (start < end) {
        while (range && range->start < end && range->value != BACKED_BY_MEMORY)
            range = address_map_next(&player->backed, &place);
        uint64_t stop = range && range->start < end ? range->start : end;
        if (start < stop && restore_part(player, index, start, stop))
            return -1;
        if (stop == end)
            return 0;
        start = range->end;
        range = address_map_next(&player->backed, &place);
    }
    return 0;
}

static int play_memory_map(struct player *player, uint32_t index)
{
    const struct profile_map *map = &player->process->maps[index];
    uint64_t end = map->map.start + map->map.len;
    int result;
    if (covers_live_code(player, map->map.start, end))
        result =
            drop_record(player->timeline, map->record.offset) || restore_new_parts(player, index);
    else
        result = end_moment(player);
    if (result)
        return -1;
    return address_map_set(&player->backed, map->map.start, end, BACKED_BY_MEMORY);
}

static int play_map(struct player *player, uint32_t index)
{
    const struct profile_map *map = &player->process->maps[index];
    uint64_t end = map->map.start + map->map.len;
    uint32_t number;
    if (jit_dump_name_pid(map->map.filename, &number) && number == map->map.pid)
        return 0;
    if (perf_map_is_memory(map->map.filename))
        return play_memory_map(player, index);
    if (end_moment(player) || address_map_clear(&player->owners, map->map.start, end))
        return -1;
    return address_map_set(&player->backed, map->map.start, end, BACKED_BY_FILE);
}

/* ---- All together, in time order ---- */

/* Of an event and a map of the same time the event comes first, as its record does in the output. */
static int play(struct player *player, const uint64_t *sample_times_ns, size_t sample_count)
{
    const struct jit_process *process = player->process;
    const struct code_log *log = &process->log;
    size_t event = 0, map = 0, sample = 0;
    while (event < log->event_count || map < process->map_count) {
        bool is_map =
            event == log->event_count ||
            (map < process->map_count && process->maps[map].time_ns < log->events[event].time_ns);
        uint64_t time_ns = is_map ? process->maps[map].time_ns : log->events[event].time_ns;
        bool looked = false;
        for (; sample < sample_count && sample_times_ns[sample] < time_ns; sample++)
            looked = true;
        if (looked && end_moment(player))
            return -1;
        if (is_map ? play_map(player, (uint32_t)map++)
                   : play_code_event(player, &log->events[event++]))
            return -1;
    }
    return end_moment(player);
}

int timeline_play(struct timeline *timeline, struct jit_process *process,
                  const uint64_t *sample_times_ns, size_t sample_count, struct findings *findings)
{
    struct player player = {.timeline = timeline, .process = process, .findings = findings};
    *timeline = (struct timeline){0};
    int result = play(&player, sample_times_ns, sample_count);
    address_map_free(&player.owners);
    address_map_free(&player.shown);
    address_map_free(&player.backed);
    free(player.moment.loaded);
    free(player.moment.unloaded);
    return result ? failure(findings, "out of memory") : 0;
}

void timeline_free(struct timeline *timeline)
{
    free(timeline->changes);
    free(timeline->dropped);
}
