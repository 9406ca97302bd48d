/* See directory_tree.h.
 *
 * A user who may write here could replace a directory by a link, and root would remove the link's
 * target.  So each directory is opened as a directory, and its contents are removed by the
 * descriptor. */
#include "injector/files/directory_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MOST = 32 };

static void remove_one(int parent_fd, const char *name, unsigned depth)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    if (!directory && fd >= 0)
        close(fd);
    while (directory && (entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) == 0 || depth == DEPTH_MOST)
            continue;
        remove_one(fd, entry->d_name, depth + 1);
    }
    if (directory)
        closedir(directory);
    unlinkat(parent_fd, name, AT_REMOVEDIR);
}

void directory_tree_remove(const char *path)
{
    remove_one(AT_FDCWD, path, 0);
}
