/* Where records go on behind one that is torn.
 *
 * A writer whose write(2) failed half-way, or whose threads write without a lock, leaves a record
 * that ends early, or has others inside.  A record may also hold anything in its code bytes,
 * records of another dump included.  So a record is taken for torn only if no record follows it,
 * and its rest is searched for a *chain*: sound records one directly behind the other, that do not
 * end inside it.
 *
 * A sound record has a known id, a size that its fields add up to, and a time that is not months
 * away from the last one's. Every byte is looked at once or twice, and from each at most
 * CHAIN_RECORDS records are read, without a look at all that is in them (jit_record_outline_at):
 * the time is linear.
 */
#ifndef PERFJIT_TORN_RECORD_H
#define PERFJIT_TORN_RECORD_H

#include "injector/dump/record_reader.h"

/* Whether a sound record of known id, or a header, stands at OFFSET. */
bool jit_record_is_sound(const struct record_reader *reader, uint64_t offset);

/* Whether what stands at OFFSET shows that the record before it is whole: a sound record, one of
 * unknown id before such a one, the end of the file, or room that was never used.  (A record that
 * is cut by the end shows nothing.) */
bool jit_record_follows(const struct record_reader *reader, uint64_t offset);

/* The same; and if *IS_READ, *NEXT is what stands at OFFSET, as jit_record_at reads it. */
bool jit_record_following(const struct record_reader *reader, uint64_t offset,
                          struct jit_record *next, bool *is_read);

/* Whether nothing but zeros stands at OFFSET and behind it: a writer that maps its file leaves them
 * when it is killed. */
bool jit_dump_unused_from(const struct record_reader *reader, uint64_t offset);

/* At OFFSET no record can be.  Set *NEXT to where the next chain begins; returns false if none
 * does. */
bool torn_record_end(const struct record_reader *reader, uint64_t offset, uint64_t *next);

/* At OFFSET stands a record of EXTENT bytes that none follows.  Set *NEXT to where a chain
 * begins inside it that leads out of it; returns false if none does: then the record itself may
 * be sound. */
bool torn_record_inside(const struct record_reader *reader, uint64_t offset, uint64_t extent,
                        uint64_t *next);

#endif
