/* What stands at a place of a dump, read as a record, whether one is there or not.
 */
#ifndef PERFJIT_RECORD_READER_H
#define PERFJIT_RECORD_READER_H

#include "injector/dump/jit_record.h"

struct record_reader {
    const uint8_t *data; /* the dump's */
    size_t size;
    size_t used_bytes; /* without the zeros at its end */
    bool big_endian;
    /* Known from the records up to here: what tells others from noise. */
    uint64_t number; /* of the next record */
    uint64_t time;   /* of the last sound record; 0: there was none yet */
    uint32_t pid;    /* of the last LOAD, or of the header */
};

/* The header at CURSOR, whose magic was looked at and gave the byte order. */
struct jit_header jit_header_read(struct byte_cursor *cursor);

/* Read what stands at OFFSET, whatever its id, without a look at what follows.  Returns false if
 * its prefix can't be one or it does not fit in the file. */
bool jit_record_at(const struct record_reader *reader, uint64_t offset, struct jit_record *record);

/* The same, but for jit_record_check: in a time that does not grow with the record, for places that
 * may be one of many. */
bool jit_record_outline_at(const struct record_reader *reader, uint64_t offset,
                           struct jit_record *record);

#endif
