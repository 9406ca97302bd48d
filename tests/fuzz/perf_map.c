/* A perf map: what perfmap_parse makes of any text has no overlaps, and each entry is found where
 * it is. */
#include "perfmap/perfmap.h"
#include "tests/fuzz/fuzz_target.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct perfmap_table *table;
    size_t count;
    if (perfmap_parse(&table, (const char *)bytes, size))
        return 0;
    const struct perfmap_entry *entries = perfmap_entries(table, &count);
    for (size_t i = 0; i < count; i++) {
        const struct perfmap_entry *entry = &entries[i];
        uint64_t last = entry->addr + (entry->size_bytes ? entry->size_bytes - 1 : 0);
        promise(last >= entry->addr, "an entry ends before addresses do");
        promise(i == 0 || entry[-1].addr + (entry[-1].size_bytes ? entry[-1].size_bytes - 1 : 0) <
                              entry->addr,
                "entries ascend and do not overlap");
        promise(strlen(entry->name) <= size, "a name lies in the file");
        promise(perfmap_find(table, entry->addr) == entry && perfmap_find(table, last) == entry,
                "an entry is found");
    }
    promise(perfmap_bad_lines(table) <= size, "bad lines are lines");
    perfmap_free(table);
    return 0;
}
