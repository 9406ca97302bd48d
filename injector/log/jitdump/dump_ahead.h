/* A thread that reads a large dump ahead of the walk, so that its pages are mapped and its bytes
 * are in the cache when the walk arrives: a walk reads each record for the first time, and would
 * mostly wait for memory.
 *
 * It only reads, and leaves out what FILLERs cover: that may be a hole, which costs memory for each
 * page that is read; on tmpfs even room on the disk.  On a machine with one processor, and for a
 * small dump, there is none.
 */
#ifndef PERFJIT_DUMP_AHEAD_H
#define PERFJIT_DUMP_AHEAD_H

#include "injector/files/side_thread.h"
#include "injector/log/jitdump/jit_dump.h"

#include <stdatomic.h>

struct dump_ahead {
    const struct jit_dump *dump;
    atomic_bool ended; /* it is no longer needed */
    struct side_thread thread;
};

/* DUMP must stay open until dump_ahead_end. */
void dump_ahead_begin(struct dump_ahead *ahead, const struct jit_dump *dump);

void dump_ahead_end(struct dump_ahead *ahead);

#endif
