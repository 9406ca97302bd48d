/* See dso_dir.h. */
#include "injector/inject/image/dso_dir.h"

#include "injector/arrays/array.h"
#include "injector/files/file_mask.h"
#include "injector/files/input_guard.h"
#include "injector/files/undo_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The patterns of this project's file names in such a directory: image_name.c.  Some are in
 * folders. */
static const char file_pattern[] = "jit-[0-9]*-[0-9]*-*.so";
static const char folder_pattern[] = "[0-9a-f][0-9a-f][0-9a-f][0-9a-f]"
                                     "[0-9a-f][0-9a-f][0-9a-f][0-9a-f]";
static const char foldered_pattern[] = "jit-*.so";

enum { FOLDER_NAME_BYTES = 16 };

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
    *dir = (struct dso_dir){.fd = -1, .place_fd = -1, .own = own};
    dir->path = absolute(path);
    if (!dir->path)
        return report_failure(findings, "%s: can't use it for the ELF files: %s", path,
                              strerror(errno));
    struct stat status;
    if (input_guard_check(findings))
        return -1;
    if (lstat(dir->path, &status) == 0 && !S_ISDIR(status.st_mode))
        return report_failure(findings, "%s: is in the way of the directory for the ELF files",
                              path);
    char *temporary;
    if (asprintf(&temporary, "%s.XXXXXX", dir->path) < 0)
        return report_failure(findings, "out of memory");
    if (!undo_list_make_directory(temporary, &dir->undo)) {
        report_failure(findings, "%s: can't make it: %s", path, strerror(errno));
        free(temporary);
        return -1;
    }
    dir->temporary = temporary;
    dir->undo_in_place = undo_list_add_path(temporary, dir->path);
    dir->fd = open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir->fd < 0 ? report_failure(findings, "%s: %s", temporary, strerror(errno)) : 0;
}

/* ---- Files in folders ---- */

/* The folder that NAME is in, if it is in one. */
static bool folder_of(const char *name, char folder[FOLDER_NAME_BYTES])
{
    const char *slash = strchr(name, '/');
    if (slash)
        snprintf(folder, FOLDER_NAME_BYTES, "%.*s", (int)(slash - name), name);
    return slash;
}

/* The directory of the file NAME in the directory DIR_FD.  Returns its descriptor, which is the
 * caller's, or -1 with errno.  *BASE is the file's name in it.  MAKE its folder.  A link to another
 * directory counts as missing. */
static int open_folder(int dir_fd, const char *name, bool make, const char **base)
{
    char folder[FOLDER_NAME_BYTES] = ".";
    *base = name;
    if (folder_of(name, folder)) {
        *base = strchr(name, '/') + 1;
        if (make && mkdirat(dir_fd, folder, 0777) && errno != EEXIST)
            return -1;
    }
    return openat(dir_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Remove the folder that NAME was in, or was to be in, if it is empty. */
static void remove_folder(int dir_fd, const char *name)
{
    char folder[FOLDER_NAME_BYTES];
    if (folder_of(name, folder))
        unlinkat(dir_fd, folder, AT_REMOVEDIR);
}

/* Returns 0, or -1 with errno. */
static int move_file(int from_fd, const char *from, int to_fd, const char *to)
{
    const char *from_base, *to_base;
    int source = open_folder(from_fd, from, false, &from_base);
    int target = source < 0 ? -1 : open_folder(to_fd, to, true, &to_base);
    int result = target < 0 ? -1 : renameat(source, from_base, target, to_base);
    int error = errno;
    if (source >= 0)
        close(source);
    if (target >= 0)
        close(target);
    remove_folder(result ? to_fd : from_fd, result ? to : from);
    errno = error;
    return result;
}

int dso_dir_create(int dir_fd, const char *name)
{
    const char *base;
    int folder = open_folder(dir_fd, name, true, &base), fd = -1;
    if (folder >= 0)
        fd = openat(folder, base, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    int error = errno;
    if (folder >= 0)
        close(folder);
    if (fd < 0)
        remove_folder(dir_fd, name);
    errno = error;
    return fd;
}

/* ---- Names ---- */

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static bool has_name(const struct dso_names *names, const char *name)
{
    return names->count &&
           bsearch(&name, names->items, names->count, sizeof *names->items, compare_names);
}

static int add_name(struct dso_names *names, const char *name)
{
    if (array_reserve(names->items, names->count, names->capacity) ||
        !(names->items[names->count] = strdup(name))) {
        errno = ENOMEM;
        return -1;
    }
    names->count++;
    return 0;
}

static void free_names(struct dso_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct dso_names){0};
}

static int list(struct dso_names *names, int fd, const char *folder);

/* Add the file NAME, or those in the folder NAME.  Returns 0, or -1 with errno. */
static int add_entry(struct dso_names *names, int fd, const char *folder, const char *name)
{
    if (!*folder && fnmatch(folder_pattern, name, 0) == 0) {
        int inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0)
            return 0; /* something else, which is not ours */
        int result = list(names, inner, name), error = errno;
        close(inner);
        errno = error;
        return result;
    }
    if (fnmatch(*folder ? foldered_pattern : file_pattern, name, 0))
        return 0;
    char *path;
    if (asprintf(&path, "%s%s%s", folder, *folder ? "/" : "", name) < 0) {
        errno = ENOMEM;
        return -1;
    }
    int result = add_name(names, path);
    free(path);
    return result;
}

/* Add to NAMES the files in the directory FD that are named like this project's.  FOLDER is the
 * name of FD in the main directory, or "".  Returns 0, or -1 with errno. */
static int list(struct dso_names *names, int fd, const char *folder)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    int result = stream ? 0 : -1, error = errno;
    for (struct dirent *entry; !result && (errno = 0, entry = readdir(stream));)
        result = add_entry(names, fd, folder, entry->d_name);
    if (stream) {
        if (!result && errno) /* of readdir */
            result = -1;
        error = errno;
        closedir(stream);
    } else if (copy >= 0) {
        close(copy);
    }
    if (names->count)
        qsort(names->items, names->count, sizeof *names->items, compare_names);
    errno = error;
    return result;
}

/* Remove the file NAME from the directory DIR_FD, and its folder. */
static void remove_file(int dir_fd, const char *name)
{
    const char *base;
    int folder = open_folder(dir_fd, name, false, &base);
    if (folder < 0)
        return;
    unlinkat(folder, base, 0);
    close(folder);
    remove_folder(dir_fd, name);
}

/* Remove from the directory FD the files that are named in NAMES but not in KEPT. */
static void remove_files(int fd, const struct dso_names *names, const struct dso_names *kept)
{
    for (size_t i = 0; i < names->count; i++)
        if (!has_name(kept, names->items[i]))
            remove_file(fd, names->items[i]);
}

/* ---- Into place ---- */

/* The directory is there already: put the files into it.  This uses a descriptor, since any user
 * who may write to its parent can put something else at its path. */
static int put_into(struct dso_dir *dir)
{
    dir->place_fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir->place_fd < 0 || list(&dir->earlier, dir->place_fd, "") ||
        list(&dir->names, dir->fd, ""))
        return -1;
    for (size_t i = 0; i < dir->names.count; i++)
        if (move_file(dir->fd, dir->names.items[i], dir->place_fd, dir->names.items[i]))
            return -1;
    return rmdir(dir->temporary);
}

static int put_in_place(struct dso_dir *dir)
{
    if (fchmod(dir->fd, 0777 & ~file_mask()))
        return -1;
    dir->is_new = rename(dir->temporary, dir->path) == 0;
    if (dir->is_new)
        return 0;
    return errno == ENOTEMPTY || errno == EEXIST ? put_into(dir) : -1;
}

int dso_dir_commit(struct dso_dir *dir, struct findings *findings)
{
    if (put_in_place(dir)) {
        report_failure(findings, "%s: can't put the ELF files there: %s", dir->path,
                       strerror(errno));
        dso_dir_undo(dir);
        return -1;
    }
    free(dir->temporary);
    dir->temporary = NULL;
    return 0;
}

void dso_dir_undo(struct dso_dir *dir)
{
    if (dir->is_new) {
        list(&dir->names, dir->fd, "");
        remove_files(dir->fd, &dir->names, &dir->earlier);
        rmdir(dir->path);
    } else if (dir->place_fd >= 0) {
        remove_files(dir->place_fd, &dir->names, &dir->earlier);
    }
}

void dso_dir_finish(struct dso_dir *dir)
{
    undo_list_done(dir->undo_in_place);
    if (dir->own && dir->place_fd >= 0)
        remove_files(dir->place_fd, &dir->earlier, &dir->names);
}

void dso_dir_close(struct dso_dir *dir)
{
    free_names(&dir->names);
    free_names(&dir->earlier);
    undo_list_done(dir->undo_in_place);
    if (dir->temporary && dir->fd >= 0) {
        list(&dir->names, dir->fd, "");
        remove_files(dir->fd, &dir->names, &dir->earlier);
        free_names(&dir->names);
    }
    if (dir->temporary)
        rmdir(dir->temporary);
    undo_list_done(dir->undo);
    if (dir->fd >= 0)
        close(dir->fd);
    if (dir->place_fd >= 0)
        close(dir->place_fd);
    free(dir->temporary);
    free(dir->path);
    *dir = (struct dso_dir){.fd = -1, .place_fd = -1};
}

/* ---- Put aside ---- */

static int open_directory(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Call VISIT with each name in the directory FD that a folder of this project's has. */
static void each_folder(int fd, void (*visit)(void *context, int fd, const char *name),
                        void *context)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    if (!stream && copy >= 0)
        close(copy);
    for (const struct dirent *entry; stream && (entry = readdir(stream));)
        if (fnmatch(folder_pattern, entry->d_name, 0) == 0)
            visit(context, fd, entry->d_name);
    if (stream)
        closedir(stream);
}

static void remove_link(void *context, int fd, const char *name)
{
    char target[1];
    (void)context;
    if (readlinkat(fd, name, target, sizeof target) > 0)
        unlinkat(fd, name, 0);
}

/* Remove the directory OLD, if it has nothing but files and links of this project. */
static void remove_old(const char *old)
{
    struct dso_names names = {0};
    int fd = open_directory(old);
    if (fd < 0)
        return;
    each_folder(fd, remove_link, NULL);
    if (list(&names, fd, "") == 0)
        remove_files(fd, &names, &(struct dso_names){0});
    free_names(&names);
    close(fd);
    rmdir(old);
}

int dso_dir_put_aside(const char *path, const char *old)
{
    remove_old(old);
    if (rename(path, old))
        return errno == ENOENT ? 0 : -1;
    int fd = open_directory(old);
    if (fd >= 0) {
        each_folder(fd, remove_link, NULL); /* to what was there before */
        close(fd);
    }
    return 0;
}

struct reference {
    int fd;
    const char *old;
};

static void refer(void *context, int fd, const char *name)
{
    const struct reference *reference = context;
    const char *slash = strrchr(reference->old, '/');
    char *target;
    (void)fd;
    if (asprintf(&target, "../%s/%s", slash ? slash + 1 : reference->old, name) < 0)
        return;
    if (symlinkat(target, reference->fd, name)) /* one of that name is there: it has the same */
        errno = 0;
    free(target);
}

void dso_dir_refer(const char *path, const char *old)
{
    struct reference reference = {open_directory(path), old};
    int fd = open_directory(old);
    if (fd >= 0 && reference.fd >= 0)
        each_folder(fd, refer, &reference);
    if (fd >= 0)
        close(fd);
    if (reference.fd >= 0)
        close(reference.fd);
}
