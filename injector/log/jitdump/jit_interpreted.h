/* The records about interpreters: where their frames say which function they are of, and which
 * functions there are.  Their formats are in jitdump_format.h.
 *
 * They are records, and not a file beside the dump, which would need a clock, an owner and a bound
 * of its own, and would end in the middle after a kill. */
#ifndef PERFJIT_JIT_INTERPRETED_H
#define PERFJIT_JIT_INTERPRETED_H

#include "jitdump/format/byte_cursor.h"

#include <stdbool.h>
#include <stdint.h>

struct jit_interpreter {
    uint64_t code_addr, code_size;
    uint32_t frame_register; /* DWARF's numbers */
    int32_t function_offset, position_offset;
    uint32_t position_register; /* or JIT_REGISTER_NONE */
};

struct jit_interpreted {
    uint64_t function, position;
    uint32_t function_bytes, position_bytes;
    uint32_t nr_line, lines_bytes;
    uint32_t name_bytes, file_bytes; /* without their NULs */
    const char *name, *file;
    const uint8_t *lines;
};

/* A row: the instructions from OFFSET on are of LINE. */
struct jit_position {
    uint32_t offset, line;
};

/* Read the fields after the prefix up to the end of CURSOR.  Return the inconsistency, or NULL. */
const char *jit_interpreter_read(struct byte_cursor *cursor, struct jit_interpreter *interpreter);
const char *jit_interpreted_read(struct byte_cursor *cursor, struct jit_interpreted *function);

/* Whether the rows are as announced: the inconsistency, or NULL. */
const char *jit_interpreted_check(const struct jit_interpreted *function);

/* The rows of FUNCTION as a cursor over them, and the next one: ROW holds the one before, and
 * begins with zeros.  Returns false if there is none, or it is not one. */
struct byte_cursor jit_interpreted_rows(const struct jit_interpreted *function);
bool jit_position_next(struct byte_cursor *rows, const struct jit_interpreted *function,
                       struct jit_position *row);

#endif
