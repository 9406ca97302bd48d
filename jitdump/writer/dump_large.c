/* A group that is too large for the stage, or any group if the stage is not mapped: it goes
 * directly to the body, after all that was in the stage.
 *
 * It is assembled before any lock is taken, and gets its time and code index afterwards.  Others
 * continue in the stage while it is written.  Its functions are declared in dump_writer.h.
 */
#include "jitdump/disk/disk_room.h"
#include "jitdump/writer/dump_writer.h"

#include <sys/mman.h>

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
        return error == -EAGAIN || error == -ESHUTDOWN ? error
                                                       : jd_writer_cannot_grow(writer, error);
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
 * What follows a PIECE is about that piece. */
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
    error = writer->ended ? -ESHUTDOWN : jd_writer_flush(writer);
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

/* A stopped thread does not cost a move or unload. */
static int put_aside(struct dump_room *room)
{
    jd_store_id_and_size(room->large, room->first_id, room->first_total_size);
    return jd_late_put(&room->writer->late, room->timestamp, room->large,
                       (uint32_t)room->sink.size);
}

int jd_writer_end_large(struct dump_room *room, bool whole)
{
    int error = whole ? add_large(room) : -EINVAL;
    if (error == -EAGAIN && !room->new_functions && put_aside(room) == 0)
        error = 0;
    give_memory_back(room->writer, room->large, room->sink.capacity);
    if (whole && error && error != -ESHUTDOWN)
        return error == -EAGAIN ? jd_writer_is_stopped(room->writer)
                                : jd_writer_cannot_grow(room->writer, error);
    return error;
}
