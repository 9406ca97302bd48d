/* A perf.data file that is made in memory from a recording in any other form.  It has header, event
 * ids, attributes, records and features, in this order and with nothing between them.  The index of
 * AUX traces is rebuilt, because their records have moved. */
#ifndef PERFJIT_PERF_PLAIN_H
#define PERFJIT_PERF_PLAIN_H

#include "injector/files/memory_file.h"
#include "injector/recording/perf_data/perf_file.h"

/* A perf_event_attr and its event ids, u64 each: views. */
struct perf_attr {
    const uint8_t *bytes;
    size_t size;
    const uint8_t *ids;
    size_t ids_bytes;
};

struct perf_plain {
    struct memory_file file;
    struct memory_file traces; /* the index of AUX traces */
    uint64_t records_offset;
    bool without_rounds; /* leave out FINISHED_ROUND records */
    uint64_t packed_bytes,
        unpacked_bytes; /* perf_unzip's: the bytes that went in so far, and came out */
};

/* Begin with COUNT events.  This and the next three return 0, or -1 without memory. */
int perf_plain_begin(struct perf_plain *plain, const struct perf_attr *attrs, size_t count);

/* Begin with the events of FILE. */
int perf_plain_begin_like(struct perf_plain *plain, const struct perf_file *file);

/* Append a record, whose header is valid, and its payload: SPAN bytes in all. */
int perf_plain_add(struct perf_plain *plain, const uint8_t *record, size_t span);

/* Append FEATURES. The file is then complete. */
int perf_plain_end(struct perf_plain *plain, const struct perf_features *features);

/* Release everything, including the file unless the caller has taken it over. */
void perf_plain_free(struct perf_plain *plain);

#endif
