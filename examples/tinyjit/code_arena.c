/* See code_arena.h. */
#include "examples/tinyjit/code_arena.h"

#include "examples/tinyjit/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK_BYTES = 16, PAGE_BYTES = 4096, INT3 = 0xcc };

struct free_range {
    size_t offset, size;
};

size_t code_arena_block_bytes(size_t size)
{
    return (size + BLOCK_BYTES - 1) & ~(size_t)(BLOCK_BYTES - 1);
}

int code_arena_open(struct code_arena *arena, bool flip, bool grow)
{
    int protection = grow   ? PROT_NONE
                     : flip ? PROT_READ | PROT_EXEC
                            : PROT_READ | PROT_WRITE | PROT_EXEC;
    *arena = (struct code_arena){.reserved = CODE_ARENA_BYTES, .flip = flip};
    void *base = mmap(NULL, arena->reserved, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return -errno;
    arena->base = base;
    arena->committed = grow ? 0 : arena->reserved;
    arena->free_ranges = array_room(NULL, 0, &arena->free_capacity, sizeof *arena->free_ranges);
    arena->free_ranges[arena->free_count++] = (struct free_range){0, arena->reserved};
    return 0;
}

void code_arena_close(struct code_arena *arena)
{
    if (arena->base)
        munmap(arena->base, arena->reserved);
    free(arena->free_ranges);
}

/* ---- Protection ---- */

static void protect(struct code_arena *arena, size_t start, size_t end, int protection)
{
    arena->protects++;
    if (mprotect(arena->base + start, end - start, protection) == 0)
        return;
    perror("tinyjit: mprotect of the code arena");
    exit(1);
}

/* Make the pages of [OFFSET, OFFSET + SIZE) writable, or executable again. */
static void make_writable(struct code_arena *arena, size_t offset, size_t size, bool writable)
{
    size_t start = offset & ~(size_t)(PAGE_BYTES - 1);
    size_t end = (offset + size + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
    if (arena->flip)
        protect(arena, start, end, PROT_READ | (writable ? PROT_WRITE : PROT_EXEC));
}

static void commit(struct code_arena *arena, size_t end)
{
    if (end <= arena->committed)
        return;
    size_t committed = (end + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
    protect(arena, arena->committed, committed,
            PROT_READ | PROT_EXEC | (arena->flip ? 0 : PROT_WRITE));
    arena->committed = committed;
}

/* ---- Free ranges ---- */

static void remove_range(struct code_arena *arena, size_t at)
{
    struct free_range *ranges = arena->free_ranges;
    memmove(&ranges[at], &ranges[at + 1], (--arena->free_count - at) * sizeof *ranges);
}

static uint8_t *take_from(struct code_arena *arena, size_t at, size_t size)
{
    struct free_range *range = &arena->free_ranges[at];
    size_t offset = range->offset;
    range->offset += size;
    range->size -= size;
    if (range->size == 0)
        remove_range(arena, at);
    commit(arena, offset + size);
    return arena->base + offset;
}

uint8_t *code_arena_alloc(struct code_arena *arena, size_t size)
{
    const struct free_range *ranges = arena->free_ranges;
    size_t best = SIZE_MAX;
    size = code_arena_block_bytes(size);
    for (size_t i = 0; i < arena->free_count; i++)
        if (ranges[i].size >= size && (best == SIZE_MAX || ranges[i].size < ranges[best].size))
            best = i;
    if (best == SIZE_MAX)
        return NULL;
    size_t offset = ranges[best].offset;
    arena->reuses += offset < arena->high_water;
    if (arena->high_water < offset + size)
        arena->high_water = offset + size;
    return take_from(arena, best, size);
}

uint8_t *code_arena_alloc_low(struct code_arena *arena, size_t size)
{
    size = code_arena_block_bytes(size);
    for (size_t i = 0; i < arena->free_count; i++)
        if (arena->free_ranges[i].size >= size)
            return take_from(arena, i, size);
    return NULL;
}

static void join_with_next(struct code_arena *arena, size_t at)
{
    struct free_range *range = &arena->free_ranges[at];
    if (at + 1 >= arena->free_count || range->offset + range->size != range[1].offset)
        return;
    range->size += range[1].size;
    remove_range(arena, at + 1);
}

void code_arena_free(struct code_arena *arena, const uint8_t *addr, size_t size)
{
    size_t offset = (size_t)(addr - arena->base), at = 0;
    while (at < arena->free_count && arena->free_ranges[at].offset < offset)
        at++;
    arena->free_ranges = array_room(arena->free_ranges, arena->free_count, &arena->free_capacity,
                                    sizeof *arena->free_ranges);
    struct free_range *ranges = arena->free_ranges;
    memmove(&ranges[at + 1], &ranges[at], (arena->free_count++ - at) * sizeof *ranges);
    ranges[at] = (struct free_range){offset, code_arena_block_bytes(size)};
    join_with_next(arena, at);
    if (at > 0)
        join_with_next(arena, at - 1);
}

size_t code_arena_span(const struct code_arena *arena)
{
    if (arena->free_count == 0)
        return arena->reserved;
    const struct free_range *last = &arena->free_ranges[arena->free_count - 1];
    return last->offset + last->size == arena->reserved ? last->offset : arena->reserved;
}

size_t code_arena_holes(const struct code_arena *arena)
{
    size_t span = code_arena_span(arena), holes = 0;
    for (size_t i = 0; i < arena->free_count; i++)
        if (arena->free_ranges[i].offset < span)
            holes += arena->free_ranges[i].size;
    return holes;
}

/* ---- Contents ---- */

void code_arena_write(struct code_arena *arena, uint8_t *addr, const uint8_t *from, size_t size,
                      size_t reserved)
{
    size_t offset = (size_t)(addr - arena->base), block = code_arena_block_bytes(reserved);
    make_writable(arena, offset, block, true);
    memmove(addr, from, size);
    memset(addr + size, INT3, block - size);
    make_writable(arena, offset, block, false);
}

void code_arena_poison(struct code_arena *arena, uint8_t *addr, size_t size)
{
    size_t offset = (size_t)(addr - arena->base), block = code_arena_block_bytes(size);
    make_writable(arena, offset, block, true);
    memset(addr, INT3, block);
    make_writable(arena, offset, block, false);
}
