/* The source information of one dump's functions, and its records.
 */
#ifndef PERFJIT_LINE_BLOCK_H
#define PERFJIT_LINE_BLOCK_H

#include "injector/log/lines/code_lines.h"

/* A record about the source of a function; which function is determined when the whole dump has
 * been read. */
struct line_record {
    struct jit_record record;
    size_t next_function; /* index of the first function logged after it */
};

struct line_records {
    struct line_record *items;
    size_t count, capacity;
};

struct line_block {
    struct line_block *next; /* of the dump before */
    struct line_records records;
    struct code_lines *lines; /* which point to them */
    size_t count;
    struct named_files files;
};

/* Keep RECORD, a DEBUG_INFO or INLINE_INFO, unless it is empty.  Returns 0, or -1
 * without memory. */
int line_records_keep(struct line_records *records, const struct jit_record *record,
                      size_t next_function);

/* BLOCK and those before it. */
void line_blocks_free(struct line_block *block);

#endif
