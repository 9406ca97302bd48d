/* The lines and inlined calls of compiled code, from what JVMTI passes beside it (jvmticmlr.h):
 *
 *     pc 0x...24    String.charAt bci 3, A.total bci 12, A.main bci 7      innermost first
 *
 * Such a place ends a range: HotSpot looks for the first one behind an instruction, which also is
 * the return address of a call. */
#ifndef PERFJIT_INLINE_ROWS_H
#define PERFJIT_INLINE_ROWS_H

#include "agents/java/code_rows.h"
#include "agents/java/java_method.h"
#include "jitdump/jitdump.h"

#include <stdint.h>

/* An inlined call, as it is told apart: a method called at a place of a method. */
struct inlined_call {
    jmethodID method, caller;
    jint bci; /* of the call, in the caller */
};

struct inline_rows {
    struct code_rows rows;
    struct inlined_call *calls; /* owned, as all below */
    struct jitdump_inline *inlines;
    size_t inline_count, inline_capacity;
    uint32_t *slots; /* which call, by a hash: its number and 1; 0: none */
    size_t slot_count;
};

/* Read INFO, the list of records of a piece of code at [BEGIN, END).  ROWS point to the texts of
 * METHODS.  False: no memory.  Release with inline_rows_free in either case. */
bool inline_rows_read(struct inline_rows *rows, struct java_methods *methods, const void *info,
                      uint64_t begin, uint64_t end);

void inline_rows_free(struct inline_rows *rows);

#endif
