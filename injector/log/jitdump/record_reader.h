/* The bytes at an offset of a dump, read as a record, whether they are one or not.
 */
#ifndef PERFJIT_RECORD_READER_H
#define PERFJIT_RECORD_READER_H

#include "injector/log/jitdump/jit_record.h"

struct record_reader {
    const uint8_t *data; /* the dump's */
    size_t size;
    size_t used_bytes; /* without the zeros at its end */
    bool big_endian;
    /* Known from the records so far; used to tell records from noise. */
    uint64_t number;  /* of the next record */
    uint64_t history; /* the time of a HISTORY record; 0: there was none */
    uint64_t time;    /* of the last sound record; 0: there was none yet */
    uint32_t pid;     /* of the last LOAD, or of the header */
};

/* The header at CURSOR, whose byte order is known from its magic. */
struct jit_header jit_header_read(struct byte_cursor *cursor);

/* Read the record at OFFSET, with any id, without looking at the bytes behind it.  Returns false if
 * its prefix is impossible or it does not fit in the file. */
bool jit_record_at(const struct record_reader *reader, uint64_t offset, struct jit_record *record);

/* The same without jit_record_check, in constant time: for offsets that are one candidate of many.
 */
bool jit_record_outline_at(const struct record_reader *reader, uint64_t offset,
                           struct jit_record *record);

#endif
