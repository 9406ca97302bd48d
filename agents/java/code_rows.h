/* The line and the inlined call of each place of a piece of code, as libjitdump takes them. */
#ifndef PERFJIT_CODE_ROWS_H
#define PERFJIT_CODE_ROWS_H

#include "agents/java/frame_tables.h"
#include "jitdump/jitdump.h"

#include <stdbool.h>
#include <stdint.h>

struct code_rows {
    struct jitdump_line *lines; /* owned, ascending */
    uint32_t *inlines;          /* owned: of each line its call, or JITDUMP_NOT_INLINED */
    size_t count, capacity;
};

/* A line behind the others; one at the address of the last one takes its place.  False: no memory.
 */
bool code_rows_add(struct code_rows *rows, const struct jitdump_line *line, uint32_t inlined);

/* EDGES of the code at [BEGIN, END) are the method's own: none of CALLS is there.  HotSpot has no
 * place for them, they are in the range of the next instruction of some bytecode.  The first row
 * stands at BEGIN.  False: no memory, ROWS are as they were. */
bool code_rows_set_own(struct code_rows *rows, const struct jitdump_inline *calls,
                       const struct frame_edges *edges, uint64_t begin, uint64_t end);

void code_rows_free(struct code_rows *rows);

#endif
