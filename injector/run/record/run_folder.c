/* See run_folder.h. */
#include "injector/run/record/run_folder.h"

#include "injector/files/directory_tree.h"
#include "injector/files/full_write.h"
#include "injector/files/temporary_place.h"
#include "injector/files/undo_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANDOM_LETTERS = 6 };

static const char prefix[] = "/perfjit-", dumps[] = "/dumps";

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

/* ---- A folder ---- */

char *run_folder_outer(void)
{
    const char *value = getenv("JITDUMPDIR");
    const size_t bytes = value ? strlen(value) : 0, tail = sizeof dumps - 1,
                 name_bytes = sizeof prefix - 1 + RANDOM_LETTERS;
    char *settings;
    if (bytes < tail + name_bytes || strcmp(value + bytes - tail, dumps) ||
        strncmp(value + bytes - tail - name_bytes, prefix, sizeof prefix - 1) ||
        asprintf(&settings, "%.*s/settings", (int)(bytes - tail), value) < 0)
        return NULL;
    bool goes_on = access(settings, F_OK) == 0 && access(value, W_OK) == 0;
    free(settings);
    return goes_on ? strdup(value) : NULL;
}

char *run_folder_inner(const char *outer, const char *name)
{
    const size_t before = sizeof prefix - 2; /* of the name alone */
    char *inner;
    if (strncmp(name, prefix + 1, before) != 0 || strlen(name) != before + RANDOM_LETTERS ||
        asprintf(&inner, "%s/%s%s", outer, name, dumps) < 0)
        return NULL;
    return inner;
}

/* Where it is to be, to be freed; in FOLDER's root if there is a /tmp.  In an outer run's folder
 * the outer one finds the dumps, and removes them. */
static char *parent_of(struct run_folder *folder, const char *root, bool keep)
{
    char *inner = root ? path_in(root, "tmp") : NULL;
    char *outer = inner || keep ? NULL : run_folder_outer();
    folder->is_outers = outer;
    if (outer)
        return outer;
    if (inner && access(inner, W_OK) == 0) {
        folder->root = root;
        return inner;
    }
    free(inner);
    return strdup(temporary_place_to_map());
}

/* Make the directories that have their names.  Returns 0 or -1. */
static int make_parts(struct run_folder *folder)
{
    const bool is_root = geteuid() == 0;
    int fd = settle_directory(AT_FDCWD, folder->path, is_root ? 0711 : 0700);
    int result = fd < 0 || make_directory(fd, "dumps", is_root ? 01777 : 0700) ||
                 make_directory(fd, "settings", is_root ? 0755 : 0700);
    if (fd >= 0)
        close(fd);
    return result ? -1 : 0;
}

int run_folder_make(struct run_folder *folder, const char *root, bool keep,
                    struct findings *findings)
{
    *folder = (struct run_folder){0};
    char *parent = parent_of(folder, root, keep);
    char *path = parent ? path_in(parent, "perfjit-XXXXXX") : NULL;
    free(parent);
    if (!path)
        return report_failure(findings, "out of memory");
    if (!undo_list_make_directory(path, &folder->undo)) {
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
    if (!result && access(path, F_OK))
        result = make_parent(path, findings) || write_file(words, text, findings) ? -1
                 : symlink(target, path) ? fail(path, findings)
                                         : 0;
    if (!result)
        result = access(path, X_OK) == 0;
    free(path);
    free(words);
    return result;
}

/* Where that fails, as on a full disk, the end is told by the folder's own. */
void run_folder_tell_end(const struct run_folder *folder)
{
    char *path = path_in(folder->settings, RUN_FOLDER_ENDED);
    const int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0)
        close(fd);
    free(path);
}

void run_folder_remove(struct run_folder *folder, bool keep)
{
    if (folder->path && (keep || folder->is_outers)) {
        directory_tree_remove(folder->settings);
        unlink(folder->messages);
    } else if (folder->path) {
        directory_tree_remove(folder->path);
    }
    undo_list_done(folder->undo);
    free(folder->path);
    free(folder->dumps);
    free(folder->settings);
    free(folder->messages);
    *folder = (struct run_folder){0};
}
