/* How groups of records reach the files: locks, room, and failures when there is no room.
 *
 *      header | groups ........................ | FILLER ...... | body (dump_body.h)
 *
 *      header | groups, FILLER | groups, FILLER | stage (dump_stage.h): main, spill
 *
 * A group is timestamped and copied into the stage under one lock, which is held only for that.
 * When the stage's main part is full, groups go into its spill.  The thread that filled main adds
 * main's groups to the body, and then moves the spill's groups to main.  Others wait for that only
 * if the spill is full as well.  A group too large for the stage goes directly to the body, after
 * all groups of the stage.  Meanwhile other threads continue in the stage.
 *
 * Groups are in order of their timestamps, first in the body and then in the stage.  No two
 * timestamps are equal.  After any kill each group is there once, with one exception: main's groups
 * are in both files, byte for byte, if the kill comes between two particular instructions.
 *
 * Groups that can't be added to the body stay in the stage, whole and readable.  When the stage is
 * full, new groups fail with the body's error, and the body is retried after some time (failure.h).
 *
 * A body that is a ring (dump_ring.h) is rewritten by the thread that adds to it.
 *
 * With JITDUMP_UNMAPPED, or if the file system has no such mappings, the stage is plain memory.
 * Then each call adds its groups to the body before it returns.
 */
#ifndef JITDUMP_DUMP_WRITER_H
#define JITDUMP_DUMP_WRITER_H

#include "jitdump/format/byte_sink.h"
#include "jitdump/guest/brief_lock.h"
#include "jitdump/guest/failure.h"
#include "jitdump/guest/first_error.h"
#include "jitdump/guest/record_author.h"
#include "jitdump/writer/dump_body.h"
#include "jitdump/writer/dump_ring.h"
#include "jitdump/writer/dump_stage.h"
#include "jitdump/writer/late_records.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct dump_writer {
    /* Members that all threads write are on another cache line than members that they only read.
     * Members that are written under the lock are on another line than the lock, which waiting
     * threads poll. */
    char apart_from_others[64];
    struct brief_lock lock; /* guards the stage and all up to body_lock */
    char apart_from_waiters[64];
    struct dump_stage stage;
    uint64_t last_time; /* of a group */
    uint64_t next_code_index;
    atomic_bool draining;         /* a thread is about to empty main, or does */
    struct failure drain_failure; /* of the last attempt */
    struct failure grow_failure;  /* of the last attempt to extend the stage */
    uint32_t stage_bytes;         /* the stage's desired size, if there is room */
    bool unmapped;                /* the stage is in no file */
    uint8_t *scratch;             /* if unmapped: SCRATCH_BYTES to put a small group together in */
    atomic_bool
        scratch_is_taken; /* by a thread, which may be stopped, or may have left by longjmp */
    struct brief_lock body_lock; /* taken before the lock; guards the body and both files */
    struct dump_body body;
    struct dump_ring ring; /* of the body; guarded as that */
    struct held_fd stage_fd;
    struct failure large_failure; /* of the last large group */
    uint64_t large_failure_bytes; /* its size */
    uint64_t max_bytes;           /* limit on both files together; 0: none */
    bool is_ring;                 /* old records make room for new ones */
    uint32_t group_max_bytes;     /* largest that goes into the stage; 0 if unmapped */
    bool counter;                 /* stamp records with the CPU's counter */
    bool ended;                   /* by jd_writer_end_all; under the lock */
    bool full;                    /* the ring is full of live code; under the lock */
    uint32_t pid;
    struct late_records late;
    const char *path;
    struct first_error *error; /* receives the text of each failure below */
};

/* Enough for most functions.  For larger ones memory is mapped. */
enum { SCRATCH_BYTES = 16 << 10 };

/* A group's place, between begin and end. */
struct dump_room {
    struct byte_sink sink; /* over the whole group */
    uint64_t timestamp;
    uint64_t code_index;
    uint32_t first_id;
    uint32_t first_total_size;
    uint32_t new_functions; /* LOADs in it, with code indices that follow one another */
    struct dump_writer *writer;
    uint8_t *large; /* where a group is assembled that does not go straight into the stage; else
                       NULL */
    bool late;      /* it is a late record */
    uint64_t patience_ns; /* of one that is large */
};

/* The largest group, and the smallest max_bytes. */
#define JD_GROUP_MAX_BYTES (UINT32_MAX - (UINT64_C(32) << 20))
enum { JD_FILE_LEAST_BYTES = 512 << 10 };
_Static_assert((int)STAGE_FIRST_BYTES < (int)JD_FILE_LEAST_BYTES, "a stage, and some body");

/* PATH and ERROR must outlive WRITER. */
void jd_writer_init(struct dump_writer *writer, const char *path, struct first_error *error);

/* Begin with HEADER in the empty files FD and STAGE_FD.  The number of STAGE_FD may be -1.  Room
 * for the first groups is allocated at once.  Returns 0, or a negative errno, and then the files
 * can't be used.  If `unmapped` is set afterwards, the stage's file is not needed. */
int jd_writer_start(struct dump_writer *writer, const struct held_fd *fd,
                    const struct held_fd *stage_fd, const uint8_t header[JITHEADER_BYTES]);

/* Put the final header into the stage. */
void jd_writer_put_header(struct dump_writer *writer, const uint8_t header[JITHEADER_BYTES]);

/* ---- A group ----
 *
 * The usual case is inline, so that a dump_room is in registers and not in memory.  That saves a
 * tenth of the library's own time for a record.  Rare cases are functions that jd_writer_begin and
 * jd_writer_end call. */

/* The thread before this one may have read a later time. */
static inline void jd_writer_stamp(const struct dump_writer *writer, uint64_t now,
                                   struct dump_room *room)
{
    room->timestamp = now > writer->last_time ? now : writer->last_time + 1;
    room->code_index = writer->next_code_index;
}

static inline void jd_writer_take(struct dump_writer *writer, uint64_t now, uint8_t *at,
                                  uint64_t bytes, uint32_t new_functions, struct dump_room *room)
{
    room->sink = byte_sink_over(at, (size_t)bytes);
    jd_writer_stamp(writer, now, room);
    room->new_functions = new_functions;
    room->writer = writer;
}

static inline void jd_writer_count(const struct dump_room *room)
{
    room->writer->last_time = room->timestamp;
    room->writer->next_code_index += room->new_functions;
}

/* Whether a group of BYTES, with NEW_FUNCTIONS, can be put into the stage. */
static inline bool jd_writer_holds(const struct dump_writer *writer, uint64_t bytes,
                                   uint32_t new_functions)
{
    return jd_stage_holds(&writer->stage, bytes) && !(writer->full && new_functions);
}

/* Wait until there is room for BYTES in the stage.  The lock is held; if this fails it has been
 * released. */
int jd_writer_wait(struct dump_writer *writer, uint64_t bytes, uint32_t new_functions,
                   uint64_t patience_ns);

/* Put the late records into the stage.  The lock is held; if this fails it has been released. */
int jd_writer_put_late(struct dump_writer *writer, uint64_t patience_ns);

/* The lock's holder is stopped: keep and return that error. */
int jd_writer_is_stopped(const struct dump_writer *writer);

/* Whether a move or unload that failed with ERROR can be written later: neither a stopped thread
 * costs one, nor a ring that is full of live code, where it is what makes room. */
static inline bool jd_writer_can_wait(const struct dump_writer *writer, int error)
{
    return error == -EAGAIN || (error == -EFBIG && writer->is_ring);
}

/* After jd_writer_begin has failed with such an error: build a record of BYTES in the
 * LATE_RECORD_BYTES at AT, which jd_writer_end then puts aside. */
void jd_writer_begin_late(struct dump_writer *writer, uint64_t now, void *at, uint64_t bytes,
                          struct dump_room *room);

/* As jd_writer_begin and jd_writer_end, for a group that goes directly to the body.  It is
 * assembled before any lock is taken, and gets its time and code index afterwards. */
int jd_writer_begin_large(struct dump_writer *writer, uint64_t now, uint64_t bytes,
                          uint32_t new_functions, uint64_t patience_ns, struct dump_room *room);
int jd_writer_end_aside(struct dump_room *room, bool whole); /* or a late record */

/* Unlock the stage.  Before that, put the late records of threads that found this one stopped into
 * it.  If it is unmapped, write its contents; if it spills, empty main, unless another thread is
 * doing so. */
void jd_writer_unlock_and_tidy(struct dump_writer *writer);

/* Take room for a group of BYTES, with the time NOW or, if later, that after the last group's, and
 * code indices for its NEW_FUNCTIONS.  If this returns 0, jd_writer_end must follow soon,
 * since others wait.  Otherwise it returns a negative errno; -EAGAIN if a stopped thread is in the
 * way. */
static inline int jd_writer_begin(struct dump_writer *writer, uint64_t now, uint64_t bytes,
                                  uint32_t new_functions, uint64_t patience_ns,
                                  struct dump_room *room)
{
    int error = 0;
    if (bytes > writer->group_max_bytes)
        return jd_writer_begin_large(writer, now, bytes, new_functions, patience_ns, room);
    room->large = NULL;
    if (jd_lock(&writer->lock, jd_author(writer->pid).tid, patience_ns))
        return -EAGAIN;
    if (jd_late_any(&writer->late))
        error = jd_writer_put_late(writer, patience_ns);
    if (!error && !jd_writer_holds(writer, bytes, new_functions))
        error = jd_writer_wait(writer, bytes, new_functions, patience_ns);
    if (!error)
        jd_writer_take(writer, now, writer->stage.data + writer->stage.end, bytes, new_functions,
                       room);
    return error;
}

/* Put the prefix of a record.  The fields follow through room->sink. */
static inline void jd_room_begin_record(struct dump_room *room, uint32_t id, uint64_t total_size)
{
    if (room->sink.size == 0) {
        sink_room(&room->sink, 8); /* jd_writer_end */
        room->first_id = id;
        room->first_total_size = (uint32_t)total_size;
    } else {
        sink_u32(&room->sink, id);
        sink_u32(&room->sink, (uint32_t)total_size);
    }
    sink_u64(&room->sink, room->timestamp);
}

/* Make the group valid, if its length is exactly as announced, and release ROOM.  Otherwise it
 * leaves no trace, and this returns -EINVAL. */
static inline int jd_writer_end(struct dump_room *room)
{
    struct dump_writer *writer = room->writer;
    bool whole = !room->sink.overflow && room->sink.size == room->sink.capacity;
    if (room->large)
        return jd_writer_end_aside(room, whole);
    if (whole) {
        jd_stage_append(&writer->stage, (uint32_t)room->sink.size, room->first_id,
                        room->first_total_size);
        jd_writer_count(room);
    }
    if (writer->stage.spilling || writer->unmapped || jd_late_are_waiting(&writer->late))
        jd_writer_unlock_and_tidy(writer);
    else
        jd_unlock(&writer->lock);
    return whole ? 0 : -EINVAL;
}

/* Take the stage's lock.  Returns 0, or -EAGAIN. */
int jd_writer_lock(struct dump_writer *writer);

/* ---- The end ---- */

/* Add all remaining groups and CLOSE to the body, and truncate both files to their length.  The
 * stage is empty then.  No group can be begun any more.  Groups that can't be added stay in the
 * stage.  The descriptors stay open.  Returns 0 or a negative errno. */
int jd_writer_close(struct dump_writer *writer);

/* The same while other threads may be in calls.  It waits for the locks as an add does.  If it
 * can't get them, it changes nothing and returns -EAGAIN.  Groups that are begun later fail with
 * -ESHUTDOWN. */
int jd_writer_end_all(struct dump_writer *writer);

/* Unmap the stage, whatever becomes of the file. */
void jd_writer_abandon(struct dump_writer *writer);

/* In a forked child: free the inherited memory, and leave the file alone.  The locks may be held
 * for ever and are not touched. */
void jd_writer_disown(struct dump_writer *writer);

void jd_writer_destroy(struct dump_writer *writer);

#endif
