/* See perf_plain.h; the format stands in perf_format.h. */
#include "injector/recording/perf_data/perf_plain.h"

#include "injector/recording/perf_data/perf_format.h"
#include "jitdump/format/byte_sink.h"

#include <stdlib.h>

static void put_section(struct byte_sink *sink, uint64_t offset, uint64_t size)
{
    sink_u64(sink, offset);
    sink_u64(sink, size);
}

static size_t largest(const struct perf_attr *attrs, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        if (attrs[i].size > bytes)
            bytes = attrs[i].size;
    return bytes;
}

/* Header, ids, attributes: all that stands in front of the records.  An attribute that is shorter
 * than others is filled up with zeros: missing fields mean zero. */
static void put_front(struct byte_sink *sink, const struct perf_attr *attrs, size_t count)
{
    size_t attr_bytes = largest(attrs, count), entry_bytes = attr_bytes + PERF_SECTION_BYTES;
    uint64_t ids_at = PERF_FILE_HEADER_BYTES, attrs_at = ids_at;
    for (size_t i = 0; i < count; i++)
        attrs_at += attrs[i].ids_bytes;
    sink_u64(sink, PERF_MAGIC);
    sink_u64(sink, PERF_FILE_HEADER_BYTES);
    sink_u64(sink, entry_bytes);
    put_section(sink, attrs_at, count * entry_bytes);
    put_section(sink, attrs_at + count * entry_bytes, 0); /* perf_plain_end knows the size */
    put_section(sink, 0, 0);
    sink_zeros(sink, PERF_FEATURE_BITS / 8);
    for (size_t i = 0; i < count; i++)
        sink_bytes(sink, attrs[i].ids, attrs[i].ids_bytes);
    for (size_t i = 0; i < count; i++) {
        sink_bytes(sink, attrs[i].bytes, attrs[i].size);
        sink_zeros(sink, attr_bytes - attrs[i].size);
        put_section(sink, ids_at, attrs[i].ids_bytes);
        ids_at += attrs[i].ids_bytes;
    }
}

int perf_plain_begin(struct perf_plain *plain, const struct perf_attr *attrs, size_t count)
{
    struct byte_sink measure = byte_sink_over(NULL, 0);
    put_front(&measure, attrs, count);
    uint8_t *room = memory_file_room(&plain->file, measure.size);
    if (!room)
        return -1;
    struct byte_sink sink = byte_sink_over(room, measure.size);
    put_front(&sink, attrs, count);
    memory_file_grow(&plain->file, measure.size);
    plain->records_offset = measure.size;
    return 0;
}

int perf_plain_begin_like(struct perf_plain *plain, const struct perf_file *file)
{
    struct perf_attr *attrs = calloc(file->event_count, sizeof *attrs);
    if (!attrs)
        return -1;
    for (size_t i = 0; i < file->event_count; i++) {
        const struct perf_event *event = &file->events[i];
        attrs[i] = (struct perf_attr){file->data + event->attr.offset, (size_t)event->attr.size,
                                      file->data + event->ids.offset, (size_t)event->ids.size};
    }
    int result = perf_plain_begin(plain, attrs, file->event_count);
    free(attrs);
    return result;
}

int perf_plain_add(struct perf_plain *plain, const uint8_t *record, size_t span)
{
    struct byte_cursor cursor = byte_cursor_over(record, PERF_RECORD_HEADER_BYTES, false);
    uint32_t type = cursor_u32(&cursor);
    cursor_skip(&cursor, 2);
    if (type == PERF_RECORD_FINISHED_ROUND && plain->without_rounds)
        return 0;
    if (type == PERF_RECORD_AUXTRACE &&
        perf_trace_index_add(&plain->traces, plain->file.size, cursor_u16(&cursor)))
        return -1;
    return memory_file_add(&plain->file, record, span);
}

int perf_plain_end(struct perf_plain *plain, const struct perf_features *features)
{
    struct memory_file tail = {0};
    struct perf_features kept = *features;
    uint64_t end = plain->file.size;
    if (plain->traces.size || perf_features_find(&kept, PERF_FEATURE_AUXTRACE))
        perf_trace_index_set(&kept, &plain->traces);
    perf_put_u64(plain->file.data + PERF_HEADER_DATA + 8, end - plain->records_offset);
    perf_features_mark(&kept, plain->file.data);
    int result =
        perf_features_add(&tail, &kept, end) || memory_file_add(&plain->file, tail.data, tail.size);
    memory_file_free(&tail);
    return result ? -1 : 0;
}

void perf_plain_free(struct perf_plain *plain)
{
    memory_file_free(&plain->file);
    memory_file_free(&plain->traces);
}
