/* .debug_line: which source line each instruction is from, a line number program for each
 * compilation unit.
 *
 *     unit header, its table of files
 *     for each function a sequence: set_address, its rows, end_sequence at the function's end
 *
 * A sequence for each function, so that the bytes between two functions have no line, and the last
 * row of a function reaches to its end.  A row is as short as the special opcodes let it be.
 */
#ifndef PERFJIT_DEBUG_LINE_H
#define PERFJIT_DEBUG_LINE_H

#include "injector/inject/dwarf/debug_strings.h"

#include <stddef.h>

struct debug_row {
    uint64_t addr; /* virtual address */
    uint32_t line; /* 0: these instructions are from no line */
    uint32_t column;
    uint32_t file; /* as debug_line_file returned it; unused for line 0 */
};

struct debug_file {
    uint32_t unit;   /* in which unit the number holds */
    uint32_t number; /* from 1 on */
};

struct debug_lines {
    struct byte_sink section;
    struct byte_sink program; /* of the unit that is being made */
    uint8_t address_bytes;
    uint32_t unit;            /* its number, from 1 on */
    struct debug_file *files; /* by number of string */
    size_t file_capacity;
    uint32_t *unit_files; /* numbers of strings, by number of file */
    size_t unit_file_count, unit_file_capacity;
};

/* Begin a unit.  Returns the offset of its program in the section, for DW_AT_stmt_list. */
size_t debug_line_begin_unit(struct debug_lines *lines);

/* The number in this unit of the file that string number STRING names. */
uint32_t debug_line_file(struct debug_lines *lines, uint32_t string);

/* Put the sequence of a function that ends at END: COUNT rows, at least one, ascending by
 * address. */
void debug_line_put_sequence(struct debug_lines *lines, const struct debug_row *rows, size_t count,
                             uint64_t end);

void debug_line_end_unit(struct debug_lines *lines, const struct debug_strings *strings);

void debug_lines_free(struct debug_lines *lines);

#endif
