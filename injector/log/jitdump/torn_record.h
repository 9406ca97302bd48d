/* Finds the records that continue after a torn one.
 *
 * A writer whose write(2) failed half-way, or whose threads write without a lock, leaves a record
 * that ends early, or has others inside.  A record may also hold anything in its code bytes,
 * records of another dump included.  So a record counts as torn only if no record follows it, and
 * its rest is searched for a *chain*: valid records directly after each other that do not end
 * inside it.
 *
 * A sound record has a known id, a size that its fields add up to, and a time that is not months
 * away from the last one's. Every byte is examined once or twice, and from each at most
 * CHAIN_RECORDS records are read, without checking their contents (jit_record_outline_at): the time
 * is linear.
 */
#ifndef PERFJIT_TORN_RECORD_H
#define PERFJIT_TORN_RECORD_H

#include "injector/log/jitdump/record_reader.h"

/* Whether a valid record of known id, or a header, is at OFFSET. */
bool jit_record_is_sound(const struct record_reader *reader, uint64_t offset);

/* Whether the bytes at OFFSET show that the record before is complete: a valid record, one of
 * unknown id before such a record, the end of the file, or unused room. (A record that is cut off
 * by the end shows nothing.) */
bool jit_record_follows(const struct record_reader *reader, uint64_t offset);

/* The same; and if *IS_READ, *NEXT is the record at OFFSET, as jit_record_at reads it. */
bool jit_record_following(const struct record_reader *reader, uint64_t offset,
                          struct jit_record *next, bool *is_read);

/* Whether there are only zeros from OFFSET on: a writer that maps its file leaves them when it is
 * killed. */
bool jit_dump_unused_from(const struct record_reader *reader, uint64_t offset);

/* There can be no record at OFFSET. Set *NEXT to where the next chain begins; returns false if none
 * does. */
bool torn_record_end(const struct record_reader *reader, uint64_t offset, uint64_t *next);

/* There is a record of EXTENT bytes at OFFSET that no other follows.  Set *NEXT to where a chain
 * begins inside it that leads out of it.  Returns false if none does: then the record itself may be
 * valid. */
bool torn_record_inside(const struct record_reader *reader, uint64_t offset, uint64_t extent,
                        uint64_t *next);

#endif
