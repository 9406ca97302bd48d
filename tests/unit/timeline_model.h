/* Random processes for the timeline, a model that knows who owns each address when, and a reader that sees a timeline's
 * changes as perf would. */
#ifndef PERFJIT_TEST_TIMELINE_MODEL_H
#define PERFJIT_TEST_TIMELINE_MODEL_H

#include "injector/timeline/timeline.h"
#include "tests/unit/process_builder.h"

/* The model looks at the first byte of each cell; cells are wider than the alignment that the timeline leaves to the
 * functions around it (CODE_GAP_BYTES). */
enum { BASE = 0x1000, CELL_BYTES = 128, SPACE = 96, STEPS = 60, MODEL_SAMPLES = 40 };

/* What an address holds: one of these, or FUNCTION and above. */
enum { NOTHING, GONE, MEMORY, FILE_MAP, FUNCTION };

static inline void paint(uint32_t *cells, uint64_t start, uint64_t stop, uint32_t value)
{
    for (uint64_t addr = start; addr < stop; addr += CELL_BYTES)
        cells[(addr - BASE) / CELL_BYTES] = value;
}

static inline void replace(uint32_t *cells, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < SPACE; i++)
        if (cells[i] == from)
            cells[i] = to;
}

/* Random events and maps, by time; maps at even times of their own and samples at odd ones: of
 * equal times perf could not tell which counts. */
static inline void build_random(struct process_builder *builder, uint64_t *seed)
{
    uint64_t time_ns = 0;
    for (int i = 0; i < STEPS; i++) {
        uint64_t addr = BASE + CELL_BYTES * (uint64_t)random_below(seed, SPACE - 32);
        uint64_t size = CELL_BYTES * (uint64_t)random_below(seed, 32);
        uint32_t count = (uint32_t)builder->process.log.function_count;
        uint32_t chosen = count ? count - 1 - random_below(seed, count < 8 ? count : 8) : 0;
        uint32_t kind = count ? random_below(seed, 10) : 0;
        time_ns += random_below(seed, 3);
        if (kind >= 8)
            time_ns += 2 - time_ns % 2;
        if (kind < 4)
            build_load(builder, time_ns, addr, size);
        else if (kind < 6)
            build_unload(builder, time_ns, chosen);
        else if (kind < 8)
            build_move(builder, time_ns, chosen, addr, size);
        else
            build_map(builder, time_ns, addr, size + CELL_BYTES,
                      kind == 8 ? "//anon" : "/usr/lib/libx.so");
    }
}

/* The residence in CELLS between START and STOP whose code_index is as given, or NOTHING. */
static inline uint32_t living(const struct process_builder *builder, const uint32_t *cells,
                              uint64_t start, uint64_t stop, uint64_t code_index)
{
    for (uint64_t addr = start; addr < stop; addr += CELL_BYTES) {
        uint32_t value = cells[(addr - BASE) / CELL_BYTES];
        if (value >= FUNCTION &&
            builder->process.log.functions[value - FUNCTION].code_index == code_index)
            return value;
    }
    return NOTHING;
}

static inline void model_event(const struct process_builder *builder, uint32_t *owners,
                               const struct code_event *event)
{
    const struct code_log *log = &builder->process.log;
    uint32_t loaded = event->index;
    if (event->kind == CODE_EVENT_UNLOAD) {
        const struct code_unload *gone = &log->unloads[event->index];
        uint64_t stop = gone->addr + (gone->size ? gone->size : CELL_BYTES);
        uint32_t old = living(builder, owners, gone->addr, stop, gone->code_index);
        if (old != NOTHING)
            replace(owners, old, NOTHING);
        return;
    }
    if (event->kind == CODE_EVENT_MOVE) {
        const struct code_move *moved = &log->moves[event->index];
        loaded = moved->function;
        uint32_t old = living(builder, owners, moved->old_addr, moved->old_addr + CELL_BYTES,
                              builder->process.log.functions[loaded].code_index);
        if (old == NOTHING)
            return;
        replace(owners, old, NOTHING);
    }
    const struct jit_function *new = &builder->process.log.functions[loaded];
    paint(owners, new->addr, new->addr + new->size, FUNCTION + loaded);
}

static inline bool is_file(const struct profile_map *map)
{
    return map->map.filename[1] == 'u';
}

/* Who owns which address when the sample at TIME_NS is taken, and what the latest map below it is. */
static inline void model_at(const struct process_builder *builder, uint64_t time_ns,
                            uint32_t *owners, uint32_t *backing)
{
    const struct code_log *log = &builder->process.log;
    size_t event = 0;
    for (size_t m = 0; m <= builder->process.map_count; m++) {
        const struct profile_map *map = &builder->maps[m];
        uint64_t until = m < builder->process.map_count ? map->time_ns : UINT64_MAX;
        for (; event < log->event_count && log->events[event].time_ns <= until &&
               log->events[event].time_ns <= time_ns;
             event++)
            model_event(builder, owners, &log->events[event]);
        if (until > time_ns)
            return;
        uint64_t stop = map->map.start + map->map.len;
        paint(backing, map->map.start, stop, is_file(map) ? FILE_MAP : MEMORY);
        if (is_file(map))
            paint(owners, map->map.start, stop, NOTHING);
    }
}

/* What perf shows at TIME_NS: the newest map counts; of two of the same time, the one added here is the older. */
static inline void reader_at(const struct process_builder *builder, const struct timeline *timeline,
                             uint64_t time_ns, uint32_t *seen)
{
    size_t change = 0, dropped = 0;
    for (size_t m = 0; m <= builder->process.map_count; m++) {
        const struct profile_map *map = &builder->maps[m];
        uint64_t until = m < builder->process.map_count ? map->time_ns : UINT64_MAX;
        for (; change < timeline->change_count; change++) {
            const struct change *next = &timeline->changes[change];
            if (next->time_ns > until || next->time_ns > time_ns)
                break;
            paint(seen, next->start, next->end,
                  next->kind == CHANGE_FUNCTION   ? FUNCTION + next->index
                  : next->kind == CHANGE_UNLOADED ? GONE
                                                  : MEMORY);
        }
        if (until > time_ns)
            return;
        if (dropped < timeline->dropped_count && timeline->dropped[dropped] == map->record.offset)
            dropped++;
        else
            paint(seen, map->map.start, map->map.start + map->map.len,
                  is_file(map) ? FILE_MAP : MEMORY);
    }
}

#endif
