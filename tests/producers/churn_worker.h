/* A thread of address_churn: what it fills, moves, unloads and runs, all of it noted down. */
#ifndef CHURN_WORKER_H
#define CHURN_WORKER_H

#include "jitdump/jitdump.h"
#include "tests/producers/churn_arena.h"
#include "tests/producers/perf_clock.h"

enum {
    PATCHES = 8,
    FUNCTION_BLOCKS = 10, /* at most */
    FUNCTIONS = 1 << 16,
    CALL_ROUNDS = 30000, /* 10 to 40 us */
};

/* Blocks of an arena that one thread alone fills. */
struct patch {
    struct arena *arena;
    uint32_t first, blocks;
};

struct worker {
    const char *label;
    struct arena *own;
    struct patch patches[PATCHES];
    size_t patch_count;
    struct jitdump *dump;
    int pid, tid;
    uint64_t random;
    struct function *functions;
    size_t function_count;
    size_t steps;
    struct run_log *log;
    atomic_ulong *deeds; /* by enum deed; shared with the children, as the log */
};

/* How often the rarer things were done, all threads and children together. */
enum deed { FILLS, MOVES, UNLOADS, MEMORY_NAMES, MEMORY_MOVES, FILES, REMAPS, DEEDS };
static const char *const deed_names[DEEDS] = {"fills",        "moves", "unloads", "memory_names",
                                              "memory_moves", "files", "remaps"};

static inline uint32_t random_below(struct worker *worker, uint32_t bound)
{
    worker->random ^= worker->random << 13;
    worker->random ^= worker->random >> 7;
    worker->random ^= worker->random << 17;
    return (uint32_t)(worker->random >> 32) % bound;
}

/* ---- Writing ---- */

static inline void write_loops(struct worker *worker, struct arena *arena, uint32_t first,
                               uint32_t blocks)
{
    begin_write(arena, first, blocks);
    for (uint32_t i = first; i < first + blocks; i++)
        loop_code_put(block_at(arena->write, i), random_below(worker, LOOP_FILLINGS));
    end_write(arena, first, blocks);
}

/* ---- Running ---- */

static inline uint64_t run_time_ns(struct worker *worker)
{
    bool is_long = random_below(worker, 20) == 0;
    return 200000u + random_below(worker, is_long ? 4800000 : 1200000);
}

/* Run some of BLOCKS blocks at FIRST for a while. */
static inline void run_blocks(struct worker *worker, const char *kind, const char *name,
                              const uint8_t *memory, uint32_t first, uint32_t blocks)
{
    const uint8_t *start = memory + (size_t)first * LOOP_BLOCK_BYTES;
    struct run run = {.pid = worker->pid,
                      .tid = worker->tid,
                      .addr = (uintptr_t)start,
                      .bytes = (uint64_t)blocks * LOOP_BLOCK_BYTES};
    uint64_t wanted_ns = run_time_ns(worker);
    snprintf(run.kind, sizeof run.kind, "%s.%s", worker->label, kind);
    snprintf(run.name, sizeof run.name, "%s", name);
    run.start_ns = run.end_ns = monotonic_ns();
    while (run.end_ns - run.start_ns < wanted_ns) {
        const uint8_t *block = start + (size_t)random_below(worker, blocks) * LOOP_BLOCK_BYTES;
        ((loop_code *)(uintptr_t)block)(CALL_ROUNDS);
        run.end_ns = monotonic_ns();
    }
    if (run_log_add(worker->log, &run)) {
        fprintf(stderr, "address_churn: the log of runs is full\n");
        exit(EXIT_FAILURE);
    }
}

/* Run what is left of FUNCTION around BLOCK, which it owns. */
static inline void run_function(struct worker *worker, const char *kind, const struct arena *arena,
                                const struct function *function, uint32_t block)
{
    uint32_t first = block, end = block + 1;
    while (first > function->first && arena->owners[first - 1] == function)
        first--;
    while (end < function->first + function->blocks && arena->owners[end] == function)
        end++;
    if (function->pid != worker->pid)
        kind = "inherited";
    else if (end - first < function->blocks)
        kind = "remnant";
    run_blocks(worker, kind, function->name, arena->exec, first, end - first);
}

/* ---- Functions ---- */

static inline void check_dump(const struct worker *worker, int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "address_churn: %s\n", jitdump_error(worker->dump));
    exit(EXIT_FAILURE);
}

static inline struct function *fill(struct worker *worker, struct arena *arena, uint32_t first,
                                    uint32_t blocks)
{
    struct function *function = &worker->functions[worker->function_count];
    if (worker->function_count == FUNCTIONS) {
        fprintf(stderr, "address_churn: too many functions\n");
        exit(EXIT_FAILURE);
    }
    *function = (struct function){.first = first, .blocks = blocks, .pid = worker->pid};
    function->bytes =
        blocks * (size_t)LOOP_BLOCK_BYTES - random_below(worker, LOOP_BLOCK_BYTES - LOOP_MAX_BYTES);
    snprintf(function->name, sizeof function->name, "%s %zu", worker->label,
             worker->function_count++);
    write_loops(worker, arena, first, blocks);
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = function->name;
    code.code_addr = (uintptr_t)block_at(arena->exec, first);
    code.code_size = function->bytes;
    code.bytes = block_at(arena->exec, first);
    check_dump(worker, jitdump_add_code(worker->dump, &code, &function->code_index));
    own(arena, function);
    count_fill(arena, function);
    worker->deeds[FILLS]++;
    return function;
}

static inline struct function *fill_somewhere(struct worker *worker, const struct patch *patch)
{
    uint32_t blocks = 1 + random_below(worker, FUNCTION_BLOCKS);
    uint32_t at = patch->first + random_below(worker, patch->blocks - blocks + 1);
    return fill(worker, patch->arena, at, blocks);
}

static inline void move(struct worker *worker, struct function *function, struct arena *from,
                        struct arena *to, uint32_t at)
{
    uint64_t old_addr = (uintptr_t)block_at(from->exec, function->first);
    copy_loops(from, function->first, to, at, function->blocks);
    check_dump(worker, jitdump_move_code(worker->dump, function->code_index, old_addr,
                                         (uintptr_t)block_at(to->exec, at), function->bytes));
    disown(from, function);
    function->first = at;
    own(to, function);
    worker->deeds[MOVES]++;
}

static inline void unload(struct worker *worker, struct arena *arena,
                          const struct function *function)
{
    check_dump(worker, jitdump_unload_code(worker->dump, function->code_index,
                                           (uintptr_t)block_at(arena->exec, function->first),
                                           function->bytes));
    disown(arena, function);
    worker->deeds[UNLOADS]++;
}

/* ---- Places ---- */

static inline const struct patch *any_patch(struct worker *worker)
{
    return &worker->patches[random_below(worker, (uint32_t)worker->patch_count)];
}

/* A block of PATCH that has an owner, or PATCH's end. */
static inline uint32_t owned_block(struct worker *worker, const struct patch *patch)
{
    for (int tries = 0; tries < 20; tries++) {
        uint32_t block = patch->first + random_below(worker, patch->blocks);
        if (patch->arena->owners[block])
            return block;
    }
    return patch->first + patch->blocks;
}

#endif
