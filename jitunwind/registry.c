/* The calls of the registry: see jitunwind.h. */
#include "jitunwind/arena_list.h"
#include "jitunwind/frames/frame_entry.h"
#include "jitunwind/runtime_entry.h"

#include <errno.h>
#include <stdlib.h>

enum { MOST_STRUCT_BYTES = 4096, TABLE_ALIGN = 8 };

/* ---- Structs of other versions ---- */

/* Copy the struct GIVEN of GIVEN_BYTES to TO, of TO_BYTES, in which an older caller's fields that
 * it does not have are 0. */
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
    if (!error && options->flags & JITUNWIND_EXCEPTIONS) {
        error = ju_runtime_entry_open(&new->table, &new->runtime_entry);
        if (error) {
            ju_arena_list_drop(new);
            return error;
        }
    }
    if (error) {
        ju_function_table_close(&new->table);
        free(new);
        return error;
    }
    *arena = new;
    return 0;
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
    ju_arena_list_drop(arena);
}

/* ---- From call frame information to rows ---- */

/* What is being added: compiled before the arena is locked. */
struct addition {
    uint64_t start, end;
    uint64_t known_end; /* of what the drafts are about */
    struct table_row_draft *drafts;
    uint32_t count, room;
};

static int put_draft(struct addition *addition, uint64_t offset, const struct frame_rule *rule)
{
    if (addition->count == addition->room) {
        uint32_t wanted = addition->room * 2 + 64;
        struct table_row_draft *grown =
            wanted < addition->room ? NULL : realloc(addition->drafts, wanted * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        addition->drafts = grown;
        addition->room = wanted;
    }
    addition->drafts[addition->count++] = (struct table_row_draft){(uint32_t)offset, *rule};
    return 0;
}

static const struct frame_rule nothing_known = {.kind = RULE_UNKNOWN};

/* The rows of ENTRY, which begins in the function. */
static int put_entry(struct addition *addition, const struct frame_entry *entry)
{
    struct frame_run run;
    struct frame_rule rule;
    uint64_t from, to, base = entry->start - addition->start;
    if (entry->start < addition->known_end)
        return -EINVAL; /* two that overlap, or are not in order */
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

static int put_section(struct addition *addition, const struct frame_section *section)
{
    struct frame_entry entry;
    enum frame_entry_kind kind;
    size_t offset = 0;
    int error = 0;
    while (!error && (kind = ju_frame_entry_read(section, &offset, &entry)) != ENTRY_END) {
        if (kind == ENTRY_BROKEN)
            error = -EINVAL;
        else if (kind == ENTRY_FDE && entry.start >= addition->start && entry.start < addition->end)
            error = put_entry(addition, &entry);
    }
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
    *addition = (struct addition){.start = code->addr, .end = end, .known_end = code->addr};
    return code->eh_frame ? put_section(addition, &section) : 0;
}

/* ---- Adding and removing ---- */

static bool is_inside(const struct function_table *table, uint64_t addr, uint64_t bytes)
{
    return addr >= table->start && bytes && bytes <= table->bytes &&
           addr - table->start <= table->bytes - bytes;
}

/* NAME is the table's if 0 is returned. */
static int publish(struct jitunwind *arena, const struct addition *addition, char *name)
{
    int error = ju_change_begin(&arena->lock);
    if (error)
        return error;
    error = ju_function_table_add(&arena->table, addition->start,
                                  (uint32_t)(addition->end - addition->start), addition->drafts,
                                  addition->count, name);
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
    free(addition.drafts);
    if (error)
        free(name);
    return error;
}

int jitunwind_add(struct jitunwind *arena, const struct jitunwind_code *code)
{
    struct jitunwind_code copy;
    if (!arena)
        return 0;
    int error = code ? take_struct(&copy, sizeof copy, code, code->size) : -EINVAL;
    return error ? error : add(arena, &copy);
}

int jitunwind_remove(struct jitunwind *arena, uint64_t addr)
{
    if (!arena)
        return 0;
    int error = ju_change_begin(&arena->lock);
    if (error)
        return error;
    error = ju_function_table_remove(&arena->table, addr);
    ju_change_end(&arena->lock);
    return error;
}
