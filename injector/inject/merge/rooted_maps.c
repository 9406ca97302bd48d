/* See rooted_maps.h. */
#include "injector/inject/merge/rooted_maps.h"

#include "injector/arrays/array.h"
#include "injector/inject/merge/renamed_record.h"
#include "injector/native/native_file.h"
#include "injector/recording/machine.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    const struct rooted_file *a = left, *b = right;
    return perf_map_compare_files(a->map, b->map);
}

static const struct rooted_file *find(const struct rooted_maps *maps, const struct perf_map *map)
{
    const struct rooted_file wanted = {.map = map};
    return maps->count ? bsearch(&wanted, maps->items, maps->count, sizeof *maps->items, compare)
                       : NULL;
}

/* The files that are sought, each once. */
static int list_files(struct rooted_maps *maps, const struct records *records)
{
    for (size_t i = 0; i < records->map_count; i++) {
        const struct perf_map *map = &records->maps[i].map;
        if (map->filename[0] != '/' || map->filename[1] == '/')
            continue;
        if (array_reserve(maps->items, maps->count, maps->capacity))
            return -1;
        maps->items[maps->count++] = (struct rooted_file){map, (uint32_t)i, NULL};
    }
    if (maps->count)
        qsort(maps->items, maps->count, sizeof *maps->items, compare);
    size_t kept = 0;
    for (size_t i = 0; i < maps->count; i++)
        if (i == 0 || compare(&maps->items[kept - 1], &maps->items[i]) != 0)
            maps->items[kept++] = maps->items[i];
    maps->count = kept;
    return 0;
}

/* Where the file of ITEM is, if that is below the root of FILES. */
static int find_target(struct rooted_file *item, struct native_files *files)
{
    struct native_file *file = native_file_of(files, item->index);
    if (!file)
        return -1;
    if (!native_file_is_rooted(files, file))
        return 0;
    item->target = strdup(file->view.path);
    return item->target ? 0 : -1;
}

static int find_targets(struct rooted_maps *maps, const struct records *records, const char *root)
{
    const struct machine *machine = machine_here();
    struct native_files files;
    size_t kept = 0;
    int result = list_files(maps, records) ||
                 native_files_begin(&files, records, root, machine ? machine->elf_mach : 0);
    if (result)
        return -1;
    for (size_t i = 0; i < maps->count; i++) {
        struct rooted_file item = maps->items[i];
        result = result || find_target(&item, &files);
        if (item.target)
            maps->items[kept++] = item;
    }
    maps->count = kept;
    native_files_free(&files);
    return result ? -1 : 0;
}

int rooted_maps_find(struct rooted_maps *maps, const struct records *records, const char *root,
                     struct findings *findings)
{
    char *real = realpath(root, NULL);
    maps->file = records->file;
    int result = real && strcmp(real, "/") != 0 ? find_targets(maps, records, real) : 0;
    free(real);
    return result ? report_failure(findings, "out of memory") : 0;
}

int rooted_maps_put(const struct rooted_maps *maps, const struct perf_record *record,
                    struct byte_sink *sink)
{
    struct perf_map map;
    if (!maps->count || !perf_record_is_map(record) || !perf_record_map(maps->file, record, &map))
        return 0;
    const struct rooted_file *found = find(maps, &map);
    struct byte_sink before = *sink;
    if (!found)
        return 0;
    if (renamed_map_put(sink, maps->file, record, &map, found->target) == 0)
        return 1;
    *sink = before; /* the name would be too long for a record */
    return 0;
}

void rooted_maps_free(struct rooted_maps *maps)
{
    for (size_t i = 0; i < maps->count; i++)
        free(maps->items[i].target);
    free(maps->items);
    *maps = (struct rooted_maps){0};
}
