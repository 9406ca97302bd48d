/* Assigns records about source lines to their functions, and finds the lines in them.
 *
 *     DEBUG_INFO    lines
 *     INLINE_INFO   inlined calls
 *
 * A record belongs to the load whose address it names.  That is the next load of that address or,
 * if the dump writes its loads first, the latest before.
 *
 * perf assigns a record to the next load at any address; LLVM's ORC writes all DEBUG_INFOs of a
 * batch and then all loads.  A record that names an address where nothing was ever loaded belongs
 * to the next load, if its lines lie there.
 */
#ifndef PERFJIT_LINE_ASSIGNMENT_H
#define PERFJIT_LINE_ASSIGNMENT_H

#include "injector/log/code/code_log.h"
#include "injector/log/jitdump/jit_dump.h"

/* Assign RECORDS to the functions of LOG from number FIRST_FUNCTION on, which are DUMP's; LOG keeps
 * them then, and *RECORDS is emptied.  Unusable records are reported to FINDINGS.  Returns 0, or -1
 * without memory. */
int line_records_assign(struct code_log *log, struct line_records *records,
                        const struct jit_dump *dump, size_t first_function,
                        struct findings *findings);

/* Whether INFO, checked in itself, fits a function of SIZE bytes; *BROKEN says why not.  SCRATCH:
 * room for it.  Returns 0, or -1 without memory. */
int line_inlines_check(struct line_table *scratch, const struct jit_inline_info *info,
                       uint64_t size, const char **broken);

#endif
