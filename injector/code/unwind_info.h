/* Which unwind table belongs to which function.
 *
 * An UNWINDING_INFO record holds .eh_frame bytes, a header perhaps, and no address.  perf applies
 * it to the next load record and takes it for made for a place that never existed, behind the code:
 * V8 and CPython write that.  LLVM's ORC writes one record for a whole object, relative to where
 * the bytes were in the process, header first as the specification's text has it.  So the place is
 * found by evidence: of all places that a blob can have been made for, the one at which most of its
 * FDEs cover code that was loaded next.
 */
#ifndef PERFJIT_UNWIND_INFO_H
#define PERFJIT_UNWIND_INFO_H

#include "injector/code/code_log.h"

/* Turn the blobs of LOG, all of DUMP, into FDEs of its functions, and empty the list of blobs.  A
 * blob that can't be used costs its functions their unwind tables and nothing else; it goes to
 * FINDINGS.  Returns 0, or -1 without memory. */
int unwind_info_assign(struct code_log *log, const struct jit_dump *dump,
                       struct findings *findings);

/* The index of a CIE in LOG equal to CIE, added if there is none among the last ones; UINT32_MAX
 * without memory. */
uint32_t unwind_info_intern_cie(struct code_log *log, const struct eh_cie *cie);

#endif
