/* Facts about a function that its instructions show, for code without an unwind table.  They are
 * whether it has set its frame pointer, and which instruction stands in front of a return address.
 *
 * V8's builtins, hand-written assembly, Go: code without a table mostly keeps the frame pointer,
 * which is the *caller's* until the prologue has run, and again from the epilogue on.  A walk along
 * the frame pointer loses the direct caller there.
 */
#ifndef PERFJIT_CODE_SHAPE_H
#define PERFJIT_CODE_SHAPE_H

#include "injector/recording/machine.h"

#include <stdbool.h>

/* The part of its function that an instruction is in. */
enum code_place {
    PLACE_UNKNOWN,   /* its bytes, or its function's start, are not known */
    PLACE_IN_FRAME,  /* the frame pointer is this function's */
    PLACE_BEFORE,    /* nothing has been pushed yet, or all is popped */
    PLACE_PUSHED,    /* the caller's frame pointer is pushed, and still in the register, too */
    PLACE_FRAMELESS, /* the function never sets it */
};

/* The place of the instruction at OFFSET in the function of SIZE bytes at CODE.  One that CALLS is
 * not about to leave the function. */
enum code_place code_place_of(const struct machine *machine, const uint8_t *code, size_t size,
                              size_t offset, bool calls);

/* Whether the last of the SIZE bytes at CODE can be a call's, so that a return address follows. */
bool code_ends_in_call(const struct machine *machine, const uint8_t *code, size_t size);

enum { LONGEST_CALL_BYTES = 8 };

/* Whether it can be a direct call's, which leads *BY bytes from its end. */
bool code_ends_in_direct_call(const struct machine *machine, const uint8_t *code, size_t size,
                              int64_t *by);

/* The end of the next direct call among the SIZE bytes at CODE; 0: there is none.  The search
 * begins at FROM, which is 0 or the end of another call.  *TARGET: where it leads, in bytes from
 * CODE's begin.  On x86-64 each byte may begin an instruction: a match is a call only if its target
 * is plausible. */
size_t code_next_call(const struct machine *machine, const uint8_t *code, size_t size, size_t from,
                      int64_t *target);

/* Whether one of the SIZE bytes at CODE can begin a direct jump to TARGET, as above. */
bool code_jumps_to(const struct machine *machine, const uint8_t *code, size_t size, int64_t target);

/* How many bytes of instructions that do nothing the SIZE bytes at CODE begin with; 0 if there is
 * nothing else.  A function may run into the next one through them, as glibc's __memmove_chk does,
 * and no table has them. */
size_t code_padding_bytes(const struct machine *machine, const uint8_t *code, size_t size);

enum { MOST_PADDING_BYTES = 64 };

/* Whether the SIZE bytes at CODE begin with the system call that ends a signal handler.  Handlers
 * return to it, though no call stands in front of it. */
bool code_is_signal_return(const struct machine *machine, const uint8_t *code, size_t size);

#endif
