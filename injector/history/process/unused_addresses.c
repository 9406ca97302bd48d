/* See unused_addresses.h. */
#include "injector/history/process/unused_addresses.h"

/* Far from programs, their heaps and stacks, and in the user's half of the addresses. */
#define FIRST_BASE (UINT64_C(1) << 44)
#define BASE_STEP  (UINT64_C(1) << 40)
#define LAST_BASE  (UINT64_C(1) << 46)

static bool reaches_into(uint64_t start, uint64_t size, uint64_t base, uint64_t end)
{
    return start < end && (start >= base || size > base - start);
}

/* Whether no process has, or ever had, anything in [BASE, END). */
static bool is_free(const struct jit_processes *processes, const struct records *records,
                    uint64_t base, uint64_t end)
{
    for (size_t i = 0; i < records->map_count; i++)
        if (reaches_into(records->maps[i].map.start, records->maps[i].map.len, base, end))
            return false;
    for (size_t i = 0; i < processes->count; i++) {
        const struct code_log *log = &processes->items[i].log;
        for (size_t f = 0; f < log->function_count; f++)
            if (reaches_into(log->functions[f].addr, log->functions[f].size, base, end))
                return false;
    }
    return true;
}

uint64_t unused_addresses_find(const struct jit_processes *processes, const struct records *records,
                               uint64_t bytes)
{
    for (uint64_t base = FIRST_BASE; base < LAST_BASE && bytes < LAST_BASE; base += BASE_STEP)
        if (is_free(processes, records, base, base + bytes))
            return base;
    return 0;
}
