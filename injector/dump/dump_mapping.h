/* A dump's bytes in memory, that stay as they are.
 *
 * A process that is still writing its dump adds to it, which changes nothing that is there; but
 * libjitdump besides moves the newest groups about, behind the first FILLER (jitdump/README.md, "A
 * dump that is being written").  Several passes over the dump must see the same bytes, so that part
 * is copied: page by page from front to back, as the writer fills it, until nothing was moved
 * meanwhile.  A writer holds a lock on its file (flock), by which it is noticed.
 */
#ifndef PERFJIT_DUMP_MAPPING_H
#define PERFJIT_DUMP_MAPPING_H

#include <stdint.h>
#include <sys/stat.h>

/* The st_size bytes of FD, the open dump with *STATUS, as file_bytes() gives them; *STATUS may be a
 * newer one by the time that this returns.  munmap releases them.  Returns NULL with errno. */
const uint8_t *dump_mapping_make(int fd, struct stat *status);

#endif
