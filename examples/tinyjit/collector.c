/* See collector.h. */
#include "examples/tinyjit/collector.h"

#include "examples/tinyjit/memory.h"

#include <string.h>

/* Holes are bearable up to this many bytes, or an eighth of the arena's used part. */
enum { BEARABLE_HOLES = 256 };

static void free_code(struct runtime *runtime, struct code *code)
{
    code_log_unload(&runtime->log, code);
    code_arena_poison(&runtime->arena, code->addr, code->reserved);
    code_arena_free(&runtime->arena, code->addr, code->reserved);
    code_table_remove(&runtime->codes, code);
    code_free(code);
}

void collector_free_retired(struct runtime *runtime)
{
    for (size_t i = runtime->codes.count; i-- > 0;) {
        struct code *code = runtime->codes.codes[i];
        if (code->retired && !code->active)
            free_code(runtime, code);
    }
}

bool collector_should_compact(const struct runtime *runtime)
{
    uint32_t every = runtime->options.compact_every;
    if (every && runtime->compilations % every == 0)
        return true;
    size_t holes = code_arena_holes(&runtime->arena);
    return holes > BEARABLE_HOLES && holes * 8 > code_arena_span(&runtime->arena);
}

/* Poison what the move to TO, perhaps overlapping, left of the block at FROM. */
static void poison_rest(struct runtime *runtime, uint8_t *from, const uint8_t *to, size_t size)
{
    size_t block = code_arena_block_bytes(size);
    size_t moved_by = (size_t)(from - to);
    size_t kept = moved_by < block ? block - moved_by : 0;
    code_arena_poison(&runtime->arena, from + kept, block - kept);
}

static void move_down(struct runtime *runtime, struct code *code)
{
    uint8_t *from = code->addr;
    code_table_remove(&runtime->codes, code);
    code_arena_free(&runtime->arena, from, code->reserved);
    code->addr = code_arena_alloc_low(&runtime->arena, code->reserved); /* at worst where it was */
    code_table_add(&runtime->codes, code);
    if (code->addr == from)
        return;
    code_arena_write(&runtime->arena, code->addr, from, code->size, code->reserved);
    code_log_move(&runtime->log, code, from);
    poison_rest(runtime, from, code->addr, code->reserved);
    runtime->context->slots[code->function].entry = (uint64_t)(uintptr_t)code->addr;
}

static bool is_movable(const struct code *code)
{
    return (code->kind == CODE_TIER1 || code->kind == CODE_TIER2) && !code->active &&
           !code->retired;
}

void collector_compact(struct runtime *runtime)
{
    size_t count = runtime->codes.count;
    struct code **codes = memory_new(count, sizeof(struct code *));
    memcpy(codes, runtime->codes.codes, count * sizeof(struct code *));
    runtime->compactions++;
    for (size_t i = 0; i < count; i++)
        if (is_movable(codes[i]))
            move_down(runtime, codes[i]);
    free(codes);
}
