/* What a dump says about the source of its functions: which record speaks of which function, and
 * where its lines are.
 *
 *     DEBUG_INFO    lines                          belongs to the load whose address it names:
 *     INLINE_INFO   inlined calls                  the next one of that address, or if the dump
 *     DEBUG_INFO2   both, samply's way             writes its loads first, the latest before
 *
 * perf gives a record to the next load whatever its address; LLVM's ORC writes all DEBUG_INFOs of a
 * batch and then all loads.  A record that names an address where nothing was ever loaded goes to
 * the next load, if its lines lie there.
 */
#ifndef PERFJIT_LINE_ASSIGNMENT_H
#define PERFJIT_LINE_ASSIGNMENT_H

#include "injector/code/code_log.h"
#include "injector/lines/line_bias.h"
#include "injector/lines/line_entry.h"
#include "injector/lines/named_files.h"

/* The records about one function, checked.  Views into the dump. */
struct code_lines {
    const struct jit_debug_info *entries;    /* or NULL */
    const struct jit_inline_info *inlines;   /* or NULL */
    const struct jit_debug_info2 *positions; /* or NULL; else the others are not used */
    uint64_t origin;           /* where the entries take the function's first byte to be */
    uint64_t low, high;        /* where the entries' addresses lie, if names were overwritten */
    struct line_extent extent; /* of the entries, from the function's first byte */
    const char *name;          /* of the function */
    const struct named_files *files; /* if names of the entries were overwritten, else NULL */
    bool big_endian;
};

/* What the records of one dump came to. */
struct line_block {
    struct line_block *next; /* of the dump before */
    struct code_lines *lines;
    size_t count;
    struct line_record *records; /* that they point to */
    struct named_files files;
};

/* Keep RECORD, a DEBUG_INFO, INLINE_INFO or DEBUG_INFO2, until the dump is read.  Returns 0, or -1
 * without memory. */
int line_record_keep(struct code_log *log, const struct jit_record *record);

/* Give what was kept to the functions from number FIRST_FUNCTION on, which are DUMP's.  What can't
 * be used goes to FINDINGS.  Returns 0, or -1 without memory. */
int line_records_assign(struct code_log *log, const struct jit_dump *dump, size_t first_function,
                     struct findings *findings);

void line_blocks_free(struct line_block *block);

#endif
