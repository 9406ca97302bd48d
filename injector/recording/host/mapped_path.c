/* See mapped_path.h. */
#include "injector/recording/host/mapped_path.h"

#include <stdio.h>
#include <sys/sysmacros.h>

char *mapped_path(const char *root, const char *name)
{
    char *path;
    return asprintf(&path, "%s%s%.*s", root, root[0] && name[0] != '/' ? "/" : "",
                    (int)perf_map_name_length(name), name) < 0
               ? NULL
               : path;
}

bool mapped_inode_is_on(const struct perf_map *map, dev_t device)
{
    return map->has_inode && major(device) == map->maj && minor(device) == map->min;
}
