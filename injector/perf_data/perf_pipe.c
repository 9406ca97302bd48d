/* See perf_pipe.h. */
#include "injector/perf_data/perf_pipe.h"

#include "injector/array.h"
#include "injector/perf_data/perf_format.h"
#include "jitdump/byte_cursor.h"
#include "jitdump/byte_sink.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
    ATTR_SIZE_AT = 12, /* in a HEADER_ATTR record */
    FEATURE_BYTES = 16,
    TRACING_DATA_BYTES = 16, /* perf pads the record to 8 */
};

/* ---- A stream into a file ---- */

struct attr {
    const uint8_t *bytes;
    size_t size;
    const uint8_t *ids;
    size_t ids_bytes;
};

struct piped {
    const struct memory_file *stream;
    const char *name;
    struct findings *findings;
    struct attr *attrs;
    size_t attr_count, attr_capacity;
    const uint8_t *features[PERF_FEATURE_BITS];
    size_t feature_bytes[PERF_FEATURE_BITS];
    struct memory_file records;
};

static int out_of_memory(struct findings *findings)
{
    return failure(findings, "out of memory");
}

bool perf_pipe_is(const uint8_t *data, size_t size)
{
    struct byte_cursor cursor = byte_cursor_over(data, size, false);
    return cursor_u64(&cursor) == PERF_MAGIC && cursor_u64(&cursor) == PERF_PIPE_HEADER_BYTES;
}

static int take_attr(struct piped *piped, const uint8_t *record, size_t size)
{
    struct byte_cursor cursor = byte_cursor_over(record, size, false);
    cursor_skip(&cursor, ATTR_SIZE_AT);
    uint32_t attr_size = cursor_u32(&cursor);
    if (attr_size < PERF_ATTR_MIN_BYTES || attr_size > size - PERF_RECORD_HEADER_BYTES)
        return failure(piped->findings, "%s: damaged: an event attribute of %" PRIu32 " bytes",
                       piped->name, attr_size);
    struct attr *attrs =
        array_room(piped->attrs, piped->attr_count, &piped->attr_capacity, sizeof *attrs);
    if (!attrs)
        return out_of_memory(piped->findings);
    piped->attrs = attrs;
    size_t ids_bytes = (size - PERF_RECORD_HEADER_BYTES - attr_size) / 8 * 8;
    attrs[piped->attr_count++] =
        (struct attr){record + PERF_RECORD_HEADER_BYTES, attr_size,
                      record + PERF_RECORD_HEADER_BYTES + attr_size, ids_bytes};
    return 0;
}

static void take_feature(struct piped *piped, const uint8_t *record, size_t size)
{
    struct byte_cursor cursor = byte_cursor_over(record, size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    uint64_t bit = cursor_u64(&cursor);
    if (cursor.failed || bit >= PERF_FEATURE_BITS || cursor_left(&cursor) == 0)
        return; /* the mark behind the last feature has no contents */
    piped->feature_bytes[bit] = cursor_left(&cursor);
    piped->features[bit] = cursor_bytes(&cursor, cursor_left(&cursor));
}

/* How many bytes follow RECORD that belong to it. */
static uint64_t payload_bytes(const uint8_t *record, size_t size, uint32_t type)
{
    struct byte_cursor cursor = byte_cursor_over(record, size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    if (type == PERF_RECORD_HEADER_TRACING_DATA)
        return cursor_u32(&cursor);
    return type == PERF_RECORD_AUXTRACE ? cursor_u64(&cursor) : 0;
}

static int take_record(struct piped *piped, const uint8_t *record, size_t size, uint32_t type,
                       size_t payload)
{
    switch (type) {
    case PERF_RECORD_HEADER_ATTR:
        return take_attr(piped, record, size);
    case PERF_RECORD_HEADER_FEATURE:
        take_feature(piped, record, size);
        return 0;
    case PERF_RECORD_HEADER_TRACING_DATA:
        piped->features[PERF_FEATURE_TRACING_DATA] = record + size;
        piped->feature_bytes[PERF_FEATURE_TRACING_DATA] = payload;
        return 0;
    default:
        return memory_file_add(&piped->records, record, size + payload)
                   ? out_of_memory(piped->findings)
                   : 0;
    }
}

static int cut_short(struct piped *piped, size_t at)
{
    finding(piped->findings, FINDING_PROFILE_TRUNCATED,
            "%s: the stream ends inside the record at 0x%zx", piped->name, at);
    return 0;
}

static int take_records(struct piped *piped)
{
    const struct memory_file *stream = piped->stream;
    for (size_t at = PERF_PIPE_HEADER_BYTES; at < stream->size;) {
        struct byte_cursor cursor = byte_cursor_over(stream->data + at, stream->size - at, false);
        uint32_t type = cursor_u32(&cursor);
        cursor_skip(&cursor, 2);
        size_t size = cursor_u16(&cursor), left = stream->size - at;
        if (cursor.failed || size < PERF_RECORD_HEADER_BYTES || size > left)
            return cut_short(piped, at);
        uint64_t payload = payload_bytes(stream->data + at, size, type);
        if (payload > left - size)
            return cut_short(piped, at);
        if (take_record(piped, stream->data + at, size, type, (size_t)payload))
            return -1;
        at += size + (size_t)payload;
    }
    return 0;
}

static size_t largest_attr(const struct piped *piped)
{
    size_t largest = 0;
    for (size_t i = 0; i < piped->attr_count; i++)
        if (piped->attrs[i].size > largest)
            largest = piped->attrs[i].size;
    return largest;
}

static void put_section(struct byte_sink *sink, uint64_t offset, uint64_t size)
{
    sink_u64(sink, offset);
    sink_u64(sink, size);
}

/* Header, ids, attributes: everything in front of the records, RECORDS_BYTES long. */
static void put_front(struct byte_sink *sink, const struct piped *piped, size_t ids_bytes,
                      size_t attr_bytes)
{
    uint64_t features[PERF_FEATURE_BITS / 64] = {0};
    uint64_t attrs_at = PERF_FILE_HEADER_BYTES + ids_bytes, ids_at = PERF_FILE_HEADER_BYTES;
    size_t entry_bytes = attr_bytes + PERF_SECTION_BYTES;
    for (size_t bit = 0; bit < PERF_FEATURE_BITS; bit++)
        if (piped->features[bit])
            features[bit / 64] |= UINT64_C(1) << bit % 64;
    sink_u64(sink, PERF_MAGIC);
    sink_u64(sink, PERF_FILE_HEADER_BYTES);
    sink_u64(sink, entry_bytes);
    put_section(sink, attrs_at, piped->attr_count * entry_bytes);
    put_section(sink, attrs_at + piped->attr_count * entry_bytes, piped->records.size);
    put_section(sink, 0, 0);
    for (size_t i = 0; i < PERF_FEATURE_BITS / 64; i++)
        sink_u64(sink, features[i]);
    for (size_t i = 0; i < piped->attr_count; i++)
        sink_bytes(sink, piped->attrs[i].ids, piped->attrs[i].ids_bytes);
    for (size_t i = 0; i < piped->attr_count; i++) {
        const struct attr *attr = &piped->attrs[i];
        sink_bytes(sink, attr->bytes, attr->size);
        sink_zeros(sink, attr_bytes - attr->size);
        put_section(sink, ids_at, attr->ids_bytes);
        ids_at += attr->ids_bytes;
    }
}

static int add_front(struct memory_file *file, const struct piped *piped)
{
    size_t ids_bytes = 0, attr_bytes = largest_attr(piped);
    for (size_t i = 0; i < piped->attr_count; i++)
        ids_bytes += piped->attrs[i].ids_bytes;
    size_t size =
        PERF_FILE_HEADER_BYTES + ids_bytes + piped->attr_count * (attr_bytes + PERF_SECTION_BYTES);
    uint8_t *room = memory_file_room(file, size);
    if (!room)
        return -1;
    struct byte_sink sink = byte_sink_over(room, size);
    put_front(&sink, piped, ids_bytes, attr_bytes);
    memory_file_grow(file, size);
    return 0;
}

/* The table of feature sections and their contents. */
static int add_features(struct memory_file *file, const struct piped *piped)
{
    size_t count = 0;
    for (size_t bit = 0; bit < PERF_FEATURE_BITS; bit++)
        count += piped->features[bit] != NULL;
    uint64_t at = file->size + count * PERF_SECTION_BYTES;
    for (size_t bit = 0; bit < PERF_FEATURE_BITS; bit++) {
        uint8_t section[PERF_SECTION_BYTES];
        struct byte_sink sink = byte_sink_over(section, sizeof section);
        if (!piped->features[bit])
            continue;
        put_section(&sink, at, piped->feature_bytes[bit]);
        at += piped->feature_bytes[bit];
        if (memory_file_add(file, section, sizeof section))
            return -1;
    }
    for (size_t bit = 0; bit < PERF_FEATURE_BITS; bit++)
        if (piped->features[bit] &&
            memory_file_add(file, piped->features[bit], piped->feature_bytes[bit]))
            return -1;
    return 0;
}

int perf_pipe_to_file(struct memory_file *file, const struct memory_file *stream, const char *name,
                      struct findings *findings)
{
    struct piped piped = {.stream = stream, .name = name, .findings = findings};
    int result = take_records(&piped);
    if (!result && piped.attr_count == 0)
        result = failure(findings,
                         "%s: the stream has no event attributes: perf record wrote nothing", name);
    if (!result &&
        (add_front(file, &piped) || memory_file_add(file, piped.records.data, piped.records.size) ||
         add_features(file, &piped)))
        result = out_of_memory(findings);
    memory_file_free(&piped.records);
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
    while (count) {
        ssize_t written = write(writer->fd, bytes, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return failure(writer->findings, "%s: can't write it: %s", writer->name,
                           strerror(errno));
        bytes += written;
        count -= (size_t)written;
    }
    return 0;
}

/* A record of TYPE whose fields are the two given pieces. */
static int write_record(const struct pipe_writer *writer, uint32_t type, const uint8_t *first,
                        size_t first_bytes, const uint8_t *second, size_t second_bytes)
{
    uint8_t header[PERF_RECORD_HEADER_BYTES];
    struct byte_sink sink = byte_sink_over(header, sizeof header);
    size_t size = sizeof header + first_bytes + second_bytes;
    if (size > UINT16_MAX)
        return 0; /* perf itself leaves out what does not fit */
    sink_u32(&sink, type);
    sink_u16(&sink, 0);
    sink_u16(&sink, (uint16_t)size);
    return write_bytes(writer, header, sizeof header) || write_bytes(writer, first, first_bytes) ||
           write_bytes(writer, second, second_bytes);
}

static int write_attrs(const struct pipe_writer *writer, const uint8_t *data)
{
    struct byte_cursor header = byte_cursor_over(data, PERF_FILE_HEADER_BYTES, false);
    cursor_skip(&header, PERF_HEADER_ATTR_SIZE);
    uint64_t entry_bytes = cursor_u64(&header), offset = cursor_u64(&header),
             bytes = cursor_u64(&header);
    for (uint64_t at = offset; at < offset + bytes; at += entry_bytes) {
        size_t attr_bytes = (size_t)entry_bytes - PERF_SECTION_BYTES;
        struct byte_cursor tail =
            byte_cursor_over(data + at + attr_bytes, PERF_SECTION_BYTES, false);
        uint64_t ids = cursor_u64(&tail), ids_bytes = cursor_u64(&tail);
        struct byte_cursor attr = byte_cursor_over(data + at, attr_bytes, false);
        cursor_skip(&attr, 4);
        uint32_t own_bytes = cursor_u32(&attr);
        if (own_bytes == 0 || own_bytes > attr_bytes)
            own_bytes = (uint32_t)attr_bytes;
        if (write_record(writer, PERF_RECORD_HEADER_ATTR, data + at, own_bytes, data + ids,
                         (size_t)ids_bytes))
            return -1;
    }
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

/* The entries of the section are records but for their type. */
static int write_build_ids(const struct pipe_writer *writer, const uint8_t *contents, size_t bytes)
{
    struct byte_cursor cursor = byte_cursor_over(contents, bytes, false);
    while (cursor_left(&cursor) >= PERF_RECORD_HEADER_BYTES) {
        struct byte_cursor entry = cursor;
        cursor_skip(&entry, 4);
        uint16_t misc = cursor_u16(&entry), size = cursor_u16(&entry);
        const uint8_t *record = cursor_bytes(&cursor, size);
        uint8_t header[PERF_RECORD_HEADER_BYTES];
        struct byte_sink sink = byte_sink_over(header, sizeof header);
        if (!record || size < PERF_RECORD_HEADER_BYTES)
            return 0;
        sink_u32(&sink, PERF_RECORD_HEADER_BUILD_ID);
        sink_u16(&sink, misc);
        sink_u16(&sink, size);
        if (write_bytes(writer, header, sizeof header) ||
            write_bytes(writer, record + sizeof header, size - sizeof header))
            return -1;
    }
    return 0;
}

static int write_feature(const struct pipe_writer *writer, unsigned bit, const uint8_t *contents,
                         size_t bytes)
{
    uint8_t number[8];
    struct byte_sink sink = byte_sink_over(number, sizeof number);
    sink_u64(&sink, bit);
    if (bit == PERF_FEATURE_TRACING_DATA)
        return write_tracing_data(writer, contents, bytes);
    if (bit == PERF_FEATURE_BUILD_ID)
        return write_build_ids(writer, contents, bytes);
    if (bit == PERF_FEATURE_AUXTRACE || bytes == 0)
        return 0; /* an index of file offsets */
    return write_record(writer, PERF_RECORD_HEADER_FEATURE, number, sizeof number, contents, bytes);
}

static int write_features(const struct pipe_writer *writer, const struct perf_file *file)
{
    uint64_t table = file->records.offset + file->records.size;
    size_t index = 0;
    for (unsigned bit = 0; bit < PERF_FEATURE_BITS; bit++) {
        if (!perf_file_has_feature(file, bit))
            continue;
        struct byte_cursor section = byte_cursor_over(file->data, file->size, false);
        cursor_skip(&section, (size_t)(table + index++ * PERF_SECTION_BYTES));
        uint64_t offset = cursor_u64(&section), bytes = cursor_u64(&section);
        if (section.failed || offset > file->size || bytes > file->size - offset)
            continue;
        if (write_feature(writer, bit, file->data + offset, (size_t)bytes))
            return -1;
    }
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
        result = write_bytes(&writer, header, sizeof header) || write_attrs(&writer, data) ||
                 write_features(&writer, &file) ||
                 write_bytes(&writer, data + file.records.offset, (size_t)file.records.size);
    perf_file_close(&file);
    return result ? -1 : 0;
}
