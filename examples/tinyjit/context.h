/* What compiled code reads and writes besides the stack.  Register r15 points to it, always:
 *
 *     r15 ─▶ struct jit_context   the runtime, the stack's limit, addresses of C functions
 *            slots[]              one for each function: where its code is now, and how hot it is
 *            cells                the script's global variables and arrays, 8 bytes each
 *
 * A call reads its target from a slot.  So a function is compiled, recompiled, moved and forgotten by changing
 * one word, and no code has to be patched. */
#ifndef TINYJIT_CONTEXT_H
#define TINYJIT_CONTEXT_H

#include "examples/tinyjit/syntax.h"

#include <stddef.h>
#include <stdint.h>

struct runtime;

/* Functions in C that compiled code calls; the builtins come first, numbered as in enum builtin.  And the compile
 * stub, to which the function stubs jump. */
enum helper { HELPER_COMPILE = BUILTINS, HELPER_HOT, HELPER_FAIL, HELPER_POLL, HELPER_COMPILE_STUB, HELPERS };

enum { SLOT_SHIFT = 5 };

struct function_slot {
    uint64_t entry;      /* address of the code, or of the stub that compiles it */
    int32_t calls_left;  /* until tier-1 code asks for tier 2: calls, */
    int32_t loops_left;  /* rounds of its loops */
    uint32_t parameters; /* how many; for call(f, ...) */
    uint32_t reserved[3];
};

_Static_assert(sizeof(struct function_slot) == 1 << SLOT_SHIFT, "code shifts by SLOT_SHIFT");

struct jit_context {
    struct runtime *runtime;
    uint64_t stack_limit; /* below this a function must not start */
    uint64_t poll_word;   /* address of the word that says whether libjitdump is to be called */
    uint64_t helpers[HELPERS];
    struct function_slot slots[];
};

/* A helper: ARGUMENT is the script's or enum failure's, SP and FP are rsp and rbp at the call. */
typedef int64_t helper_function(int64_t argument, struct jit_context *context, uint64_t sp,
                                uint64_t fp);

/* Offsets from r15. */

static inline int32_t context_helper_offset(uint32_t helper)
{
    return (int32_t)(offsetof(struct jit_context, helpers) + helper * sizeof(uint64_t));
}

static inline int32_t context_slot_offset(uint32_t function)
{
    return (int32_t)(offsetof(struct jit_context, slots) + ((size_t)function << SLOT_SHIFT));
}

static inline int32_t context_cell_offset(const struct program *program, uint32_t cell)
{
    return context_slot_offset((uint32_t)program->function_count) + (int32_t)cell * 8;
}

#endif
