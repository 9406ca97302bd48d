/* A body of bounded size (JITDUMP_RING): the functions that are alive, and the newest history.
 *
 * The file has two segments.  One is in use, and a FILLER hides the other.
 *
 *      header | HISTORY, groups ... | FILLER ......................................... |
 *
 *      header | FILLER ............................ | HISTORY, groups .... | FILLER .. |
 *             start of A                            | start of B
 *
 * When the segment in use is full, the next generation is written to the hidden segment.  It has a
 * HISTORY record, the functions that were alive at some place of the old generation (live_code.h),
 * and all records from that place on, unchanged.  Then one write, of the eight bytes at the start
 * of A, shows one segment and hides the other.  The bytes are the id and size of a FILLER up to B,
 * or those of A's HISTORY; A's last FILLER covers B.  So a process killed at any moment has left
 * one generation or the other, and all groups are in both.  The inode, and with it the mapping by
 * which perf finds the dump, stays.
 *
 * A function that was moved is in the new generation as if it had been loaded where it is, at the
 * time of its last move.
 *
 * The thread whose group has no room rewrites.  Others continue in the stage.  The blocks of the
 * hidden segment are kept, so rewriting works even if the disk is full by then.
 */
#ifndef JITDUMP_DUMP_RING_H
#define JITDUMP_DUMP_RING_H

#include "jitdump/writer/dump_body.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dump_ring {
    uint64_t segment_bytes;      /* 0: the body is no ring */
    uint64_t generation;         /* in use; 0: the first */
    uint64_t dropped;            /* functions that are no longer in the dump */
    uint64_t live_bytes;         /* of the functions that were alive the last time */
    uint64_t refused_bytes;      /* this many did not fit beside the live functions; 0: never */
    uint64_t refused_tail_bytes; /* these did not fit even after their unloads took effect */
    uint64_t again_ns;           /* when that may be tried again */
    uint64_t full_until_ns;      /* when it may be tried again to rewrite it for more */
    uint64_t first_code_index;
    bool in_b;
};

/* The most that a ring can use of max_bytes: a FILLER hides one segment and more. */
#define JD_RING_MAX_BYTES (UINT64_C(4096) << 20)
/* The least max_bytes: each segment must hold a full stage several times. */
enum { JD_RING_LEAST_BYTES = 4 << 20 };

/* Begin with a body that may have BODY_BYTES; its size when it was not rewritten yet is returned.
 * Functions before FIRST_CODE_INDEX are in the dump of a parent. */
uint64_t jd_ring_begin(struct dump_ring *ring, uint64_t body_bytes, uint64_t first_code_index);

/* Put the HISTORY of the first generation into the empty BODY.  Returns 0 or a negative errno. */
int jd_ring_mark(const struct dump_ring *ring, struct dump_body *body);

/* As jd_body_add; -EFBIG: there is no room beside the live functions.  After a failed rewrite
 * nothing of the new generation is visible, and the old one is unchanged. */
int jd_ring_add(struct dump_ring *ring, struct dump_body *body, const void *groups, size_t count,
                bool last);

/* After -EFBIG: add GROUPS in a generation in which their unloads and moves have taken effect, so
 * that unloaded code makes room.  Also returns -EFBIG if groups of the same size were refused
 * before, or if this was tried a short time ago. */
int jd_ring_add_with_effect(struct dump_ring *ring, struct dump_body *body, const void *groups,
                            size_t count);

/* At the end of the dump: move the groups to the begin of the file, so that it can be truncated
 * behind them.  Returns 0 or a negative errno; then they are sound where they are. */
int jd_ring_settle(struct dump_ring *ring, struct dump_body *body);

#endif
