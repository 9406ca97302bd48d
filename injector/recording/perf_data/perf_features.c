/* See perf_features.h. */
#include "injector/recording/perf_data/perf_features.h"

#include <string.h>

/* The index of the first feature that is not below BIT. */
static size_t place_of(const struct perf_features *features, unsigned bit)
{
    size_t i = 0;
    while (i < features->count && features->items[i].bit < bit)
        i++;
    return i;
}

static bool is_at(const struct perf_features *features, size_t i, unsigned bit)
{
    return i < features->count && features->items[i].bit == bit;
}

const struct perf_feature *perf_features_find(const struct perf_features *features, unsigned bit)
{
    size_t i = place_of(features, bit);
    return is_at(features, i, bit) ? &features->items[i] : NULL;
}

void perf_features_set(struct perf_features *features, unsigned bit, const uint8_t *bytes,
                       size_t size)
{
    size_t i = place_of(features, bit);
    if (!is_at(features, i, bit)) {
        memmove(features->items + i + 1, features->items + i,
                (features->count - i) * sizeof *features->items);
        features->count++;
    }
    features->items[i] = (struct perf_feature){bit, bytes, size};
}

void perf_features_remove(struct perf_features *features, unsigned bit)
{
    size_t i = place_of(features, bit);
    if (!is_at(features, i, bit))
        return;
    features->count--;
    memmove(features->items + i, features->items + i + 1,
            (features->count - i) * sizeof *features->items);
}

int perf_features_add(struct memory_file *tail, const struct perf_features *features, uint64_t at)
{
    uint64_t offset = at + features->count * (uint64_t)PERF_SECTION_BYTES;
    for (size_t i = 0; i < features->count; i++) {
        uint8_t section[PERF_SECTION_BYTES];
        perf_put_u64(section, offset);
        perf_put_u64(section + 8, features->items[i].size);
        offset += features->items[i].size;
        if (memory_file_add(tail, section, sizeof section))
            return -1;
    }
    for (size_t i = 0; i < features->count; i++)
        if (memory_file_add(tail, features->items[i].bytes, features->items[i].size))
            return -1;
    return 0;
}

void perf_features_mark(const struct perf_features *features, uint8_t *header)
{
    uint64_t bits[PERF_FEATURE_BITS / 64] = {0};
    for (size_t i = 0; i < features->count; i++)
        bits[features->items[i].bit / 64] |= UINT64_C(1) << features->items[i].bit % 64;
    for (size_t i = 0; i < PERF_FEATURE_BITS / 64; i++)
        perf_put_u64(header + PERF_HEADER_FEATURES + 8 * i, bits[i]);
}

int perf_trace_index_add(struct memory_file *index, uint64_t offset, uint16_t size)
{
    uint8_t entry[16] = {0};
    if (index->size == 0 && memory_file_add(index, entry, 8))
        return -1;
    perf_put_u64(entry, offset);
    perf_put_u64(entry + 8, size);
    if (memory_file_add(index, entry, sizeof entry))
        return -1;
    perf_put_u64(index->data, perf_get_u64(index->data) + 1);
    return 0;
}

void perf_trace_index_set(struct perf_features *features, const struct memory_file *index)
{
    static const uint8_t none[8];
    perf_features_set(features, PERF_FEATURE_AUXTRACE, index->size ? index->data : none,
                      index->size ? index->size : sizeof none);
}
