/* The records of a recording made with perf record -z, as they would be without -z.
 *
 * A COMPRESSED record holds a piece of one zstd stream that goes through the whole file:
 *      0 header, 8 bytes of the stream up to the record's end
 * COMPRESSED2 (perf 6.16 and newer)
 *      0 header, 8 u64 data_size, 16 data_size bytes of the stream, padding to 8
 * What the stream unpacks to are records, which may begin in one piece and end in the next; records
 * that are not compressed come between the pieces and never inside such a record.
 */
#ifndef PERFJIT_PERF_UNZIP_H
#define PERFJIT_PERF_UNZIP_H

#include "injector/recording/perf_data/perf_plain.h"

/* Append the records of FILE to PLAIN, unpacked. Damage ends them, and is reported.  Returns 0, or
 * -1 with the failure text set. */
int perf_unzip(struct perf_plain *plain, const struct perf_file *file, struct findings *findings);

#endif
