/* A body of bounded size (JITDUMP_RING): what is alive, and the newest history.
 *
 * The file has two segments, of which one is in use; a FILLER hides the other.
 *
 *      header | HISTORY, groups ... | FILLER ......................................... |
 *
 *      header | FILLER ............................ | HISTORY, groups .... | FILLER .. |
 *             start of A                            | start of B
 *
 * When the segment in use is full, the next generation is written to the other one, where nobody
 * sees it: a HISTORY record, the functions that were alive at some place of the old generation
 * (live_code.h), and all that was added from there on, as it is.  Then one write, of the eight
 * bytes at the start of A, shows the one and hides the other: the id and size of a FILLER up to B,
 * or those of A's HISTORY, whose last FILLER covers B.  So a process killed at any moment has left
 * one generation or the other; what has been added is in both.  The inode, and with it the mapping
 * by which perf finds the dump, stays.
 *
 * A function that was moved is in the new generation as if it had been loaded where it is, at the
 * time of its last move.
 *
 * Who adds a group for which there is no room rewrites; others continue in the stage.  The blocks
 * of the hidden segment are kept: a disk that is full by then does not matter.
 */
#ifndef JITDUMP_DUMP_RING_H
#define JITDUMP_DUMP_RING_H

#include "jitdump/writer/dump_body.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dump_ring {
    uint64_t segment_bytes;      /* 0: the body is no ring */
    uint64_t generation;         /* that is in use; 0: the first */
    uint64_t dropped;            /* functions that are no longer in the dump */
    uint64_t live_bytes;         /* of what was alive the last time */
    uint64_t refused_bytes;      /* so many do not fit beside what is alive; 0: none were tried */
    uint64_t refused_tail_bytes; /* nor these, though what they say took effect */
    uint64_t again_ns;           /* when that may be tried again */
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

/* As jd_body_add; -EFBIG: there is no room beside what is alive.  What a failed rewriting wrote is
 * not visible, and the old generation is as it was. */
int jd_ring_add(struct dump_ring *ring, struct dump_body *body, const void *groups, size_t count,
                bool last);

/* After -EFBIG: add GROUPS in a generation in which their unloads and moves have taken effect, so
 * that code that has gone since makes room.  -EFBIG as well if just as many were refused before, or
 * it was tried a short time ago. */
int jd_ring_add_with_effect(struct dump_ring *ring, struct dump_body *body, const void *groups,
                            size_t count);

/* Nothing will be added any more: move the groups to the begin of the file, so that it can be cut
 * behind them.  Returns 0 or a negative errno; then they are sound where they are. */
int jd_ring_settle(struct dump_ring *ring, struct dump_body *body);

#endif
