/* Where HotSpot's interpreter keeps the Method and the place in it, in its frames.  No table of the
 * JVM says so, and versions differ.  It is measured: two frames of known methods stand on a stack,
 * one below the other.
 *
 *     rbp           the caller's rbp              rbp - M       Method of this frame
 *     rbp + 8       where the caller goes on      rbp - B       its bytecode that runs
 *
 * The caller's rbp, from where the inner Method stands, leads to where the outer one does by the
 * same distance: that is M. */
#ifndef PERFJIT_INTERPRETER_LAYOUT_H
#define PERFJIT_INTERPRETER_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interpreter_layout {
    int32_t method_offset, position_offset; /* from rbp; the latter 0: there is none */
};

struct measured_frame {
    uint64_t method, position; /* position 0: it is not known */
};

/* The words of a stack from ADDR on. */
struct stack_words {
    const uint64_t *words;
    size_t count;
    uint64_t addr;
};

/* Find the frame INNER, and that of its caller OUTER, in STACK, of an interpreter whose code is
 * [CODE, CODE + CODE_BYTES).  False: they are not there, or not clearly. */
bool interpreter_layout_find(struct interpreter_layout *layout, const struct stack_words *stack,
                             const struct measured_frame *inner, const struct measured_frame *outer,
                             uint64_t code, uint64_t code_bytes);

#endif
