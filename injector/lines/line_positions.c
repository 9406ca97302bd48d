/* See line_positions.h. */
#include "injector/lines/line_positions.h"

#include <stdlib.h>

enum {
    CODE_OFFSET_BYTES = 8,
    SOURCE_POSITION_BYTES = 28,
    UNRESOLVED = -2, /* in an array of inlines */
};

/* caller_index and file of none; source_position of code that is from nowhere. */
#define NONE UINT32_MAX

struct position {
    uint32_t caller, function_name, file, start_line, start_column, line, column;
};

/* Number INDEX of COUNT elements. */
static struct byte_cursor element(const uint8_t *elements, uint32_t count, uint32_t index,
                                  size_t element_bytes, bool big_endian)
{
    struct byte_cursor cursor = byte_cursor_over(elements, count * element_bytes, big_endian);
    cursor_skip(&cursor, index * element_bytes);
    return cursor;
}

static struct position position_at(const struct jit_debug_info2 *info, uint32_t index)
{
    struct byte_cursor cursor = element(info->source_positions, info->source_position_count, index,
                                        SOURCE_POSITION_BYTES, info->big_endian);
    struct position position;
    position.caller = cursor_u32(&cursor);
    position.function_name = cursor_u32(&cursor);
    position.file = cursor_u32(&cursor);
    position.start_line = cursor_u32(&cursor);
    position.start_column = cursor_u32(&cursor);
    position.line = cursor_u32(&cursor);
    position.column = cursor_u32(&cursor);
    return position;
}

static void offset_at(const struct jit_debug_info2 *info, uint32_t index, uint32_t *code_offset,
                      uint32_t *source_position)
{
    struct byte_cursor cursor = element(info->code_offsets, info->code_offset_count, index,
                                        CODE_OFFSET_BYTES, info->big_endian);
    *code_offset = cursor_u32(&cursor);
    *source_position = cursor_u32(&cursor);
}

/* ---- Reading ---- */

static const char *check_indices(const struct jit_debug_info2 *info)
{
    for (uint32_t i = 0; i < info->source_position_count; i++) {
        struct position position = position_at(info, i);
        if (position.caller != NONE && position.caller >= info->source_position_count)
            return "DEBUG_INFO2 names a caller that it does not have";
        if (position.function_name >= info->string_count ||
            (position.file != NONE && position.file >= info->string_count))
            return "DEBUG_INFO2 names a string that it does not have";
    }
    for (uint32_t i = 0; i < info->code_offset_count; i++) {
        uint32_t code_offset, source_position;
        offset_at(info, i, &code_offset, &source_position);
        if (source_position != NONE && source_position >= info->source_position_count)
            return "DEBUG_INFO2 names a source position that it does not have";
    }
    return NULL;
}

static const char *check_strings(const struct jit_debug_info2 *info)
{
    struct byte_cursor cursor = byte_cursor_over(info->strings, info->strings_bytes, false);
    for (uint32_t i = 0; i < info->string_count && !cursor.failed; i++)
        (void)cursor_cstr(&cursor);
    return cursor.failed ? "DEBUG_INFO2 has a string without end" : NULL;
}

const char *jit_debug_info2_read(struct byte_cursor *cursor, struct jit_debug_info2 *info)
{
    info->big_endian = cursor->big_endian;
    info->code_addr = cursor_u64(cursor);
    uint64_t offsets = cursor_u64(cursor), positions = cursor_u64(cursor);
    uint64_t strings = cursor_u64(cursor), left = cursor_left(cursor);
    if (cursor->failed)
        return "DEBUG_INFO2 is shorter than its fixed part";
    if (offsets > left / CODE_OFFSET_BYTES || positions > left / SOURCE_POSITION_BYTES ||
        strings > left ||
        offsets * CODE_OFFSET_BYTES + positions * SOURCE_POSITION_BYTES + strings > left)
        return "DEBUG_INFO2 announces more than it can hold";
    info->code_offset_count = (uint32_t)offsets;
    info->source_position_count = (uint32_t)positions;
    info->string_count = (uint32_t)strings;
    info->code_offsets = cursor_bytes(cursor, (size_t)offsets * CODE_OFFSET_BYTES);
    info->source_positions = cursor_bytes(cursor, (size_t)positions * SOURCE_POSITION_BYTES);
    info->strings_bytes = cursor_left(cursor);
    info->strings = (const char *)cursor_bytes(cursor, info->strings_bytes);
    return NULL;
}

const char *jit_debug_info2_check(const struct jit_debug_info2 *info)
{
    const char *broken = check_strings(info);
    return broken ? broken : check_indices(info);
}

/* Fill in how many callers each position has, UINT32_MAX where that is not yet known. */
static bool count_callers(const struct jit_debug_info2 *info, uint32_t *depths)
{
    for (uint32_t i = 0; i < info->source_position_count; i++) {
        uint32_t chain[LINE_MAX_DEPTH + 1], length = 0, at = i;
        while (at != NONE && depths[at] == NONE) {
            if (length > LINE_MAX_DEPTH)
                return false;
            chain[length++] = at;
            at = position_at(info, at).caller;
        }
        uint32_t depth = at == NONE ? 0 : depths[at] + 1;
        for (; length; depth++)
            depths[chain[--length]] = depth;
        if (depth > LINE_MAX_DEPTH + 1)
            return false;
    }
    return true;
}

int line_positions_check(const struct jit_debug_info2 *info, struct line_table *table, bool *sound)
{
    size_t bytes = info->source_position_count * sizeof(uint32_t);
    uint32_t *depths = line_table_scratch(table, bytes + 1);
    if (!depths)
        return -1;
    memset(depths, 0xff, bytes);
    *sound = count_callers(info, depths);
    return 0;
}

uint64_t line_positions_reach(const struct jit_debug_info2 *info)
{
    uint64_t reach = 0;
    for (uint32_t i = 0; i < info->code_offset_count; i++) {
        uint32_t code_offset, source_position;
        offset_at(info, i, &code_offset, &source_position);
        reach = code_offset >= reach ? code_offset + UINT64_C(1) : reach;
    }
    return reach;
}

/* ---- Taking ---- */

/* Positions with the same caller that are in the same function are one inlined call. */
struct taker {
    const struct jit_debug_info2 *info;
    struct line_table *table;
    const char **texts;
    int32_t *inlines;    /* by position: the inline it belongs to, LINE_NOT_INLINED or UNRESOLVED */
    uint32_t *positions; /* by inline: a position that belongs to it */
    uint32_t *slots;     /* inlines + 1, by hash; 0: free */
    size_t slot_count;
};

static int take_memory(struct taker *taker)
{
    const struct jit_debug_info2 *info = taker->info;
    size_t count = info->source_position_count;
    taker->slot_count = 16;
    while (taker->slot_count < 2 * count)
        taker->slot_count *= 2;
    size_t texts_bytes = info->string_count * sizeof *taker->texts;
    size_t bytes = texts_bytes + count * 8 + taker->slot_count * 4;
    char *scratch = line_table_scratch(taker->table, bytes);
    if (!scratch)
        return -1;
    taker->texts = (void *)scratch;
    taker->inlines = (void *)(scratch + texts_bytes);
    taker->positions = (uint32_t *)taker->inlines + count;
    taker->slots = taker->positions + count;
    for (size_t i = 0; i < count; i++)
        taker->inlines[i] = UNRESOLVED;
    memset(taker->slots, 0, taker->slot_count * sizeof *taker->slots);
    const char *text = info->strings;
    for (uint32_t i = 0; i < info->string_count; i++, text += strlen(text) + 1)
        taker->texts[i] = text;
    return 0;
}

static struct line_text file_of(const struct taker *taker, const struct position *position)
{
    return line_text_of(position->file == NONE ? NULL : taker->texts[position->file]);
}

static bool same_call(const struct position *a, const struct position *b)
{
    return a->caller == b->caller && a->function_name == b->function_name && a->file == b->file &&
           a->start_line == b->start_line && a->start_column == b->start_column;
}

static size_t find_slot(const struct taker *taker, const struct position *position)
{
    uint64_t hash = ((uint64_t)position->caller << 32) + position->function_name;
    hash = (hash ^ ((uint64_t)position->start_line << 20) ^ position->start_column) *
           UINT64_C(0x9e3779b97f4a7c15);
    size_t mask = taker->slot_count - 1, slot = (size_t)(hash >> 32) & mask;
    for (; taker->slots[slot]; slot = (slot + 1) & mask) {
        struct position other = position_at(taker->info, taker->positions[taker->slots[slot] - 1]);
        if (same_call(position, &other))
            break;
    }
    return slot;
}

/* The inline of POSITION, number INDEX, whose caller's inline is known. */
static int resolve(struct taker *taker, uint32_t index, const struct position *position)
{
    struct line_table *table = taker->table;
    size_t slot = find_slot(taker, position);
    if (!taker->slots[slot]) {
        struct position caller = position_at(taker->info, position->caller);
        int32_t parent = taker->inlines[position->caller];
        if (parent == UNRESOLVED)
            parent = LINE_NOT_INLINED;
        struct line_inline call = {
            .parent = parent,
            .depth = parent == LINE_NOT_INLINED ? 0 : table->inlines[parent].depth + 1,
            .call_line = caller.line,
            .call_column = caller.column,
            .call_file = file_of(taker, &caller),
            .decl_line = position->start_line,
            .decl_file = file_of(taker, position),
            .name = line_text_of(taker->texts[position->function_name]),
        };
        taker->positions[table->inline_count] = index;
        taker->slots[slot] = (uint32_t)table->inline_count + 1;
        if (line_table_add_inline(table, &call))
            return -1;
    }
    taker->inlines[index] = (int32_t)taker->slots[slot] - 1;
    return 0;
}

/* The inline of position INDEX, and of its callers, outermost first.  They were checked to come to
 * an end, but may have turned to zeros since (interruption.h): then position 0 calls itself. */
static int resolve_chain(struct taker *taker, uint32_t index)
{
    uint32_t chain[LINE_MAX_DEPTH + 2], length = 0;
    while (index != NONE && taker->inlines[index] == UNRESOLVED && length < LINE_MAX_DEPTH + 2) {
        chain[length++] = index;
        index = position_at(taker->info, index).caller;
    }
    while (length) {
        index = chain[--length];
        struct position position = position_at(taker->info, index);
        if (position.caller == NONE)
            taker->inlines[index] = LINE_NOT_INLINED;
        else if (resolve(taker, index, &position))
            return -1;
    }
    return 0;
}

static int take_offset(struct taker *taker, uint32_t code_offset, uint32_t source_position)
{
    struct line_row row = {.offset = code_offset};
    struct line_span span = {code_offset, LINE_NOT_INLINED};
    if (source_position != NONE) {
        struct position position = position_at(taker->info, source_position);
        if (resolve_chain(taker, source_position))
            return -1;
        row.file = file_of(taker, &position);
        row.line = row.file.text ? position.line : 0;
        row.column = position.column;
        span.inline_index = taker->inlines[source_position];
    }
    return line_table_add_row(taker->table, &row) || line_table_add_span(taker->table, &span);
}

int line_positions_take(const struct jit_debug_info2 *info, uint64_t size, struct line_table *table)
{
    struct taker taker = {.info = info, .table = table};
    if (take_memory(&taker))
        return -1;
    for (uint32_t i = 0; i < info->code_offset_count; i++) {
        uint32_t code_offset, source_position;
        offset_at(info, i, &code_offset, &source_position);
        if (code_offset < size && take_offset(&taker, code_offset, source_position))
            return -1;
    }
    return 0;
}
