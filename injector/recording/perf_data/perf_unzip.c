/* See perf_unzip.h. */
#include "injector/recording/perf_data/perf_unzip.h"

#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_record.h"
#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/byte_sink.h"

#include <inttypes.h>
#include <string.h>
#include <zstd.h>

/* Samples pack 5 to 50 times, but 64 KiB of user stack, when they are all the same, 2300 times:
 * little more than the time is left of each.  For a stream of no records, or of one record again
 * and again, the ratio of zstd is above 10000.  That would fill all memory from a few MB. */
enum { MAX_RATIO = 8000, MIB = 1 << 20, UNPACKED_AT_WILL = 256 * MIB };

struct unzipper {
    const struct perf_file *file;
    struct perf_plain *plain;
    struct memory_file pending; /* unpacked, and not yet a whole record */
    ZSTD_DStream *stream;
    struct findings *findings;
};

static int out_of_memory(struct findings *findings)
{
    return report_failure(findings, "out of memory");
}

static int damaged(struct unzipper *unzipper, const struct perf_record *record, const char *how)
{
    report_finding(unzipper->findings, FINDING_PROFILE_TRUNCATED,
                   "%s: record %" PRIu64 " at 0x%" PRIx64 ": can't be unpacked: %s",
                   unzipper->file->path, record->number, record->offset, how);
    return 1;
}

/* The size of the record at AT of pending, 0 if it is not whole. */
static size_t whole_record(const struct memory_file *pending, size_t at)
{
    struct byte_cursor cursor = byte_cursor_over(pending->data + at, pending->size - at, false);
    cursor_skip(&cursor, 6);
    size_t size = cursor_u16(&cursor);
    return size < PERF_RECORD_HEADER_BYTES || size > pending->size - at ? 0 : size;
}

static int move_whole_records(struct unzipper *unzipper)
{
    struct memory_file *pending = &unzipper->pending;
    size_t at = 0, size;
    for (; (size = whole_record(pending, at)) != 0; at += size)
        if (perf_plain_add(unzipper->plain, pending->data + at, size))
            return out_of_memory(unzipper->findings);
    if (at)
        memmove(pending->data, pending->data + at, pending->size - at);
    pending->size -= at;
    return 0;
}

/* More than any recording unpacks to. */
static int refuse_bomb(struct unzipper *unzipper, const struct perf_record *record)
{
    return report_failure(unzipper->findings,
                          "%s: record %" PRIu64 " at 0x%" PRIx64 ": unpacks to more than %" PRIu64
                          " MiB, over %d times its packed size, and no recording does that: it is "
                          "damaged, or was made to fill the memory; record without -z",
                          unzipper->file->path, record->number, record->offset,
                          unzipper->plain->unpacked_bytes / MIB, MAX_RATIO);
}

/* Note that IN bytes more came to OUT bytes.  Returns false if that is too much. */
static bool count_bytes(struct perf_plain *plain, size_t in, size_t out)
{
    plain->packed_bytes += in;
    plain->unpacked_bytes += out;
    return plain->unpacked_bytes <= UNPACKED_AT_WILL ||
           plain->unpacked_bytes / MAX_RATIO <= plain->packed_bytes;
}

/* Unpack COUNT bytes at BYTES, and move on the whole records. */
static int unpack(struct unzipper *unzipper, const struct perf_record *record, const uint8_t *bytes,
                  size_t count)
{
    ZSTD_inBuffer in = {bytes, count, 0};
    ZSTD_outBuffer out;
    do {
        size_t room = ZSTD_DStreamOutSize(), before = in.pos;
        out = (ZSTD_outBuffer){memory_file_room(&unzipper->pending, room), room, 0};
        if (!out.dst)
            return out_of_memory(unzipper->findings);
        size_t result = ZSTD_decompressStream(unzipper->stream, &out, &in);
        if (ZSTD_isError(result))
            return damaged(unzipper, record, ZSTD_getErrorName(result));
        memory_file_grow(&unzipper->pending, out.pos);
        if (!count_bytes(unzipper->plain, in.pos - before, out.pos))
            return refuse_bomb(unzipper, record);
        if (move_whole_records(unzipper))
            return -1;
        if (unzipper->pending.size > UINT16_MAX)
            return damaged(unzipper, record, "its contents are not a record");
    } while (in.pos < in.size || out.pos == out.size);
    return 0;
}

static int unzip_record(struct unzipper *unzipper, const struct perf_record *record)
{
    const uint8_t *bytes = record->bytes + PERF_RECORD_HEADER_BYTES;
    size_t count = record->size - (size_t)PERF_RECORD_HEADER_BYTES;
    if (record->type == PERF_RECORD_COMPRESSED2) {
        struct byte_cursor cursor = byte_cursor_over(bytes, count, false);
        uint64_t data_size = cursor_u64(&cursor);
        if (cursor.failed || data_size > cursor_left(&cursor))
            return damaged(unzipper, record, "it holds fewer bytes than it says");
        bytes = cursor_bytes(&cursor, (size_t)data_size);
        count = (size_t)data_size;
    }
    return unpack(unzipper, record, bytes, count);
}

/* Damage ends the records, as a cut does: the bytes unpacked before it are kept. */
static int unzip_records(struct unzipper *unzipper)
{
    struct perf_walk walk = perf_walk_begin(unzipper->file);
    struct perf_record record;
    int result = 0;
    while (!result && perf_walk_next(&walk, &record, unzipper->findings)) {
        if (record.type == PERF_RECORD_COMPRESSED || record.type == PERF_RECORD_COMPRESSED2)
            result = unzip_record(unzipper, &record);
        else if (perf_plain_add(unzipper->plain, record.bytes, (size_t)record.span))
            result = out_of_memory(unzipper->findings);
    }
    if (result < 0)
        return -1;
    if (result == 0 && unzipper->pending.size)
        report_finding(unzipper->findings, FINDING_PROFILE_TRUNCATED,
                       "%s: the compressed records end inside a record", unzipper->file->path);
    return 0;
}

int perf_unzip(struct perf_plain *plain, const struct perf_file *file, struct findings *findings)
{
    struct unzipper unzipper = {.file = file, .plain = plain, .findings = findings};
    unzipper.stream = ZSTD_createDStream();
    int result = unzipper.stream ? unzip_records(&unzipper) : out_of_memory(findings);
    ZSTD_freeDStream(unzipper.stream);
    memory_file_free(&unzipper.pending);
    return result;
}
