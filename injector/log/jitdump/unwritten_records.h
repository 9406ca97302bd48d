/* Finds what a process has logged and not written yet: it is in the process's memory.
 *
 * V8 writes its dump through a stdio stream, whose buffer has 4096 bytes.  The dump of a process
 * that goes on, or has crashed, lacks the newest records, and mostly ends inside one.  The buffer's
 * first byte is the one that follows the file's last.
 *
 *     glibc's FILE   tells where the buffer begins and ends.  It is looked for by its magic number,
 *                    and by the number of the file, if that is known.
 *     any buffer     of another library, or of the runtime's own: a place at which the bytes that
 *                    the torn record lacks are followed by a record; or, if the file ends behind a
 *                    record, one that begins with a record.  Nothing tells how far it is filled:
 *                    behind the newest record stands what is left of the buffer's last filling.  So
 *                    the last record that counts is one whose code is in memory as it says.
 *
 * Either must complete the torn record, and every record must be sound, of this process, and not
 * older than the one before.  Two buffers of which each fits are none.
 */
#ifndef PERFJIT_UNWRITTEN_RECORDS_H
#define PERFJIT_UNWRITTEN_RECORDS_H

#include "injector/log/jitdump/jit_dump.h"

struct memory_range {
    uint64_t start, end;
};

enum { MOST_STREAMS = 8 };

/* The memory of a process that goes on, or of a core. */
struct process_memory {
    struct memory_range *ranges; /* that may hold the buffer, the likely ones first */
    size_t range_count, range_capacity;
    int file_number;                /* of the dump in the process; -1: it is not known */
    uint64_t streams[MOST_STREAMS]; /* of that file, as far as they were found */
    size_t stream_count;
    bool (*read)(void *context, uint64_t addr, void *bytes, size_t count);
    void *context;
};

struct unwritten_records {
    uint8_t *bytes; /* that follow the file's last; to be freed; NULL: none */
    size_t byte_count;
    uint64_t record_count; /* that end in them */
};

/* Find those of DUMP in MEMORY, and MEMORY's streams.  Returns 0, or -1 without memory. */
int unwritten_records_find(struct unwritten_records *found, const struct jit_dump *dump,
                           struct process_memory *memory);

/* The same by the streams that were found before, which takes no time. */
int unwritten_records_find_again(struct unwritten_records *found, const struct jit_dump *dump,
                                 struct process_memory *memory);

/* Append them to DUMP, in memory.  Returns 0, or -1 without memory. */
int unwritten_records_append(struct jit_dump *dump, const struct unwritten_records *records);

#endif
