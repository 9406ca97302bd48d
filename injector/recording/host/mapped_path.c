/* See mapped_path.h. */
#include "injector/recording/host/mapped_path.h"

#include <linux/magic.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

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

/* Whether stat(2) tells the device of the file at PATH as the kernel's records do.  overlayfs and
 * btrfs, say, tell one that they made up. */
static bool tells_device(const char *path)
{
    static const long plain[] = {EXT4_SUPER_MAGIC,  XFS_SUPER_MAGIC,  F2FS_SUPER_MAGIC,
                                 TMPFS_MAGIC,       RAMFS_MAGIC,      SQUASHFS_MAGIC,
                                 ISOFS_SUPER_MAGIC, MSDOS_SUPER_MAGIC};
    struct statfs system;
    if (statfs(path, &system))
        return false;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if ((long)system.f_type == plain[i])
            return true;
    return false;
}

bool mapped_file_is_another(const struct perf_map *map, const char *path, const struct stat *status,
                            bool kept_numbers)
{
    if (!map->has_inode)
        return false;
    if (mapped_inode_is_on(map, status->st_dev))
        return status->st_ino != map->ino;
    return kept_numbers && tells_device(path);
}
