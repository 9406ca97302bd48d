/* The records about the source of one function, checked: views into the dump.
 */
#ifndef PERFJIT_CODE_LINES_H
#define PERFJIT_CODE_LINES_H

#include "injector/log/jitdump/jit_record.h"
#include "injector/log/lines/line_extent.h"
#include "injector/log/lines/line_table.h"
#include "injector/log/lines/named_files.h"

/* Shows what is decoded as in other files: those that a script was made of. */
struct line_translation {
    void *of;
    void (*row)(void *of, struct line_row *row);
    void (*call)(void *of, struct line_inline *call);
};

struct code_lines {
    const struct jit_debug_info *entries;  /* or NULL */
    const struct jit_inline_info *inlines; /* or NULL */
    uint64_t origin;           /* where the entries take the function's first byte to be */
    uint64_t low, high;        /* where the entries' addresses lie, if names were overwritten */
    struct line_extent extent; /* of the entries, from the function's first byte */
    const char *name;          /* of the function */
    const struct named_files *files; /* if names of the entries were overwritten, else NULL */
    const struct line_translation *translation; /* or NULL */
    bool files_of_calls; /* the entries of inlined code name the file around it: V8 */
    bool big_endian;
};

/* Fill TABLE with the entries of LINES for the first SIZE bytes of its function.  Returns 0, or -1
 * without memory. */
int code_lines_decode(const struct code_lines *lines, uint64_t size, struct line_table *table);

#endif
