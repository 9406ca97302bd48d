/* See line_positions.h. */
#include "injector/lines/line_positions.h"

#include <stdlib.h>

enum { UNRESOLVED = -2 }; /* in an array of inlines */

/* Fill in how many callers each position has, UINT32_MAX where that is not yet known. */
static bool count_callers(const struct jit_debug_info2 *info, uint32_t *depths)
{
    for (uint32_t i = 0; i < info->source_position_count; i++) {
        uint32_t chain[LINE_MAX_DEPTH + 1], length = 0, at = i;
        while (at != JIT_POSITION_NONE && depths[at] == JIT_POSITION_NONE) {
            if (length > LINE_MAX_DEPTH)
                return false;
            chain[length++] = at;
            at = jit_source_position_at(info, at).caller;
        }
        uint32_t depth = at == JIT_POSITION_NONE ? 0 : depths[at] + 1;
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
        jit_code_offset_at(info, i, &code_offset, &source_position);
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

static struct line_text file_of(const struct taker *taker,
                                const struct jit_source_position *position)
{
    return line_text_of(position->file == JIT_POSITION_NONE ? NULL : taker->texts[position->file]);
}

static bool same_call(const struct jit_source_position *a, const struct jit_source_position *b)
{
    return a->caller == b->caller && a->function_name == b->function_name && a->file == b->file &&
           a->start_line == b->start_line && a->start_column == b->start_column;
}

static size_t find_slot(const struct taker *taker, const struct jit_source_position *position)
{
    uint64_t hash = ((uint64_t)position->caller << 32) + position->function_name;
    hash = (hash ^ ((uint64_t)position->start_line << 20) ^ position->start_column) *
           UINT64_C(0x9e3779b97f4a7c15);
    size_t mask = taker->slot_count - 1, slot = (size_t)(hash >> 32) & mask;
    for (; taker->slots[slot]; slot = (slot + 1) & mask) {
        struct jit_source_position other =
            jit_source_position_at(taker->info, taker->positions[taker->slots[slot] - 1]);
        if (same_call(position, &other))
            break;
    }
    return slot;
}

/* The inline of POSITION, number INDEX, whose caller's inline is known. */
static int resolve(struct taker *taker, uint32_t index, const struct jit_source_position *position)
{
    struct line_table *table = taker->table;
    size_t slot = find_slot(taker, position);
    if (!taker->slots[slot]) {
        struct jit_source_position caller = jit_source_position_at(taker->info, position->caller);
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
    while (index != JIT_POSITION_NONE && taker->inlines[index] == UNRESOLVED &&
           length < LINE_MAX_DEPTH + 2) {
        chain[length++] = index;
        index = jit_source_position_at(taker->info, index).caller;
    }
    while (length) {
        index = chain[--length];
        struct jit_source_position position = jit_source_position_at(taker->info, index);
        if (position.caller == JIT_POSITION_NONE)
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
    if (source_position != JIT_POSITION_NONE) {
        struct jit_source_position position = jit_source_position_at(taker->info, source_position);
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
        jit_code_offset_at(info, i, &code_offset, &source_position);
        if (code_offset < size && take_offset(&taker, code_offset, source_position))
            return -1;
    }
    return 0;
}
