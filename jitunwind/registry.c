/* The calls of the registry: see jitunwind.h. */
#include "jitunwind/arena_list.h"
#include "jitunwind/debugger_arena.h"
#include "jitunwind/frames/frame_entry.h"
#include "jitunwind/runtime_entry.h"

#include <errno.h>
#include <stdlib.h>

enum { MOST_STRUCT_BYTES = 4096, TABLE_ALIGN = 8, FEW_DRAFTS = 32 };

/* ---- Structs of other versions ---- */

/* Copy the struct GIVEN of GIVEN_BYTES to TO, of TO_BYTES.  Fields that an older caller's struct
 * does not have are 0. */
static int take_struct(void *to, size_t to_bytes, const void *given, size_t given_bytes)
{
    const uint8_t *bytes = given;
    if (given_bytes < sizeof(size_t) || given_bytes > MOST_STRUCT_BYTES)
        return -EINVAL;
    for (size_t i = to_bytes; i < given_bytes; i++)
        if (bytes[i])
            return -E2BIG;
    memset(to, 0, to_bytes);
    memcpy(to, given, given_bytes < to_bytes ? given_bytes : to_bytes);
    return 0;
}

/* ---- Opening and closing ---- */

static int check_options(const struct jitunwind_options *options)
{
    if (!MACHINE_KNOWN)
        return -ENOTSUP;
    if (options->flags & ~JITUNWIND_EXCEPTIONS || options->reserved)
        return -E2BIG;
    if (options->bytes == 0 || options->bytes > UINT32_MAX ||
        options->start + options->bytes < options->start)
        return -EINVAL;
    return 0;
}

/* Publish ARENA, which is in the list, to others in the process. */
static int tell_others(struct jitunwind *arena, uint32_t flags)
{
    if (ju_debugger_wanted()) {
        arena->debugger = ju_debugger_arena_open(&arena->table);
        if (!arena->debugger)
            return -ENOMEM;
    }
    int error = flags & JITUNWIND_EXCEPTIONS
                    ? ju_runtime_entry_open(&arena->table, &arena->runtime_entry)
                    : 0;
    if (error)
        ju_debugger_arena_close(arena->debugger);
    return error;
}

static int new_arena(struct jitunwind **arena, const struct jitunwind_options *options)
{
    struct jitunwind *new = calloc(1, sizeof *new);
    if (!new)
        return -ENOMEM;
    int error = ju_function_table_open(&new->table, options->start, (uint32_t)options->bytes);
    if (error) {
        free(new);
        return error;
    }
    error = ju_arena_list_add(new);
    if (error) {
        ju_function_table_close(&new->table);
        free(new);
        return error;
    }
    error = tell_others(new, options->flags);
    if (error)
        ju_arena_list_drop(new);
    else
        *arena = new;
    return error;
}

int jitunwind_open(struct jitunwind **arena, const struct jitunwind_options *options)
{
    struct jitunwind_options copy;
    *arena = NULL;
    int error = options ? take_struct(&copy, sizeof copy, options, options->size) : -EINVAL;
    if (!error)
        error = check_options(&copy);
    return error ? error : new_arena(arena, &copy);
}

void jitunwind_close(struct jitunwind *arena)
{
    if (!arena)
        return;
    ju_runtime_entry_close(arena->runtime_entry);
    ju_debugger_arena_close(arena->debugger);
    ju_arena_list_drop(arena);
}

/* ---- From call frame information to rows ---- */

/* A function that is being added.  It is compiled before the arena is locked. */
struct addition {
    uint64_t start, end;
    uint64_t known_end;             /* of what the drafts are about */
    struct table_row_draft *drafts; /* the few, or allocated */
    uint32_t count, room;
    struct table_row_draft few[FEW_DRAFTS];
};

static void free_drafts(struct addition *addition)
{
    if (addition->drafts != addition->few)
        free(addition->drafts);
}

/* Twice as many. */
static int grow_drafts(struct addition *addition)
{
    uint32_t wanted = addition->room * 2;
    bool is_first = addition->drafts == addition->few;
    struct table_row_draft *grown =
        wanted < addition->room
            ? NULL
            : realloc(is_first ? NULL : addition->drafts, wanted * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    if (is_first)
        memcpy(grown, addition->few, sizeof addition->few);
    addition->drafts = grown;
    addition->room = wanted;
    return 0;
}

static int put_draft(struct addition *addition, uint64_t offset, const struct frame_rule *rule)
{
    if (addition->count == addition->room && grow_drafts(addition))
        return -ENOMEM;
    addition->drafts[addition->count++] = (struct table_row_draft){(uint32_t)offset, *rule};
    return 0;
}

static const struct frame_rule nothing_known = {.kind = RULE_UNKNOWN};

/* The rows of ENTRY, which begins in the function. */
static int put_entry(struct addition *addition, const struct cfi_entry *entry)
{
    struct frame_run run;
    struct frame_rule rule;
    uint64_t from, to, base = entry->start - addition->start;
    if (entry->start < addition->known_end)
        return -EINVAL; /* two that overlap */
    int error = 0;
    if (entry->start > addition->known_end)
        error = put_draft(addition, addition->known_end - addition->start, &nothing_known);
    ju_frame_run_begin(&run, entry, UINT32_MAX);
    while (!error && ju_frame_run_next(&run, &from, &to, &rule) &&
           entry->start + from < addition->end)
        error = put_draft(addition, base + from, &rule);
    addition->known_end = entry->end;
    return run.failed ? -EINVAL : error;
}

/* An entry about the function, and where it stands in the section. */
struct placed_entry {
    uint64_t start, end;
    size_t offset;
};

struct placed_entries {
    struct placed_entry *entries;
    size_t count, room;
};

static int by_place(const void *left, const void *right)
{
    const struct placed_entry *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

/* The next entry about the function, at or behind *OFFSET; ENTRY_END: there is none. */
static enum frame_entry_kind next_entry(const struct addition *addition,
                                        const struct frame_section *section, size_t *offset,
                                        struct cfi_entry *entry)
{
    enum frame_entry_kind kind;
    do
        kind = ju_frame_entry_read(section, offset, entry);
    while (kind == ENTRY_CIE || (kind == ENTRY_FDE && (entry->start < addition->start ||
                                                       entry->start >= addition->end)));
    return kind;
}

static int place_entry(struct placed_entries *placed, const struct cfi_entry *entry, size_t offset)
{
    if (placed->count == placed->room) {
        size_t room = placed->room * 2 + FEW_DRAFTS;
        void *grown = realloc(placed->entries, room * sizeof *placed->entries);
        if (!grown)
            return -ENOMEM;
        placed->entries = grown;
        placed->room = room;
    }
    placed->entries[placed->count++] = (struct placed_entry){entry->start, entry->end, offset};
    return 0;
}

/* The same where entries are not in the order of their addresses. */
static int put_unordered(struct addition *addition, const struct frame_section *section)
{
    struct placed_entries placed = {NULL, 0, 0};
    struct cfi_entry entry;
    enum frame_entry_kind kind = ENTRY_FDE;
    int error = 0;
    addition->count = 0;
    addition->known_end = addition->start;
    for (size_t at = 0, next = 0; !error && kind != ENTRY_END; at = next) {
        kind = next_entry(addition, section, &next, &entry);
        if (kind != ENTRY_END)
            error = kind == ENTRY_FDE ? place_entry(&placed, &entry, at) : -EINVAL;
    }
    if (placed.count)
        qsort(placed.entries, placed.count, sizeof *placed.entries, by_place);
    for (size_t i = 0; i < placed.count && !error; i++) {
        size_t at = placed.entries[i].offset;
        next_entry(addition, section, &at, &entry);
        error = put_entry(addition, &entry);
    }
    free(placed.entries);
    return error;
}

/* As compilers write them.  *IS_ORDERED: they are in the order of their addresses. */
static int put_ordered(struct addition *addition, const struct frame_section *section,
                       bool *is_ordered)
{
    struct cfi_entry entry;
    enum frame_entry_kind kind;
    size_t offset = 0;
    int error = 0;
    while (!error && (kind = next_entry(addition, section, &offset, &entry)) != ENTRY_END) {
        *is_ordered = kind != ENTRY_FDE || entry.start >= addition->known_end;
        if (!*is_ordered)
            return 0;
        error = kind == ENTRY_FDE ? put_entry(addition, &entry) : -EINVAL;
    }
    return error;
}

static int put_section(struct addition *addition, const struct frame_section *section)
{
    bool is_ordered = true;
    int error = put_ordered(addition, section, &is_ordered);
    if (!is_ordered)
        error = put_unordered(addition, section);
    if (!error && addition->known_end < addition->end)
        error = put_draft(addition, addition->known_end - addition->start, &nothing_known);
    return error;
}

static int compile(struct addition *addition, const struct jitunwind_code *code)
{
    const uint64_t end = code->addr + code->bytes;
    const uint64_t behind =
        code->addr + (code->bytes + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN;
    const struct frame_section section = {code->eh_frame, code->eh_frame_bytes,
                                          code->eh_frame_addr ? code->eh_frame_addr : behind};
    addition->start = addition->known_end = code->addr;
    addition->end = end;
    addition->drafts = addition->few;
    addition->count = 0;
    addition->room = FEW_DRAFTS;
    return code->eh_frame ? put_section(addition, &section) : 0;
}

/* ---- Adding and removing ---- */

static bool is_inside(const struct function_table *table, uint64_t addr, uint64_t bytes)
{
    return addr >= table->start && bytes && bytes <= table->bytes &&
           addr - table->start <= table->bytes - bytes;
}

static uint32_t number_at(const struct function_table *table, uint64_t addr)
{
    const struct table_function *function = ju_function_table_find(table, addr);
    return function ? (uint32_t)(function - table->functions) : 0;
}

static int put_function(struct jitunwind *arena, const struct object_addition *addition, char *name)
{
    return ju_function_table_add(&arena->table, addition->start, addition->bytes, addition->rows,
                                 addition->row_count, name);
}

static int put_and_show(struct jitunwind *arena, struct object_addition *addition, char *name)
{
    int error = ju_debugger_arena_begin(arena->debugger, addition);
    if (error)
        return error;
    error = put_function(arena, addition, name);
    addition->number = error ? 0 : number_at(&arena->table, addition->start);
    ju_debugger_arena_end(arena->debugger, addition);
    return error;
}

/* NAME is the table's if 0 is returned. */
static int publish(struct jitunwind *arena, const struct addition *addition, char *name)
{
    struct object_addition added = {.start = addition->start,
                                    .bytes = (uint32_t)(addition->end - addition->start),
                                    .name = name,
                                    .rows = addition->drafts,
                                    .row_count = addition->count};
    if (added.row_count > ROWS_MAX)
        return -ENOSPC;
    int error = ju_change_begin(&arena->lock);
    if (error)
        return error;
    error = arena->debugger ? put_and_show(arena, &added, name) : put_function(arena, &added, name);
    ju_change_end(&arena->lock);
    return error;
}

static int add(struct jitunwind *arena, const struct jitunwind_code *code)
{
    if (!is_inside(&arena->table, code->addr, code->bytes))
        return -EINVAL;
    char *name = code->name ? strdup(code->name) : NULL;
    if (code->name && !name)
        return -ENOMEM;
    struct addition addition;
    int error = compile(&addition, code);
    if (!error)
        error = publish(arena, &addition, name);
    free_drafts(&addition);
    if (error)
        free(name);
    return error;
}

/* A remove frees nothing, since a thread may be stopped in malloc. */
static int free_removed(struct jitunwind *arena)
{
    int error = ju_change_begin(&arena->lock);
    if (error)
        return error;
    ju_function_table_recycle(&arena->table);
    ju_change_end(&arena->lock);
    return 0;
}

int jitunwind_add(struct jitunwind *arena, const struct jitunwind_code *code)
{
    struct jitunwind_code copy;
    if (!arena)
        return 0;
    int error = code ? take_struct(&copy, sizeof copy, code, code->size) : -EINVAL;
    if (!error)
        error = add(arena, &copy);
    if (error == -ENOMEM && free_removed(arena) == 0)
        error = add(arena, &copy);
    return error;
}

static int remove_function(struct jitunwind *arena, uint64_t addr)
{
    const struct function_table *table = &arena->table;
    uint32_t number = arena->debugger && is_inside(table, addr, 1) ? number_at(table, addr) : 0;
    int error = ju_function_table_remove(&arena->table, addr);
    if (!error && number)
        ju_debugger_arena_remove(arena->debugger, number);
    return error;
}

int jitunwind_remove(struct jitunwind *arena, uint64_t addr)
{
    if (!arena)
        return 0;
    int error = ju_change_begin(&arena->lock);
    if (error)
        return error;
    error = remove_function(arena, addr);
    ju_change_end(&arena->lock);
    return error;
}

const char *jitunwind_version(void)
{
    return JITUNWIND_VERSION;
}
