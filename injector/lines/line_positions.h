/* samply's record of lines and inlined calls, 827346260 ("TMP1" in a little-endian file)
 * CODE_DEBUG_INFO2.
 *
 *     16 u64 code_addr
 *     24 u64 code_offset_count
 *     32 u64 source_position_count
 *     40 u64 string_count
 *     48     code_offsets      each u32 code_offset, u32 source_position of the code from there on
 *            source_positions  each i32 caller_index, u32 function_name, i32 file,
 *                              u32 function_start_line, u32 function_start_column, u32 line, u32
 *                              column
 *            strings           string_count of them, NUL-terminated
 *
 * caller_index is the position of the call through which the function of this position was inlined,
 * or -1: this is the function itself.  function_name and file are numbers of strings; file -1: not
 * known.
 *
 * Valid if the counts fit in the record, each string ends, and each index is in range.  The id is
 * samply's experiment (branch support-inlines, March 2026; WebKit PR 61093 writes it).
 */
#ifndef PERFJIT_LINE_POSITIONS_H
#define PERFJIT_LINE_POSITIONS_H

#include "injector/dump/jit_record.h"
#include "injector/lines/line_table.h"
#include "jitdump/byte_cursor.h"

/* Read the record behind its prefix.  Returns what contradicts itself, or NULL.  Strings and
 * indices are checked on their own: it takes time that grows with the record. */
const char *jit_debug_info2_read(struct byte_cursor *cursor, struct jit_debug_info2 *info);
const char *jit_debug_info2_check(const struct jit_debug_info2 *info);

/* Whether each position's callers come to an end within LINE_MAX_DEPTH calls; *SOUND receives the
 * answer.  TABLE lends its scratch.  Returns 0, or -1 without memory. */
int line_positions_check(const struct jit_debug_info2 *info, struct line_table *table, bool *sound);

/* One more than the highest code_offset; 0 if there is none. */
uint64_t line_positions_reach(const struct jit_debug_info2 *info);

/* Add the rows, inlines and spans that INFO, which is sound, gives for the first SIZE bytes of its
 * function.  Offsets stay in the record's order.  Returns 0, or -1 without memory. */
int line_positions_take(const struct jit_debug_info2 *info, uint64_t size,
                        struct line_table *table);

#endif
