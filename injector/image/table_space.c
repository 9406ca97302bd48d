/* See table_space.h. */
#include "injector/image/table_space.h"

#include <stdlib.h>
#include <string.h>

/* What the kernel may have put between two mappings without telling the profile (data, stacks, guard pages) is no
 * executable code, so it does not matter; but gaps as small as this are most often alignment within one arena. */
#define MIN_GAP_BYTES (UINT64_C(64) << 10)

/* The end of a process's half of the address space on x86-64 and aarch64, without its last page. */
#define USER_END (UINT64_C(0x7ffffffff000))

enum { TABLE_ALIGN_BYTES = 16 };

struct used {
    uint64_t start, end;
};

static int compare_used(const void *left, const void *right)
{
    const struct used *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* Memory that only recordings of data mappings show, and that nobody looks up a name for. */
static bool is_reserved(const struct perf_map *map)
{
    return map->data && strncmp(map->filename, "//anon", 6) == 0;
}

/* All that the process's mappings and JIT functions ever covered, and GAPS, by address.  RESERVED: but for reserved memory.
 * Returns NULL without memory. */
static struct used *collect_used(const struct jit_process *process, const struct table_gaps *gaps,
                                 bool reserved, size_t *count)
{
    const struct code_log *log = &process->log;
    struct used *used =
        malloc((process->map_count + log->function_count + gaps->count + 1) * sizeof *used);
    *count = 0;
    if (!used)
        return NULL;
    for (size_t i = 0; i < process->map_count; i++) {
        const struct perf_map *map = &process->maps[i].map;
        if (!reserved || !is_reserved(map))
            used[(*count)++] = (struct used){map->start, map->start + map->len};
    }
    for (size_t i = 0; i < log->function_count; i++) {
        const struct jit_function *function = &log->functions[i];
        used[(*count)++] = (struct used){function->addr, function->addr + function->size};
    }
    for (size_t i = 0; i < gaps->count; i++)
        used[(*count)++] = (struct used){gaps->items[i].start, gaps->items[i].end};
    qsort(used, *count, sizeof *used, compare_used);
    return used;
}

static void add_gap(struct table_gaps *gaps, uint64_t start, uint64_t end)
{
    if (end > start && end - start >= MIN_GAP_BYTES)
        gaps->items[gaps->count++] = (struct table_gap){start, end};
}

/* Fill GAPS with what lies between the COUNT pieces at USED, and behind them. */
static int collect_gaps(struct table_gaps *gaps, const struct used *used, size_t count)
{
    gaps->items = malloc((count + 1) * sizeof *gaps->items);
    if (!gaps->items)
        return -1;
    uint64_t reach = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            add_gap(gaps, reach, used[i].start);
        reach = used[i].end > reach ? used[i].end : reach;
    }
    add_gap(gaps, reach, USER_END);
    return 0;
}

static int open_gaps(struct table_gaps *gaps, const struct jit_process *process,
                     const struct table_gaps *others, bool reserved)
{
    size_t count;
    struct used *used = collect_used(process, others, reserved, &count);
    int result = used ? collect_gaps(gaps, used, count) : -1;
    free(used);
    return result;
}

int table_space_open(struct table_space *space, const struct jit_process *process)
{
    static const struct table_gaps none = {0};
    *space = (struct table_space){0};
    if (open_gaps(&space->unmapped, process, &none, false))
        return -1;
    return open_gaps(&space->reserved, process, &space->unmapped, true);
}

/* The first gap that ends behind ADDR. */
static size_t find_gap(const struct table_gaps *gaps, uint64_t addr)
{
    size_t first = 0, end = gaps->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (gaps->items[middle].end <= addr)
            first = middle + 1;
        else
            end = middle;
    }
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
