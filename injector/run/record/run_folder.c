/* See run_folder.h. */
#include "injector/run/record/run_folder.h"

#include "injector/files/full_write.h"
#include "injector/files/temporary_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MOST = 32, RANDOM_LETTERS = 6, STALE_SECONDS = 24 * 3600 };

static const char running[] = "running";

static char *path_in(const char *directory, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

static int fail(const char *path, struct findings *findings)
{
    return report_failure(findings, "%s: can't make it: %s; TMPDIR says where", path,
                          strerror(errno));
}

/* Give the directory NAME in PARENT_FD exactly that MODE, for any umask, but not a file that was
 * put in its place.  Returns a descriptor of it, or -1. */
static int settle_directory(int parent_fd, const char *name, mode_t mode)
{
    struct stat status;
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid() && fchmod(fd, mode) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int make_directory(int parent_fd, const char *name, mode_t mode)
{
    int fd = mkdirat(parent_fd, name, 0700) ? -1 : settle_directory(parent_fd, name, mode);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? -1 : 0;
}

static int name_parts(struct run_folder *folder, struct findings *findings)
{
    folder->dumps = path_in(folder->path, "dumps");
    folder->settings = path_in(folder->path, "settings");
    folder->messages = path_in(folder->path, "perf.messages");
    return folder->dumps && folder->settings && folder->messages
               ? 0
               : report_failure(findings, "out of memory");
}

/* A user who may write here could replace a directory by a link, and root would remove the link's
 * target.  So each directory is opened as a directory, and its contents are removed by the
 * descriptor. */
static void empty_directory(int parent_fd, const char *name, unsigned depth)
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
        empty_directory(fd, entry->d_name, depth + 1);
        unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    }
    if (directory)
        closedir(directory);
}

/* ---- Those of runs that were killed ---- */

/* The file has the name by which others know it only once it is locked. */
static int lock(int folder_fd)
{
    int fd = openat(folder_fd, "starting", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        renameat(folder_fd, "starting", folder_fd, running) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Whether the folder FOLDER_FD is of this user, and of a run that ended a day ago without removing
 * it. */
static bool is_stale(int folder_fd)
{
    struct stat folder, file;
    bool stale = false;
    int fd = openat(folder_fd, running, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(folder_fd, &folder) == 0 && fstat(fd, &file) == 0 &&
        folder.st_uid == geteuid() && file.st_uid == geteuid() && S_ISREG(file.st_mode))
        stale = file.st_mtime < time(NULL) - STALE_SECONDS && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return stale;
}

static void remove_stale(const char *parent)
{
    static const char prefix[] = "perfjit-";
    DIR *directory = opendir(parent);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) ||
            strlen(entry->d_name) != sizeof prefix - 1 + RANDOM_LETTERS)
            continue;
        int fd = openat(dirfd(directory), entry->d_name,
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        bool stale = fd >= 0 && is_stale(fd);
        if (fd >= 0)
            close(fd);
        if (!stale)
            continue;
        empty_directory(dirfd(directory), entry->d_name, 0);
        unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR);
    }
    if (directory)
        closedir(directory);
}

/* ---- A folder ---- */

/* Where it is to be, to be freed; in FOLDER's root if there is a /tmp. */
static char *parent_of(struct run_folder *folder, const char *root)
{
    char *inner = root ? path_in(root, "tmp") : NULL;
    if (inner && access(inner, W_OK) == 0) {
        folder->root = root;
        return inner;
    }
    free(inner);
    return strdup(temporary_place());
}

/* Make the directories that have their names.  Returns 0 or -1. */
static int make_parts(struct run_folder *folder)
{
    const bool is_root = geteuid() == 0;
    int fd = settle_directory(AT_FDCWD, folder->path, is_root ? 0711 : 0700);
    int result = fd < 0 || make_directory(fd, "dumps", is_root ? 01777 : 0700) ||
                 make_directory(fd, "settings", is_root ? 0755 : 0700);
    folder->lock_fd =
        result ? -1 : lock(fd); /* without a lock, as on some file systems, it stays */
    if (fd >= 0)
        close(fd);
    return result ? -1 : 0;
}

int run_folder_make(struct run_folder *folder, const char *root, struct findings *findings)
{
    *folder = (struct run_folder){.lock_fd = -1};
    char *parent = parent_of(folder, root);
    char *path = parent ? path_in(parent, "perfjit-XXXXXX") : NULL;
    if (path)
        remove_stale(parent);
    free(parent);
    if (!path)
        return report_failure(findings, "out of memory");
    if (!mkdtemp(path)) {
        fail(path, findings);
        free(path);
        return -1;
    }
    folder->path = path;
    if (name_parts(folder, findings))
        return -1;
    return make_parts(folder) ? fail(path, findings) : 0;
}

const char *run_folder_seen(const struct run_folder *folder, const char *path)
{
    return folder->root ? path + strlen(folder->root) : path;
}

static int write_file(const char *path, const char *text, struct findings *findings)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || full_write(fd, WRITE_WHERE_IT_STANDS, text, strlen(text)) ||
        fchmod(fd, geteuid() == 0 ? 0644 : 0600)) {
        fail(path, findings);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    close(fd);
    return 0;
}

/* The directory of PATH, below the settings. */
static int make_parent(char *path, struct findings *findings)
{
    char *slash = strrchr(path, '/');
    *slash = '\0';
    int result = access(path, F_OK) && make_directory(AT_FDCWD, path, geteuid() == 0 ? 0755 : 0700);
    if (result)
        fail(path, findings);
    *slash = '/';
    return result ? -1 : 0;
}

int run_folder_settle(const struct run_folder *folder, const struct runtime *runtime,
                      struct findings *findings)
{
    for (size_t i = 0; i < RUNTIME_FILES_MOST && runtime->files[i].name; i++) {
        char *path = path_in(folder->settings, runtime->files[i].name);
        int result =
            path ? make_parent(path, findings) || write_file(path, runtime->files[i].text, findings)
                 : report_failure(findings, "out of memory");
        free(path);
        if (result)
            return -1;
    }
    return 0;
}

int run_folder_add_program(const struct run_folder *folder, const char *name, const char *target,
                           const char *text, struct findings *findings)
{
    char *path = NULL, *words = NULL;
    int result = asprintf(&path, "%s/bin/%s", folder->settings, name) < 0 ||
                         asprintf(&words, "%s/%s.words", folder->settings, name) < 0
                     ? report_failure(findings, "out of memory")
                     : 0;
    if (!result)
        result = make_parent(path, findings) || write_file(words, text, findings) ? -1 : 0;
    if (!result && symlink(target, path))
        result = fail(path, findings);
    if (!result)
        result = access(path, X_OK) == 0;
    free(path);
    free(words);
    return result;
}

void run_folder_remove(struct run_folder *folder, bool keep)
{
    if (folder->path && keep) {
        char *path = path_in(folder->path, running);
        if (path)
            unlink(path);
        free(path);
        empty_directory(AT_FDCWD, folder->settings, 0);
        rmdir(folder->settings);
        unlink(folder->messages);
    } else if (folder->path) {
        empty_directory(AT_FDCWD, folder->path, 0);
        rmdir(folder->path);
    }
    if (folder->path && folder->lock_fd >= 0)
        close(folder->lock_fd);
    free(folder->path);
    free(folder->dumps);
    free(folder->settings);
    free(folder->messages);
    *folder = (struct run_folder){.lock_fd = -1};
}
