/* See dump_tail.h. */
#include "jitdump/dump_tail.h"
#include "jitdump/disk_room.h"
#include "jitdump/dump_clock.h"
#include "jitdump/jitdump_format.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The file doubles, so that short programs stay small, in steps between these two. */
enum { STEP_MIN_BYTES = 64 << 10, STEP_MAX_BYTES = 2 << 20 };

/* Pages are made ready in lots of this size, when the tail comes nearer than that to unready ones. */
enum { POPULATE_BYTES = 256 << 10, POPULATE_AHEAD_BYTES = 32 << 10 };

void jd_tail_init(struct dump_tail *tail, const char *path, struct first_error *error)
{
    pthread_mutexattr_t attributes;
    memset(tail, 0, sizeof *tail);
    pthread_mutexattr_init(&attributes);
#ifdef __GLIBC__
    /* It is held for less time than falling asleep takes, but when the file grows. */
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    pthread_mutex_init(&tail->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    tail->fd.number = -1;
    tail->path = path;
    tail->error = error;
}

/* ---- Growing ---- */

static uint64_t page_up(uint64_t bytes)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

static uint64_t step_bytes(uint64_t reserved)
{
    if (reserved < STEP_MIN_BYTES)
        return STEP_MIN_BYTES;
    return reserved < STEP_MAX_BYTES ? reserved : STEP_MAX_BYTES;
}

static const char *remedy_for_growth(int error)
{
    switch (-error) {
    case ENOSPC:
        return "; free some space, or set JITDUMPDIR to a directory on another file system";
    case EDQUOT:
        return "; free some of the quota, or set JITDUMPDIR to a directory on another file system";
    case EFBIG:
        return "; raise the file size limit (ulimit -f)";
    default:
        return "; set JITDUMPDIR to a directory on another file system";
    }
}

static int cannot_grow(struct dump_tail *tail, int error)
{
    errno = -error;
    return jd_error_keep(tail->error, error, "%s: cannot grow: %m%s", tail->path,
                         remedy_for_growth(error));
}

/* Have the file reach NEED_END at least.  A full disk may still have room for this one group. */
static int reserve_blocks(struct dump_tail *tail, uint64_t need_end)
{
    uint64_t least = page_up(need_end), wanted = tail->reserved + step_bytes(tail->reserved);
    if (!jd_fd_is_ours(&tail->fd))
        return jd_error_keep(tail->error, -EBADF,
                             "%s: the program closed the file's descriptor, which this library "
                             "needs; exempt it, or open the dump after closing all descriptors",
                             tail->path);
    wanted = wanted > least ? wanted : least;
    int error = jd_disk_room(tail->fd.number, tail->reserved, wanted);
    if (error && least < wanted) {
        wanted = least;
        error = jd_disk_room(tail->fd.number, tail->reserved, wanted);
    }
    if (error)
        return cannot_grow(tail, error);
    tail->reserved = wanted;
    return 0;
}

/* Go on in a new window that has BYTES.  The reference to the old one goes to *OUTGROWN. */
static int next_window(struct dump_tail *tail, uint64_t bytes, struct dump_window **outgrown)
{
    int error = 0;
    if (bytes > tail->reserved - tail->offset)
        error = reserve_blocks(tail, tail->offset + bytes);
    if (error)
        return error;
    struct dump_window *window = jd_window_map(tail->fd.number, tail->offset, tail->reserved);
    if (!window)
        return jd_error_keep(tail->error, -errno,
                             "%s: cannot map: %m; raise the memory limit (ulimit -v)", tail->path);
    *outgrown = tail->window;
    tail->window = window;
    return 0;
}

static int grow(struct dump_tail *tail, uint64_t bytes, struct dump_window **outgrown)
{
    /* fallocate is a cancellation point: a thread cancelled there would take the mutex with it. */
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int error = next_window(tail, bytes, outgrown);
    pthread_setcancelstate(cancel_state, &cancel_state);
    return error;
}

int jd_tail_start(struct dump_tail *tail, const struct held_fd *fd)
{
    struct dump_window *none;
    tail->offset = 0;
    tail->reserved = 0;
    tail->fd = *fd;
    return grow(tail, STEP_MIN_BYTES, &none);
}

/* ---- Groups ---- */

/* Id and size of a record in one store: there is no moment at which a killed process has written the one
 * and not the other.  Records are not aligned; volatile keeps the compiler from splitting the store, and
 * the machines that this runs on do it in one instruction at any address. */
static void store_id_and_size(uint8_t *at, uint32_t id, uint32_t total_size)
{
    typedef uint64_t __attribute__((may_alias, aligned(1))) u64_anywhere;
    const uint32_t halves[2] = {id, total_size};
    uint64_t word;
    memcpy(&word, halves, sizeof word);
    *(volatile u64_anywhere *)at = word;
}

static void take_room(struct dump_tail *tail, uint32_t bytes, bool new_function,
                      struct dump_room *room)
{
    uint8_t *at = jd_window_at(tail->window, tail->offset);
    room->timestamp = jd_clock_now(tail->counter);
    room->sink = byte_sink_over(at, bytes);
    room->window = tail->window;
    room->code_index = tail->next_code_index;
    tail->next_code_index += new_function;
    jd_window_use(tail->window);
    /* In this order: whatever follows the last record of a killed process is zeros. */
    store_id_and_size(at, JIT_FILLER, bytes);
    atomic_signal_fence(memory_order_release);
    memcpy(at + 8, &room->timestamp, sizeof room->timestamp);
    tail->offset += bytes;
}

/* How far the pages behind the tail should be made ready now; 0: they are. */
static uint64_t pages_wanted(const struct dump_tail *tail)
{
    const struct dump_window *window = tail->window;
    if (window->populated == window->end ||
        tail->offset + POPULATE_AHEAD_BYTES <= window->populated)
        return 0;
    uint64_t to = page_up(tail->offset + POPULATE_BYTES);
    return to < window->end ? to : window->end;
}

int jd_tail_reserve(struct dump_tail *tail, uint64_t bytes, bool new_function,
                    struct dump_room *room)
{
    struct dump_window *outgrown = NULL;
    uint64_t populate_from = 0, populate_to = 0;
    int error = 0;
    pthread_mutex_lock(&tail->mutex);
    if (!jd_window_holds(tail->window, tail->offset, bytes))
        error = grow(tail, bytes, &outgrown);
    if (!error) {
        take_room(tail, (uint32_t)bytes, new_function, room);
        populate_to = pages_wanted(tail);
        populate_from = tail->window->populated;
        if (populate_to)
            tail->window->populated = populate_to;
    }
    pthread_mutex_unlock(&tail->mutex);
    if (populate_to)
        jd_window_populate(room->window, populate_from, populate_to);
    if (outgrown)
        jd_window_release(outgrown);
    return error;
}

void jd_room_begin_record(struct dump_room *room, uint32_t id, uint64_t total_size)
{
    if (room->sink.size == 0) {
        sink_room(&room->sink, 8); /* a filler until jd_room_publish */
        room->first_id = id;
        room->first_total_size = (uint32_t)total_size;
    } else {
        sink_u32(&room->sink, id);
        sink_u32(&room->sink, (uint32_t)total_size);
    }
    sink_u64(&room->sink, room->timestamp);
}

int jd_room_publish(struct dump_room *room)
{
    bool whole = !room->sink.overflow && room->sink.size == room->sink.capacity;
    if (whole) {
        /* A kill finds the stores of a thread in their order; a reader on another CPU needs a fence. */
        atomic_thread_fence(memory_order_release);
        store_id_and_size(room->sink.data, room->first_id, room->first_total_size);
    }
    jd_window_release(room->window);
    return whole ? 0 : -EINVAL;
}

/* ---- The end ---- */

int jd_tail_end(struct dump_tail *tail)
{
    jd_window_release(tail->window);
    tail->window = NULL;
    if (!jd_fd_is_ours(&tail->fd))
        return jd_error_keep(tail->error, -EBADF,
                             "%s: the program closed the file's descriptor: zeros are left at its "
                             "end",
                             tail->path);
    if (ftruncate(tail->fd.number, (off_t)tail->offset) != 0)
        return jd_error_keep(tail->error, -errno, "%s: cannot cut off the zeros at its end: %m",
                             tail->path);
    return 0;
}

void jd_tail_disown(struct dump_tail *tail)
{
    free(tail->window);
    tail->window = NULL;
}
