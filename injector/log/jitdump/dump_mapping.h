/* A dump's bytes in memory, as a snapshot that does not change.
 *
 * A process that is still writing its dump adds to it, which does not change earlier bytes.  But
 * libjitdump also moves the newest groups, after the first FILLER (jitdump/README.md, "A dump that
 * is being written").  Several passes over the dump must see the same bytes, so that part is
 * copied.  It is copied page by page from front to back, as the writer fills it, until nothing was
 * moved meanwhile.  A live writer is detected by the lock (flock) that it holds on its file.
 */
#ifndef PERFJIT_DUMP_MAPPING_H
#define PERFJIT_DUMP_MAPPING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* The st_size bytes of FD, the open dump with *STATUS, as file_bytes() gives them; *STATUS may be a
 * newer one by the time that this returns.  The file keeps *LASTING of these bytes, unless somebody
 * cuts it; 0: that does not matter, as they were copied.  dump_mapping_end releases them.
 * Returns NULL with errno. */
const uint8_t *dump_mapping_make(int fd, struct stat *status, size_t *lasting);

void dump_mapping_end(const uint8_t *data, size_t size);

#endif
