/* Random processes for the timeline, a model that knows who owns each address when, and a reader
 * that sees a timeline's changes as perf would.  A process may fork: its child begins with what the
 * model, and the reader, have of the parent. */
#ifndef PERFJIT_TEST_TIMELINE_MODEL_H
#define PERFJIT_TEST_TIMELINE_MODEL_H

#include "injector/history/timeline/timeline.h"
#include "tests/unit/process_builder.h"

/* The model looks at the first byte of each cell; cells are wider than the alignment that the
 * timeline leaves to the functions around it (CODE_GAP_BYTES). */
enum { BASE = 0x1000, CELL_BYTES = 128, SPACE = 96, STEPS = 60, MODEL_SAMPLES = 60 };

/* What an address holds: one of these, or a function: of the parent, or of the child. */
enum { NOTHING, GONE, MEMORY, SHARED, FILE_MAP, FUNCTION, CHILD = 100000 };

/* A parent, or a child with its parent. */
struct family {
    struct process_builder *parent, *child; /* CHILD may be NULL */
    uint64_t fork_ns;
};

struct model {
    uint32_t owners[SPACE], backing[SPACE];
    uint64_t since[SPACE]; /* when it was mapped */
    bool vacated[SPACE];   /* by an unload or move */
};

static const char library[] = "/usr/lib/libx.so", shared[] = "/dev/shm/arena";

static inline size_t cell_of(uint64_t addr)
{
    return (addr - BASE) / CELL_BYTES;
}

static inline void paint(uint32_t *cells, uint64_t start, uint64_t stop, uint32_t value)
{
    for (uint64_t addr = start; addr < stop; addr += CELL_BYTES)
        cells[cell_of(addr)] = value;
}

/* ---- Random processes ---- */

/* A child may forget or move what it has inherited. */
static inline void build_inherited(struct process_builder *builder, uint64_t *seed,
                                   uint64_t time_ns, const struct process_builder *parent)
{
    struct code_log *log = &builder->process.log;
    const struct jit_function *function =
        &parent->process.log
             .functions[random_below(seed, (uint32_t)parent->process.log.function_count)];
    log->unloads = array_room(log->unloads, log->unload_count, &log->unload_capacity,
                              sizeof(struct code_unload));
    assert_non_null(log->unloads);
    log->unloads[log->unload_count] = (struct code_unload){
        function->addr, function->size, function->code_index, 0, BUILT_PID, false};
    build_event(builder, time_ns, CODE_EVENT_UNLOAD, log->unload_count++);
}

/* The runtime's own numbers go on in the child where the parent's were. */
static inline void number_function(struct process_builder *builder, uint32_t first_index)
{
    struct code_log *log = &builder->process.log;
    struct jit_function *function = &log->functions[log->function_count - 1];
    function->code_index = first_index + (uint32_t)log->function_count;
}

static inline void build_random_map(struct process_builder *builder, uint64_t *seed,
                                    uint64_t time_ns, uint64_t addr, uint64_t size)
{
    static const char *const names[] = {"//anon", "//anon", shared, library};
    uint32_t kind = random_below(seed, 4);
    build_map(builder, time_ns, addr, size + CELL_BYTES, names[kind]);
    struct perf_map *map = &builder->maps[builder->process.map_count - 1].map;
    map->has_inode = kind >= 2;
    map->ino = kind == 2 ? 1 : (uintptr_t)map; /* each library is another one */
}

/* Random events, maps and forks from TIME_NS on, by time; maps and forks at even times of their own
 * and samples at odd ones: of equal times perf could not tell which counts.  A child's dump goes on
 * with its PARENT's numbers. */
static inline uint64_t build_random(struct process_builder *builder, uint64_t *seed,
                                    uint64_t time_ns, const struct process_builder *parent)
{
    uint32_t first_index = parent ? (uint32_t)parent->process.log.function_count : 0;
    for (int i = 0; i < STEPS; i++) {
        uint64_t addr = BASE + CELL_BYTES * (uint64_t)random_below(seed, SPACE - 33);
        uint64_t size = CELL_BYTES * (uint64_t)random_below(seed, 32);
        uint32_t count = (uint32_t)builder->process.log.function_count;
        uint32_t chosen = count ? count - 1 - random_below(seed, count < 8 ? count : 8) : 0;
        uint32_t kind = random_below(seed, 12);
        time_ns += random_below(seed, 3);
        if (kind >= 8 && kind < 11)
            time_ns += 2 - time_ns % 2;
        if (kind == 11 && parent && first_index)
            build_inherited(builder, seed, time_ns, parent);
        else if (kind == 10)
            build_fork(builder, time_ns, NULL);
        else if (kind >= 8 && kind < 10)
            build_random_map(builder, seed, time_ns, addr, size);
        else if (kind >= 6 && kind < 8 && count)
            build_move(builder, time_ns, chosen, addr, size);
        else if (kind >= 4 && kind < 6 && count)
            build_unload(builder, time_ns, chosen);
        else {
            build_load(builder, time_ns, addr, size);
            number_function(builder, first_index);
        }
    }
    return time_ns;
}

/* ---- The model ---- */

static inline uint64_t index_of(const struct family *family, uint32_t value)
{
    return value >= CHILD ? family->child->process.log.functions[value - CHILD].code_index
                          : family->parent->process.log.functions[value - FUNCTION].code_index;
}

/* The residence between START and STOP whose code_index is as given, or NOTHING. */
static inline uint32_t living(const struct family *family, const struct model *model,
                              uint64_t start, uint64_t stop, uint64_t code_index)
{
    for (uint64_t addr = start; addr < stop; addr += CELL_BYTES) {
        uint32_t value = model->owners[cell_of(addr)];
        if (value >= FUNCTION && index_of(family, value) == code_index)
            return value;
    }
    return NOTHING;
}

static inline void end_residence(struct model *model, uint32_t value)
{
    for (size_t i = 0; value != NOTHING && i < SPACE; i++)
        if (model->owners[i] == value) {
            model->owners[i] = NOTHING;
            model->vacated[i] = true;
        }
}

static inline void model_event(const struct family *family, const struct process_builder *builder,
                               struct model *model, const struct code_event *event)
{
    const struct code_log *log = &builder->process.log;
    uint32_t base = builder == family->child ? CHILD : FUNCTION, loaded = event->index;
    if (event->kind == CODE_EVENT_UNLOAD || event->kind == CODE_EVENT_END) {
        const struct code_unload *gone = &log->unloads[event->index];
        uint64_t stop = gone->addr + (gone->size ? gone->size : CELL_BYTES);
        end_residence(model, living(family, model, gone->addr, stop, gone->code_index));
        return;
    }
    if (event->kind == CODE_EVENT_MOVE) {
        const struct code_move *moved = &log->moves[event->index];
        loaded = moved->function;
        uint32_t old = living(family, model, moved->old_addr, moved->old_addr + CELL_BYTES,
                              log->functions[loaded].code_index);
        if (old == NOTHING)
            return;
        end_residence(model, old);
    }
    const struct jit_function *new = &log->functions[loaded];
    paint(model->owners, new->addr, new->addr + new->size, base + loaded);
}

static inline uint32_t kind_of(const struct recorded_map *map)
{
    return map->map.filename == library ? FILE_MAP : map->map.filename == shared ? SHARED : MEMORY;
}

/* A library ends the code below it, and the shared file does where other memory was; neither where
 * nothing was. */
static inline void model_map(struct model *model, const struct recorded_map *map)
{
    uint32_t kind = kind_of(map);
    uint64_t stop = map->map.start + map->map.len;
    for (uint64_t addr = map->map.start; addr < stop; addr += CELL_BYTES) {
        size_t cell = cell_of(addr);
        uint32_t before = model->backing[cell];
        if (before != NOTHING && (kind == FILE_MAP || (kind == SHARED && before != SHARED)))
            model->owners[cell] = NOTHING;
        model->backing[cell] = kind;
        model->since[cell] = map->time_ns + 1;
    }
}

/* Play what BUILDER has up to TIME_NS: its first EVENTS events at most, and its maps before MAPS.
 */
static inline void model_play(const struct family *family, const struct process_builder *builder,
                              struct model *model, uint64_t time_ns, size_t events, size_t maps)
{
    const struct code_log *log = &builder->process.log;
    size_t event = 0;
    for (size_t m = 0; m <= maps; m++) {
        uint64_t until = m < maps ? builder->maps[m].time_ns : UINT64_MAX;
        for (; event < events && log->events[event].time_ns <= until &&
               log->events[event].time_ns <= time_ns;
             event++)
            model_event(family, builder, model, &log->events[event]);
        if (until > time_ns || m == maps)
            return;
        model_map(model, &builder->maps[m]);
    }
}

/* How many of BUILDER's maps lie before TIME_NS. */
static inline size_t maps_before(const struct process_builder *builder, uint64_t time_ns)
{
    size_t maps = 0;
    while (maps < builder->process.map_count && builder->maps[maps].time_ns < time_ns)
        maps++;
    return maps;
}

/* What the child begins with; for the parent, nothing. */
static inline struct model model_begin(const struct family *family,
                                       const struct process_builder *builder)
{
    struct model model = {0};
    if (builder == family->child) {
        model_play(family, family->parent, &model, family->fork_ns,
                   family->parent->process.log.event_count, family->parent->process.map_count);
        memset(model.since, 0, sizeof model.since); /* the fork is later */
        memset(model.vacated, 0, sizeof model.vacated);
    }
    return model;
}

/* When event number EVENT, a load, gave the function its addresses: before the stamp if they were
 * nobody's. */
static inline uint64_t owned_since(const struct family *family,
                                   const struct process_builder *builder, size_t event)
{
    const struct jit_process *process = &builder->process;
    uint64_t time_ns = process->log.events[event].time_ns;
    const struct jit_function *function = &process->log.functions[process->log.events[event].index];
    uint64_t slack = process->load_slack_ns, since = time_ns > slack ? time_ns - slack : 0;
    struct model model = model_begin(family, builder);
    model_play(family, builder, &model, time_ns, event, maps_before(builder, time_ns));
    for (uint64_t at = function->addr; at < function->addr + function->size; at += CELL_BYTES) {
        if (model.owners[cell_of(at)] != NOTHING || model.vacated[cell_of(at)])
            return time_ns;
        since = model.since[cell_of(at)] > since ? model.since[cell_of(at)] : since;
    }
    if (builder == family->child && since <= family->fork_ns)
        since = family->fork_ns + 1;
    for (size_t i = 0; i < process->fork_count; i++)
        if (process->forks[i].at.time_ns < time_ns && since <= process->forks[i].at.time_ns)
            since = process->forks[i].at.time_ns + 1;
    return since < time_ns ? since : time_ns;
}

/* Who owns which address when the sample at TIME_NS is taken, and what the latest map below it is.
 */
static inline struct model model_at(const struct family *family,
                                    const struct process_builder *builder, uint64_t time_ns)
{
    const struct jit_process *process = &builder->process;
    const struct code_log *log = &process->log;
    struct model model = model_begin(family, builder);
    model_play(family, builder, &model, time_ns, log->event_count, process->map_count);
    for (size_t i = 0; i < log->event_count; i++) {
        const struct code_event *event = &log->events[i];
        if (event->kind != CODE_EVENT_LOAD || event->time_ns <= time_ns ||
            event->time_ns > time_ns + process->load_slack_ns ||
            owned_since(family, builder, i) > time_ns)
            continue;
        const struct jit_function *function = &log->functions[event->index];
        paint(model.owners, function->addr, function->addr + function->size,
              (builder == family->child ? CHILD : FUNCTION) + event->index);
    }
    return model;
}

/* ---- The reader ---- */

static inline uint32_t seen_as(const struct process_builder *builder, const struct change *change,
                               uint32_t base)
{
    switch (change->kind) {
    case CHANGE_FUNCTION:
        return base + change->index;
    case CHANGE_UNLOADED:
        return GONE;
    default:
        return kind_of(&builder->maps[change->index]);
    }
}

/* What perf shows at TIME_NS, on top of SEEN: the newest map counts; of two of the same time, the
 * one added here is the older. */
static inline void reader_at(const struct process_builder *builder, const struct timeline *timeline,
                             uint64_t time_ns, uint32_t base, uint32_t *seen)
{
    size_t change = 0, dropped = 0;
    for (size_t m = 0; m <= builder->process.map_count; m++) {
        const struct recorded_map *map = &builder->maps[m];
        uint64_t until = m < builder->process.map_count ? map->time_ns : UINT64_MAX;
        for (; change < timeline->change_count; change++) {
            const struct change *next = &timeline->changes[change];
            if (next->time_ns > until || next->time_ns > time_ns)
                break;
            paint(seen, next->start, next->end, seen_as(builder, next, base));
        }
        if (until > time_ns)
            return;
        if (dropped < timeline->dropped_count && timeline->dropped[dropped] == map->record.offset)
            dropped++;
        else
            paint(seen, map->map.start, map->map.start + map->map.len, kind_of(map));
    }
}

#endif
