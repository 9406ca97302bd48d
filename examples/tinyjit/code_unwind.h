/* Unwind tables for a piece of code: what libjitdump makes of its frame.
 *
 * Stubs and tier 1 show the short way, struct jitdump_frame, wherever they keep to one of the frames that it knows:
 * always with a frame pointer; without one only if no expression pushes anything.  Tier 2 shows the other way, a
 * directive for each change. */
#ifndef TINYJIT_CODE_UNWIND_H
#define TINYJIT_CODE_UNWIND_H

#include "examples/tinyjit/code.h"
#include "jitdump/cfi.h"

/* Describe CODE to CFI and set *UNWIND to its tables, which live until the next call.  Returns 0 or a negative errno. */
int code_unwind_tables(struct jitdump_cfi *cfi, const struct code *code,
                       struct jitdump_unwind *unwind);

#endif
