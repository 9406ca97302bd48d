/* A process in memory, as jit_processes_read would leave it: code events and mappings, by time.
 *
 * Function number N is called "fN", has code_index N + 1 and code of its own. */
#ifndef PERFJIT_TEST_PROCESS_BUILDER_H
#define PERFJIT_TEST_PROCESS_BUILDER_H

#include "injector/arrays/array.h"
#include "injector/history/timeline/change.h"
#include "injector/log/code/jit_process.h"
#include "tests/unit/scratch.h"

#include <elf.h>

enum { BUILT_PID = 4711, BUILT_MAPS = 256, BUILT_CODE_BYTES = 1 << 16, BUILT_FUNCTIONS = 4096 };

struct process_builder {
    struct jit_process process;
    struct recorded_map maps[BUILT_MAPS];
    struct jit_dump dump;
    char *dump_path;
    char names[BUILT_FUNCTIONS][8];
    uint8_t code[BUILT_CODE_BYTES];
    struct function_state
        states[BUILT_FUNCTIONS]; /* as a timeline would have it, if none is played */
};

static inline void process_begin(struct process_builder *builder)
{
    static char path[] = "jit-4711.dump";
    uint64_t seed = 1;
    *builder = (struct process_builder){
        .process = {.pid = BUILT_PID, .dump_count = 1, .next = {UINT64_MAX, UINT64_MAX}},
        .dump = {.path = path, .elf_mach = EM_X86_64, .address_bytes = 8},
        .dump_path = path,
    };
    builder->process.dumps = &builder->dump;
    builder->process.dump_paths = &builder->dump_path;
    builder->process.maps = builder->maps;
    for (size_t i = 0; i < sizeof builder->code; i++)
        builder->code[i] = (uint8_t)random_below(&seed, 256);
}

/* The timeline that tests of what comes behind it set by hand; nothing of it is freed. */
static inline struct timeline built_timeline(struct process_builder *builder)
{
    return (struct timeline){.log = &builder->process.log, .states = builder->states};
}

static inline void process_free(struct process_builder *builder)
{
    free(builder->process.forks);
    free(builder->process.touched);
    code_log_free(&builder->process.log);
}

static inline void build_event(struct process_builder *builder, uint64_t time_ns,
                               enum code_event_kind kind, size_t index)
{
    struct code_log *log = &builder->process.log;
    log->events =
        array_room(log->events, log->event_count, &log->event_capacity, sizeof(struct code_event));
    assert_non_null(log->events);
    log->events[log->event_count++] = (struct code_event){time_ns, kind, (uint32_t)index};
}

static inline struct jit_function *build_function(struct process_builder *builder, uint64_t addr,
                                                  uint64_t size)
{
    struct code_log *log = &builder->process.log;
    size_t index = log->function_count++;
    assert_true(index < BUILT_FUNCTIONS);
    log->functions =
        array_room(log->functions, index, &log->function_capacity, sizeof(struct jit_function));
    assert_non_null(log->functions);
    snprintf(builder->names[index], sizeof builder->names[index], "f%zu", index);
    log->functions[index] =
        (struct jit_function){.addr = addr, .size = size, .code_index = index + 1};
    return &log->functions[index];
}

/* A load; returns the function's number. */
static inline uint32_t build_load(struct process_builder *builder, uint64_t time_ns, uint64_t addr,
                                  uint64_t size)
{
    struct jit_function *function = build_function(builder, addr, size);
    uint32_t index = (uint32_t)(function - builder->process.log.functions);
    jit_function_set_name(function, builder->names[index], strlen(builder->names[index]));
    if (size < BUILT_CODE_BYTES / 2)
        function->code = builder->code + index % (BUILT_CODE_BYTES / 2);
    build_event(builder, time_ns, CODE_EVENT_LOAD, index);
    return index;
}

/* A move of function FROM; returns the number of its new residence. */
static inline uint32_t build_move(struct process_builder *builder, uint64_t time_ns, uint32_t from,
                                  uint64_t new_addr, uint64_t size)
{
    struct code_log *log = &builder->process.log;
    uint64_t code_index = log->functions[from].code_index, old_addr = log->functions[from].addr;
    struct jit_function *function = build_function(builder, new_addr, size);
    function->code_index = code_index;
    uint32_t index = (uint32_t)(function - log->functions);
    log->moves =
        array_room(log->moves, log->move_count, &log->move_capacity, sizeof(struct code_move));
    assert_non_null(log->moves);
    log->moves[log->move_count] = (struct code_move){old_addr, index};
    build_event(builder, time_ns, CODE_EVENT_MOVE, log->move_count++);
    return index;
}

static inline void build_unload(struct process_builder *builder, uint64_t time_ns,
                                uint32_t function)
{
    struct code_log *log = &builder->process.log;
    const struct jit_function *gone = &log->functions[function];
    struct code_unload unload = {gone->addr, gone->size, gone->code_index,
                                 gone->dump, BUILT_PID,  false};
    log->unloads = array_room(log->unloads, log->unload_count, &log->unload_capacity,
                              sizeof(struct code_unload));
    assert_non_null(log->unloads);
    log->unloads[log->unload_count] = unload;
    build_event(builder, time_ns, CODE_EVENT_UNLOAD, log->unload_count++);
}

/* A mapping, whose record stands at offset 1000 + its number. */
static inline void build_map(struct process_builder *builder, uint64_t time_ns, uint64_t start,
                             uint64_t len, const char *filename)
{
    size_t index = builder->process.map_count++;
    assert_true(index < BUILT_MAPS);
    builder->maps[index] = (struct recorded_map){
        .map = {.pid = BUILT_PID,
                .tid = BUILT_PID,
                .start = start,
                .len = len,
                .pgoff = start,
                .filename = filename},
        .time_ns = time_ns,
        .record = {.offset = 1000 + index, .number = 1000 + index},
    };
}

/* A fork at TIME_NS of CHILD, or a child of no interest. */
static inline void build_fork(struct process_builder *builder, uint64_t time_ns,
                              const struct jit_process *child)
{
    struct jit_process *process = &builder->process;
    process->forks = array_room(process->forks, process->fork_count, &process->fork_capacity,
                                sizeof(struct jit_fork));
    assert_non_null(process->forks);
    process->forks[process->fork_count++] = (struct jit_fork){{time_ns, 5000}, child};
}

#endif
