/* The output: every record of the input, byte for byte and in its order, but for those that are
 * left out, and the added ones where their time belongs.
 *
 * perf sorts records only between two FINISHED_ROUND marks.  A record may stand anywhere in the
 * round in which its time is first reached.  If it stands later, samples precede their map.  If it
 * stands much earlier, the reader flushes too far and reports samples out of order.  Here it stands
 * right before the first record, in file order, that is not older.
 */
#ifndef PERFJIT_PERF_REWRITE_H
#define PERFJIT_PERF_REWRITE_H

#include "injector/files/output_file.h"
#include "injector/recording/record_marks.h"
#include "jitdump/format/byte_sink.h"

/* The source of the records to add, by time. */
struct record_source {
    void *context;
    /* The time of record INDEX.  Returns false after the last one. */
    bool (*time)(void *context, size_t index, uint64_t *time_ns);
    /* Put record INDEX into SINK, of RECORD_MAX_BYTES.  Returns 0 or -1. */
    int (*put)(void *context, size_t index, struct byte_sink *sink);
};

/* The changes to records of the input. */
struct record_change {
    void *context;
    /* Put the replacement for RECORD into SINK, of RECORD_MAX_BYTES; records come in file order.
     * Returns 1, 0 if it stays as it is, or -1 if it is left out. */
    int (*put)(void *context, const struct perf_record *record, struct byte_sink *sink);
};

enum { RECORD_MAX_BYTES = 1 << 16 };

/* Write FILE, whose records have MARKS, to OUTPUT.  Leave out the records at the DROPPED_COUNT
 * offsets in DROPPED (ascending), and add the records of ADDED.  CHANGE, unless it is NULL, is
 * applied to the others.  Returns 0, or -1 with the failure text set. */
int perf_rewrite(struct output_file *output, const struct perf_file *file,
                 const struct record_marks *marks, const uint64_t *dropped, size_t dropped_count,
                 const struct record_source *added, const struct record_change *change,
                 struct findings *findings);

#endif
