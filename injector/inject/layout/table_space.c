/* See table_space.h. */
#include "injector/inject/layout/table_space.h"

#include "injector/arrays/address_span.h"
#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"

#include <stdlib.h>
#include <string.h>

/* Smaller gaps are most often alignment within one arena.  A larger one may hold mappings that the
 * recording does not show (without perf record --data: data, stacks, guard pages): a map over them
 * hides nothing, because perf has none there. */
#define MIN_GAP_BYTES (UINT64_C(64) << 10)

/* The end of a process's half of the address space on x86-64 and aarch64, without its last page. */
#define USER_END (UINT64_C(0x7ffffffff000))

enum { TABLE_ALIGN_BYTES = 16 };

struct used_list {
    struct address_span *items;
    size_t count, capacity;
};

static int add_used(struct used_list *list, uint64_t start, uint64_t end)
{
    if (array_reserve(list->items, list->count, list->capacity))
        return -1;
    list->items[list->count++] = (struct address_span){start, end};
    return 0;
}

/* Memory that only recordings of data mappings show, and that is not executable. */
static bool is_reserved(const struct perf_map *map)
{
    return map->data && strncmp(map->filename, "//anon", 6) == 0;
}

/* All that the process's mappings and JIT functions ever covered.  RESERVED: but for reserved
 * memory. */
static int add_process(struct used_list *list, const struct jit_process *process, bool reserved)
{
    const struct code_log *log = &process->log;
    for (size_t i = 0; i < process->map_count; i++) {
        const struct perf_map *map = &process->maps[i].map;
        if (!(reserved && is_reserved(map)) && add_used(list, map->start, map->start + map->len))
            return -1;
    }
    for (size_t i = 0; i < log->function_count; i++) {
        const struct jit_function *function = &log->functions[i];
        if (add_used(list, function->addr, function->addr + function->size))
            return -1;
    }
    return 0;
}

/* The tables of the images of process number INDEX. */
static int add_tables(struct used_list *list, const struct image_plan *plan, uint32_t index)
{
    const struct process_plan *planned = &plan->processes[index];
    for (size_t i = planned->first_image; i < planned->end_image; i++) {
        const struct jit_image *image = &plan->images[i];
        uint64_t start = image->base + image->tables_start;
        if (image->tables_start &&
            add_used(list, start, start + image->hdr_bytes + image->eh_frame_bytes))
            return -1;
    }
    return 0;
}

/* All that is taken in PROCESS. */
static int add_line(struct used_list *list, const struct jit_process *process,
                    const struct jit_process *processes, const struct image_plan *plan,
                    bool reserved)
{
    const struct jit_process *own = process;
    for (; process; process = process->parent)
        if (add_process(list, process, reserved) ||
            (process != own && add_tables(list, plan, (uint32_t)(process - processes))))
            return -1;
    return 0;
}

static void add_gap(struct table_gaps *gaps, uint64_t start, uint64_t end)
{
    if (end > start && end - start >= MIN_GAP_BYTES)
        gaps->items[gaps->count++] = (struct table_gap){start, end};
}

/* Fill GAPS with the ranges between the pieces in LIST, and after them. */
static int collect_gaps(struct table_gaps *gaps, struct used_list *list)
{
    gaps->items = malloc((list->count + 1) * sizeof *gaps->items);
    if (!gaps->items)
        return -1;
    list->count = address_spans_join(list->items, list->count);
    for (size_t i = 1; i < list->count; i++)
        add_gap(gaps, list->items[i - 1].end, list->items[i].start);
    add_gap(gaps, list->count ? list->items[list->count - 1].end : 0, USER_END);
    return 0;
}

/* The gaps of both kinds; the second ones are those that are not among the first. */
int table_space_open(struct table_space *space, const struct jit_process *process,
                     const struct jit_process *processes, const struct image_plan *plan)
{
    struct used_list all = {0}, fixed = {0};
    *space = (struct table_space){0};
    int result = add_line(&all, process, processes, plan, false);
    if (!result)
        result = collect_gaps(&space->unmapped, &all);
    if (!result)
        result = add_line(&fixed, process, processes, plan, true);
    for (size_t i = 0; !result && i < space->unmapped.count; i++)
        result = add_used(&fixed, space->unmapped.items[i].start, space->unmapped.items[i].end);
    if (!result)
        result = collect_gaps(&space->reserved, &fixed);
    free(all.items);
    free(fixed.items);
    return result;
}

/* The first gap that ends after ADDR. */
static size_t find_gap(const struct table_gaps *gaps, uint64_t addr)
{
    size_t first;
    array_bisect(first, gaps->count, gaps->items[first].end <= addr);
    return first;
}

static uint64_t take(struct table_gaps *gaps, uint64_t from, uint64_t limit, uint64_t bytes)
{
    for (size_t i = find_gap(gaps, from); i < gaps->count; i++) {
        struct table_gap *gap = &gaps->items[i];
        uint64_t start = gap->start > from ? gap->start : from;
        start = (start + TABLE_ALIGN_BYTES - 1) / TABLE_ALIGN_BYTES * TABLE_ALIGN_BYTES;
        if (start >= limit)
            return 0;
        if (start < gap->end && bytes <= gap->end - start && bytes <= limit - start) {
            gap->start = start + bytes;
            return start;
        }
    }
    return 0;
}

uint64_t table_space_take(struct table_space *space, uint64_t from, uint64_t limit, uint64_t bytes)
{
    uint64_t addr = take(&space->unmapped, from, limit, bytes);
    return addr ? addr : take(&space->reserved, from, limit, bytes);
}

void table_space_free(struct table_space *space)
{
    free(space->unmapped.items);
    free(space->reserved.items);
    *space = (struct table_space){0};
}
