/* Places in a recording between which nothing need be read again: every so many records, where the
 * next ones begin, and the latest of their times.
 *
 * A walk over millions of small records costs a cache miss each, as much as to copy them.  Places
 * that were read once are marked.  A reader that only wants the first record of some time or later
 * goes from mark to mark until there.
 */
#ifndef PERFJIT_RECORD_MARKS_H
#define PERFJIT_RECORD_MARKS_H

#include "injector/recording/perf_data/perf_record.h"

#include <stddef.h>

enum { RECORDS_A_MARK = 128 };

struct record_mark {
    uint64_t offset, number; /* of the first of its records */
    uint64_t latest_ns;      /* of all their times; 0: none has any */
    bool traces;             /* an AUXTRACE is among them */
};

struct record_marks {
    struct record_mark *items; /* in file order */
    size_t count, capacity;
};

/* Note RECORD, the next one in file order, of time TIME_NS (0: it has none), where EVERY so many
 * get a mark.  Returns 0, or -1 without memory. */
int record_marks_take(struct record_marks *marks, uint64_t every, const struct perf_record *record,
                      uint64_t time_ns);

/* WALK has come to a record; *NEXT is the first mark that it has not passed, at first 0.  If it is
 * at a mark, go to the last mark that is allowed.  The walk may not skip a record with a time of
 * SINCE_NS or later, an AUXTRACE, the byte at OFFSET, or the last mark. */
void record_marks_skip(const struct record_marks *marks, struct perf_walk *walk, size_t *next,
                       uint64_t since_ns, uint64_t offset);

void record_marks_free(struct record_marks *marks);

#endif
