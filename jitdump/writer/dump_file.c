/* See dump_file.h. */
#include "jitdump/writer/dump_file.h"
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/dump_clock.h"
#include "jitdump/format/jitdump_format.h"
#include "jitdump/guest/holder_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct dump_file *jd_file_new(const char *dir, struct dump_file *parent, struct first_error *error)
{
    size_t path_bytes = strlen(dir) + DUMP_PLACE_BYTES;
    struct dump_file *file = calloc(1, sizeof *file + 2 * path_bytes);
    if (!file)
        return NULL;
    file->parent = parent;
    file->pid = getpid();
    file->place = (struct dump_place){.dir = dir, .pid = file->pid, .number = 1};
    file->paths = (struct dump_paths){file->path, file->path + path_bytes, path_bytes};
    atomic_init(&file->open, false);
    jd_place_paths(&file->place, &file->paths);
    jd_fork_mark_set(&file->fork_mark);
    jd_writer_init(&file->writer, file->path, error);
    if (parent) {
        file->first_code_index = parent->first_code_index;
        file->writer.next_code_index = parent->writer.next_code_index;
    }
    return file;
}

/* ---- Opening ---- */

/* Another handle or perfjit that tests the lock holds it itself for a moment.  Best effort: some
 * file systems have no locks, and whoever asks may be stopped. */
static void lock(int fd)
{
    enum { TRIES = 50, PAUSE_NS = 100000 };
    for (int i = 0; i < TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; i++)
        jd_holder_sleep(PAUSE_NS);
}

/* Create PATH and set its MODE.  Returns 1 if a dump that must be kept has appeared there
 * meanwhile. */
static int create(const char *path, mode_t mode, struct held_fd *held, struct first_error *error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    int cause = errno;
    if (fd < 0 && cause == EEXIST && jd_place_is_taken(path))
        return 1;
    errno = cause;
    if (fd < 0)
        return jd_error_keep(error, -errno, "%s: cannot create: %m%s", path,
                             jd_place_remedy(errno));
    fd = jd_fd_above_standard_streams(fd);
    if (fd < 0) {
        int result = jd_error_keep(error, -errno, "%s: no descriptor above 2 for it: %m%s", path,
                                   jd_place_remedy(errno));
        unlink(path);
        return result;
    }
    fchmod(fd, mode); /* best effort: a umask may have removed the owner's rights */
    lock(fd);
    if (!jd_fd_hold(held, fd)) {
        int result = jd_error_keep(error, -errno, "%s: cannot look at the new file: %m", path);
        unlink(path);
        close(fd);
        return result;
    }
    return 0;
}

static void remove_file(const char *path, struct held_fd *fd)
{
    if (fd->number < 0)
        return;
    unlink(path);
    jd_fd_close(fd);
}

struct dump_fds {
    struct held_fd body, stage;
};

static const struct dump_fds no_fds = {{.number = -1}, {.number = -1}};

static void remove_files(const struct dump_file *file, struct dump_fds *fds)
{
    remove_file(file->paths.body, &fds->body);
    remove_file(file->paths.stage, &fds->stage);
}

/* Only root can open a stage for writing besides its writer: truncating it would cause a signal. */
static int create_both(const struct dump_file *file, const struct dump_kind *kind,
                       struct dump_fds *fds)
{
    struct first_error *error = file->writer.error;
    int result = create(file->paths.body, S_IRUSR | S_IWUSR, &fds->body, error);
    if (!result && !kind->unmapped)
        result = create(file->paths.stage, S_IRUSR, &fds->stage, error);
    if (result)
        remove_files(file, fds);
    return result;
}

/* Another thread, with a handle of its own, may try the same place. */
static int create_somewhere(struct dump_file *file, const struct dump_kind *kind,
                            struct dump_fds *fds)
{
    int result = 1;
    for (file->place.number = 1; result == 1; file->place.number += result == 1) {
        *fds = no_fds;
        result = jd_place_find(&file->place, &file->paths, file->writer.error);
        if (!result)
            result = create_both(file, kind, fds);
    }
    return result;
}

static void put_header(const struct dump_file *file, const struct dump_kind *kind,
                       uint8_t header[JITHEADER_BYTES])
{
    struct byte_sink sink = byte_sink_over(header, JITHEADER_BYTES);
    sink_u32(&sink, JITDUMP_MAGIC);
    sink_u32(&sink, JITDUMP_FILE_VERSION);
    sink_u32(&sink, JITHEADER_BYTES);
    sink_u32(&sink, kind->elf_mach);
    sink_u32(&sink, 0);
    sink_u32(&sink, (uint32_t)file->pid);
    sink_u64(&sink, 0); /* put_time */
    sink_u64(&sink, kind->counter ? JITDUMP_FLAG_ARCH_TIMESTAMP : 0);
}

/* The header's time, and how close to the marker's mapping it is: somewhere BEFORE..AFTER.  For
 * recordings without -k mono this gives the offset between perf's clock and ours, since perf
 * records when it saw the mapping. */
static void put_time(uint8_t header[JITHEADER_BYTES], uint64_t before, uint64_t after)
{
    uint64_t half = (after - before + 1) / 2, time = before + half;
    uint32_t pad1 = half <= UINT16_MAX ? JITHEADER_PAD1_TAG << 16 | (uint32_t)half : 0;
    memcpy(header + JITHEADER_TIMESTAMP, &time, sizeof time);
    memcpy(header + JITHEADER_PAD1, &pad1, sizeof pad1);
}

/* perf finds a dump by the mmap event of a file of this name.  It records such events only for
 * executable mappings.  If it attaches later, it finds the mapping in /proc/<pid>/maps.  Nothing is
 * ever executed there. */
static int map_marker(const struct dump_file *file, const struct held_fd *fd,
                      struct dump_marker *marker)
{
    struct first_error *error = file->writer.error;
    marker->bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *at = mmap(NULL, marker->bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd->number, 0);
    if (at == MAP_FAILED && errno == EPERM)
        return jd_error_keep(error, -EPERM,
                             "%s: is on a file system mounted noexec, where no mapping can tell "
                             "perf of it; set JITDUMPDIR to another directory",
                             file->path);
    if (at == MAP_FAILED)
        return jd_error_keep(error, -errno,
                             "%s: cannot be mapped executable, which is how perf finds it: %m; set "
                             "JITDUMPDIR to another directory",
                             file->path);
    marker->at = at;
    return 0;
}

static void unmap_marker(struct dump_marker *marker)
{
    if (marker->at)
        munmap(marker->at, marker->bytes);
    marker->at = NULL;
}

/* Map the marker of one of the files, and put its time into HEADER. */
static int mark(struct dump_file *file, const struct held_fd *fd, struct dump_marker *marker,
                uint8_t header[JITHEADER_BYTES])
{
    uint64_t before = jd_clock_now(file->writer.counter);
    int error = map_marker(file, fd, marker);
    /* A call that found no open file yet, in a forked child, has read the clock already; no record
     * is older than the marker. */
    file->writer.last_time = jd_clock_now(file->writer.counter);
    if (!error)
        put_time(header, before, file->writer.last_time);
    return error;
}

static int mark_body(struct dump_file *file, uint8_t header[JITHEADER_BYTES])
{
    struct dump_body *body = &file->writer.body;
    int error = mark(file, &body->fd, &file->marker, header);
    if (error)
        return error;
    error = jd_body_write(body, header, JITHEADER_BYTES, 0);
    jd_body_keep_header(body);
    errno = -error;
    return error ? jd_error_keep(file->writer.error, error, "%s: cannot write its header: %m",
                                 file->path)
                 : 0;
}

/* The stage's marker is mapped before the body's.  This is the order in which a live process's
 * files should be read, since groups go from the stage to the body. */
static int mark_stage(struct dump_file *file, uint8_t header[JITHEADER_BYTES])
{
    int error = mark(file, &file->writer.stage_fd, &file->stage_marker, header);
    if (!error)
        jd_writer_put_header(&file->writer, header);
    return error;
}

static int start(struct dump_file *file, struct dump_fds *fds, const struct dump_kind *kind)
{
    uint8_t header[JITHEADER_BYTES];
    put_header(file, kind, header);
    file->writer.counter = kind->counter;
    file->writer.max_bytes = kind->max_bytes;
    file->writer.is_ring = kind->ring;
    int error = jd_writer_start(&file->writer, &fds->body, &fds->stage, header);
    if (!error && file->writer.unmapped) {
        remove_file(file->paths.stage, &fds->stage);
        file->writer.stage_fd.number = -1;
        jd_place_leave_stage(&file->place, &file->paths);
    } else if (!error) {
        error = mark_stage(file, header);
    }
    if (!error)
        error = mark_body(file, header);
    if (error) {
        jd_writer_abandon(&file->writer);
        unmap_marker(&file->stage_marker);
        unmap_marker(&file->marker);
    }
    return error;
}

static int open_locked(struct dump_file *file, const struct dump_kind *kind)
{
    struct dump_fds fds;
    int error = create_somewhere(file, kind, &fds);
    if (!error) {
        error = start(file, &fds, kind);
        if (error) {
            remove_files(file, &fds);
            file->writer.body.fd.number = -1;
            file->writer.stage_fd.number = -1;
        }
    }
    if (error) {
        jd_place_leave(&file->place, &file->paths);
        return error;
    }
    atomic_store_explicit(&file->open, true, memory_order_release);
    return 0;
}

int jd_file_create(struct dump_file *file, const struct dump_kind *kind)
{
    int error = 0, cancel_state;
    /* open is a cancellation point: a thread cancelled there would take the lock with it. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    struct brief_lock *lock = &file->writer.body_lock;
    if (jd_lock(lock, jd_author(file->writer.pid).tid, JD_PATIENCE_NS)) {
        pthread_setcancelstate(cancel_state, &cancel_state);
        return jd_writer_is_stopped(&file->writer);
    }
    if (jd_failure_is_fresh(&file->open_failure)) {
        error = file->open_failure.error;
    } else if (!atomic_load_explicit(&file->open, memory_order_relaxed)) {
        error = open_locked(file, kind);
        jd_failure_note(&file->open_failure, error);
    }
    jd_unlock(lock);
    pthread_setcancelstate(cancel_state, &cancel_state);
    return error;
}

/* ---- Closing ---- */

void jd_file_disown(struct dump_file *file)
{
    unmap_marker(&file->marker);
    unmap_marker(&file->stage_marker);
    jd_fd_close_inherited(&file->writer.body.fd, file->pid);
    jd_fd_close_inherited(&file->writer.stage_fd, file->pid);
    jd_writer_disown(&file->writer);
}

/* The writer is closed. */
static int release(struct dump_file *file)
{
    unmap_marker(&file->marker);
    unmap_marker(&file->stage_marker);
    jd_fd_unlock(&file->writer.stage_fd);
    jd_fd_close(&file->writer.stage_fd);
    jd_fd_unlock(&file->writer.body.fd);
    return jd_fd_close(&file->writer.body.fd);
}

int jd_file_close(struct dump_file *file)
{
    if (jd_fork_mark_is_inherited(&file->fork_mark)) {
        jd_file_disown(file);
        return 0;
    }
    if (!atomic_load_explicit(&file->open, memory_order_relaxed) || file->ended)
        return 0;
    int error = jd_writer_close(&file->writer), close_error = release(file);
    return error ? error : close_error;
}

int jd_file_end(struct dump_file *file)
{
    if (jd_fork_mark_is_inherited(&file->fork_mark)) {
        jd_file_disown(file);
        return 0;
    }
    if (!atomic_load_explicit(&file->open, memory_order_acquire) || file->ended)
        return 0;
    int error = jd_writer_end_all(&file->writer);
    if (error == -EAGAIN)
        return error;
    file->ended = true;
    int close_error = release(file);
    return error ? error : close_error;
}

void jd_file_free(struct dump_file *file)
{
    jd_writer_destroy(&file->writer);
    jd_fork_mark_free(&file->fork_mark);
    free(file->keeper);
    free(file);
}
