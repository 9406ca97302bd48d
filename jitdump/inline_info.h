/* The inlined calls of one function, brought into the order of a CODE_INLINE_INFO record.
 *
 * The caller gives a tree and says for each row of the line table, in any order, whose it is.  The
 * record wants spans that ascend, and each string once.  Both are sorted, so that a function with a
 * hundred thousand rows or inlines takes n log n steps whatever its names are.
 *
 *     jd_inline_info_check  ─▶  jd_inline_info_make  ─▶  jd_put_inline_info  ─▶ jd_inline_info_free
 */
#ifndef JITDUMP_INLINE_INFO_H
#define JITDUMP_INLINE_INFO_H

#include "jitdump/format/byte_sink.h"
#include "jitdump/guest/first_error.h"
#include "jitdump/jitdump.h"

#include <stddef.h>
#include <stdint.h>

/* A string of the inlines.  Each inline has three: call_file, name, decl_file. */
struct inline_text {
    const char *text; /* NULL: none */
    uint32_t string;  /* which of the inlines' strings it is */
    bool first;       /* no equal one stands in front: this one is written */
};

struct inline_info {
    uint64_t total_size; /* of the record; 0: there is none; over UINT32_MAX: it can't be */
    uint32_t span_count; /* the spans and strings of the record */
    uint32_t strings_bytes;
    size_t text_count;         /* 3 for each inline */
    struct inline_text *texts; /* sorted: none first, equal ones together */
    uint32_t *string_at; /* for each of the inlines' strings its offset in the record's strings */
    uint32_t *rows;      /* the line table's rows by address; NULL: as they stand */
};

/* The distance of row NUMBER from the function's first byte; huge for a row in front of it. */
static inline uint64_t jd_row_offset(const struct jitdump_code *code, size_t row)
{
    bool relative = code->flags & JITDUMP_RELATIVE;
    return code->lines[row].addr - (relative ? code->buffer_offset : code->code_addr);
}

/* Whether the inlines of CODE are a tree and its rows belong to them.  Returns 0, or -EINVAL with
 * the cause in ERROR. */
int jd_inline_info_check(const struct jitdump_code *code, struct first_error *error);

/* Sort and measure what jd_inline_info_check let pass.  Takes no memory when there are no inlines.
 * Returns 0 or -ENOMEM.  Release with jd_inline_info_free in either case. */
int jd_inline_info_make(struct inline_info *info, const struct jitdump_code *code);

/* Put the fields after the prefix. */
void jd_put_inline_info(struct byte_sink *sink, const struct inline_info *info,
                        const struct jitdump_code *code);

void jd_inline_info_free(struct inline_info *info);

#endif
