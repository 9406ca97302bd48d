/* Assigns unwind tables to functions.
 *
 * An UNWINDING_INFO record holds .eh_frame bytes, a header perhaps, and no address.  perf applies
 * it to the next load record and assumes a place after the code that never existed: V8 and CPython
 * write that.  LLVM's ORC writes one record for a whole object, relative to where the bytes were in
 * the process, header first as the specification's text has it.  So the place is found by evidence:
 * of all places that a blob can have been made for, the one at which most of its FDEs cover code
 * that was loaded next.
 */
#ifndef PERFJIT_UNWIND_INFO_H
#define PERFJIT_UNWIND_INFO_H

#include "injector/log/code/code_log.h"
#include "injector/log/jitdump/jit_dump.h"

/* An UNWINDING_INFO record; which functions it covers is determined when the whole dump has been
 * read. */
struct unwind_blob {
    struct jit_unwinding_info info;
    uint64_t record_number, record_offset; /* in the dump */
    size_t next_function;                  /* index of the first function logged after it */
};

struct unwind_blobs {
    struct unwind_blob *items;
    size_t count, capacity;
};

/* Turn BLOBS, all of DUMP, into FDEs of LOG's functions.  A blob that can't be used costs its
 * functions their unwind tables and nothing else; it goes to FINDINGS.  Returns 0, or -1 without
 * memory. */
int unwind_blobs_assign(struct code_log *log, const struct unwind_blobs *blobs,
                        const struct jit_dump *dump, struct findings *findings);

#endif
