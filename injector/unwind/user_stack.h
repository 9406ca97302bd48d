/* The copy of a piece of a thread's stack that a sample holds, and its registers. */
#ifndef PERFJIT_USER_STACK_H
#define PERFJIT_USER_STACK_H

#include "injector/recording/machine.h"
#include "jitdump/format/byte_cursor.h"

struct user_stack {
    const uint8_t *bytes;
    uint64_t start; /* the address of the first byte */
    uint64_t size;
};

/* A frame: the address where it goes on, and its caller's registers as far as they are known. */
struct unwind_frame {
    uint64_t pc;
    uint64_t known; /* a bit for each of the registers */
    uint64_t registers[UNWIND_REGISTERS];
    bool exact;     /* pc is the next instruction, and not the one behind a call */
    bool innermost; /* or a frame that a signal interrupted: it may stand at any instruction */
};

/* Whether the SIZE bytes at ADDR are in STACK. */
static inline bool user_stack_has(const struct user_stack *stack, uint64_t addr, uint64_t size)
{
    return addr >= stack->start && addr - stack->start < stack->size &&
           size <= stack->size - (addr - stack->start);
}

/* The word at ADDR, which STACK has. */
static inline uint64_t user_stack_word(const struct user_stack *stack, uint64_t addr)
{
    struct byte_cursor cursor = byte_cursor_over(stack->bytes + (addr - stack->start), 8, false);
    return cursor_u64(&cursor);
}

static inline bool unwind_frame_knows(const struct unwind_frame *frame, unsigned reg)
{
    return reg < UNWIND_REGISTERS && (frame->known >> reg & 1);
}

static inline void unwind_frame_set(struct unwind_frame *frame, unsigned reg, uint64_t value)
{
    frame->registers[reg] = value;
    frame->known |= UINT64_C(1) << reg;
}

#endif
