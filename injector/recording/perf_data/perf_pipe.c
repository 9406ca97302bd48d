/* See perf_pipe.h. */
#include "injector/recording/perf_data/perf_pipe.h"

#include "injector/files/full_write.h"
#include "injector/files/interruption.h"

#include "injector/arrays/array.h"
#include "injector/recording/perf_data/build_id_table.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_plain.h"
#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/byte_sink.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { ATTR_SIZE_AT = 12 /* in a HEADER_ATTR record */ };

/* ---- A stream into a file ---- */

struct piped {
    const struct memory_file *stream;
    const char *name;
    struct findings *findings;
    struct perf_attr *attrs;
    size_t attr_count, attr_capacity;
    struct perf_features features;
};

/* A record of the stream and its data behind it. */
struct piped_record {
    const uint8_t *bytes;
    size_t size;
    size_t payload;
    uint32_t type;
};

bool perf_pipe_is(const uint8_t *data, size_t size)
{
    struct byte_cursor cursor = byte_cursor_over(data, size, false);
    return cursor_u64(&cursor) == PERF_MAGIC && cursor_u64(&cursor) == PERF_PIPE_HEADER_BYTES;
}

/* How many bytes follow RECORD that belong to it. */
static uint64_t payload_bytes(const struct piped_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    if (record->type == PERF_RECORD_HEADER_TRACING_DATA)
        return cursor_u32(&cursor);
    return record->type == PERF_RECORD_AUXTRACE ? cursor_u64(&cursor) : 0;
}

/* The record at *AT, and *AT after it.  Returns false at the end of the stream, and where it is
 * cut: then *AT stays. */
static bool next_record(const struct memory_file *stream, size_t *at, struct piped_record *record)
{
    size_t left = stream->size - *at;
    struct byte_cursor cursor = byte_cursor_over(stream->data + *at, left, false);
    record->bytes = stream->data + *at;
    record->type = cursor_u32(&cursor);
    cursor_skip(&cursor, 2);
    record->size = cursor_u16(&cursor);
    if (cursor.failed || record->size < PERF_RECORD_HEADER_BYTES || record->size > left)
        return false;
    uint64_t payload = payload_bytes(record);
    if (payload > left - record->size)
        return false;
    record->payload = (size_t)payload;
    *at += record->size + record->payload;
    return true;
}

/* Whether ATTR was told before, with the same ids: perf reads no file in which an event is twice.
 */
static bool is_told_again(const struct piped *piped, const struct perf_attr *attr)
{
    for (size_t i = 0; attr->ids_bytes && i < piped->attr_count; i++) {
        const struct perf_attr *told = &piped->attrs[i];
        if (told->size == attr->size && told->ids_bytes == attr->ids_bytes &&
            memcmp(told->bytes, attr->bytes, attr->size + attr->ids_bytes) == 0)
            return true;
    }
    return false;
}

static int take_attr(struct piped *piped, const struct piped_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    cursor_skip(&cursor, ATTR_SIZE_AT);
    uint32_t attr_size = cursor_u32(&cursor);
    if (attr_size < PERF_ATTR_MIN_BYTES || attr_size > record->size - PERF_RECORD_HEADER_BYTES)
        return report_failure(piped->findings,
                              "%s: damaged: an event attribute of %" PRIu32 " bytes", piped->name,
                              attr_size);
    if (array_reserve(piped->attrs, piped->attr_count, piped->attr_capacity))
        return report_failure(piped->findings, "out of memory");
    const uint8_t *attr = record->bytes + PERF_RECORD_HEADER_BYTES;
    size_t ids_bytes = (record->size - PERF_RECORD_HEADER_BYTES - attr_size) / 8 * 8;
    const struct perf_attr taken = {attr, attr_size, attr + attr_size, ids_bytes};
    if (!is_told_again(piped, &taken))
        piped->attrs[piped->attr_count++] = taken;
    return 0;
}

static void take_feature(struct piped *piped, const struct piped_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    uint64_t bit = cursor_u64(&cursor);
    size_t bytes = cursor_left(&cursor);
    if (bytes && bit < PERF_FEATURE_BITS) /* the mark after the last feature has no contents */
        perf_features_set(&piped->features, (unsigned)bit, cursor_bytes(&cursor, bytes), bytes);
}

/* Take the sections that a file has outside its records. */
static int take_sections(struct piped *piped)
{
    const struct memory_file *stream = piped->stream;
    struct piped_record record;
    size_t at = PERF_PIPE_HEADER_BYTES;
    while (next_record(stream, &at, &record)) {
        if (record.type == PERF_RECORD_HEADER_ATTR && take_attr(piped, &record))
            return -1;
        if (record.type == PERF_RECORD_HEADER_FEATURE)
            take_feature(piped, &record);
        if (record.type == PERF_RECORD_HEADER_TRACING_DATA)
            perf_features_set(&piped->features, PERF_FEATURE_TRACING_DATA,
                              record.bytes + record.size, record.payload);
    }
    if (piped->attr_count == 0)
        return report_failure(piped->findings,
                              "%s: the stream has no event attributes: perf record wrote nothing",
                              piped->name);
    if (at < stream->size)
        report_finding(piped->findings, FINDING_PROFILE_TRUNCATED,
                       "%s: the stream ends inside the record at 0x%zx", piped->name, at);
    return 0;
}

static int add_records(struct perf_plain *plain, const struct memory_file *stream)
{
    struct piped_record record;
    for (size_t at = PERF_PIPE_HEADER_BYTES; next_record(stream, &at, &record);)
        if (record.type != PERF_RECORD_HEADER_ATTR && record.type != PERF_RECORD_HEADER_FEATURE &&
            record.type != PERF_RECORD_HEADER_TRACING_DATA &&
            perf_plain_add(plain, record.bytes, record.size + record.payload))
            return -1;
    return 0;
}

int perf_pipe_to_file(struct memory_file *file, const struct memory_file *stream, const char *name,
                      struct findings *findings)
{
    struct piped piped = {.stream = stream, .name = name, .findings = findings};
    struct perf_plain plain = {0};
    int result = take_sections(&piped);
    if (!result && (perf_plain_begin(&plain, piped.attrs, piped.attr_count) ||
                    add_records(&plain, stream) || perf_plain_end(&plain, &piped.features)))
        result = report_failure(findings, "out of memory");
    *file = plain.file;
    plain.file = (struct memory_file){0};
    perf_plain_free(&plain);
    free(piped.attrs);
    return result;
}

/* ---- A file into a stream ---- */

struct pipe_writer {
    int fd;
    const char *name;
    struct findings *findings;
};

static int write_bytes(const struct pipe_writer *writer, const uint8_t *bytes, size_t count)
{
    if (full_write(writer->fd, WRITE_WHERE_IT_STANDS, bytes, count) == 0)
        return 0;
    int error = errno;
    if (interruption_check(writer->findings))
        return -1;
    return report_failure(writer->findings, "%s: can't write it: %s", writer->name,
                          strerror(error));
}

/* A record of TYPE whose fields are the two given pieces. */
static int write_record(const struct pipe_writer *writer, uint32_t type, const uint8_t *first,
                        size_t first_bytes, const uint8_t *second, size_t second_bytes)
{
    uint8_t header[PERF_RECORD_HEADER_BYTES];
    struct byte_sink sink = byte_sink_over(header, sizeof header);
    size_t size = sizeof header + first_bytes + second_bytes;
    if (size > UINT16_MAX)
        return report_failure(
            writer->findings,
            "%s: %zu bytes about an event do not fit into a stream; write a file with -o "
            "FILE",
            writer->name, size);
    sink_u32(&sink, type);
    sink_u16(&sink, 0);
    sink_u16(&sink, (uint16_t)size);
    return write_bytes(writer, header, sizeof header) || write_bytes(writer, first, first_bytes) ||
           write_bytes(writer, second, second_bytes);
}

static int write_attr(const struct pipe_writer *writer, const struct perf_file *file,
                      const struct perf_event *event)
{
    const uint8_t *bytes = file->data + event->attr.offset;
    struct byte_cursor attr = byte_cursor_over(bytes, (size_t)event->attr.size, false);
    cursor_skip(&attr, 4);
    size_t own_bytes = cursor_u32(&attr);
    if (own_bytes < PERF_ATTR_MIN_BYTES || own_bytes > event->attr.size)
        own_bytes = (size_t)event->attr.size;
    return write_record(writer, PERF_RECORD_HEADER_ATTR, bytes, own_bytes,
                        file->data + event->ids.offset, (size_t)event->ids.size);
}

static int write_attrs(const struct pipe_writer *writer, const struct perf_file *file)
{
    for (size_t i = 0; i < file->event_count; i++)
        if (write_attr(writer, file, &file->events[i]))
            return -1;
    return 0;
}

static int write_tracing_data(const struct pipe_writer *writer, const uint8_t *contents,
                              size_t bytes)
{
    uint8_t size[8] = {0};
    static const uint8_t padding[8];
    size_t padded = (bytes + 7) / 8 * 8;
    struct byte_sink sink = byte_sink_over(size, sizeof size);
    sink_u32(&sink, (uint32_t)padded);
    return write_record(writer, PERF_RECORD_HEADER_TRACING_DATA, size, sizeof size, NULL, 0) ||
           write_bytes(writer, contents, bytes) || write_bytes(writer, padding, padded - bytes);
}

/* The entries of the section are records but for their type.  perf 7 refuses one whose size is no
 * multiple of 8, and itself writes such entries into files. */
static int write_build_ids(const struct pipe_writer *writer, const struct perf_feature *feature)
{
    static const uint8_t padding[8];
    struct byte_cursor entries = build_id_table_over(feature);
    struct build_id_entry entry;
    while (build_id_table_next(&entries, &entry)) {
        size_t padded = (entry.size + 7u) / 8 * 8;
        uint8_t header[PERF_RECORD_HEADER_BYTES];
        struct byte_sink sink = byte_sink_over(header, sizeof header);
        if (padded > UINT16_MAX)
            return 0;
        sink_u32(&sink, PERF_RECORD_HEADER_BUILD_ID);
        sink_u16(&sink, entry.misc);
        sink_u16(&sink, (uint16_t)padded);
        if (write_bytes(writer, header, sizeof header) ||
            write_bytes(writer, entry.bytes + sizeof header, entry.size - sizeof header) ||
            write_bytes(writer, padding, padded - entry.size))
            return -1;
    }
    return 0;
}

/* perf 6.1 skips features of a file that it does not know, but refuses a stream that has any. */
static int write_feature(const struct pipe_writer *writer, const struct perf_feature *feature)
{
    uint8_t number[8];
    perf_put_u64(number, feature->bit);
    if (feature->bit == PERF_FEATURE_TRACING_DATA)
        return write_tracing_data(writer, feature->bytes, feature->size);
    if (feature->bit == PERF_FEATURE_BUILD_ID)
        return write_build_ids(writer, feature);
    if (feature->bit == PERF_FEATURE_AUXTRACE || feature->size == 0)
        return 0; /* an index of file offsets */
    if (feature->bit > PERF_FEATURE_OLD_LAST)
        return 0;
    if (feature->size > UINT16_MAX - PERF_RECORD_HEADER_BYTES - sizeof number) {
        report_finding(
            writer->findings, FINDING_FEATURE_BROKEN,
            "%s: feature %u: its %zu bytes do not fit into a stream; a file (-o FILE) has it",
            writer->name, feature->bit, feature->size);
        return 0;
    }
    return write_record(writer, PERF_RECORD_HEADER_FEATURE, number, sizeof number, feature->bytes,
                        feature->size);
}

static int write_features(const struct pipe_writer *writer, const struct perf_file *file)
{
    for (size_t i = 0; i < file->features.count; i++)
        if (write_feature(writer, &file->features.items[i]))
            return -1;
    return 0;
}

int perf_pipe_write(int fd, const uint8_t *data, size_t size, const char *name,
                    struct findings *findings)
{
    struct pipe_writer writer = {fd, name, findings};
    struct perf_file file;
    uint8_t header[PERF_PIPE_HEADER_BYTES];
    struct byte_sink sink = byte_sink_over(header, sizeof header);
    sink_u64(&sink, PERF_MAGIC);
    sink_u64(&sink, PERF_PIPE_HEADER_BYTES);
    int result = perf_file_view(&file, name, data, size, findings);
    if (!result)
        result = write_bytes(&writer, header, sizeof header) || write_attrs(&writer, &file) ||
                 write_features(&writer, &file) ||
                 write_bytes(&writer, data + file.records.offset, (size_t)file.records.size);
    perf_file_close(&file);
    return result ? -1 : 0;
}
