/* See inline_info.h; the record's layout stands in jitdump_format.h. */
#include "jitdump/inline_info.h"
#include "jitdump/format/jitdump_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The strings of an inline, in the order of the record. */
enum { CALL_FILE, NAME, DECL_FILE, TEXTS_PER_INLINE };

/* More inlines than a record of 4 GiB can hold need not be looked at.  (Neither need rows: that
 * many lines are too many for CODE_DEBUG_INFO as well.) */
static bool countable(const struct jitdump_code *code)
{
    return code->inline_count <= UINT32_MAX / JR_INLINE_BYTES &&
           code->line_count <= UINT32_MAX / JR_DEBUG_ENTRY_BYTES;
}

/* ---- Checking ---- */

static int check_tree(const struct jitdump_code *code, struct first_error *error)
{
    for (size_t i = 0; i < code->inline_count; i++) {
        const struct jitdump_inline *call = &code->inlines[i];
        if (!call->name)
            return jd_error_keep(error, -EINVAL, "struct jitdump_inline %zu: name is NULL", i);
        if (call->parent != JITDUMP_NOT_INLINED && call->parent >= i)
            return jd_error_keep(
                error, -EINVAL,
                "struct jitdump_inline %zu: parent is %u; a parent stands in front "
                "of its children",
                i, call->parent);
    }
    return 0;
}

static int check_rows(const struct jitdump_code *code, struct first_error *error)
{
    for (size_t i = 0; i < code->line_count; i++) {
        uint32_t index = code->line_inlines[i];
        if (index != JITDUMP_NOT_INLINED && index >= code->inline_count)
            return jd_error_keep(
                error, -EINVAL,
                "struct jitdump_code: line_inlines[%zu] is %u, and inline_count %zu", i, index,
                code->inline_count);
        if (code->inline_count && jd_row_offset(code, i) > code->code_size)
            return jd_error_keep(
                error, -EINVAL,
                "struct jitdump_line %zu: addr 0x%llx is not in the function, whose "
                "calls were inlined",
                i, (unsigned long long)code->lines[i].addr);
    }
    return 0;
}

int jd_inline_info_check(const struct jitdump_code *code, struct first_error *error)
{
    if (code->inline_count && !code->inlines)
        return jd_error_keep(error, -EINVAL,
                             "struct jitdump_code: inline_count is set, and inlines is NULL");
    if (code->inline_count && code->line_count && !code->line_inlines)
        return jd_error_keep(error, -EINVAL,
                             "struct jitdump_code: inline_count is set, and line_inlines is NULL");
    if (!countable(code))
        return 0; /* refused for its size */
    int result = check_tree(code, error);
    return result || !code->line_inlines ? result : check_rows(code, error);
}

/* ---- Rows ---- */

static bool rows_ascend(const struct jitdump_code *code)
{
    for (size_t i = 1; i < code->line_count; i++)
        if (code->lines[i].addr < code->lines[i - 1].addr)
            return false;
    return true;
}

/* Merge the ascending runs [0, half) and [half, count) of FROM into TO. */
static void merge_rows(uint32_t *to, const uint32_t *from, size_t half, size_t count,
                       const struct jitdump_line *lines)
{
    size_t left = 0, right = half;
    for (size_t i = 0; i < count; i++) {
        bool take_right =
            left == half || (right < count && lines[from[right]].addr < lines[from[left]].addr);
        to[i] = take_right ? from[right++] : from[left++];
    }
}

/* The rows' numbers by address.  A merge sort: rows at one address must keep their order, and
 * qsort's comparison could not see the addresses.  ROWS has room for twice line_count, of which the
 * first half is the result. */
static void sort_rows(uint32_t *rows, const struct jitdump_code *code)
{
    size_t count = code->line_count;
    uint32_t *from = rows, *to = rows + count;
    for (size_t i = 0; i < count; i++)
        rows[i] = (uint32_t)i;
    for (size_t half = 1; half < count; half *= 2) {
        for (size_t at = 0; at < count; at += 2 * half) {
            size_t run = count - at < 2 * half ? count - at : 2 * half;
            merge_rows(to + at, from + at, run < half ? run : half, run, code->lines);
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != rows)
        memcpy(rows, from, count * sizeof *rows);
}

/* ---- Spans ---- */

struct span_walk {
    const struct jitdump_code *code;
    const uint32_t *rows;
    size_t next;   /* row by address */
    uint32_t last; /* inline of the span before */
};

struct span {
    uint32_t code_offset;
    uint32_t inline_index;
};

static struct span_walk span_walk_over(const struct inline_info *info,
                                       const struct jitdump_code *code)
{
    return (struct span_walk){code, info->rows, 0, JIT_INLINE_NONE};
}

static size_t row_at(const struct span_walk *walk, size_t number)
{
    return walk->rows ? walk->rows[number] : number;
}

/* The next address from which on the instructions are another inline's. */
static bool span_next(struct span_walk *walk, struct span *span)
{
    const struct jitdump_code *code = walk->code;
    while (walk->next < code->line_count) {
        size_t row = row_at(walk, walk->next++);
        uint64_t offset = jd_row_offset(code, row);
        if (offset >= code->code_size)
            return false; /* the end of the code, and so of the rows */
        if (walk->next < code->line_count &&
            code->lines[row_at(walk, walk->next)].addr == code->lines[row].addr)
            continue; /* the last one at an address counts */
        uint32_t index = code->line_inlines[row];
        if (index == walk->last)
            continue;
        walk->last = index;
        *span = (struct span){(uint32_t)offset, index};
        return true;
    }
    return false;
}

/* ---- Strings ---- */

static int compare_texts(const void *left, const void *right)
{
    const char *a = ((const struct inline_text *)left)->text;
    const char *b = ((const struct inline_text *)right)->text;
    if (a == b || !a || !b)
        return (a != NULL) - (b != NULL);
    return strcmp(a, b);
}

static const char *known_file(const char *file)
{
    return file && *file ? file : NULL;
}

static void collect_texts(struct inline_info *info, const struct jitdump_code *code)
{
    for (size_t i = 0; i < code->inline_count; i++) {
        const struct jitdump_inline *call = &code->inlines[i];
        struct inline_text *texts = info->texts + i * TEXTS_PER_INLINE;
        texts[CALL_FILE].text = known_file(call->call_file);
        texts[NAME].text = call->name;
        texts[DECL_FILE].text = known_file(call->decl_file);
        for (size_t k = 0; k < TEXTS_PER_INLINE; k++)
            texts[k].string = (uint32_t)(i * TEXTS_PER_INLINE + k);
    }
}

/* Give equal texts one place.  Returns how many bytes the places take, and stops when no record can
 * have as many. */
static uint64_t place_texts(struct inline_info *info)
{
    uint64_t bytes = 0, place = JIT_INLINE_NONE;
    for (size_t i = 0; i < info->text_count && bytes <= UINT32_MAX; i++) {
        struct inline_text *text = &info->texts[i];
        text->first = text->text && (i == 0 || compare_texts(text - 1, text) != 0);
        if (text->first) {
            place = bytes;
            bytes += strlen(text->text) + 1;
        }
        info->string_at[text->string] = (uint32_t)place;
    }
    return bytes;
}

/* ---- The record ---- */

static int take_memory(struct inline_info *info, const struct jitdump_code *code)
{
    info->text_count = code->inline_count * TEXTS_PER_INLINE;
    info->texts = malloc(info->text_count * sizeof *info->texts);
    info->string_at = malloc(info->text_count * sizeof *info->string_at);
    bool sort = !rows_ascend(code);
    if (sort)
        info->rows = malloc(code->line_count * 2 * sizeof *info->rows);
    return info->texts && info->string_at && (!sort || info->rows) ? 0 : -ENOMEM;
}

static void measure(struct inline_info *info, const struct jitdump_code *code)
{
    struct span_walk walk = span_walk_over(info, code);
    struct span span;
    uint64_t strings_bytes = place_texts(info);
    while (span_next(&walk, &span))
        info->span_count++;
    info->strings_bytes = (uint32_t)strings_bytes;
    info->total_size = JR_CODE_INLINE_INFO_BYTES + (uint64_t)code->inline_count * JR_INLINE_BYTES +
                       (uint64_t)info->span_count * JR_INLINE_SPAN_BYTES + strings_bytes;
}

int jd_inline_info_make(struct inline_info *info, const struct jitdump_code *code)
{
    *info = (struct inline_info){0};
    if (code->inline_count == 0)
        return 0;
    if (!countable(code) || code->code_size > UINT32_MAX) {
        info->total_size = UINT64_C(1) << 40;
        return 0;
    }
    int error = take_memory(info, code);
    if (error)
        return error;
    if (info->rows)
        sort_rows(info->rows, code);
    collect_texts(info, code);
    qsort(info->texts, info->text_count, sizeof *info->texts, compare_texts);
    measure(info, code);
    return 0;
}

void jd_inline_info_free(struct inline_info *info)
{
    free(info->texts);
    free(info->string_at);
    free(info->rows);
}

/* ---- Putting ---- */

static void put_inline(struct byte_sink *sink, const struct jitdump_inline *call,
                       const uint32_t *string_at)
{
    sink_u32(sink, call->parent);
    sink_u32(sink, string_at[CALL_FILE]);
    sink_u32(sink, call->call_line);
    sink_u32(sink, call->call_column);
    sink_u32(sink, string_at[NAME]);
    sink_u32(sink, string_at[DECL_FILE]);
    sink_u32(sink, call->decl_line);
}

void jd_put_inline_info(struct byte_sink *sink, const struct inline_info *info,
                        const struct jitdump_code *code)
{
    struct span_walk walk = span_walk_over(info, code);
    struct span span;
    sink_u64(sink, code->code_addr);
    sink_u32(sink, (uint32_t)code->inline_count);
    sink_u32(sink, info->span_count);
    sink_u32(sink, info->strings_bytes);
    sink_u32(sink, 0); /* pad1 */
    for (size_t i = 0; i < code->inline_count; i++)
        put_inline(sink, &code->inlines[i], info->string_at + i * TEXTS_PER_INLINE);
    while (span_next(&walk, &span)) {
        sink_u32(sink, span.code_offset);
        sink_u32(sink, span.inline_index);
    }
    for (size_t i = 0; i < info->text_count; i++)
        if (info->texts[i].first)
            sink_cstr(sink, info->texts[i].text);
}
