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
#ifndef PERFJIT_JIT_DEBUG_INFO2_H
#define PERFJIT_JIT_DEBUG_INFO2_H

#include "jitdump/format/byte_cursor.h"

#include <stdbool.h>
#include <stdint.h>

struct jit_debug_info2 {
    uint64_t code_addr;
    uint32_t code_offset_count, source_position_count, string_count;
    const uint8_t *code_offsets;     /* code_offset_count times 8 bytes */
    const uint8_t *source_positions; /* source_position_count times 28 bytes */
    const char *strings;             /* string_count of them, one behind the other */
    size_t strings_bytes;
    bool big_endian;
};

/* caller_index and file of none; source_position of code that is from nowhere. */
#define JIT_POSITION_NONE UINT32_MAX

struct jit_source_position {
    uint32_t caller, function_name, file, start_line, start_column, line, column;
};

/* Read the record behind its prefix.  Returns what contradicts itself, or NULL.  Strings and
 * indices are checked on their own: it takes time that grows with the record. */
const char *jit_debug_info2_read(struct byte_cursor *cursor, struct jit_debug_info2 *info);
const char *jit_debug_info2_check(const struct jit_debug_info2 *info);

/* Source position INDEX, smaller than source_position_count, and code offset INDEX, smaller than
 * code_offset_count. */
struct jit_source_position jit_source_position_at(const struct jit_debug_info2 *info,
                                                  uint32_t index);
void jit_code_offset_at(const struct jit_debug_info2 *info, uint32_t index, uint32_t *code_offset,
                        uint32_t *source_position);

#endif
