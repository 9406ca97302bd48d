/* A part of a dump that stands in it twice or more often, one right behind the other.
 *
 * A runtime that writes through stdio and forks leaves the contents of its buffer to the child as
 * well.  A child that closes the file writes it, and the parent does again.  If the buffer began
 * inside a record, the second copy does, too, and there is no record where the first copy ends.
 * Nothing is lost: every byte of the second copy is in the first.  Each child that was forked so
 * leaves a copy.
 */
#ifndef PERFJIT_REPEATED_PART_H
#define PERFJIT_REPEATED_PART_H

#include "injector/log/jitdump/record_reader.h"

/* No record is at OFFSET.  If the bytes from there repeat the bytes in front of OFFSET exactly,
 * once or several times, set *NEXT to where records go on.  The repeated part has 8 bytes to 4 MiB.
 * Returns false if there is no such part.  *SEARCHED_BYTES, 0 at first, bounds the cost of all
 * searches of a walk. */
bool repeated_part_end(const struct record_reader *reader, uint64_t offset,
                       uint64_t *searched_bytes, uint64_t *next);

#endif
