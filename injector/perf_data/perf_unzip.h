/* A recording made with perf record -z, turned into one made without.
 *
 * A COMPRESSED record holds a piece of one zstd stream that goes through the whole file:
 *      0 header, 8 bytes of the stream up to the record's end
 * COMPRESSED2 (perf 6.16 and newer)
 *      0 header, 8 u64 data_size, 16 data_size bytes of the stream, padding to 8
 * What the stream unpacks to are records, which may begin in one piece and end in the next; records that are not
 * compressed stand between the pieces and are never in the middle of such a one.
 *
 * The COMPRESSED feature goes, because nothing is compressed any more; all else stays.
 */
#ifndef PERFJIT_PERF_UNZIP_H
#define PERFJIT_PERF_UNZIP_H

#include "injector/memory_file.h"
#include "injector/perf_data/perf_file.h"

/* Unpack FILE into PLAIN, a perf.data file in memory.  Returns 0, or -1 with the failure text set. */
int perf_unzip(struct memory_file *plain, const struct perf_file *file, struct findings *findings);

#endif
