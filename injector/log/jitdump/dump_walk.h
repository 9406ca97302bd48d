/* The records of a dump, one after another, continuing after torn parts (torn_record.h).
 */
#ifndef PERFJIT_DUMP_WALK_H
#define PERFJIT_DUMP_WALK_H

#include "injector/log/jitdump/record_reader.h"

struct jit_dump_walk {
    struct record_reader reader;
    uint64_t offset; /* of the next record */
    /* The record that was read at AHEAD_OFFSET, in its byte order, to see whether a record follows.
     * It need not be read twice. */
    struct jit_record ahead;
    uint64_t ahead_offset;
    bool has_ahead, ahead_big_endian;
    bool astray;             /* no record is at OFFSET, by the evidence of the one before */
    uint64_t searched_bytes; /* see repeated_part.h */
    bool no_chain;           /* none follows any more, up to the end of the file */
};

/* How a walk ended. */
enum jit_dump_end {
    JIT_DUMP_MORE,  /* it has not: *RECORD is the next record */
    JIT_DUMP_TORN,  /* it has not, but there are no records in the *RECORD's extent */
    JIT_DUMP_TWICE, /* it has not, but the *RECORD's extent repeats the bytes in front of it */
    JIT_DUMP_WHOLE, /* after the last record; only unused room follows */
    JIT_DUMP_CUT,   /* at a record that does not fit in the file, or can't be one.  With
                     * QUIRK_DUMP_CUT it is a LOAD that lost only code, without code bytes */
};

static inline bool jit_dump_goes_on(enum jit_dump_end end)
{
    return end < JIT_DUMP_WHOLE;
}

/* The next record, with any id.  A record that is broken inside is still returned.  After a torn
 * part, the walk continues at the next place where records follow each other (torn_record.h), after
 * a repeated one behind it (repeated_part.h).
 */
enum jit_dump_end jit_dump_next(struct jit_dump_walk *walk, struct jit_record *record);

#endif
