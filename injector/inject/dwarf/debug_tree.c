/* See debug_tree.h. */
#include "injector/inject/dwarf/debug_tree.h"

#include "injector/arrays/array.h"
#include "injector/inject/dwarf/debug_abbrev.h"
#include "injector/inject/dwarf/debug_room.h"
#include "injector/log/code/jit_name.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum {
    INFO_VERSION = 4,
    ARANGES_VERSION = 2,
    ENTRY_BYTES = 16 * LEB_BYTES,
    ALIGNMENT_BYTES = 4096
};

static void put_address(const struct debug_tree *tree, struct byte_sink *sink, uint64_t addr)
{
    if (tree->address_bytes == 4)
        sink_u32(sink, (uint32_t)addr);
    else
        sink_u64(sink, addr);
}

static uint32_t add_string(struct debug_tree *tree, struct line_text text)
{
    return debug_strings_add(&tree->strings, text.text ? text.text : "", text.bytes);
}

/* A function's name, as a symbol table would have it. */
static uint32_t add_name(struct debug_tree *tree, struct line_text name)
{
    if (!name.text)
        return add_string(tree, name);
    char *clean = jit_name_shown(name.text, name.bytes);
    tree->failed |= !clean;
    uint32_t number = clean ? debug_strings_add(&tree->strings, clean, strlen(clean)) : 0;
    free(clean);
    return number;
}

static void put_string(struct debug_tree *tree, uint32_t number)
{
    sink_u32(&tree->info, debug_strings_offset(&tree->strings, number));
}

/* The string that names FILE: the same one for a path and for its URL. */
static uint32_t add_path(struct debug_tree *tree, struct line_text file)
{
    return add_string(tree, source_path_of(&tree->path, file));
}

static uint32_t add_file(struct debug_tree *tree, struct line_text file)
{
    return file.text ? debug_line_file(&tree->lines, add_path(tree, file)) : 0;
}

void debug_tree_open(struct debug_tree *tree, uint8_t address_bytes, bool big_endian)
{
    *tree = (struct debug_tree){.address_bytes = address_bytes};
    tree->lines.address_bytes = address_bytes;
    struct byte_sink *const sinks[] = {&tree->info,          &tree->abbrev,
                                       &tree->ranges,        &tree->aranges,
                                       &tree->lines.section, &tree->strings.section};
    for (size_t i = 0; i < sizeof sinks / sizeof sinks[0]; i++)
        sinks[i]->big_endian = big_endian;
    debug_abbrev_put(&tree->abbrev);
}

/* ---- Units ---- */

/* The unit's ranges are known at its end: a unit of one function gets low_pc and high_pc then, else
 * 0 is the base of all ranges in it. */
void debug_tree_begin_unit(struct debug_tree *tree, const char *name)
{
    struct byte_sink *info = &tree->info;
    size_t stmt_list = debug_line_begin_unit(&tree->lines);
    uint32_t producer = debug_strings_add(&tree->strings, "perfjit", strlen("perfjit"));
    uint32_t unit_name = debug_strings_add(&tree->strings, name, strlen(name));
    debug_room(info, ENTRY_BYTES);
    tree->unit_start = info->size;
    tree->unit_range_count = 0;
    sink_u32(info, 0); /* the length, set at the end */
    sink_u16(info, INFO_VERSION);
    sink_u32(info, 0); /* .debug_abbrev from its start */
    sink_u8(info, tree->address_bytes);
    sink_uleb(info, ABBREV_UNIT);
    put_string(tree, producer);
    sink_u16(info, DW_LANG_C99);
    put_string(tree, unit_name);
    sink_u32(info, (uint32_t)stmt_list);
    put_address(tree, info, 0);
    tree->patch_ranges = info->size;
    sink_u32(info, 0);
}

/* A function right after the one before, or with nothing but alignment between them, shares its
 * range. */
static void add_unit_range(struct debug_tree *tree, uint64_t start, uint64_t end, bool follows)
{
    if (array_reserve(tree->unit_ranges, tree->unit_range_count, tree->unit_range_capacity)) {
        tree->failed = true;
        return;
    }
    if (tree->unit_range_count && follows &&
        start - tree->unit_ranges[tree->unit_range_count - 1].end < ALIGNMENT_BYTES)
        tree->unit_ranges[tree->unit_range_count - 1].end = end;
    else
        tree->unit_ranges[tree->unit_range_count++] = (struct debug_range){start, end, 0};
}

static void put_range(struct debug_tree *tree, uint64_t start, uint64_t end)
{
    debug_room(&tree->ranges, 16);
    put_address(tree, &tree->ranges, start);
    put_address(tree, &tree->ranges, end);
}

static void put_unit_ranges(struct debug_tree *tree)
{
    debug_patch_u32(&tree->info, tree->patch_ranges, (uint32_t)tree->ranges.size);
    for (size_t i = 0; i < tree->unit_range_count; i++)
        put_range(tree, tree->unit_ranges[i].start, tree->unit_ranges[i].end);
    put_range(tree, 0, 0);
}

static void put_aranges(struct debug_tree *tree)
{
    struct byte_sink *aranges = &tree->aranges;
    debug_room(aranges, 64 + tree->unit_range_count * 16);
    size_t start = aranges->size;
    sink_u32(aranges, 0);
    sink_u16(aranges, ARANGES_VERSION);
    sink_u32(aranges, (uint32_t)tree->unit_start);
    sink_u8(aranges, tree->address_bytes);
    sink_u8(aranges, 0); /* no segments */
    sink_zeros(aranges, (size_t)tree->address_bytes * 2 -
                            (aranges->size - start) % ((size_t)tree->address_bytes * 2));
    for (size_t i = 0; i < tree->unit_range_count; i++) {
        put_address(tree, aranges, tree->unit_ranges[i].start);
        put_address(tree, aranges, tree->unit_ranges[i].end - tree->unit_ranges[i].start);
    }
    put_address(tree, aranges, 0);
    put_address(tree, aranges, 0);
    debug_patch_u32(aranges, start, (uint32_t)(aranges->size - start - 4));
}

void debug_tree_end_unit(struct debug_tree *tree)
{
    struct byte_sink *info = &tree->info;
    debug_room(info, 1);
    sink_u8(info, 0); /* no more functions */
    debug_patch_u32(info, tree->unit_start, (uint32_t)(info->size - tree->unit_start - 4));
    put_unit_ranges(tree);
    put_aranges(tree);
    debug_line_end_unit(&tree->lines, &tree->strings);
}

/* ---- Callees ---- */

static uint64_t callee_hash(const struct debug_callee *callee)
{
    uint64_t hash = ((uint64_t)callee->name << 32) + callee->decl_file;
    return (hash ^ ((uint64_t)callee->decl_line << 16)) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static struct debug_callee *find_callee(const struct debug_tree *tree,
                                        const struct debug_callee *wanted)
{
    size_t mask = tree->callee_slots - 1, slot = (size_t)callee_hash(wanted) & mask;
    for (; tree->callees[slot].unit; slot = (slot + 1) & mask) {
        const struct debug_callee *here = &tree->callees[slot];
        if (here->name == wanted->name && here->decl_file == wanted->decl_file &&
            here->decl_line == wanted->decl_line)
            break;
    }
    return &tree->callees[slot];
}

static int grow_callees(struct debug_tree *tree)
{
    if (tree->callee_count * 2 < tree->callee_slots)
        return 0;
    struct debug_tree grown = {.callee_slots = tree->callee_slots ? tree->callee_slots * 2 : 256};
    grown.callees = calloc(grown.callee_slots, sizeof *grown.callees);
    if (!grown.callees)
        return -1;
    for (size_t i = 0; i < tree->callee_slots; i++)
        if (tree->callees[i].unit)
            *find_callee(&grown, &tree->callees[i]) = tree->callees[i];
    free(tree->callees);
    tree->callees = grown.callees;
    tree->callee_slots = grown.callee_slots;
    return 0;
}

static void put_callee(struct debug_tree *tree, const struct debug_callee *callee)
{
    struct byte_sink *info = &tree->info;
    debug_room(info, ENTRY_BYTES);
    sink_uleb(info, callee->decl_file ? ABBREV_CALLEE : ABBREV_CALLEE_UNDECLARED);
    put_string(tree, callee->name);
    sink_u8(info, DW_INL_inlined);
    if (callee->decl_file) {
        sink_uleb(info, debug_line_file(&tree->lines, callee->decl_file - 1));
        sink_uleb(info, callee->decl_line);
    }
}

/* The offset in the unit of the entry of CALL's callee, put now if it is the unit's first call of
 * it. */
static uint32_t callee_of(struct debug_tree *tree, const struct line_inline *call)
{
    struct debug_callee wanted = {.name = add_name(tree, call->name), .decl_line = call->decl_line};
    if (call->decl_file.text)
        wanted.decl_file = add_path(tree, call->decl_file) + 1;
    if (grow_callees(tree)) {
        tree->failed = true;
        return 0;
    }
    struct debug_callee *callee = find_callee(tree, &wanted);
    tree->callee_count += callee->unit == 0;
    if (callee->unit != tree->lines.unit) {
        *callee = wanted;
        callee->unit = tree->lines.unit;
        callee->offset = (uint32_t)(tree->info.size - tree->unit_start);
        put_callee(tree, callee);
    }
    return callee->offset;
}

/* ---- Which addresses an inlined call has ---- */

static void end_range(struct debug_tree *tree, uint32_t call_index, uint64_t end)
{
    struct debug_call *call = &tree->calls[call_index];
    call->open = false;
    if (array_reserve(tree->call_ranges, tree->call_range_count, tree->call_range_capacity)) {
        tree->failed = true;
        return;
    }
    tree->call_ranges[tree->call_range_count++] = (struct debug_range){call->open_at, end, 0};
    uint32_t number = (uint32_t)tree->call_range_count;
    if (call->last_range)
        tree->call_ranges[call->last_range - 1].next = number;
    else
        call->first_range = number;
    call->last_range = number;
}

static void link_child(struct debug_call *calls, struct debug_call *parent, uint32_t child)
{
    if (parent->last_child)
        calls[parent->last_child - 1].next_sibling = child + 1;
    else
        parent->first_child = child + 1;
    parent->last_child = child + 1;
}

/* A call is put among its parent's when it is first opened, after its parent.  One without
 * addresses never is, and has no entry. */
static void begin_range(struct debug_tree *tree, const struct line_inline *inlines,
                        uint32_t call_index, uint64_t start)
{
    struct debug_call *call = &tree->calls[call_index];
    int32_t parent = inlines[call_index].parent;
    if (!call->last_range) {
        link_child(tree->calls, parent == LINE_NOT_INLINED ? &tree->root : &tree->calls[parent],
                   call_index);
        call->origin = callee_of(tree, &inlines[call_index]);
    }
    call->open = true;
    call->open_at = start;
}

/* The instructions from ADDR on are inline TO's, the ones before were FROM's. */
static void change_call(struct debug_tree *tree, const struct line_inline *inlines, int32_t from,
                        int32_t to, uint64_t addr)
{
    uint32_t opening[LINE_MAX_DEPTH], count = 0;
    int32_t common = to;
    while (common != LINE_NOT_INLINED && !tree->calls[common].open) {
        opening[count++] = (uint32_t)common;
        common = inlines[common].parent;
    }
    for (; from != common; from = inlines[from].parent)
        end_range(tree, (uint32_t)from, addr);
    while (count)
        begin_range(tree, inlines, opening[--count], addr);
}

static int clear_calls(struct debug_tree *tree, size_t count)
{
    if (count > tree->call_capacity) {
        free(tree->calls);
        tree->calls = malloc(count * sizeof *tree->calls);
        tree->call_capacity = tree->calls ? count : 0;
        if (!tree->calls)
            return -1;
    }
    if (count)
        memset(tree->calls, 0, count * sizeof *tree->calls);
    tree->root = (struct debug_call){0};
    tree->call_range_count = 0;
    return 0;
}

/* Find out each call's ranges and children, and put the callees that are new in the unit. */
static void lay_out_calls(struct debug_tree *tree, const struct line_table *table, uint64_t addr,
                          uint64_t size)
{
    int32_t now = LINE_NOT_INLINED;
    for (size_t i = 0; i < table->span_count; i++) {
        const struct line_span *span = &table->spans[i];
        change_call(tree, table->inlines, now, span->inline_index, addr + span->offset);
        now = span->inline_index;
    }
    change_call(tree, table->inlines, now, LINE_NOT_INLINED, addr + size);
}

/* ---- Entries ---- */

static void put_call_ranges(struct debug_tree *tree, const struct debug_call *call)
{
    const struct debug_range *first = &tree->call_ranges[call->first_range - 1];
    if (!first->next) {
        put_address(tree, &tree->info, first->start);
        sink_u32(&tree->info, (uint32_t)(first->end - first->start));
        return;
    }
    sink_u32(&tree->info, (uint32_t)tree->ranges.size);
    for (uint32_t number = call->first_range; number;) {
        const struct debug_range *range = &tree->call_ranges[number - 1];
        put_range(tree, range->start, range->end);
        number = range->next;
    }
    put_range(tree, 0, 0);
}

static void put_call(struct debug_tree *tree, const struct debug_call *call,
                     const struct line_inline *inlined)
{
    struct byte_sink *info = &tree->info;
    bool pieces = tree->call_ranges[call->first_range - 1].next, parent = call->first_child;
    debug_room(info, ENTRY_BYTES);
    sink_uleb(info, pieces ? (parent ? ABBREV_CALL_PIECES_PARENT : ABBREV_CALL_PIECES)
                           : (parent ? ABBREV_CALL_PARENT : ABBREV_CALL));
    sink_u32(info, call->origin);
    put_call_ranges(tree, call);
    sink_uleb(info, add_file(tree, inlined->call_file));
    sink_uleb(info, inlined->call_line);
    sink_uleb(info, inlined->call_column);
}

/* Put the siblings from number FIRST - 1 on and all below them, and the ends of their lists. */
static void put_calls(struct debug_tree *tree, const struct line_table *table, uint32_t first)
{
    uint32_t number = first;
    while (number) {
        const struct debug_call *call = &tree->calls[number - 1];
        int32_t parent = table->inlines[number - 1].parent;
        put_call(tree, call, &table->inlines[number - 1]);
        number = call->first_child ? call->first_child : call->next_sibling;
        while (!number) {
            debug_room(&tree->info, 1);
            sink_u8(&tree->info, 0);
            if (parent == LINE_NOT_INLINED)
                return;
            number = tree->calls[parent].next_sibling;
            parent = table->inlines[parent].parent;
        }
    }
}

static void put_rows(struct debug_tree *tree, const struct line_table *table, uint64_t addr,
                     uint64_t size)
{
    size_t count = table->row_count;
    if (count > tree->row_capacity) {
        free(tree->rows);
        tree->rows = malloc(count * sizeof *tree->rows);
        tree->row_capacity = tree->rows ? count : 0;
    }
    if (count > tree->row_capacity) {
        tree->failed = true;
        return;
    }
    struct line_text file = {NULL, 0};
    uint32_t number = 1;
    for (size_t i = 0; i < count; i++) {
        const struct line_row *row = &table->rows[i];
        if (row->line && row->file.text != file.text) {
            file = row->file;
            number = add_file(tree, file);
        }
        tree->rows[i] = (struct debug_row){addr + row->offset, row->line, row->column, number};
    }
    if (count)
        debug_line_put_sequence(&tree->lines, tree->rows, count, addr + size);
}

void debug_tree_put_function(struct debug_tree *tree, const char *name, uint64_t addr,
                             uint64_t size, const struct line_table *table, bool follows)
{
    if (clear_calls(tree, table->inline_count)) {
        tree->failed = true;
        return;
    }
    lay_out_calls(tree, table, addr, size);
    if (tree->failed)
        return;
    debug_room(&tree->info, ENTRY_BYTES);
    sink_uleb(&tree->info, tree->root.first_child ? ABBREV_FUNCTION_PARENT : ABBREV_FUNCTION);
    put_string(tree, debug_strings_add(&tree->strings, name, strlen(name)));
    put_address(tree, &tree->info, addr);
    sink_u32(&tree->info, (uint32_t)size);
    put_calls(tree, table, tree->root.first_child);
    put_rows(tree, table, addr, size);
    add_unit_range(tree, addr, addr + size, follows);
}

/* ---- The whole ---- */

int debug_tree_close(struct debug_tree *tree)
{
    const struct byte_sink *const sinks[] = {&tree->info,          &tree->abbrev,
                                             &tree->ranges,        &tree->aranges,
                                             &tree->lines.section, &tree->strings.section};
    bool failed = tree->failed;
    for (size_t i = 0; i < sizeof sinks / sizeof sinks[0]; i++)
        failed |= sinks[i]->overflow || sinks[i]->size > UINT32_MAX;
    return failed ? -1 : 0;
}

void debug_tree_free(struct debug_tree *tree)
{
    free(tree->info.data);
    free(tree->abbrev.data);
    free(tree->ranges.data);
    free(tree->aranges.data);
    free(tree->calls);
    free(tree->call_ranges);
    free(tree->callees);
    free(tree->rows);
    free(tree->unit_ranges);
    debug_lines_free(&tree->lines);
    debug_strings_free(&tree->strings);
    source_path_free(&tree->path);
}
