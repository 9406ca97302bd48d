/* A part of a dump's file in memory.  Records are read from it front to back.  More records, in
 * memory, may follow the file's end as if they were in the file.  The file is read, not mapped:
 * others may truncate it at any time, and an access to a missing page raises a signal. */
#ifndef JITDUMP_RECORD_WINDOW_H
#define JITDUMP_RECORD_WINDOW_H

#include "jitdump/guest/held_fd.h"
#include "jitdump/ring/mapped_array.h"

#include <stdint.h>

enum { WINDOW_BYTES = 1 << 20 };

struct record_window {
    const struct held_fd *fd;
    uint64_t file_end; /* where the tail begins */
    uint64_t end;      /* of what can be read */
    const uint8_t *tail;
    uint64_t offset;
    size_t bytes;
    struct mapped_array memory;
    int error; /* a negative errno */
};

/* The file up to FILE_END, and the TAIL_BYTES at TAIL.  Returns 0 or -ENOMEM. */
int jd_window_begin(struct record_window *window, const struct held_fd *fd, uint64_t file_end,
                    const void *tail, size_t tail_bytes);

/* The BYTES, at most WINDOW_BYTES, at OFFSET, valid until the next call.  Returns NULL and sets the
 * error if they can't be read or the file is shorter. */
const uint8_t *jd_window_at(struct record_window *window, uint64_t offset, size_t bytes);

void jd_window_end(struct record_window *window);

#endif
