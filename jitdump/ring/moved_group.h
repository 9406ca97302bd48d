/* The records of a function that was moved, as if it had been loaded where it is now. */
#ifndef JITDUMP_MOVED_GROUP_H
#define JITDUMP_MOVED_GROUP_H

#include <stddef.h>
#include <stdint.h>

/* Add DELTA to all addresses in the BYTES of GROUP, and give its records TIME.  Returns 0, or
 * -ESTALE if they are no records. */
int jd_moved_group(uint8_t *group, size_t bytes, uint64_t delta, uint64_t time);

/* Have MOVE, a CODE_MOVE, end at NEW_ADDR. */
void jd_moved_further(uint8_t *move, uint64_t new_addr);

/* The CODE_UNLOAD, at UNLOAD, of what MOVE moves away. */
void jd_unload_of_move(uint8_t *unload, const uint8_t *move);

#endif
