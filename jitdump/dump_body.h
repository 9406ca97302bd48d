/* The body of a dump: the groups that are there to stay, and behind them one FILLER up to the stage.
 *
 *      header | group | group | ... | group | FILLER .......................... | stage (dump_stage.h)
 *                                           end                                 what the FILLER points to
 *
 * Groups are added with pwrite, into the FILLER behind its first eight bytes, together with the prefix of the FILLER that is to
 * follow them; and then become visible by these eight bytes, the first record's id and size, written in one go.  So a
 * process killed at any moment has added all of them or none.  The new FILLER may point to another place than the old
 * one did: what the stage had of the same groups disappears in the same moment.
 *
 * No call raises SIGXFSZ, or touches a file that has got the descriptor's number.
 */
#ifndef JITDUMP_DUMP_BODY_H
#define JITDUMP_DUMP_BODY_H

#include "jitdump/held_fd.h"
#include "jitdump/jitdump_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dump_body {
    struct held_fd fd;
    uint64_t end;  /* in the file */
    bool reserves; /* blocks for large writes (jd_disk_reserves_cheaply) */
    bool has_header;
    uint8_t header[JITHEADER_BYTES]; /* what the file begins with, as long as it is ours */
};

/* The most that a file may have by its process's limit (RLIMIT_FSIZE), which may change at any time. */
uint64_t jd_file_size_limit(void);

/* The header is written: keep it, to know the file by. */
void jd_body_keep_header(struct dump_body *body);

/* Whether the file is as it was left.  Returns 0, -EBADF for a descriptor that is not ours any more, -ENOENT if nobody will find the file
 * since it was removed, or -ESTALE if it was cut, or another JIT has taken it for its own: then nothing is to be written into it. */
int jd_body_check(const struct dump_body *body);

/* Write BYTES at OFFSET.  Returns 0 or a negative errno: -EBADF for a descriptor that is not ours any more. */
int jd_body_write(const struct dump_body *body, const void *bytes, size_t count, uint64_t offset);

/* Add COUNT bytes of whole groups, followed by a FILLER that reaches to FILLER_END.  For these there must be room in the present FILLER,
 * and for the new one's prefix.  Returns 0 or a negative errno; then nothing has changed. */
int jd_body_add(struct dump_body *body, const void *groups, size_t count, uint64_t filler_end);

/* Have the FILLER reach to FILLER_END.  Returns 0 or a negative errno; then nothing has changed. */
int jd_body_point(const struct dump_body *body, uint64_t filler_end);

#endif
