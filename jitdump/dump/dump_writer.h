/* How groups of records reach the files: locks, room, and what is done when there is none.
 *
 *      header | groups ........................ | FILLER ...... | body (dump_body.h)
 *
 *      header | groups, FILLER | groups, FILLER | stage (dump_stage.h): main, spill
 *
 * A group is stamped and copied into the stage under one lock that is held for no more than that.
 * When the stage's main part is full, groups go into its spill, and the thread that filled it adds
 * main's groups to the body, then lets what is in the spill have main's place.  Others wait for
 * that only if the spill is full as well.  A group that is too large for the stage goes to the body
 * at once, behind all that was in the stage (dump_large.c); meanwhile the others go on in that.
 *
 * Groups stand in the order of their timestamps, no two of which are equal, first in the body and
 * then in the stage.  After any kill each is there: once, but for those of main if it comes between
 * two instructions, which are in both files then, byte for byte.
 *
 * What can't be added to the body stays in the stage, whole and readable.  When the stage is full,
 * groups fail with the body's error, and it is tried again after some time (failure.h).
 *
 * Without a mapped stage (JITDUMP_UNMAPPED, or where the file system has no such mappings) it is
 * memory, and what a call put there is in the body when it returns.
 */
#ifndef JITDUMP_DUMP_WRITER_H
#define JITDUMP_DUMP_WRITER_H

#include "jitdump/dump/dump_body.h"
#include "jitdump/dump/dump_stage.h"
#include "jitdump/dump/late_records.h"
#include "jitdump/format/byte_sink.h"
#include "jitdump/guest/brief_lock.h"
#include "jitdump/guest/failure.h"
#include "jitdump/guest/first_error.h"
#include "jitdump/guest/record_author.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct dump_writer {
    /* What all threads write stays off the line of what they read, and what is written under the
     * lock off the line of those who wait for it. */
    char apart_from_others[64];
    struct brief_lock lock; /* guards the stage and all up to body_lock */
    char apart_from_waiters[64];
    struct dump_stage stage;
    uint64_t last_time; /* of a group */
    uint64_t next_code_index;
    atomic_bool draining;         /* a thread is about to empty main, or does */
    struct failure drain_failure; /* of the last try to */
    struct failure grow_failure;  /* of the last try to make the stage larger */
    uint32_t stage_bytes;         /* that it should have, where there is room */
    bool unmapped;                /* the stage is in no file */
    struct brief_lock body_lock;  /* taken before the lock; guards the body and both files */
    struct dump_body body;
    struct held_fd stage_fd;
    struct failure large_failure; /* of the last large group */
    uint64_t large_failure_bytes; /* which had so many */
    uint64_t max_bytes;           /* of both files; 0: any */
    uint32_t group_max_bytes;     /* that goes into the stage: none without a mapped one */
    bool counter;                 /* stamp records with the CPU's counter */
    uint32_t pid;
    struct late_records late;
    const char *path;
    struct first_error *error; /* takes the text of each failure below */
};

/* A group's place, between begin and end. */
struct dump_room {
    struct byte_sink sink; /* over the whole group */
    uint64_t timestamp;
    uint64_t code_index;
    uint32_t first_id;
    uint32_t first_total_size;
    bool new_function;
    struct dump_writer *writer;
    uint8_t *large; /* where a group is put together that does not go straight into the stage; else
                       NULL */
    bool late;      /* it is a late record */
    uint64_t patience_ns; /* of one that is large */
};

/* The largest group, and the smallest file that a bound can allow. */
#define JD_GROUP_MAX_BYTES (UINT32_MAX - (UINT64_C(32) << 20))
enum { JD_FILE_LEAST_BYTES = 512 << 10 };
_Static_assert((int)STAGE_FIRST_BYTES < (int)JD_FILE_LEAST_BYTES, "a stage, and some body");

/* PATH and ERROR must outlive WRITER. */
void jd_writer_init(struct dump_writer *writer, const char *path, struct first_error *error);

/* Begin with HEADER in the empty files FD and STAGE_FD; the number of the latter may be -1.  Room
 * for the first groups is taken at once.  Returns 0 or a negative errno; then the files are of no
 * use.  If the writer is unmapped then, so is the stage's. */
int jd_writer_start(struct dump_writer *writer, const struct held_fd *fd,
                    const struct held_fd *stage_fd, const uint8_t header[JITHEADER_BYTES]);

/* The stage's header, for good. */
void jd_writer_put_header(struct dump_writer *writer, const uint8_t header[JITHEADER_BYTES]);

/* ---- A group ----
 *
 * What each record needs is in line, so that a room is in registers and not in memory: a tenth of
 * what the library itself takes for a record.  What few need is behind jd_writer_begin and
 * jd_writer_end. */

/* Another thread that was here first may have read a later time. */
static inline void jd_writer_stamp(const struct dump_writer *writer, uint64_t now,
                                   struct dump_room *room)
{
    room->timestamp = now > writer->last_time ? now : writer->last_time + 1;
    room->code_index = writer->next_code_index;
}

static inline void jd_writer_take(struct dump_writer *writer, uint64_t now, uint8_t *at,
                                  uint64_t bytes, bool new_function, struct dump_room *room)
{
    room->sink = byte_sink_over(at, (size_t)bytes);
    jd_writer_stamp(writer, now, room);
    room->new_function = new_function;
    room->writer = writer;
}

static inline void jd_writer_count(const struct dump_room *room)
{
    room->writer->last_time = room->timestamp;
    room->writer->next_code_index += room->new_function;
}

/* Wait until there is room for BYTES in the stage.  The lock is held, and if this fails it is not
 * any more. */
int jd_writer_wait(struct dump_writer *writer, uint64_t bytes, uint64_t patience_ns);

/* Put the late records into the stage.  The lock is held, and if this fails it is not any more. */
int jd_writer_put_late(struct dump_writer *writer, uint64_t patience_ns);

/* The lock was not to be had, since a thread is stopped that holds it: says so. */
int jd_writer_is_stopped(const struct dump_writer *writer);

/* After jd_writer_begin has failed with -EAGAIN: put a record of BYTES into LATE_RECORD_BYTES at
 * AT, and let jd_writer_end put it aside. */
void jd_writer_begin_late(struct dump_writer *writer, uint64_t now, void *at, uint64_t bytes,
                          struct dump_room *room);

/* As jd_writer_begin and jd_writer_end, of a group that goes to the body at once.  It is put
 * together before any lock is taken, and gets its time and code index afterwards. */
int jd_writer_begin_large(struct dump_writer *writer, uint64_t now, uint64_t bytes,
                          bool new_function, uint64_t patience_ns, struct dump_room *room);
int jd_writer_end_aside(struct dump_room *room, bool whole); /* or a late record */

/* Unlock the stage.  If it is unmapped, write what is in it; if it spills empty main, unless
 * another thread does: one does at a time.  Before that put what has come meanwhile from threads
 * that found this one stopped. */
void jd_writer_unlock_and_tidy(struct dump_writer *writer);

/* Take room for a group of BYTES, with NOW for its time or what follows the last group's, and a
 * code index if it is for a NEW_FUNCTION.  If this returns 0, jd_writer_end must follow soon:
 * others wait.  Otherwise it is a negative errno; -EAGAIN if a thread that this one would have to
 * wait for is stopped. */
static inline int jd_writer_begin(struct dump_writer *writer, uint64_t now, uint64_t bytes,
                                  bool new_function, uint64_t patience_ns, struct dump_room *room)
{
    int error = 0;
    if (bytes > writer->group_max_bytes)
        return jd_writer_begin_large(writer, now, bytes, new_function, patience_ns, room);
    room->large = NULL;
    if (jd_lock(&writer->lock, jd_author(writer->pid).tid, patience_ns))
        return -EAGAIN;
    if (jd_late_any(&writer->late))
        error = jd_writer_put_late(writer, patience_ns);
    if (!error && !jd_stage_holds(&writer->stage, bytes))
        error = jd_writer_wait(writer, bytes, patience_ns);
    if (!error)
        jd_writer_take(writer, now, writer->stage.data + writer->stage.end, bytes, new_function,
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

/* Make the group valid, if what was put is exactly as long as what was announced, and let go of
 * ROOM. Otherwise it leaves no trace, and this returns -EINVAL. */
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

/* ---- Between dump_writer.c and dump_large.c ---- */

/* Write the group of ROOM if it is WHOLE, and let go of its memory.  Returns 0 or a negative
 * errno. */
int jd_writer_end_large(struct dump_room *room, bool whole);

/* Keep the text of ERROR, and return it. */
int jd_writer_cannot_grow(const struct dump_writer *writer, int error);

/* Returns 0, or -EAGAIN. */
int jd_writer_lock(struct dump_writer *writer);

/* Have all of the stage in the body, unless that failed lately, and the stage larger, if it can be.
 * Both locks are held.  Returns 0 or a negative errno. */
int jd_writer_flush(struct dump_writer *writer);

/* ---- The end ---- */

/* Add all that is left to the body, with CLOSE, and cut both files to their length; the stage is
 * empty then.  No group can be begun any more.  What can't be added stays where it is.  The
 * descriptors stay open.  Returns 0 or a negative errno. */
int jd_writer_close(struct dump_writer *writer);

/* Let go of the stage, whatever becomes of the file. */
void jd_writer_abandon(struct dump_writer *writer);

/* In a forked child: free what was inherited, leaving the file alone.  The locks may be held for
 * ever and are not touched. */
void jd_writer_disown(struct dump_writer *writer);

void jd_writer_destroy(struct dump_writer *writer);

#endif
