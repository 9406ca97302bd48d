/* See bench_folder.h. */
#include "injector/run/bench/bench_folder.h"

#include "injector/compare/kept_runs/bench_list.h"
#include "injector/files/file_mask.h"
#include "injector/files/regular_file.h"
#include "injector/files/undo_list.h"
#include "injector/profile/run_file.h"
#include "injector/text/file_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether PATH is the list of a bench, by its first bytes: "bench.txt" may be another program's. */
static bool is_list(const char *path)
{
    static const char word[] = "perfjit-bench\t";
    char begin[sizeof word - 1];
    struct stat status;
    int fd = regular_file_open(path, O_NOFOLLOW, &status);
    bool is_one = fd >= 0 && pread(fd, begin, sizeof begin, 0) == sizeof begin &&
                  memcmp(begin, word, sizeof begin) == 0;
    if (fd >= 0)
        close(fd);
    return is_one;
}

/* Whether a bench has files of that name. */
static bool is_bench_file(const char *name)
{
    size_t bytes = strlen(name);
    return strcmp(name, BENCH_LIST_NAME) == 0 ||
           (bytes > 4 && strcmp(name + bytes - 4, ".run") == 0);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Whether perfjit bench wrote NAME in DIRECTORY, by its content. */
static bool is_own_file(const char *directory, const char *name)
{
    char *path;
    if (!is_bench_file(name) || asprintf(&path, "%s/%s", directory, name) < 0)
        return false;
    bool is_own = strcmp(name, BENCH_LIST_NAME) == 0 ? is_list(path) : run_file_is(path);
    free(path);
    return is_own;
}

/* Whether PATH is a directory, and no link to one, with a bench's list, and nothing that no bench
 * has; or with nothing in it. */
static bool is_replaced(const char *path)
{
    bool has_list = false, has_any = false, has_other = false;
    struct stat status;
    DIR *directory = lstat(path, &status) == 0 && S_ISDIR(status.st_mode) ? opendir(path) : NULL;
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        has_list |= strcmp(entry->d_name, BENCH_LIST_NAME) == 0;
        has_any |= !is_dots(entry->d_name);
        has_other |= !is_dots(entry->d_name) && !is_own_file(path, entry->d_name);
    }
    if (!directory)
        return false;
    closedir(directory);
    return (has_list || !has_any) && !has_other;
}

/* Whether PATH, a directory, is none that another can take the name of: "."  or where something is
 * mounted.  A kernel before 5.8 does not report mounts; then the replacement fails in the end. */
static bool is_fixed(const char *path)
{
    struct statx status;
    return is_dots(file_name_of(path)) ||
           (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &status) == 0 &&
            status.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* Check whether the bench can take the place of the file at NAME. */
static int check_place(const char *name, struct findings *findings)
{
    struct stat status;
    if (lstat(name, &status))
        return 0;
    if (S_ISDIR(status.st_mode) && access(name, R_OK | W_OK | X_OK))
        return report_failure(findings,
                              "%s: is there already, and can't be replaced: %s; name another with "
                              "-o NAME.bench",
                              name, strerror(errno));
    if (!is_replaced(name))
        return report_failure(findings,
                              "%s: is there already, and is no bench, or has other files in it: "
                              "name another with -o NAME.bench",
                              name);
    return is_fixed(name) ? report_failure(findings,
                                           "%s: is a directory that no other can replace: name one "
                                           "in it, -o %s/perfjit.bench",
                                           name, name)
                          : 0;
}

/* Remove a bench's files, and the directory if it has no others. */
static void remove_bench(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        if (is_bench_file(entry->d_name))
            unlinkat(fd, entry->d_name, 0);
    if (directory)
        closedir(directory);
    else if (fd >= 0)
        close(fd);
    rmdir(path);
}

int bench_folder_make(struct bench_folder *folder, const char *name, struct findings *findings)
{
    *folder = (struct bench_folder){.name = name};
    if (check_place(name, findings))
        return -1;
    if (asprintf(&folder->path, "%s.XXXXXX", name) < 0) {
        folder->path = NULL;
        return report_failure(findings, "out of memory");
    }
    if (!undo_list_make_directory(folder->path, &folder->undo)) {
        report_failure(findings, "%s: can't write it: %s", name, strerror(errno));
        free(folder->path);
        folder->path = NULL;
        return -1;
    }
    return 0;
}

char *bench_folder_file(const char *directory, const char *file, struct findings *findings)
{
    char *path;
    if (asprintf(&path, "%s/%s", directory, file) >= 0)
        return path;
    report_failure(findings, "out of memory");
    return NULL;
}

int bench_folder_commit(struct bench_folder *folder, struct findings *findings)
{
    chmod(folder->path, 0777 & ~file_mask());
    int failed = rename(folder->path, folder->name);
    if (failed && is_replaced(folder->name)) {
        /* The old one takes the new one's place, to be removed. */
        if (renameat2(AT_FDCWD, folder->path, AT_FDCWD, folder->name, RENAME_EXCHANGE) == 0)
            return 0;
        remove_bench(folder->name);
        failed = rename(folder->path, folder->name);
    }
    if (failed)
        return report_failure(findings, "%s: can't write it: %s", folder->name, strerror(errno));
    free(folder->path);
    folder->path = NULL;
    undo_list_done(folder->undo);
    return 0;
}

void bench_folder_release(struct bench_folder *folder)
{
    if (folder->path)
        remove_bench(folder->path);
    undo_list_done(folder->undo);
    free(folder->path);
    folder->path = NULL;
}
