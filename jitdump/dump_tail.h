/* The growing end of a dump, where groups of records get their room.
 *
 *      header | group | group | group | FILLER ...... | group | zeros ........ |
 *                               |                     |       |                |
 *                               published             |       offset           reserved: end of file
 *                                 being filled in by its thread
 *
 * A group gets its place and its time under a mutex, and is a FILLER record of its size from that moment.
 * Its thread fills in everything but the first eight bytes, without the mutex, and publishes it by
 * storing these, id and size of the first real record, in one go.  So a process killed at any time leaves
 * each group whole or as a filler, and behind them zeros, at which readers stop.
 *
 * Groups stand in the order of their timestamps.  No system call is made under the mutex but to grow.
 */
#ifndef JITDUMP_DUMP_TAIL_H
#define JITDUMP_DUMP_TAIL_H

#include "jitdump/byte_sink.h"
#include "jitdump/dump_window.h"
#include "jitdump/first_error.h"
#include "jitdump/held_fd.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct dump_tail {
    pthread_mutex_t mutex;
    uint64_t offset;   /* in the file, of the next group */
    uint64_t reserved; /* end of the file; its blocks are ours, and zero from offset on */
    uint64_t next_code_index;
    struct dump_window *window; /* the newest; NULL before jd_tail_start and after jd_tail_end */
    struct held_fd fd;
    bool counter; /* stamp records with the CPU's counter */
    const char *path;
    struct first_error *error; /* takes the text of each failure below */
};

/* A group's place, between reserve and publish. */
struct dump_room {
    struct byte_sink sink; /* over the whole group */
    uint64_t timestamp;
    uint64_t code_index;
    uint32_t first_id;
    uint32_t first_total_size;
    struct dump_window *window;
};

/* PATH and ERROR must outlive TAIL. */
void jd_tail_init(struct dump_tail *tail, const char *path, struct first_error *error);

/* Begin at OFFSET 0 of the empty file FD.  Room for the first groups is taken at once.  Returns 0 or a
 * negative errno. */
int jd_tail_start(struct dump_tail *tail, const struct held_fd *fd);

/* Take BYTES for a group, at most 4 GiB, and a code index if it is for a NEW_FUNCTION. */
int jd_tail_reserve(struct dump_tail *tail, uint64_t bytes, bool new_function,
                    struct dump_room *room);

/* Put the prefix of a record.  The fields follow through room->sink. */
void jd_room_begin_record(struct dump_room *room, uint32_t id, uint64_t total_size);

/* Make the group valid, if what was put is exactly as long as what was reserved, and let go of ROOM.
 * Otherwise it stays a filler, and this returns -EINVAL. */
int jd_room_publish(struct dump_room *room);

/* Unmap, and cut the file to its length.  Nothing can be reserved any more.  The descriptor stays. */
int jd_tail_end(struct dump_tail *tail);

/* In a forked child: free what was inherited, leaving the file alone.  The mutex may be locked for ever
 * and is not touched. */
void jd_tail_disown(struct dump_tail *tail);

#endif
