/* The body of a dump: the groups that stay there, followed by one FILLER up to the end of the file.
 *
 *      header | group | group | ... | group | FILLER .......................... |
 *                                           end                                 filler_end
 *
 * Groups are added with pwrite, into the FILLER after its first eight bytes, together with the
 * prefix of the FILLER that follows them.  They become visible when these eight bytes, the first
 * record's id and size, are written in one call.  A process killed at any moment has added all of
 * them or none.  The file is extended first if necessary, and is never mapped writable.  Whatever
 * others do to the file, no call raises a signal, not even SIGXFSZ.  No call touches another file
 * that got the descriptor's number.
 *
 * The kernel copies page by page and may stop in between when the process is killed, so these eight
 * bytes must be in one page.  If the next ones would straddle two (one group of pages in 585), a
 * FILLER of 16 bytes precedes them.
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
    uint64_t max_bytes;  /* limit on the file as it grows by itself; 0: none */
    bool reserves;       /* blocks for large writes (jd_disk_reserves_cheaply) */
    bool has_header;
    uint8_t header[JITHEADER_BYTES]; /* the file begins with it as long as it is ours */
};

/* Begin with HEADER in the empty file of FD and MAX_BYTES.  Returns 0 or a negative errno. */
int jd_body_start(struct dump_body *body, const struct held_fd *fd, uint64_t max_bytes,
                  const uint8_t header[JITHEADER_BYTES]);

/* The header is final: remember it, to recognise the file. */
void jd_body_keep_header(struct dump_body *body);

/* Whether the file is as it was left.  Returns 0, or an error, after which nothing may be written
 * to the file: -EBADF if the descriptor is no longer ours, -ENOENT if the file was removed, -ESTALE
 * if it was truncated or another JIT uses it. */
int jd_body_check(const struct dump_body *body);

/* Write BYTES at OFFSET.  Returns 0 or a negative errno: -EBADF if the descriptor is no longer
 * ours. */
int jd_body_write(const struct dump_body *body, const void *bytes, size_t count, uint64_t offset);

/* Add COUNT bytes of whole groups, right after jd_body_check; LAST: nothing will follow them.
 * Returns 0, or a negative errno, and then no group is visible. */
int jd_body_add(struct dump_body *body, const void *groups, size_t count, bool last);

/* Have the file, and the FILLER, reach to FILLER_END.  Returns 0 or a negative errno. */
int jd_body_reach(struct dump_body *body, uint64_t filler_end);

/* Whether the first eight bytes of a record at OFFSET would straddle two pages. */
bool jd_body_is_across_pages(uint64_t offset);

/* Give back the blocks that a failed jd_body_add took. */
void jd_body_give_back(const struct dump_body *body);

/* Cut off the FILLER.  Returns 0 or a negative errno. */
int jd_body_cut(const struct dump_body *body);

#endif
