/* The record INLINE_INFO: which calls the compiler inlined in a function. Its fields and their
 * rules are in jitdump/format/jitdump_format.h.
 */
#ifndef PERFJIT_JIT_INLINE_H
#define PERFJIT_JIT_INLINE_H

#include "jitdump/format/byte_cursor.h"

#include <stdbool.h>
#include <stdint.h>

/* The calls that the compiler inlined in the function at code_addr, whose LOAD follows.  Valid in
 * itself; whether a span begins past the function's end is known only with the LOAD. */
struct jit_inline_info {
    uint64_t code_addr;
    uint32_t nr_inline, nr_span, strings_bytes;
    const uint8_t *inlines; /* nr_inline times 28 bytes */
    const uint8_t *spans;   /* nr_span times 8 bytes */
    const char *strings;    /* strings_bytes, the last of them NUL */
    bool big_endian;
};

/* An inlined call.  Texts live in the dump. */
struct jit_inline {
    uint32_t parent; /* index of an earlier inline, or JIT_INLINE_NONE */
    uint32_t call_line, call_column, decl_line;
    const char *call_file; /* NULL: not known */
    const char *name;
    const char *decl_file; /* NULL: not known */
};

/* From code_offset on the instructions belong to inline inline_index, or with JIT_INLINE_NONE to
 * the function. */
struct jit_inline_span {
    uint32_t code_offset, inline_index;
};

/* Read the record after its prefix.  Returns the inconsistency, or NULL.  The calls and spans are
 * checked separately, because that takes time linear in the record's size. */
const char *jit_inline_info_read(struct byte_cursor *cursor, struct jit_inline_info *info);
const char *jit_inline_info_check(const struct jit_inline_info *info);

/* Inline INDEX, smaller than nr_inline, and span INDEX, smaller than nr_span. */
void jit_inline_at(const struct jit_inline_info *info, uint32_t index, struct jit_inline *call);
void jit_inline_span_at(const struct jit_inline_info *info, uint32_t index,
                        struct jit_inline_span *span);

#endif
