/* The body of a dump: the groups that are there to stay, and behind them one FILLER up to the
 * file's end.
 *
 *      header | group | group | ... | group | FILLER .......................... |
 *                                           end                                 filler_end
 *
 * Groups are added with pwrite, into the FILLER behind its first eight bytes, together with the
 * prefix of the FILLER that is to follow them; and then become visible by these eight bytes, the
 * first record's id and size, written in one go.  So a process killed at any moment has added all
 * of them or none.  The file is made longer first if need be, and is never mapped to be written to:
 * whatever others do to it, no call raises a signal, not even SIGXFSZ, or touches a file that has
 * got the descriptor's number.
 *
 * The kernel copies page by page and may stop in between when the process is killed, so these eight
 * bytes must be in one page.  Where the next ones would be in two (one group of pages in 585), a
 * FILLER of 16 bytes stands in front of them.
 */
#ifndef JITDUMP_DUMP_BODY_H
#define JITDUMP_DUMP_BODY_H

#include "jitdump/format/jitdump_format.h"
#include "jitdump/guest/held_fd.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dump_body {
    struct held_fd fd;
    uint64_t end;        /* of the groups */
    uint64_t filler_end; /* and of the file */
    uint64_t max_bytes;  /* that the file may have; 0: any number */
    bool reserves;       /* blocks for large writes (jd_disk_reserves_cheaply) */
    bool has_header;
    uint8_t header[JITHEADER_BYTES]; /* what the file begins with, as long as it is ours */
};

/* Begin with HEADER in the empty file of FD and MAX_BYTES.  Returns 0 or a negative errno. */
int jd_body_start(struct dump_body *body, const struct held_fd *fd, uint64_t max_bytes,
                  const uint8_t header[JITHEADER_BYTES]);

/* The header is as it is to be: keep it, to know the file by. */
void jd_body_keep_header(struct dump_body *body);

/* Whether the file is as it was left.  Returns 0, -EBADF for a descriptor that is not ours any
 * more, -ENOENT if nobody will find the file since it was removed, or -ESTALE if it was cut, or
 * another JIT has taken it for its own: then nothing is to be written into it. */
int jd_body_check(const struct dump_body *body);

/* Write BYTES at OFFSET.  Returns 0 or a negative errno: -EBADF for a descriptor that is not ours
 * any more. */
int jd_body_write(const struct dump_body *body, const void *bytes, size_t count, uint64_t offset);

/* Add COUNT bytes of whole groups, the file's LAST or not.  Returns 0 or a negative errno; then
 * none of them is visible. */
int jd_body_add(struct dump_body *body, const void *groups, size_t count, bool last);

/* Give back the blocks that a failed jd_body_add took. */
void jd_body_give_back(const struct dump_body *body);

/* Cut off the FILLER.  Returns 0 or a negative errno. */
int jd_body_cut(const struct dump_body *body);

#endif
