/* A record that names a file, an MMAP, MMAP2 or an entry of the table of build-ids, with another
 * name. */
#ifndef PERFJIT_RENAMED_RECORD_H
#define PERFJIT_RENAMED_RECORD_H

#include "injector/recording/perf_data/perf_record.h"
#include "jitdump/format/byte_sink.h"

/* Put the SIZE bytes of RECORD into SINK, with TARGET, padded, in place of the name at NAME_AT, and
 * END_BYTES of its end.  Returns 0, or -1 if that is too long. */
int renamed_record_put(struct byte_sink *sink, const uint8_t *record, size_t size, size_t name_at,
                       const char *target, size_t end_bytes);

/* The same of RECORD of FILE, which is MAP. */
int renamed_map_put(struct byte_sink *sink, const struct perf_file *file,
                    const struct perf_record *record, const struct perf_map *map,
                    const char *target);

#endif
