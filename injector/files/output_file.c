/* See output_file.h. */
#include "injector/files/output_file.h"

#include "injector/files/file_mask.h"
#include "injector/files/full_write.h"
#include "injector/files/input_guard.h"
#include "injector/files/interruption.h"
#include "injector/files/undo_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16 };

static int cannot_write(const struct output_file *file, struct findings *findings)
{
    int error = errno;
    if (interruption_check(findings))
        return -1;
    return report_failure(findings, "%s: can't write it: %s", file->path, strerror(error));
}

/* The output replaces the file there.  It must be a file: root would replace /dev/null as well.  A
 * symbolic link may be a trap that somebody planted, or /dev/stdout. */
const char *output_file_obstacle(const char *path)
{
    struct stat status;
    if (lstat(path, &status) || S_ISREG(status.st_mode))
        return NULL;
    return S_ISDIR(status.st_mode)    ? "a directory"
           : S_ISLNK(status.st_mode)  ? "a symbolic link"
           : S_ISFIFO(status.st_mode) ? "a FIFO"
                                      : "a device or socket";
}

int output_file_open(struct output_file *file, const char *path, struct findings *findings)
{
    *file = (struct output_file){.path = path, .fd = -1};
    file->buffer = malloc(BUFFER_BYTES);
    if (file->buffer && strcmp(path, "-") == 0) {
        file->in_memory = true;
        file->path = "standard output";
        file->fd = memfd_create("perf.jit.data", MFD_CLOEXEC);
        return file->fd < 0 ? cannot_write(file, findings) : 0;
    }
    if (input_guard_check(findings))
        return -1;
    const char *wrong = output_file_obstacle(path);
    if (wrong)
        return report_failure(
            findings, "%s: is %s; name a file with -o FILE, or - for standard output", path, wrong);
    if (!file->buffer || asprintf(&file->temporary, "%s.XXXXXX", path) < 0) {
        file->temporary = NULL;
        return report_failure(findings, "out of memory");
    }
    file->fd = mkostemp(file->temporary, O_CLOEXEC);
    file->undo = file->fd >= 0 ? undo_list_add_path(file->temporary, NULL) : 0;
    if (file->fd >= 0)
        return 0;
    cannot_write(file, findings);
    free(file->temporary);
    file->temporary = NULL;
    return -1;
}

int output_file_open_shared(struct output_file *file, const char *path, struct findings *findings)
{
    int result = output_file_open(file, path, findings);
    if (!result)
        fchmod(file->fd, 0666 & ~file_mask()); /* where that can't be, it is there for its owner */
    return result;
}

static int write_all(struct output_file *file, const uint8_t *bytes, size_t count,
                     struct findings *findings)
{
    if (interruption_check(findings))
        return -1;
    return full_write(file->fd, WRITE_WHERE_IT_STANDS, bytes, count) ? cannot_write(file, findings)
                                                                     : 0;
}

int output_file_flush(struct output_file *file, struct findings *findings)
{
    size_t count = file->buffered;
    file->buffered = 0;
    return write_all(file, file->buffer, count, findings);
}

int output_file_write(struct output_file *file, const void *bytes, size_t count,
                      struct findings *findings)
{
    file->size += count;
    if (count > BUFFER_BYTES - file->buffered && output_file_flush(file, findings))
        return -1;
    if (count > BUFFER_BYTES)
        return write_all(file, bytes, count, findings);
    memcpy(file->buffer + file->buffered, bytes, count);
    file->buffered += count;
    return 0;
}

int output_file_patch(struct output_file *file, uint64_t offset, const void *bytes, size_t count,
                      struct findings *findings)
{
    if (output_file_flush(file, findings))
        return -1;
    return full_write(file->fd, (off_t)offset, bytes, count) ? cannot_write(file, findings) : 0;
}

int output_file_commit(struct output_file *file, struct findings *findings)
{
    if (output_file_flush(file, findings))
        return -1;
    if (!file->temporary)
        return 0;
    if (input_guard_check(findings))
        return -1;
    if (rename(file->temporary, file->path))
        return cannot_write(file, findings);
    free(file->temporary);
    file->temporary = NULL;
    return 0;
}

const uint8_t *output_file_view(struct output_file *file, struct findings *findings)
{
    if (output_file_flush(file, findings))
        return NULL;
    void *view = mmap(NULL, (size_t)file->size, PROT_READ, MAP_SHARED, file->fd, 0);
    if (view == MAP_FAILED) {
        cannot_write(file, findings);
        return NULL;
    }
    file->view = view;
    return view;
}

void output_file_close(struct output_file *file)
{
    if (file->view)
        munmap((void *)(uintptr_t)file->view, (size_t)file->size);
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary)
        unlink(file->temporary);
    undo_list_done(file->undo);
    free(file->temporary);
    free(file->buffer);
    *file = (struct output_file){.fd = -1};
}
