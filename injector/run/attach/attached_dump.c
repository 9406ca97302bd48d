/* Removing dumps that a process opened on request (attachment.h).
 *
 *     ROOT/DIR/jitdump-PID/jit-PID.dump, .../stage/jit-PID.dump, and both directories
 *
 * The path is the process's word.  It is looked up inside of its own root directory, also through
 * links.  It is taken only if the directory is of the process's user and no other user may write to
 * it.  So only files are removed that this user could remove himself. */
#include "injector/run/attach/attachment.h"

#include "injector/log/jitdump/dump_name.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_inside(int root, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

static bool is_private(int directory, uid_t uid)
{
    struct stat status;
    return fstat(directory, &status) == 0 && status.st_uid == uid &&
           !(status.st_mode & (S_IWGRP | S_IWOTH));
}

static void remove_files(int directory, const char *name)
{
    struct stat status;
    int stage = openat(directory, "stage", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (stage >= 0) {
        unlinkat(stage, name, 0);
        close(stage);
        unlinkat(directory, "stage", AT_REMOVEDIR);
    }
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
        unlinkat(directory, name, 0);
}

/* PATH is cut into its parts. */
static void remove_dump(int root, uid_t uid, char *path)
{
    uint32_t pid;
    char *name = strrchr(path, '/');
    if (!name || !jit_dump_name_pid(path, &pid))
        return;
    *name++ = '\0';
    char *folder = strrchr(path, '/');
    int directory = folder && strncmp(folder, "/jitdump-", 9) == 0 ? open_inside(root, path) : -1;
    if (directory >= 0 && is_private(directory, uid)) {
        remove_files(directory, name);
        *folder++ = '\0';
        int parent = open_inside(root, *path ? path : "/");
        if (parent >= 0) {
            unlinkat(parent, folder, AT_REMOVEDIR);
            close(parent);
        }
    }
    if (directory >= 0)
        close(directory);
}

static void remove_one(const struct attachment *attachment, const char *path)
{
    char *copy = attachment->root >= 0 ? strdup(path) : NULL;
    if (copy)
        remove_dump(attachment->root, attachment->live.uid, copy);
    free(copy);
}

static bool is_below(const char *path, const char *directory)
{
    const size_t bytes = directory ? strlen(directory) : 0;
    return bytes && strncmp(path, directory, bytes) == 0 && path[bytes] == '/';
}

void attachment_remove_dumps(const struct attachment *attachment, const char *but)
{
    for (size_t i = 0; i < attachment->count; i++) {
        const struct attachment_result *result = &attachment->results[i];
        if (result->is_held && switch_page_is_last(&result->held, SWITCH_READING) &&
            !is_below(result->answer.path, but))
            remove_one(attachment, result->answer.path);
    }
}

/* ---- Those of a recorder that was killed ---- */

char *attachment_undo_text(pid_t pid, const char *path)
{
    struct live_process live;
    char *text;
    if (!live_process_read(&live, (uint32_t)pid, UINT64_MAX) ||
        asprintf(&text, "%d %" PRIu64 " %s", (int)pid, live.started_boot_ns, path) < 0)
        return NULL;
    return text;
}

pid_t attachment_undo_pid(const char *text, const char **path)
{
    struct live_process live;
    uint64_t started;
    int pid, path_at = 0;
    if (sscanf(text, "%d %" SCNu64 " %n", &pid, &started, &path_at) != 2 || !path_at ||
        !live_process_read(&live, (uint32_t)pid, UINT64_MAX) || live.started_boot_ns != started)
        return 0;
    *path = text + path_at;
    return pid;
}

void attachment_undo(const char *text)
{
    const char *path;
    struct attachment_request request = {.pid = attachment_undo_pid(text, &path),
                                         .wanted = ATTACH_OFF,
                                         .seconds = ATTACHMENT_SECONDS,
                                         .passing = true};
    struct attachment attachment;
    struct findings findings = {0};
    if (!request.pid)
        return;
    bool shared = false;
    if (attachment_ask(&attachment, &request, &findings) == 0)
        for (size_t i = 0; i < attachment.count; i++) {
            shared |= attachment.results[i].outcome == ATTACHMENT_SHARED;
            if (attachment.results[i].outcome == ATTACHMENT_DONE)
                remove_one(&attachment, attachment.results[i].answer.path);
        }
    if (*path && !shared)
        remove_one(&attachment, path);
    attachment_free(&attachment);
    findings_free(&findings);
}
