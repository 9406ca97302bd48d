/* See dump_writer.h. */
#include "jitdump/writer/dump_writer.h"
#include "jitdump/disk/disk_room.h"
#include "jitdump/format/dump_clock.h"
#include "jitdump/format/jitdump_format.h"
#include "jitdump/ring/mapped_array.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The stage grows to STAGE_LATER_BYTES when more than the first has been logged, and if max_bytes
 * is more than the second. */
#define LATER_STAGE_FROM_BYTES (UINT64_C(1) << 20)
#define LATER_STAGE_MAX_BYTES  (UINT64_C(17) << 20)

void jd_writer_init(struct dump_writer *writer, const char *path, struct first_error *error)
{
    memset(writer, 0, sizeof *writer);
    jd_late_init(&writer->late);
    writer->pid = (uint32_t)getpid();
    writer->body.fd.number = -1;
    writer->stage_fd.number = -1;
    writer->path = path;
    writer->error = error;
    writer->group_max_bytes = STAGE_GROUP_MAX_BYTES;
}

/* ---- Failures ---- */

static const char *remedy(const struct dump_writer *writer, int error)
{
    switch (-error) {
    case ENOSPC:
        return "; free some space, or set JITDUMPDIR to a directory on another file system";
    case EDQUOT:
        return "; free some of the quota, or set JITDUMPDIR to a directory on another file system";
    case EFBIG:
        if (writer->is_ring && writer->ring.refused_bytes)
            return "; the code that is alive leaves no room in the ring: raise its size "
                   "(max_bytes, or ring= in PERFJIT)";
        return writer->max_bytes && writer->max_bytes <= jd_file_size_limit()
                   ? "; the program allows it no more (max_bytes)"
                   : "; raise the file size limit (ulimit -f)";
    case ENOMEM:
        return "; raise the memory limit (ulimit -v)";
    default:
        return "; set JITDUMPDIR to a directory on another file system";
    }
}

static int is_gone(const struct dump_writer *writer, int error)
{
    return jd_error_keep(
        writer->error, error,
        error == -ENOENT
            ? "%s: was removed while it was written: all that was recorded is lost; set "
              "JITDUMPDIR to a directory that nobody tidies"
            : "%s: was cut, or written to, by somebody else while it was written: what was "
              "recorded is lost; set JITDUMPDIR to a directory of its own",
        writer->path);
}

/* Keep the text of ERROR, and return it. */
static int cannot_grow(const struct dump_writer *writer, int error)
{
    if (error == -EBADF)
        return jd_error_keep(writer->error, error,
                             "%s: the program closed the file's descriptor, which this library "
                             "needs; exempt it, or open the dump after closing all descriptors",
                             writer->path);
    if (error == -ENOENT || error == -ESTALE)
        return is_gone(writer, error);
    errno = -error;
    return jd_error_keep(writer->error, error, "%s: cannot grow: %m%s", writer->path,
                         remedy(writer, error));
}

int jd_writer_is_stopped(const struct dump_writer *writer)
{
    return jd_error_keep(
        writer->error, -EAGAIN,
        "%s: a thread is stopped, or was left by a longjmp, while it recorded: what others record "
        "meanwhile is lost; let it go on, or record before you stop it",
        writer->path);
}

int jd_writer_lock(struct dump_writer *writer)
{
    return jd_lock(&writer->lock, jd_author(writer->pid).tid, JD_PATIENCE_NS);
}

/* ---- The beginning ---- */

static uint32_t largest_stage(const struct dump_writer *writer)
{
    bool large = !writer->max_bytes || writer->max_bytes > LATER_STAGE_MAX_BYTES;
    return large ? STAGE_LATER_BYTES : STAGE_FIRST_BYTES;
}

/* Mapping memory for each record costs more than the rest of the record.  It is done only if there
 * is no scratch memory. */
static void map_scratch(struct dump_writer *writer)
{
    void *scratch =
        mmap(NULL, SCRATCH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (scratch == MAP_FAILED)
        return;
    madvise(scratch, SCRATCH_BYTES, MADV_DONTFORK);
    writer->scratch = scratch;
}

static void unmap_scratch(struct dump_writer *writer)
{
    if (writer->scratch)
        munmap(writer->scratch, SCRATCH_BYTES);
    writer->scratch = NULL;
}

/* The stage is anonymous memory, and only for late records. */
static int start_unmapped(struct dump_writer *writer, const uint8_t header[JITHEADER_BYTES])
{
    writer->unmapped = true;
    writer->group_max_bytes = 0;
    writer->stage_bytes = STAGE_FIRST_BYTES;
    int error = jd_stage_map(&writer->stage, -1, STAGE_FIRST_BYTES, STAGE_FIRST_BYTES, header);
    if (!error)
        map_scratch(writer);
    return error;
}

static int start_stage(struct dump_writer *writer, const uint8_t header[JITHEADER_BYTES])
{
    int fd = writer->stage_fd.number;
    if (fd < 0 || !jd_disk_keeps_room(fd))
        return start_unmapped(writer, header);
    jd_disk_write_in_place(fd);
    int error = jd_disk_room(fd, 0, 0, STAGE_SMALL_BYTES);
    if (error)
        return error;
    writer->stage_bytes = STAGE_FIRST_BYTES;
    error = jd_stage_map(&writer->stage, fd, STAGE_SMALL_BYTES, largest_stage(writer), header);
    if (error == -ENOMEM)
        error = jd_stage_map(&writer->stage, fd, STAGE_SMALL_BYTES, STAGE_FIRST_BYTES, header);
    if (error == -ENOMEM || error == -EAGAIN)
        return error;
    return error ? start_unmapped(writer, header) : 0; /* the file system has no shared mappings */
}

int jd_writer_start(struct dump_writer *writer, const struct held_fd *fd,
                    const struct held_fd *stage_fd, const uint8_t header[JITHEADER_BYTES])
{
    uint64_t max_bytes = writer->max_bytes;
    if (max_bytes)
        max_bytes -= largest_stage(writer);
    if (writer->is_ring)
        max_bytes = jd_ring_begin(&writer->ring, max_bytes, writer->next_code_index);
    writer->stage_fd = *stage_fd;
    int error = jd_body_start(&writer->body, fd, max_bytes, header);
    if (!error)
        error = jd_ring_mark(&writer->ring, &writer->body);
    if (!error)
        error = start_stage(writer, header);
    return error ? cannot_grow(writer, error) : 0;
}

void jd_writer_put_header(struct dump_writer *writer, const uint8_t header[JITHEADER_BYTES])
{
    memcpy(writer->stage.data, header, JITHEADER_BYTES);
}

/* ---- From the stage into the body ---- */

/* Copy main to the body while the stage spills, and hide it.  The body's lock is held, or both.
 * LAST: these are the dump's last groups. */
static int empty_main(struct dump_writer *writer, bool last)
{
    struct dump_stage *stage = &writer->stage;
    int error = jd_body_check(&writer->body);
    if (error || jd_stage_main_is_empty(stage))
        return error;
    error = jd_ring_add(&writer->ring, &writer->body, stage->data + STAGE_START,
                        stage->full_end - STAGE_START, last);
    if (!error)
        jd_stage_empty_main(stage);
    return error;
}

/* Main is empty: move the spill's groups there.  Both locks are held. */
static void end_spill(struct dump_writer *writer)
{
    jd_stage_gather(&writer->stage);
    if (writer->body.end > LATER_STAGE_FROM_BYTES)
        writer->stage_bytes = writer->stage.mapped_bytes;
}

/* Main could not be added to a ring that is full: add all of the stage at once, so that the unloads
 * in the spill make room.  Adds are refused until that works, which leaves the spill to them.  Both
 * locks are held, and the stage spills. */
static int empty_all(struct dump_writer *writer)
{
    struct dump_stage *stage = &writer->stage;
    struct mapped_array groups = {NULL, 0};
    size_t main_bytes = stage->full_end - STAGE_START, spill_bytes = stage->end - stage->main_bytes;
    if (mapped_array_reserve(&groups, main_bytes + spill_bytes))
        return -ENOMEM;
    memcpy(groups.data, stage->data + STAGE_START, main_bytes);
    memcpy((uint8_t *)groups.data + main_bytes, stage->data + stage->main_bytes, spill_bytes);
    int error = jd_ring_add_with_effect(&writer->ring, &writer->body, groups.data,
                                        main_bytes + spill_bytes);
    mapped_array_free(&groups);
    if (!error) {
        jd_stage_empty_main(stage);
        jd_stage_empty_spill(stage);
    }
    return error;
}

/* Handle ERROR of empty_main. */
static int after_main(struct dump_writer *writer, int error)
{
    if (error == -EFBIG && writer->is_ring)
        error = empty_all(writer);
    writer->full = error == -EFBIG && writer->is_ring;
    return error;
}

/* Whether the stage, which is too full for a group, can be extended. */
static bool can_grow(const struct dump_writer *writer)
{
    const struct dump_stage *stage = &writer->stage;
    return stage->bytes < writer->stage_bytes && !stage->spilling &&
           !jd_failure_is_fresh(&writer->grow_failure);
}

/* Both locks are held. */
static int grow_stage(struct dump_writer *writer)
{
    uint32_t end = writer->stage.bytes;
    int error = jd_fd_is_ours(&writer->stage_fd) ? 0 : -EBADF;
    if (!error)
        error = jd_disk_room(writer->stage_fd.number, end, end, writer->stage_bytes);
    if (!error)
        jd_stage_grow(&writer->stage, writer->stage_bytes);
    jd_failure_note(&writer->grow_failure, error);
    return error;
}

static int drain_locked(struct dump_writer *writer)
{
    int error = jd_writer_lock(writer);
    if (error)
        return error;
    if (can_grow(writer) && !writer->ended)
        grow_stage(writer); /* if that fails, main is emptied more often */
    bool wanted = writer->stage.spilling;
    if (wanted && jd_failure_is_fresh(&writer->drain_failure)) {
        wanted = false;
        error = writer->drain_failure.error;
    }
    writer->draining = wanted;
    jd_unlock(&writer->lock);
    if (!wanted)
        return error;
    error = empty_main(writer, false);
    if (jd_writer_lock(writer))
        return error ? error : -EAGAIN; /* main is empty; the next thread ends the spill */
    error = after_main(writer, error);
    if (!error)
        end_spill(writer);
    if (error != -EAGAIN)
        jd_failure_note(&writer->drain_failure, error);
    jd_unlock(&writer->lock);
    return error;
}

/* Extend the stage if possible, and empty main if it is not empty.  Returns 0 also if another
 * thread has done it. */
static int drain(struct dump_writer *writer, uint64_t patience_ns)
{
    /* pwritev is a cancellation point: a thread cancelled there would take the lock with it. */
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int error = jd_lock(&writer->body_lock, jd_author(writer->pid).tid, patience_ns);
    if (!error) {
        error = drain_locked(writer);
        atomic_store_explicit(&writer->draining, false, memory_order_relaxed);
        jd_unlock(&writer->body_lock);
    }
    pthread_setcancelstate(cancel_state, &cancel_state);
    return error;
}

/* Put late records into the stage, as many as it holds.  Returns the first one that it does not
 * hold, or NULL.  The lock is held. */
static const struct late_record *put_late_that_fit(struct dump_writer *writer)
{
    struct dump_stage *stage = &writer->stage;
    const struct late_record *late;
    while ((late = jd_late_first(&writer->late)) != NULL && jd_stage_holds(stage, late->bytes)) {
        uint32_t bytes = late->bytes, id_and_size[2];
        struct dump_room room;
        memcpy(id_and_size, late->data, sizeof id_and_size);
        jd_writer_take(writer, late->time, stage->data + stage->end, bytes, 0, &room);
        memcpy(stage->data + stage->end + JR_PREFIX_BYTES, late->data + JR_PREFIX_BYTES,
               bytes - JR_PREFIX_BYTES);
        memcpy(stage->data + stage->end + sizeof id_and_size, &room.timestamp,
               sizeof room.timestamp);
        jd_late_drop_first(&writer->late);
        jd_stage_append(stage, bytes, id_and_size[0], id_and_size[1]);
        jd_writer_count(&room);
    }
    return late;
}

/* Move all of the stage to the body.  LAST: these are the dump's last groups.  Both locks are held.
 */
static int flush(struct dump_writer *writer, bool last)
{
    struct dump_stage *stage = &writer->stage;
    int error = 0;
    while (!error && !jd_stage_is_empty(stage)) {
        if (!stage->spilling)
            jd_stage_spill(stage);
        error = empty_main(writer, last && stage->end == stage->main_bytes);
        error = after_main(writer, error);
        if (!error)
            end_spill(writer);
    }
    jd_failure_note(&writer->drain_failure, error);
    return error;
}

/* Move all of the stage to the body, with late records, unless that failed recently, and extend the
 * stage if possible.  Both locks are held.  Returns 0 or a negative errno. */
static int flush_unless_failed(struct dump_writer *writer)
{
    const struct late_record *more = put_late_that_fit(writer);
    if (jd_failure_is_fresh(&writer->drain_failure))
        return writer->drain_failure.error;
    int error;
    while ((error = flush(writer, false)) == 0 && more)
        more = put_late_that_fit(writer);
    if (!error && can_grow(writer))
        grow_stage(writer); /* others use it while a large group is written */
    return error;
}

/* ---- Groups ---- */

int jd_writer_wait(struct dump_writer *writer, uint64_t bytes, uint32_t new_functions,
                   uint64_t patience_ns)
{
    while (!jd_writer_holds(writer, bytes, new_functions)) {
        const struct dump_stage *stage = &writer->stage;
        int error = jd_failure_is_fresh(&writer->drain_failure) ? writer->drain_failure.error : 0;
        if (writer->ended) {
            jd_unlock(&writer->lock);
            return -ESHUTDOWN;
        }
        if (can_grow(writer)) {
            error = 0;
        } else if (!stage->spilling && bytes + JR_PREFIX_BYTES > stage->main_bytes - STAGE_START) {
            error = writer->grow_failure.error; /* it would not fit if main were empty, either */
        } else if (!stage->spilling) {
            jd_stage_spill(&writer->stage);
            continue;
        }
        jd_unlock(&writer->lock);
        if (!error)
            error = drain(writer, patience_ns);
        if (error && error != -EAGAIN)
            return cannot_grow(writer, error);
        if (error || jd_lock(&writer->lock, jd_author(writer->pid).tid, patience_ns))
            return -EAGAIN;
    }
    return 0;
}

/* ---- Large groups ----
 *
 * A group that is too large for the stage, or any group if the stage is not mapped.  It is
 * assembled before any lock is taken, and gets its time and code index afterwards.  It goes
 * directly to the body, after all groups of the stage.  Others continue in the stage while it is
 * written. */

/* Don't assemble and try again what failed recently, or what the disk obviously has no room for. */
static int refuse_large(struct dump_writer *writer, uint64_t bytes, uint64_t patience_ns)
{
    if (jd_lock(&writer->lock, jd_author(writer->pid).tid, patience_ns))
        return -EAGAIN;
    bool failed =
        jd_failure_is_fresh(&writer->large_failure) && bytes >= writer->large_failure_bytes;
    int error = failed ? writer->large_failure.error : 0;
    if (writer->ended)
        error = -ESHUTDOWN;
    jd_unlock(&writer->lock);
    if (!error && bytes > SCRATCH_BYTES && !jd_disk_may_hold(writer->body.fd.number, bytes) &&
        jd_fd_is_ours(&writer->body.fd))
        error = -ENOSPC;
    return error;
}

/* Memory to put a group of BYTES together in.  Without malloc, whose lock a stopped thread may
 * hold. Returns NULL if there is none. */
static uint8_t *take_memory(struct dump_writer *writer, uint64_t bytes)
{
    if (writer->scratch && bytes <= SCRATCH_BYTES &&
        !atomic_exchange_explicit(&writer->scratch_is_taken, true, memory_order_acquire))
        return writer->scratch;
    void *memory =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void give_memory_back(struct dump_writer *writer, uint8_t *memory, size_t bytes)
{
    if (memory == writer->scratch)
        atomic_store_explicit(&writer->scratch_is_taken, false, memory_order_release);
    else
        munmap(memory, bytes);
}

int jd_writer_begin_large(struct dump_writer *writer, uint64_t now, uint64_t bytes,
                          uint32_t new_functions, uint64_t patience_ns, struct dump_room *room)
{
    int error = refuse_large(writer, bytes, patience_ns);
    if (error)
        return error == -EAGAIN || error == -ESHUTDOWN ? error : cannot_grow(writer, error);
    uint8_t *large = take_memory(writer, bytes);
    if (!large)
        return jd_error_keep(writer->error, -ENOMEM,
                             "%s: no memory to put a large function together", writer->path);
    *room = (struct dump_room){.sink = byte_sink_over(large, (size_t)bytes),
                               .timestamp = now,
                               .new_functions = new_functions,
                               .writer = writer,
                               .large = large,
                               .patience_ns = patience_ns};
    return 0;
}

/* Give a record of a function, or of piece *NUMBER of one, the code indices that begin with FIRST.
 * Records after a PIECE are about that piece. */
static void stamp_index(uint8_t *record, uint32_t id, uint64_t first, uint32_t *number)
{
    uint64_t index = first + *number;
    if (id == JIT_CODE_PIECE) {
        memcpy(record + JR_CODE_PIECE_INDEX, &first, sizeof first);
        memcpy(number, record + JR_CODE_PIECE_NUMBER, sizeof *number);
    } else if (id == JIT_CODE_LOAD) {
        memcpy(record + JR_CODE_LOAD_INDEX, &index, sizeof index);
    }
}

/* Give ROOM's assembled group its time and its code indices. */
static void stamp_large(struct dump_room *room)
{
    enum { SIZE_OFFSET = 4, TIME_OFFSET = 8 };
    uint32_t id = room->first_id, total_size = room->first_total_size, number = 0;
    jd_writer_stamp(room->writer, room->timestamp, room);
    for (size_t at = 0; at < room->sink.size; at += total_size) {
        uint8_t *record = room->large + at;
        if (at > 0) {
            memcpy(&id, record, sizeof id);
            memcpy(&total_size, record + SIZE_OFFSET, sizeof total_size);
        }
        memcpy(record + TIME_OFFSET, &room->timestamp, sizeof room->timestamp);
        stamp_index(record, id, room->code_index, &number);
    }
}

/* Empty the stage, and give the group its place.  The body's lock is held. */
static int prepare_large(struct dump_room *room)
{
    struct dump_writer *writer = room->writer;
    int error = jd_writer_lock(writer);
    if (error)
        return error;
    error = writer->ended ? -ESHUTDOWN : flush_unless_failed(writer);
    if (!error) {
        stamp_large(room);
        jd_writer_count(room);
        atomic_store_explicit(&writer->draining, true, memory_order_relaxed); /* nobody else can */
    }
    jd_unlock(&writer->lock);
    return error;
}

/* While it is written, others continue in the stage, with later times. */
static int write_large(const struct dump_room *room)
{
    struct dump_writer *writer = room->writer;
    uint64_t bytes = room->sink.size;
    jd_store_id_and_size(room->large, room->first_id, room->first_total_size);
    int error = jd_body_check(&writer->body);
    if (!error)
        error = jd_ring_add(&writer->ring, &writer->body, room->large, (size_t)bytes, false);
    if (error)
        jd_body_give_back(&writer->body);
    if (jd_writer_lock(writer) == 0) {
        jd_failure_note(&writer->large_failure, error);
        writer->large_failure_bytes = bytes;
        jd_unlock(&writer->lock);
    }
    return error;
}

static int add_large(struct dump_room *room)
{
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    struct dump_writer *writer = room->writer;
    int error = jd_lock(&writer->body_lock, jd_author(writer->pid).tid, room->patience_ns);
    if (!error) {
        error = prepare_large(room);
        if (!error)
            error = write_large(room);
        atomic_store_explicit(&writer->draining, false, memory_order_relaxed);
        jd_unlock(&writer->body_lock);
    }
    pthread_setcancelstate(cancel_state, &cancel_state);
    return error;
}

static int put_aside(struct dump_room *room)
{
    jd_store_id_and_size(room->large, room->first_id, room->first_total_size);
    return jd_late_put(&room->writer->late, room->timestamp, room->large,
                       (uint32_t)room->sink.size);
}

static int end_large(struct dump_room *room, bool whole)
{
    int error = whole ? add_large(room) : -EINVAL;
    if (!room->new_functions && jd_writer_can_wait(room->writer, error) && put_aside(room) == 0)
        error = 0;
    give_memory_back(room->writer, room->large, room->sink.capacity);
    if (whole && error && error != -ESHUTDOWN)
        return error == -EAGAIN ? jd_writer_is_stopped(room->writer)
                                : cannot_grow(room->writer, error);
    return error;
}

/* ---- Late records ---- */

/* Another thread may write some late records while this one waits for room. */
int jd_writer_put_late(struct dump_writer *writer, uint64_t patience_ns)
{
    const struct late_record *late;
    while ((late = put_late_that_fit(writer)) != NULL) {
        int error = jd_writer_wait(writer, late->bytes, 0, patience_ns);
        if (error)
            return error;
    }
    return 0;
}

void jd_writer_begin_late(struct dump_writer *writer, uint64_t now, void *at, uint64_t bytes,
                          struct dump_room *room)
{
    *room = (struct dump_room){.sink = byte_sink_over(at, (size_t)bytes),
                               .timestamp = now,
                               .writer = writer,
                               .large = at,
                               .late = true};
}

int jd_writer_end_aside(struct dump_room *room, bool whole)
{
    if (!room->late)
        return end_large(room, whole);
    return put_aside(room) ? jd_writer_is_stopped(room->writer) : 0;
}

/* ---- What follows a group ---- */

/* Without a mapped stage: write its contents. */
static void write_through(struct dump_writer *writer)
{
    int cancel_state;
    uint32_t thread = jd_author(writer->pid).tid;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    if (jd_lock(&writer->body_lock, thread, JD_PATIENCE_NS) == 0) {
        if (jd_lock(&writer->lock, thread, JD_PATIENCE_NS) == 0) {
            flush_unless_failed(writer);
            jd_unlock(&writer->lock);
        }
        jd_unlock(&writer->body_lock);
    }
    pthread_setcancelstate(cancel_state, &cancel_state);
}

void jd_writer_unlock_and_tidy(struct dump_writer *writer)
{
    if (jd_late_any(&writer->late) && jd_writer_put_late(writer, JD_LITTLE_PATIENCE_NS))
        return;
    if (writer->unmapped) {
        jd_unlock(&writer->lock);
        write_through(writer);
        return;
    }
    bool drains = writer->stage.spilling && !jd_failure_is_fresh(&writer->drain_failure) &&
                  !atomic_exchange_explicit(&writer->draining, true, memory_order_relaxed);
    jd_unlock(&writer->lock);
    /* A failure is reported to the thread that finds no more room. */
    if (drains && drain(writer, JD_LITTLE_PATIENCE_NS) == -EAGAIN)
        atomic_store_explicit(&writer->draining, false, memory_order_relaxed);
}

/* ---- The end ---- */

static void make_close(const struct dump_writer *writer, uint8_t close[JR_CODE_CLOSE_BYTES])
{
    const uint64_t now = jd_clock_now(writer->counter), last = writer->last_time;
    struct byte_sink sink = byte_sink_over(close, JR_CODE_CLOSE_BYTES);
    sink_u32(&sink, JIT_CODE_CLOSE);
    sink_u32(&sink, JR_CODE_CLOSE_BYTES);
    sink_u64(&sink, now > last ? now : last + 1);
}

/* Put CLOSE at the end of the stage. */
static void put_close(struct dump_writer *writer)
{
    struct dump_stage *stage = &writer->stage;
    if (!jd_stage_holds(stage, JR_CODE_CLOSE_BYTES) && !stage->spilling)
        jd_stage_spill(stage);
    if (!jd_stage_holds(stage, JR_CODE_CLOSE_BYTES))
        flush(writer, false);
    if (!jd_stage_holds(stage, JR_CODE_CLOSE_BYTES))
        return; /* the end of the file shows as much */
    uint8_t close[JR_CODE_CLOSE_BYTES];
    make_close(writer, close);
    memcpy(stage->data + stage->end, close, sizeof close);
    jd_stage_append(stage, JR_CODE_CLOSE_BYTES, JIT_CODE_CLOSE, JR_CODE_CLOSE_BYTES);
}

/* Move all of the stage to the body, with CLOSE. */
static int close_body(struct dump_writer *writer)
{
    if (!writer->is_ring)
        writer->body.max_bytes = writer->max_bytes;         /* the stage's share as well */
    writer->ring.again_ns = writer->ring.full_until_ns = 0; /* the last chance */
    put_close(writer);
    int error = flush(writer, true);
    if (!error)
        error = jd_ring_settle(&writer->ring, &writer->body);
    if (!error)
        error = jd_body_cut(&writer->body);
    if (!error)
        put_close(writer); /* the stage is an empty dump now, which perf inject reads as well */
    return error;
}

static void cut_stage(const struct dump_writer *writer)
{
    if (!writer->unmapped && jd_fd_is_ours(&writer->stage_fd))
        (void)!ftruncate(writer->stage_fd.number, (off_t)writer->stage.end);
}

static int cannot_close(const struct dump_writer *writer, int error)
{
    if (error == -EBADF)
        return jd_error_keep(writer->error, error,
                             "%s: the program closed the file's descriptor: fillers are left in it",
                             writer->path);
    errno = -error;
    if (writer->unmapped)
        return jd_error_keep(writer->error, error, "%s: what was recorded last is lost: %m%s",
                             writer->path, remedy(writer, error));
    return jd_error_keep(writer->error, error,
                         "%s: has no room for what was recorded last, which stays in "
                         "stage/jit-%" PRIu32 ".dump beside it: %m",
                         writer->path, writer->pid);
}

static int close_locked(struct dump_writer *writer)
{
    int error = jd_body_check(&writer->body);
    if (error == -ENOENT || error == -ESTALE) { /* the file is no longer ours */
        is_gone(writer, error);
        put_close(writer);
    } else {
        error = close_body(writer);
        if (error)
            cannot_close(writer, error);
    }
    cut_stage(writer);
    return error;
}

/* If there is no room for them, the lock has been released. */
static int put_last_late(struct dump_writer *writer)
{
    int error = jd_writer_put_late(writer, JD_PATIENCE_NS);
    if (error)
        jd_lock_seize(&writer->lock, jd_author(writer->pid).tid);
    return error;
}

/* Both locks are held. */
static int close_with_late(struct dump_writer *writer)
{
    int late_error = jd_body_check(&writer->body) == 0 ? put_last_late(writer) : 0;
    int error = close_locked(writer);
    return error ? error : late_error;
}

int jd_writer_close(struct dump_writer *writer)
{
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    /* No call is in progress: a lock that is held now was left by a longjmp. */
    jd_lock_seize(&writer->body_lock, jd_author(writer->pid).tid);
    jd_lock_seize(&writer->lock, jd_author(writer->pid).tid);
    int error = close_with_late(writer);
    jd_writer_abandon(writer);
    jd_unlock(&writer->lock);
    jd_unlock(&writer->body_lock);
    pthread_setcancelstate(cancel_state, &cancel_state);
    return error;
}

/* A large function may be put together in the scratch, without a lock. */
static int end_locked(struct dump_writer *writer)
{
    int error = close_with_late(writer);
    jd_stage_unmap(&writer->stage);
    writer->stage = (struct dump_stage){.end = STAGE_START, .stop = STAGE_START};
    writer->ended = true;
    return error;
}

int jd_writer_end_all(struct dump_writer *writer)
{
    int cancel_state;
    uint32_t thread = jd_author(writer->pid).tid;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int error = jd_lock(&writer->body_lock, thread, JD_PATIENCE_NS);
    if (!error) {
        error = jd_lock(&writer->lock, thread, JD_PATIENCE_NS);
        if (!error) {
            error = end_locked(writer);
            error = error == -EAGAIN ? -EIO : error;
            jd_unlock(&writer->lock);
        }
        jd_unlock(&writer->body_lock);
    }
    pthread_setcancelstate(cancel_state, &cancel_state);
    return error;
}

void jd_writer_abandon(struct dump_writer *writer)
{
    jd_stage_unmap(&writer->stage);
    unmap_scratch(writer);
}

void jd_writer_disown(struct dump_writer *writer)
{
    writer->stage.data = NULL; /* they are not mapped in a child */
    writer->scratch = NULL;
}

void jd_writer_destroy(struct dump_writer *writer)
{
    jd_late_free(&writer->late);
    unmap_scratch(writer);
}
