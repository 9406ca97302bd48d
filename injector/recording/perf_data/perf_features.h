/* The feature sections of a perf.data file: metadata of the whole recording.
 *
 * A table follows the records directly: for each feature bit set in the header, in order
 *      0 u64 offset, 8 u64 size      of the contents, anywhere in the file
 * A section is valid if its table entry and its contents lie in the file, and the contents share no
 * byte with the file header, the attributes, the ids, the records or the table.  perf 7.2 itself
 * breaks that: perf inject -i - -o FILE writes its attributes over its build-ids.
 *
 * Invalid ones are left out and reported.
 */
#ifndef PERFJIT_PERF_FEATURES_H
#define PERFJIT_PERF_FEATURES_H

#include "injector/files/memory_file.h"
#include "injector/recording/perf_data/perf_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The contents of one section, a view. */
struct perf_feature {
    unsigned bit;
    const uint8_t *bytes;
    size_t size;
};

struct perf_features {
    struct perf_feature items[PERF_FEATURE_BITS]; /* by bit */
    size_t count;
};

/* NULL: there is none. */
const struct perf_feature *perf_features_find(const struct perf_features *features, unsigned bit);

/* Add, or replace. */
void perf_features_set(struct perf_features *features, unsigned bit, const uint8_t *bytes,
                       size_t size);

void perf_features_remove(struct perf_features *features, unsigned bit);

/* Append the table and the contents to TAIL, whose first byte will be at offset AT of the file.
 * Returns 0, or -1 without memory. */
int perf_features_add(struct memory_file *tail, const struct perf_features *features, uint64_t at);

/* Set the bits in the file header at HEADER, and no others. */
void perf_features_mark(const struct perf_features *features, uint8_t *header);

/* The contents of the AUXTRACE section: u64 count, then for each AUXTRACE record {u64 file offset,
 * u64 record size}. Append a record of SIZE bytes at OFFSET.  Returns 0, or -1 without
 * memory. */
int perf_trace_index_add(struct memory_file *index, uint64_t offset, uint16_t size);

/* Put INDEX in the place of the AUXTRACE section of FEATURES. */
void perf_trace_index_set(struct perf_features *features, const struct memory_file *index);

#endif
