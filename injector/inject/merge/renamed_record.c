/* See renamed_record.h. */
#include "injector/inject/merge/renamed_record.h"

#include "injector/recording/perf_data/perf_format.h"

int renamed_record_put(struct byte_sink *sink, const uint8_t *record, size_t size, size_t name_at,
                       const char *target, size_t end_bytes)
{
    enum { SIZE_AT = 6 };
    size_t start = sink->size;
    sink_bytes(sink, record, name_at);
    sink_cstr(sink, target);
    sink_align(sink, 8);
    sink_bytes(sink, record + size - end_bytes, end_bytes);
    if (sink->overflow || sink->size - start > PERF_RECORD_MOST_BYTES)
        return -1;
    struct byte_sink field = byte_sink_over(sink->data + start + SIZE_AT, 2);
    sink_u16(&field, (uint16_t)(sink->size - start));
    return 0;
}

int renamed_map_put(struct byte_sink *sink, const struct perf_file *file,
                    const struct perf_record *record, const struct perf_map *map,
                    const char *target)
{
    const struct sample_format *format;
    bool has_trailer = perf_record_trailer(file, record, &format) != NULL;
    return renamed_record_put(sink, record->bytes, record->size,
                              (size_t)((const uint8_t *)map->filename - record->bytes), target,
                              has_trailer ? format->id_bytes : 0u);
}
