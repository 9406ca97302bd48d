/* See perf_unzip.h. */
#include "injector/perf_data/perf_unzip.h"

#include "injector/perf_data/perf_format.h"
#include "injector/perf_data/perf_record.h"
#include "jitdump/byte_cursor.h"
#include "jitdump/byte_sink.h"

#include <inttypes.h>
#include <string.h>
#include <zstd.h>

enum { COMPRESSED2_BYTES = 16 };

struct unzipper {
    const struct perf_file *file;
    struct memory_file *plain;
    struct memory_file pending; /* unpacked, and not yet a whole record */
    ZSTD_DStream *stream;
    struct findings *findings;
};

static int out_of_memory(struct findings *findings)
{
    return failure(findings, "out of memory");
}

/* Unpack COUNT bytes at BYTES to the end of pending. */
static int unpack(struct unzipper *unzipper, const struct perf_record *record, const uint8_t *bytes,
                  size_t count)
{
    ZSTD_inBuffer in = {bytes, count, 0};
    ZSTD_outBuffer out;
    do {
        size_t room = ZSTD_DStreamOutSize();
        out = (ZSTD_outBuffer){memory_file_room(&unzipper->pending, room), room, 0};
        if (!out.dst)
            return out_of_memory(unzipper->findings);
        size_t result = ZSTD_decompressStream(unzipper->stream, &out, &in);
        if (ZSTD_isError(result)) {
            finding(unzipper->findings, FINDING_PROFILE_TRUNCATED,
                    "%s: record %" PRIu64 " at 0x%" PRIx64 ": can't be unpacked: %s",
                    unzipper->file->path, record->number, record->offset,
                    ZSTD_getErrorName(result));
            return 1;
        }
        memory_file_grow(&unzipper->pending, out.pos);
    } while (in.pos < in.size || out.pos == out.size);
    return 0;
}

/* How many bytes at the start of pending are whole records. */
static size_t whole_records(const struct memory_file *pending)
{
    size_t at = 0;
    while (pending->size - at >= PERF_RECORD_HEADER_BYTES) {
        struct byte_cursor cursor = byte_cursor_over(pending->data + at, pending->size - at, false);
        cursor_skip(&cursor, 6);
        size_t size = cursor_u16(&cursor);
        if (size < PERF_RECORD_HEADER_BYTES || size > pending->size - at)
            return at;
        at += size;
    }
    return at;
}

static int move_whole_records(struct unzipper *unzipper)
{
    struct memory_file *pending = &unzipper->pending;
    size_t whole = whole_records(pending);
    if (memory_file_add(unzipper->plain, pending->data, whole))
        return out_of_memory(unzipper->findings);
    if (whole)
        memmove(pending->data, pending->data + whole, pending->size - whole);
    pending->size -= whole;
    return 0;
}

static int unzip_record(struct unzipper *unzipper, const struct perf_record *record)
{
    const uint8_t *bytes = record->bytes + PERF_RECORD_HEADER_BYTES;
    size_t count = record->size - (size_t)PERF_RECORD_HEADER_BYTES;
    if (record->type == PERF_RECORD_COMPRESSED2) {
        struct byte_cursor cursor = byte_cursor_over(bytes, count, false);
        uint64_t data_size = cursor_u64(&cursor);
        if (data_size > cursor_left(&cursor))
            return failure(unzipper->findings,
                           "%s: record %" PRIu64 " at 0x%" PRIx64
                           ": COMPRESSED2 holds fewer bytes than it says",
                           unzipper->file->path, record->number, record->offset);
        bytes = cursor_bytes(&cursor, (size_t)data_size);
        count = (size_t)data_size;
    }
    int result = unpack(unzipper, record, bytes, count);
    return result ? result : move_whole_records(unzipper);
}

/* Damage ends the records, as a cut does: what was unpacked before it is kept. */
static int unzip_records(struct unzipper *unzipper)
{
    struct perf_walk walk = perf_walk_begin(unzipper->file);
    struct perf_record record;
    int result = 0;
    while (!result && perf_walk_next(&walk, &record, unzipper->findings)) {
        if (record.type == PERF_RECORD_COMPRESSED || record.type == PERF_RECORD_COMPRESSED2)
            result = unzip_record(unzipper, &record);
        else if (memory_file_add(unzipper->plain, record.bytes, (size_t)record.span))
            result = out_of_memory(unzipper->findings);
    }
    if (result < 0)
        return -1;
    if (result == 0 && unzipper->pending.size)
        finding(unzipper->findings, FINDING_PROFILE_TRUNCATED,
                "%s: the compressed records end inside a record", unzipper->file->path);
    return 0;
}

/* The table of features without that of COMPRESSED, then everything behind the table. */
static int copy_features(struct unzipper *unzipper)
{
    const struct perf_file *file = unzipper->file;
    uint64_t table = file->records.offset + file->records.size;
    size_t count = perf_file_feature_count(file);
    uint64_t contents = table + count * (uint64_t)PERF_SECTION_BYTES;
    if (contents > file->size)
        return 0;
    uint64_t moved_by = unzipper->plain->size - table - PERF_SECTION_BYTES;
    unsigned bit = 0;
    for (size_t i = 0; i < count; i++, bit++) {
        uint8_t section[PERF_SECTION_BYTES];
        memcpy(section, file->data + table + i * PERF_SECTION_BYTES, sizeof section);
        while (!perf_file_has_feature(file, bit))
            bit++;
        if (bit == PERF_FEATURE_COMPRESSED)
            continue;
        if (perf_get_u64(section) >= contents)
            perf_put_u64(section, perf_get_u64(section) + moved_by);
        if (memory_file_add(unzipper->plain, section, sizeof section))
            return out_of_memory(unzipper->findings);
    }
    if (memory_file_add(unzipper->plain, file->data + contents, (size_t)(file->size - contents)))
        return out_of_memory(unzipper->findings);
    return 0;
}

static int unzip(struct unzipper *unzipper)
{
    const struct perf_file *file = unzipper->file;
    struct memory_file *plain = unzipper->plain;
    if (memory_file_add(plain, file->data, (size_t)file->records.offset))
        return out_of_memory(unzipper->findings);
    if (unzip_records(unzipper))
        return -1;
    perf_put_u64(plain->data + PERF_HEADER_DATA + 8, plain->size - file->records.offset);
    if (copy_features(unzipper))
        return -1;
    uint8_t *features = plain->data + PERF_HEADER_FEATURES;
    features[PERF_FEATURE_COMPRESSED / 8] &= (uint8_t) ~(1u << PERF_FEATURE_COMPRESSED % 8);
    return 0;
}

int perf_unzip(struct memory_file *plain, const struct perf_file *file, struct findings *findings)
{
    struct unzipper unzipper = {.file = file, .plain = plain, .findings = findings};
    unzipper.stream = ZSTD_createDStream();
    int result = unzipper.stream ? unzip(&unzipper) : out_of_memory(findings);
    ZSTD_freeDStream(unzipper.stream);
    memory_file_free(&unzipper.pending);
    return result;
}
