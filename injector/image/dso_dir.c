/* See dso_dir.h. */
#include "injector/image/dso_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What this project's files in such a directory are named: image_file_name in elf_image.c. */
static const char file_pattern[] = "jit-[0-9]*-[0-9]*-*.so";

/* PATH with its directory part resolved, so that the profile can be opened from anywhere. */
static char *absolute(const char *path)
{
    char *copy = strdup(path), *result = NULL;
    if (!copy)
        return NULL;
    size_t length = strlen(copy);
    while (length > 1 && copy[length - 1] == '/')
        copy[--length] = '\0';
    char *slash = strrchr(copy, '/');
    const char *name = slash ? slash + 1 : copy;
    if (slash)
        *slash = '\0';
    char *parent = realpath(!slash ? "." : slash == copy ? "/" : copy, NULL);
    if (parent && asprintf(&result, "%s/%s", strcmp(parent, "/") ? parent : "", name) < 0)
        result = NULL;
    free(parent);
    free(copy);
    return result;
}

int dso_dir_open(struct dso_dir *dir, const char *path, bool own, struct findings *findings)
{
    *dir = (struct dso_dir){.fd = -1, .own = own};
    dir->path = absolute(path);
    if (!dir->path)
        return failure(findings, "%s: can't use it for the ELF files: %s", path, strerror(errno));
    struct stat status;
    if (lstat(dir->path, &status) == 0 && !S_ISDIR(status.st_mode))
        return failure(findings, "%s: is in the way of the directory for the ELF files", path);
    char *temporary;
    if (asprintf(&temporary, "%s.XXXXXX", dir->path) < 0)
        return failure(findings, "out of memory");
    if (!mkdtemp(temporary)) {
        failure(findings, "%s: can't make it: %s", path, strerror(errno));
        free(temporary);
        return -1;
    }
    dir->temporary = temporary;
    dir->fd = open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir->fd < 0 ? failure(findings, "%s: %s", temporary, strerror(errno)) : 0;
}

typedef int name_action(const struct dso_dir *dir, const char *name);

/* Call ACTION for each file in PATH that is named like this project's.  Returns 0, or the first error. */
static int for_each_file(const struct dso_dir *dir, const char *path, name_action *action)
{
    DIR *stream = opendir(path);
    int result = stream ? 0 : -1;
    for (struct dirent *entry; !result && (entry = readdir(stream));)
        if (fnmatch(file_pattern, entry->d_name, 0) == 0)
            result = action(dir, entry->d_name);
    if (stream)
        closedir(stream);
    return result;
}

static int remove_new(const struct dso_dir *dir, const char *name)
{
    return unlinkat(dir->fd, name, 0);
}

static int remove_old(const struct dso_dir *dir, const char *name)
{
    char *path;
    if (faccessat(dir->fd, name, F_OK, 0) == 0)
        return 0;
    if (asprintf(&path, "%s/%s", dir->path, name) < 0)
        return -1;
    int result = unlink(path);
    free(path);
    return result;
}

static int put_in_place(const struct dso_dir *dir, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", dir->path, name) < 0)
        return -1;
    int result = renameat(dir->fd, name, AT_FDCWD, path);
    free(path);
    return result;
}

int dso_dir_commit(struct dso_dir *dir, struct findings *findings)
{
    mode_t mask = umask(0);
    umask(mask);
    int result = fchmod(dir->fd, 0777 & ~mask);
    dir->is_new = !result && rename(dir->temporary, dir->path) == 0;
    if (!result && !dir->is_new) {
        result = errno == ENOTEMPTY || errno == EEXIST ? 0 : -1;
        if (!result && dir->own)
            result = for_each_file(dir, dir->path, remove_old);
        if (!result)
            result = for_each_file(dir, dir->temporary, put_in_place);
        if (!result)
            result = rmdir(dir->temporary);
    }
    if (result)
        return failure(findings, "%s: can't put the ELF files there: %s", dir->path,
                       strerror(errno));
    free(dir->temporary);
    dir->temporary = NULL;
    return 0;
}

void dso_dir_undo(struct dso_dir *dir)
{
    if (!dir->is_new)
        return;
    for_each_file(dir, dir->path, remove_new);
    rmdir(dir->path);
}

void dso_dir_close(struct dso_dir *dir)
{
    if (dir->temporary && dir->fd >= 0)
        for_each_file(dir, dir->temporary, remove_new);
    if (dir->temporary)
        rmdir(dir->temporary);
    if (dir->fd >= 0)
        close(dir->fd);
    free(dir->temporary);
    free(dir->path);
    *dir = (struct dso_dir){.fd = -1};
}
