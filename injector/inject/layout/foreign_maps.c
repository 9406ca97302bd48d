/* See foreign_maps.h. */
#include "injector/inject/layout/foreign_maps.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/number_sort.h"

static int add_process(struct foreign_maps *maps, const struct jit_process *process)
{
    for (size_t i = 0; i < process->map_count; i++) {
        const struct perf_map *map = &process->maps[i].map;
        if (perf_map_is_memory(map) || map->len > UINT64_MAX - map->start)
            continue;
        if (array_reserve(maps->items, maps->count, maps->capacity))
            return -1;
        maps->items[maps->count++] = (struct foreign_map){map->start, map->start + map->len, 0};
    }
    return 0;
}

int foreign_maps_open(struct foreign_maps *maps, const struct jit_process *process)
{
    *maps = (struct foreign_maps){0};
    for (; process; process = process->parent)
        if (add_process(maps, process))
            return -1;
    number_sort(maps->items, maps->count, sizeof *maps->items); /* by start */
    uint64_t reach = 0;
    for (size_t i = 0; i < maps->count; i++) {
        reach = maps->items[i].end > reach ? maps->items[i].end : reach;
        maps->items[i].reach = reach;
    }
    return 0;
}

/* How many start in front of ADDR. */
static size_t count_before(const struct foreign_maps *maps, uint64_t addr)
{
    size_t first;
    array_bisect(first, maps->count, maps->items[first].start < addr);
    return first;
}

bool foreign_maps_has_within(const struct foreign_maps *maps, uint64_t start, uint64_t end)
{
    for (size_t i = count_before(maps, start); i < maps->count; i++) {
        if (maps->items[i].start >= end)
            break;
        if (maps->items[i].end <= end)
            return true;
    }
    return false;
}

bool foreign_maps_reach_into(const struct foreign_maps *maps, uint64_t start, uint64_t end)
{
    size_t before = count_before(maps, end);
    return before && maps->items[before - 1].reach > start;
}

void foreign_maps_free(struct foreign_maps *maps)
{
    free(maps->items);
    *maps = (struct foreign_maps){0};
}
