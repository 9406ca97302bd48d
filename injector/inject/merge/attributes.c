/* See attributes.h; the format stands in perf_format.h. */
#include "injector/inject/merge/attributes.h"

#include "injector/recording/perf_data/perf_format.h"
#include "injector/unwind/stacks/chain_records.h"

#include <stdlib.h>

enum { OLDEST_BYTES = 128 /* perf 5.13 to 6.2 */, FIELD_BYTES = 8, SIZE_AT = 4 };

static bool is_zero(const uint8_t *bytes, size_t count)
{
    size_t i = 0;
    while (i < count && bytes[i] == 0)
        i++;
    return i == count;
}

/* How much of each attribute is needed: the same of all, as each has the same room. */
static size_t needed_bytes(const struct perf_file *file)
{
    size_t needed = OLDEST_BYTES, size = (size_t)file->events[0].attr.size;
    for (size_t i = 0; i < file->event_count; i++)
        while (needed < size &&
               !is_zero(file->data + file->events[i].attr.offset + needed, size - needed))
            needed += FIELD_BYTES;
    return needed < size ? needed : size;
}

/* Put EVENT's attribute of SIZE bytes, and where its ids are. */
static void put_entry(const struct perf_file *file, const struct perf_event *event, size_t size,
                      bool unwound, struct byte_sink *sink)
{
    uint8_t *attr = sink->data + sink->size;
    sink_bytes(sink, file->data + event->attr.offset, size);
    sink_bytes(sink, file->data + event->attr.offset + event->attr.size, PERF_SECTION_BYTES);
    struct byte_cursor own = byte_cursor_over(attr + SIZE_AT, 4, false);
    struct byte_sink field = byte_sink_over(attr + SIZE_AT, 4);
    if (cursor_u32(&own) > size)
        sink_u32(&field, (uint32_t)size);
    if (unwound && sample_type_has_stack(event->format.sample_type))
        chain_attribute_change(attr, size);
}

static int patch_table(const struct perf_file *file, struct output_file *output,
                       const struct byte_sink *table, size_t entry_bytes, struct findings *findings)
{
    uint8_t fields[PERF_HEADER_DATA - PERF_HEADER_ATTR_SIZE];
    struct byte_sink sink = byte_sink_over(fields, sizeof fields);
    sink_u64(&sink, entry_bytes);
    sink_u64(&sink, file->events[0].attr.offset);
    sink_u64(&sink, table->size);
    return output_file_patch(output, PERF_HEADER_ATTR_SIZE, fields, sizeof fields, findings) ||
                   output_file_patch(output, file->events[0].attr.offset, table->data, table->size,
                                     findings)
               ? -1
               : 0;
}

int attributes_patch(const struct perf_file *file, bool unwound, struct output_file *output,
                     struct findings *findings)
{
    size_t size = needed_bytes(file), entry_bytes = size + PERF_SECTION_BYTES;
    if (!unwound && size == file->events[0].attr.size)
        return 0;
    uint8_t *bytes = malloc(file->event_count * entry_bytes);
    if (!bytes)
        return report_failure(findings, "out of memory");
    struct byte_sink table = byte_sink_over(bytes, file->event_count * entry_bytes);
    for (size_t i = 0; i < file->event_count; i++)
        put_entry(file, &file->events[i], size, unwound, &table);
    int result = patch_table(file, output, &table, entry_bytes, findings);
    free(bytes);
    return result;
}
