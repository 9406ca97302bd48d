/* The arena: one reserved range of memory that all code lives in.
 *
 *     base                                      high_water          committed            reserved
 *      │ code │ code │▒▒ hole ▒▒│ code │▒ hole ▒│ never used so far │ not accessible yet │
 *
 * Blocks are multiples of 16 bytes.  Free memory that was used once is full of int3, so that a jump to code that is
 * gone is found at once. */
#ifndef TINYJIT_CODE_ARENA_H
#define TINYJIT_CODE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CODE_ARENA_BYTES = 16 << 20 };

struct code_arena {
    uint8_t *base;
    size_t reserved, committed, high_water;
    bool flip;                      /* writable or executable, but never both at once */
    struct free_range *free_ranges; /* sorted, none touches another */
    size_t free_count, free_capacity;
    uint64_t reuses;   /* blocks from memory that other code had before */
    uint64_t protects; /* calls of mprotect */
};

/* Reserve the arena.  FLIP: change its protection around each write.  GROW: make it accessible piece by piece, as
 * it is needed, and not all at once.  Returns 0 or a negative errno. */
int code_arena_open(struct code_arena *arena, bool flip, bool grow);

void code_arena_close(struct code_arena *arena);

/* The smallest free range that holds SIZE bytes; NULL if there is none. */
uint8_t *code_arena_alloc(struct code_arena *arena, size_t size);

/* The lowest one. */
uint8_t *code_arena_alloc_low(struct code_arena *arena, size_t size);

/* Give SIZE bytes at ADDR back.  They keep their contents until they are poisoned or allocated again. */
void code_arena_free(struct code_arena *arena, const uint8_t *addr, size_t size);

/* Copy SIZE bytes of code to ADDR, the block of RESERVED bytes, and fill the rest of that with int3.  FROM may overlap
 * it. */
void code_arena_write(struct code_arena *arena, uint8_t *addr, const uint8_t *from, size_t size,
                      size_t reserved);

/* Fill the block of SIZE bytes at ADDR with int3. */
void code_arena_poison(struct code_arena *arena, uint8_t *addr, size_t size);

/* Where the last used block ends, as an offset; and how many bytes below it are free. */
size_t code_arena_span(const struct code_arena *arena);
size_t code_arena_holes(const struct code_arena *arena);

/* SIZE rounded up to whole blocks. */
size_t code_arena_block_bytes(size_t size);

#endif
