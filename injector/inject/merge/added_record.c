/* See added_record.h. */
#include "injector/inject/merge/added_record.h"

#include "injector/arrays/array.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_sample.h"

enum { SIZE_AT = 6 }; /* of the record header's size field */

int added_records_append(struct added_records *added, struct added_record record)
{
    if (array_reserve(added->items, added->count, added->capacity))
        return -1;
    record.sequence = (uint32_t)added->count;
    added->items[added->count++] = record;
    return 0;
}

static int compare_records(const void *left, const void *right)
{
    const struct added_record *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

void added_records_sort(struct added_records *added)
{
    if (added->count)
        qsort(added->items, added->count, sizeof *added->items, compare_records);
}

void added_records_free(struct added_records *added)
{
    free(added->items);
}

size_t added_record_begin(struct byte_sink *sink, uint32_t type, uint16_t misc)
{
    size_t start = sink->size;
    sink_u32(sink, type);
    sink_u16(sink, (uint16_t)(PERF_MISC_USER | misc));
    sink_u16(sink, 0); /* the size, set by added_record_end */
    return start;
}

void added_record_trailer(struct byte_sink *sink, const struct added_record *record,
                          const struct added_record_source *source,
                          const struct perf_record *trailer_record)
{
    struct perf_sample id;
    if (!perf_sample_id_read(&id, source->records->file, trailer_record))
        return;
    id.pid = source->processes[record->process].pid;
    id.tid = record->tid;
    id.time_ns = record->time_ns;
    perf_sample_put_id(&id, id.format, sink);
}

int added_record_end(struct byte_sink *sink, size_t start)
{
    size_t size = sink->size - start;
    if (sink->overflow || size > UINT16_MAX)
        return -1;
    struct byte_sink patch = byte_sink_over(sink->data + start + SIZE_AT, 2);
    sink_u16(&patch, (uint16_t)size);
    return 0;
}
