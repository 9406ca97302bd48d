/* See dump_writer.h. */
#include "jitdump/dump_writer.h"
#include "jitdump/disk_room.h"
#include "jitdump/dump_clock.h"
#include "jitdump/jitdump_format.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* The gap between body and stage costs nothing on a disk until it is filled.  The first is small, for short programs,
 * and the others as large as they may be (near the file's limit by a stage more): perf inject reads each record whole into its
 * memory, a FILLER too. */
#define GAP_MIN_BYTES (UINT64_C(1) << 20)
#define GAP_MAX_BYTES ((UINT64_C(16) << 20) - (64 << 10))

void jd_writer_init(struct dump_writer *writer, const char *path, struct first_error *error)
{
    memset(writer, 0, sizeof *writer);
    jd_late_init(&writer->late);
    writer->pid = (uint32_t)getpid();
    writer->body.fd.number = -1;
    writer->gap_bytes = GAP_MIN_BYTES;
    writer->stage_bytes = STAGE_FIRST_BYTES;
    writer->path = path;
    writer->error = error;
}

void jd_writer_destroy(struct dump_writer *writer)
{
    jd_late_free(&writer->late);
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

static int take_lock(struct dump_writer *writer)
{
    return jd_lock(&writer->lock, jd_author(writer->pid).tid, JD_PATIENCE_NS);
}

/* ---- A new stage ---- */

static uint64_t page_down(uint64_t bytes)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    return bytes / page_bytes * page_bytes;
}

static uint64_t page_up(uint64_t bytes)
{
    return page_down(bytes + (uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

static uint64_t file_end(const struct dump_writer *writer)
{
    return writer->stage.data ? writer->stage.offset + writer->stage.bytes : 0;
}

/* Where the next stage could begin: behind room for the FILLER that hides it while it is made. */
static uint64_t first_place(const struct dump_writer *writer)
{
    return writer->stage.data ? page_up(file_end(writer) + JR_PREFIX_BYTES) : 0;
}

/* What the gap must have for main to be emptied in one go. */
static uint64_t gap_least_bytes(const struct dump_writer *writer)
{
    return writer->stage.main_bytes + JR_PREFIX_BYTES;
}

/* Where a stage could be made. */
struct stage_place {
    uint64_t offset; /* 0: nowhere */
    uint32_t bytes;  /* that it can have */
    uint32_t at_first;
};

/* A place that leaves GAP bytes behind the body, or what the file's limit allows, but LEAST.  Where no other stage could follow it
 * ends at the limit. */
static struct stage_place place_stage(const struct dump_writer *writer, uint64_t gap,
                                      uint64_t least, uint32_t bytes)
{
    uint64_t limit = jd_file_size_limit();
    if (writer->max_bytes && writer->max_bytes < limit)
        limit = writer->max_bytes;
    uint64_t first = first_place(writer), offset = page_up(writer->body.end + gap);
    if (offset < first)
        offset = first;
    if (limit < bytes)
        return (struct stage_place){0};
    uint64_t last = page_down(limit - bytes);
    if (offset > last || last - offset < page_up(bytes + JR_PREFIX_BYTES))
        offset = last;
    if (offset < first || offset < writer->body.end + least)
        offset = 0;
    return (struct stage_place){offset, bytes, writer->stage.data ? bytes : STAGE_SMALL_BYTES};
}

/* Have the file reach behind a stage at PLACE, which stays hidden in a FILLER of all that is new. */
static int extend_file(const struct dump_writer *writer, struct stage_place place)
{
    uint64_t end = file_end(writer), new_end = place.offset + place.at_first;
    const uint32_t filler[] = {JIT_FILLER, (uint32_t)(new_end - end), 0, 0};
    if (!jd_fd_is_ours(&writer->body.fd))
        return -EBADF;
    int error = jd_disk_room(writer->body.fd.number, end, place.offset, new_end);
    if (!error && end)
        error = jd_body_write(&writer->body, filler, sizeof filler, end);
    return error;
}

static void shorten_file(const struct dump_writer *writer, uint64_t end)
{
    if (jd_fd_is_ours(&writer->body.fd))
        (void)!ftruncate(writer->body.fd.number, (off_t)end);
}

static int make_stage_at(const struct dump_writer *writer, struct stage_place place,
                         struct dump_stage *fresh)
{
    if (place.offset == 0)
        return -EFBIG;
    int error = extend_file(writer, place);
    if (!error)
        error =
            jd_stage_map(fresh, writer->body.fd.number, place.offset, place.at_first, place.bytes);
    if (error)
        shorten_file(writer, file_end(writer));
    return error;
}

/* Make a stage with a gap of LEAST bytes or more between the body and it.  For a large one there may be no room, on the disk or in
 * memory, nor, where gaps take blocks (FAT), for a large gap: then one of the size of the present one, which is always enough for
 * what is in that. */
static int make_stage(struct dump_writer *writer, uint64_t least, struct dump_stage *fresh)
{
    uint64_t gap = writer->gap_bytes > least ? writer->gap_bytes : least;
    uint32_t bytes = writer->stage.data ? writer->stage.mapped_bytes : writer->stage_bytes;
    struct stage_place place = place_stage(writer, gap, gap, writer->stage_bytes);
    if (place.offset == 0) /* near the file's limit */
        place = place_stage(writer, gap, least, bytes);
    int error = make_stage_at(writer, place, fresh);
    if (error && error != -EBADF && (gap > least || place.bytes > bytes)) {
        place = place_stage(writer, least, least, bytes);
        place.at_first = writer->stage.data ? writer->stage.bytes : STAGE_SMALL_BYTES;
        error = make_stage_at(writer, place, fresh);
    } else if (!error) {
        writer->gap_bytes = GAP_MAX_BYTES;
        writer->stage_bytes = STAGE_LATER_BYTES;
    }
    return error;
}

/* It was made in vain. */
static void drop_stage(const struct dump_writer *writer, struct dump_stage *fresh)
{
    shorten_file(writer, file_end(writer));
    jd_stage_unmap(fresh);
}

/* Put FRESH in the place of the stage, with what is in it.  The lock is held. */
static int replace_stage(struct dump_writer *writer, struct dump_stage *fresh)
{
    struct dump_stage old = writer->stage;
    jd_stage_copy(fresh, &old);
    int error = jd_body_point(&writer->body, fresh->offset);
    if (error) {
        drop_stage(writer, fresh);
        return error;
    }
    writer->stage = *fresh;
    jd_stage_unmap(&old);
    return 0;
}

/* A new stage with a gap of LEAST bytes or more, unless that failed lately.  The lock is taken if LOCK. */
static int move_stage(struct dump_writer *writer, uint64_t least, bool lock)
{
    struct dump_stage fresh;
    if (jd_failure_is_fresh(&writer->stage_failure))
        return writer->stage_failure.error;
    int error = make_stage(writer, least, &fresh);
    if (!error) {
        if (!lock || (error = take_lock(writer)) == 0)
            error = replace_stage(writer, &fresh);
        else
            drop_stage(writer, &fresh);
        if (lock && error != -EAGAIN)
            jd_unlock(&writer->lock);
    }
    /* These cost nothing. */
    jd_failure_note(&writer->stage_failure, error == -EFBIG || error == -EAGAIN ? 0 : error);
    return error;
}

int jd_writer_start(struct dump_writer *writer, const struct held_fd *fd, const void *header,
                    size_t header_bytes)
{
    uint8_t start[JITHEADER_BYTES + JR_PREFIX_BYTES];
    struct byte_sink sink = byte_sink_over(start, sizeof start);
    writer->body = (struct dump_body){
        .fd = *fd, .end = header_bytes, .reserves = jd_disk_reserves_cheaply(fd->number)};
    jd_disk_write_in_place(fd->number);
    int error = make_stage(writer, JR_PREFIX_BYTES, &writer->stage);
    if (error)
        return cannot_grow(writer, error);
    sink_bytes(&sink, header, header_bytes);
    sink_u32(&sink, JIT_FILLER);
    sink_u32(&sink, (uint32_t)(writer->stage.offset - header_bytes));
    sink_u64(&sink, 0);
    error = jd_body_write(&writer->body, start, sink.size, 0);
    if (!error)
        return 0;
    jd_stage_unmap(&writer->stage);
    return cannot_grow(writer, error);
}

/* ---- From the stage into the body ---- */

/* How many of BYTES of records are whole groups that fit in ROOM bytes. */
static uint32_t groups_within(const uint8_t *records, uint32_t bytes, uint64_t room)
{
    uint32_t fitting = 0;
    for (uint32_t at = 0; at < bytes;) {
        uint32_t id_and_size[2];
        memcpy(id_and_size, records + at, sizeof id_and_size);
        at += id_and_size[1];
        if (at > room)
            break;
        if (id_and_size[0] == JIT_CODE_LOAD || id_and_size[0] == JIT_CODE_MOVE ||
            id_and_size[0] == JIT_CODE_UNLOAD || id_and_size[0] == JIT_CODE_CLOSE)
            fitting = at;
    }
    return fitting;
}

/* Add groups of the stage from *FROM up to TO to the body, as many as fit in ROOM bytes with the prefix of a FILLER behind them.
 * These are hidden then, and with the last one what follows it up to HIDDEN_END. */
static int add_some(struct dump_writer *writer, uint32_t *from, uint32_t to, uint32_t hidden_end,
                    uint64_t room)
{
    struct dump_stage *stage = &writer->stage;
    uint32_t bytes = to - *from;
    if (bytes + JR_PREFIX_BYTES > room) {
        bytes = groups_within(stage->data + *from, bytes, room - JR_PREFIX_BYTES);
        hidden_end = *from + bytes;
    }
    if (bytes == 0)
        return writer->stage_failure.error ? writer->stage_failure.error : -EFBIG;
    int error = jd_body_add(&writer->body, stage->data + *from, bytes, stage->offset + hidden_end);
    if (!error)
        *from = hidden_end;
    return error;
}

/* Empty and hide main, while the stage spills: it does only if there are groups in main.  The lock is taken if LOCK, to move the
 * stage. */
static int empty_main(struct dump_writer *writer, bool lock)
{
    struct dump_stage *stage = &writer->stage;
    int error = jd_body_check(&writer->body);
    if (!error && stage->drained < stage->full_end &&
        stage->offset - writer->body.end < gap_least_bytes(writer))
        move_stage(writer, gap_least_bytes(writer), lock); /* if not, add_some may find room */
    while (!error && stage->drained < stage->full_end)
        error = add_some(writer, &stage->drained, stage->full_end, stage->main_bytes,
                         stage->offset - writer->body.end);
    return error;
}

/* Main is empty: what is in the spill takes its place.  The lock is held. */
static int end_spill(struct dump_writer *writer)
{
    jd_stage_gather(&writer->stage);
    int error = jd_body_point(&writer->body, writer->stage.offset);
    if (!error)
        jd_stage_gathered(&writer->stage);
    return error;
}

/* Whether the stage, in which something has no room, can be made larger. */
static bool can_grow(const struct dump_writer *writer)
{
    const struct dump_stage *stage = &writer->stage;
    return stage->bytes < stage->mapped_bytes && !stage->spilling &&
           !jd_failure_is_fresh(&writer->grow_failure);
}

/* Both locks are held. */
static int grow_stage(struct dump_writer *writer)
{
    uint64_t end = file_end(writer);
    int error = jd_fd_is_ours(&writer->body.fd) ? 0 : -EBADF;
    if (!error)
        error = jd_disk_room(writer->body.fd.number, end, end,
                             writer->stage.offset + writer->stage.mapped_bytes);
    if (!error)
        jd_stage_grow(&writer->stage);
    jd_failure_note(&writer->grow_failure, error);
    return error;
}

static int drain_locked(struct dump_writer *writer)
{
    int error = take_lock(writer);
    if (error)
        return error;
    if (can_grow(writer))
        grow_stage(writer); /* if not, main is emptied more often */
    bool wanted = writer->stage.spilling;
    if (wanted && jd_failure_is_fresh(&writer->drain_failure)) {
        wanted = false;
        error = writer->drain_failure.error;
    }
    writer->draining = wanted;
    jd_unlock(&writer->lock);
    if (!wanted)
        return error;
    error = empty_main(writer, true);
    if (take_lock(writer))
        return error ? error : -EAGAIN; /* main is empty; who comes next ends the spill */
    if (!error)
        error = end_spill(writer);
    if (error != -EAGAIN)
        jd_failure_note(&writer->drain_failure, error);
    jd_unlock(&writer->lock);
    return error;
}

/* Have the stage larger, if it can be, and main empty again, if it is not: then, or when another thread has done it, this returns 0. */
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

/* Have all of the stage in the body.  Both locks are held. */
static int flush(struct dump_writer *writer)
{
    struct dump_stage *stage = &writer->stage;
    int error = 0;
    while (!error && (stage->spilling || stage->end > 0)) {
        if (!stage->spilling)
            jd_stage_spill(stage);
        error = empty_main(writer, false);
        if (!error)
            error = end_spill(writer);
    }
    jd_failure_note(&writer->drain_failure, error);
    return error;
}

/* ---- Groups ---- */

int jd_writer_wait(struct dump_writer *writer, uint64_t bytes, uint64_t patience_ns)
{
    while (!jd_stage_holds(&writer->stage, bytes)) {
        const struct dump_stage *stage = &writer->stage;
        int error = jd_failure_is_fresh(&writer->drain_failure) ? writer->drain_failure.error : 0;
        if (can_grow(writer)) {
            error = 0;
        } else if (!stage->spilling && bytes + JR_PREFIX_BYTES > stage->main_bytes) {
            error = writer->grow_failure.error; /* it would not hold if it were empty, either */
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

/* ---- Late records ---- */

/* Another thread may write some of them while this one waits for room. */
int jd_writer_put_late(struct dump_writer *writer, uint64_t patience_ns)
{
    const struct late_record *late;
    while ((late = jd_late_first(&writer->late)) != NULL) {
        struct dump_stage *stage = &writer->stage;
        uint32_t bytes = late->bytes, id_and_size[2];
        if (!jd_stage_holds(stage, bytes)) {
            int error = jd_writer_wait(writer, bytes, patience_ns);
            if (error)
                return error;
            continue;
        }
        struct dump_room room;
        memcpy(id_and_size, late->data, sizeof id_and_size);
        jd_writer_take(writer, late->time, stage->data + stage->end, bytes, false, &room);
        memcpy(stage->data + stage->end + JR_PREFIX_BYTES, late->data + JR_PREFIX_BYTES,
               bytes - JR_PREFIX_BYTES);
        memcpy(stage->data + stage->end + sizeof id_and_size, &room.timestamp,
               sizeof room.timestamp);
        jd_late_drop_first(&writer->late);
        jd_stage_append(stage, bytes, id_and_size[0], id_and_size[1]);
        jd_writer_count(&room);
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

/* ---- A large group ---- */

/* What failed lately need not be put together, or tried, again; nor what the disk obviously has no room for. */
static int refuse_large(struct dump_writer *writer, uint64_t bytes)
{
    if (take_lock(writer))
        return -EAGAIN;
    bool failed =
        jd_failure_is_fresh(&writer->large_failure) && bytes >= writer->large_failure_bytes;
    int error = failed ? writer->large_failure.error : 0;
    jd_unlock(&writer->lock);
    if (!error && !jd_disk_may_hold(writer->body.fd.number, bytes) &&
        jd_fd_is_ours(&writer->body.fd))
        error = -ENOSPC;
    return error;
}

int jd_writer_begin_large(struct dump_writer *writer, uint64_t now, uint64_t bytes,
                          bool new_function, struct dump_room *room)
{
    int error = refuse_large(writer, bytes);
    if (error)
        return error == -EAGAIN ? error : cannot_grow(writer, error);
    /* Not by malloc, whose lock a thread may have that is stopped. */
    void *large =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (large == MAP_FAILED)
        return jd_error_keep(writer->error, -ENOMEM,
                             "%s: no memory to put a large function together", writer->path);
    *room = (struct dump_room){.sink = byte_sink_over(large, (size_t)bytes),
                               .timestamp = now,
                               .new_function = new_function,
                               .writer = writer,
                               .large = large};
    return 0;
}

/* Give ROOM's group, which is put together, its place in time and its code index. */
static void stamp_large(struct dump_room *room)
{
    enum { SIZE_OFFSET = 4, TIME_OFFSET = 8 };
    uint32_t total_size = room->first_total_size;
    size_t last = 0;
    jd_writer_stamp(room->writer, room->timestamp, room);
    for (size_t at = 0; at < room->sink.size; at += total_size) {
        if (at > 0)
            memcpy(&total_size, room->large + at + SIZE_OFFSET, sizeof total_size);
        memcpy(room->large + at + TIME_OFFSET, &room->timestamp, sizeof room->timestamp);
        last = at;
    }
    memcpy(room->large + last + JR_CODE_LOAD_INDEX, &room->code_index, sizeof room->code_index);
}

/* An empty stage, room in front of it, and what a group's place in the file says.  The body's lock is held. */
static int prepare_large(struct dump_room *room)
{
    struct dump_writer *writer = room->writer;
    uint64_t bytes = room->sink.size;
    int error = take_lock(writer);
    if (error)
        return error;
    error =
        jd_failure_is_fresh(&writer->drain_failure) ? writer->drain_failure.error : flush(writer);
    if (!error && writer->stage.offset - writer->body.end < bytes + JR_PREFIX_BYTES)
        error = move_stage(writer, bytes + gap_least_bytes(writer), false);
    if (!error) {
        stamp_large(room);
        jd_writer_count(room);
        atomic_store_explicit(&writer->draining, true, memory_order_relaxed); /* nobody else can */
    }
    jd_unlock(&writer->lock);
    return error;
}

/* Others go on in the stage, behind the group and later than it, while it is written. */
static int write_large(const struct dump_room *room)
{
    struct dump_writer *writer = room->writer;
    uint64_t bytes = room->sink.size, end = writer->stage.offset;
    jd_store_id_and_size(room->large, room->first_id, room->first_total_size);
    int error = jd_body_check(&writer->body);
    if (!error)
        error = jd_body_add(&writer->body, room->large, (size_t)bytes, end);
    if (error && jd_fd_is_ours(&writer->body.fd))
        jd_disk_give_back(writer->body.fd.number, writer->body.end + JR_PREFIX_BYTES, end);
    if (take_lock(writer) == 0) {
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
    int error = jd_lock(&writer->body_lock, jd_author(writer->pid).tid, JD_PATIENCE_NS);
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

static int end_large(struct dump_room *room, bool whole)
{
    int error = whole ? add_large(room) : -EINVAL;
    munmap(room->large, room->sink.capacity);
    if (whole && error)
        return error == -EAGAIN ? jd_writer_is_stopped(room->writer)
                                : cannot_grow(room->writer, error);
    return error;
}

int jd_writer_end_aside(struct dump_room *room, bool whole)
{
    if (!room->late)
        return end_large(room, whole);
    jd_store_id_and_size(room->large, room->first_id, room->first_total_size);
    int error =
        jd_late_put(&room->writer->late, room->timestamp, room->large, (uint32_t)room->sink.size);
    return error ? jd_writer_is_stopped(room->writer) : 0;
}

/* ---- Emptying main ---- */

void jd_writer_unlock_and_tidy(struct dump_writer *writer)
{
    if (jd_late_any(&writer->late) && jd_writer_put_late(writer, JD_LITTLE_PATIENCE_NS))
        return;
    bool drains = writer->stage.spilling && !jd_failure_is_fresh(&writer->drain_failure) &&
                  !atomic_exchange_explicit(&writer->draining, true, memory_order_relaxed);
    jd_unlock(&writer->lock);
    /* A failure is for whoever finds no room any more. */
    if (drains && drain(writer, JD_LITTLE_PATIENCE_NS) == -EAGAIN)
        atomic_store_explicit(&writer->draining, false, memory_order_relaxed);
}

/* ---- The end ---- */

/* All of the stage into the body, for the last time: the body may grow into the stage, behind what it takes.  Only for one group
 * there must be room in front of that. */
static int flush_for_good(struct dump_writer *writer)
{
    struct dump_stage *stage = &writer->stage;
    int error = 0;
    uint64_t hidden = stage->spilling ? stage->drained : 0;
    if (stage->offset + hidden - writer->body.end < STAGE_GROUP_MAX_BYTES + JR_PREFIX_BYTES &&
        (stage->spilling || stage->end > 0))
        move_stage(writer, gap_least_bytes(writer), false); /* if not, add_some may find room */
    if (!stage->spilling)
        jd_stage_spill(stage);
    while (!error && stage->drained < stage->full_end)
        error = add_some(writer, &stage->drained, stage->full_end, stage->main_bytes,
                         stage->offset + stage->drained - writer->body.end);
    uint32_t from = stage->main_bytes;
    while (!error && from < stage->end)
        error = add_some(writer, &from, stage->end, stage->bytes,
                         stage->offset + from - writer->body.end);
    return error;
}

static void make_close(const struct dump_writer *writer, uint8_t close[JR_CODE_CLOSE_BYTES])
{
    const uint64_t now = jd_clock_now(writer->counter), last = writer->last_time;
    struct byte_sink sink = byte_sink_over(close, JR_CODE_CLOSE_BYTES);
    sink_u32(&sink, JIT_CODE_CLOSE);
    sink_u32(&sink, JR_CODE_CLOSE_BYTES);
    sink_u64(&sink, now > last ? now : last + 1);
}

/* CLOSE in place of all that follows the body, the empty stage too: it may reach into that. */
static int close_body(struct dump_writer *writer)
{
    uint8_t close[JR_CODE_CLOSE_BYTES];
    struct dump_body *body = &writer->body;
    make_close(writer, close);
    int error = jd_body_point(body, file_end(writer));
    if (!error)
        error = jd_body_add(body, close, sizeof close, file_end(writer));
    if (!error && ftruncate(body->fd.number, (off_t)body->end) != 0)
        error = -errno;
    return error;
}

/* The same for what has to stay in the stage. */
static void close_stage(struct dump_writer *writer)
{
    struct dump_stage *stage = &writer->stage;
    if (jd_stage_holds(stage, JR_CODE_CLOSE_BYTES)) {
        make_close(writer, stage->data + stage->end);
        jd_stage_append(stage, JR_CODE_CLOSE_BYTES, JIT_CODE_CLOSE, JR_CODE_CLOSE_BYTES);
    }
    shorten_file(writer, stage->offset + stage->end);
}

static int close_locked(struct dump_writer *writer)
{
    int error = jd_body_check(&writer->body);
    if (error == -ENOENT || error == -ESTALE) /* it is none of our business any more */
        return is_gone(writer, error);
    error = flush_for_good(writer);
    if (!error)
        error = close_body(writer);
    else
        close_stage(writer);
    if (!error)
        return 0;
    if (error == -EBADF)
        return jd_error_keep(writer->error, error,
                             "%s: the program closed the file's descriptor: fillers are left in it",
                             writer->path);
    errno = -error;
    return jd_error_keep(writer->error, error, "%s: cannot be cut to its length: %m", writer->path);
}

/* If there is no room for them the lock was let go. */
static int put_last_late(struct dump_writer *writer)
{
    int error = jd_writer_put_late(writer, JD_PATIENCE_NS);
    if (error)
        jd_lock_seize(&writer->lock, jd_author(writer->pid).tid);
    return error;
}

int jd_writer_close(struct dump_writer *writer)
{
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    /* No call is under way: what holds a lock now was left by a longjmp. */
    jd_lock_seize(&writer->body_lock, jd_author(writer->pid).tid);
    jd_lock_seize(&writer->lock, jd_author(writer->pid).tid);
    int late_error = jd_body_check(&writer->body) == 0 ? put_last_late(writer) : 0;
    int error = close_locked(writer);
    jd_writer_abandon(writer);
    jd_unlock(&writer->lock);
    jd_unlock(&writer->body_lock);
    pthread_setcancelstate(cancel_state, &cancel_state);
    return error ? error : late_error;
}

void jd_writer_abandon(struct dump_writer *writer)
{
    jd_stage_unmap(&writer->stage);
}

void jd_writer_disown(struct dump_writer *writer)
{
    writer->stage.data = NULL; /* it is not there in a child */
}
