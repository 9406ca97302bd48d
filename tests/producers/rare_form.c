/* rare_form FORM IN OUT: make of a recording by perf record -e cpu-clock --sample-identifier one of a form that few
 * machines can record.
 *
 *     bts          as with perf record -e intel_bts//: branch traces in AUXTRACE records, and the index of them.  Every
 *                  tenth sample has one behind it, of three branches from its address to the one of the sample before.
 *     branches     as with -b: every sample ends in a branch stack of three
 *     compressed2  IN was recorded with -z: its COMPRESSED records become COMPRESSED2, as perf 6.16 and newer write them
 *     nameless     without the maps of files named *.dump
 *     off_cpu      as with --off-cpu, perf 6.2 and newer: copies of the last samples at the end, stamped ~0 << 32
 *     damaged2     the same, but the first of them claims more bytes than it has
 *     reserved     IN was recorded with -z: the last COMPRESSED record begins with a block of zstd's reserved type, which
 *                  nothing unpacks (RFC 8878, 3.1.1.2.2; what bytes within a block change may still be unpacked)
 *
 * perf itself is the judge of these: perf script --itrace=b prints the branches only if the index is right.
 */
#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/byte_sink.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIZE_MAX_BYTES = 64 << 20,
    TRACES_MAX = 1 << 16,
    EVERY = 10,
    BRANCHES = 3,
    BRANCH_BYTES = 24,
    LEFT_OVER = 16
};

enum {
    RECORD_SAMPLE = 9,
    RECORD_MMAP2 = 10,
    RECORD_AUX = 11,
    RECORD_AUXTRACE_INFO = 70,
    RECORD_AUXTRACE = 71
};
enum { RECORD_COMPRESSED = 81, RECORD_COMPRESSED2 = 83 };
enum { FEATURE_AUXTRACE = 18 };
enum {
    SAMPLE_TYPE_OFFSET = 24,
    BRANCH_STACK = 1 << 11,
    PLAIN_TYPE = 0x10107 /* IDENTIFIER|IP|TID|TIME|PERIOD */
};

struct form {
    bool traces, branches, compressed2, damage, nameless, off_cpu, reserved;
};

struct maker {
    struct form form;
    const uint8_t *in;
    size_t in_bytes;
    struct byte_sink out;
    uint64_t data_offset, data_bytes;
    uint64_t trace_offsets[TRACES_MAX];
    uint64_t trace_count, trace_bytes;
    uint64_t last_compressed; /* its offset in OUT */
    uint64_t samples, last_ip;
    const uint8_t *last_samples[LEFT_OVER]; /* the newest at samples % LEFT_OVER - 1 */
};

static void die(const char *why)
{
    fprintf(stderr, "rare_form: %s\n", why);
    exit(1);
}

static uint64_t get_u64(const struct maker *maker, uint64_t offset)
{
    struct byte_cursor cursor = byte_cursor_over(maker->in, maker->in_bytes, false);
    cursor_skip(&cursor, (size_t)offset);
    uint64_t value = cursor_u64(&cursor);
    if (cursor.failed)
        die("the input is cut");
    return value;
}

static void patch_u64(struct maker *maker, uint64_t offset, uint64_t value)
{
    struct byte_sink sink = byte_sink_over(maker->out.data + offset, 8);
    sink_u64(&sink, value);
}

static void put_header(struct maker *maker, uint32_t type, size_t size)
{
    sink_u32(&maker->out, type);
    sink_u16(&maker->out, 0);
    sink_u16(&maker->out, (uint16_t)size);
}

/* What intel_bts needs to know: the event's type (1, of cpu-clock), and that its clock counts nanoseconds. */
static void put_trace_info(struct maker *maker)
{
    static const uint64_t fields[] = {2 /* Intel BTS */, 1, 0, 1, 0, 1, 0};
    put_header(maker, RECORD_AUXTRACE_INFO, 8 + sizeof fields);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        sink_u64(&maker->out, fields[i]);
}

/* An AUX record and an AUXTRACE record, of the process and time of the sample at IP. */
static void put_trace(struct maker *maker, uint64_t id, uint64_t ip, uint64_t pid_tid,
                      uint64_t time_ns)
{
    struct byte_sink *out = &maker->out;
    put_header(maker, RECORD_AUX, 56);
    sink_u64(out, maker->trace_bytes);
    sink_u64(out, BRANCHES * BRANCH_BYTES);
    sink_u64(out, 0);
    sink_u64(out, pid_tid);
    sink_u64(out, time_ns);
    sink_u64(out, id);
    if (maker->trace_count == TRACES_MAX)
        die("too many traces");
    maker->trace_offsets[maker->trace_count++] = out->size;
    put_header(maker, RECORD_AUXTRACE, 48);
    sink_u64(out, BRANCHES * BRANCH_BYTES);
    sink_u64(out, maker->trace_bytes);
    sink_u64(out, time_ns);
    sink_u32(out, 0);
    sink_u32(out, (uint32_t)(pid_tid >> 32));
    sink_u32(out, UINT32_MAX); /* not one CPU's */
    sink_u32(out, 0);
    for (int i = 0; i < BRANCHES; i++) {
        sink_u64(out, ip);
        sink_u64(out, maker->last_ip);
        sink_u64(out, 0);
    }
    maker->trace_bytes += BRANCHES * BRANCH_BYTES;
}

static void put_branches(struct maker *maker, uint64_t ip)
{
    sink_u64(&maker->out, 3);
    for (uint64_t i = 0; i < 3; i++) {
        sink_u64(&maker->out, ip - i);
        sink_u64(&maker->out, ip + i);
        sink_u64(&maker->out, 2); /* predicted */
    }
}

static void put_sample(struct maker *maker, const uint8_t *record, size_t size)
{
    struct byte_cursor cursor = byte_cursor_over(record, size, false);
    cursor_skip(&cursor, 8);
    uint64_t id = cursor_u64(&cursor), ip = cursor_u64(&cursor);
    uint64_t pid_tid = cursor_u64(&cursor), time_ns = cursor_u64(&cursor);
    size_t start = maker->out.size;
    sink_bytes(&maker->out, record, size);
    if (maker->form.branches) {
        put_branches(maker, ip);
        struct byte_sink patch = byte_sink_over(maker->out.data + start + 6, 2);
        sink_u16(&patch, (uint16_t)(maker->out.size - start));
    }
    maker->last_samples[maker->samples % LEFT_OVER] = record;
    if (maker->samples++ % EVERY == 0 && maker->form.traces)
        put_trace(maker, id, ip, pid_tid, time_ns);
    maker->last_ip = ip;
}

/* What perf's BPF program counted and had not written yet: perf writes it when all is over. */
static void put_left_over(struct maker *maker)
{
    enum { PLAIN_BYTES = 48, TIME_OFFSET = 32 };
    for (size_t i = 0; i < LEFT_OVER && maker->last_samples[i]; i++) {
        size_t start = maker->out.size;
        sink_bytes(&maker->out, maker->last_samples[i], PLAIN_BYTES);
        patch_u64(maker, start + TIME_OFFSET, ~UINT64_C(0) << 32);
    }
}

static void put_compressed2(struct maker *maker, const uint8_t *record, size_t size)
{
    size_t bytes = size - 8, padded = (bytes + 7) / 8 * 8;
    put_header(maker, RECORD_COMPRESSED2, 16 + padded);
    sink_u64(&maker->out, maker->form.damage ? padded + 1 : bytes);
    sink_bytes(&maker->out, record + 8, bytes);
    sink_zeros(&maker->out, padded - bytes);
}

static void make_reserved(struct maker *maker)
{
    if (!maker->last_compressed)
        die("the input has no COMPRESSED record");
    memset(maker->out.data + maker->last_compressed + 8, 0xff, 3);
}

static bool names_dump(const uint8_t *record, size_t size)
{
    return memmem(record, size, ".dump", sizeof ".dump");
}

static void put_records(struct maker *maker)
{
    const uint8_t *data = maker->in + maker->data_offset;
    struct byte_cursor cursor = byte_cursor_over(data, (size_t)maker->data_bytes, false);
    if (maker->form.traces)
        put_trace_info(maker);
    while (cursor_left(&cursor)) {
        struct byte_cursor header = cursor;
        uint32_t type = cursor_u32(&header);
        cursor_skip(&header, 2);
        size_t size = cursor_u16(&header);
        const uint8_t *record = cursor_bytes(&cursor, size);
        if (!record || size < 8)
            die("a record is cut");
        if (type == RECORD_SAMPLE)
            put_sample(maker, record, size);
        else if (type == RECORD_MMAP2 && maker->form.nameless && names_dump(record, size))
            continue;
        else if (type == RECORD_COMPRESSED && maker->form.compressed2)
            put_compressed2(maker, record, size);
        else {
            if (type == RECORD_COMPRESSED)
                maker->last_compressed = maker->out.size;
            sink_bytes(&maker->out, record, size);
        }
    }
    if (maker->form.off_cpu)
        put_left_over(maker);
    if (maker->form.reserved)
        make_reserved(maker);
}

static bool has_feature(const struct maker *maker, unsigned bit)
{
    return get_u64(maker, 72 + bit / 64 * 8) >> bit % 64 & 1;
}

static void put_section(struct maker *maker, uint64_t offset, uint64_t size)
{
    sink_u64(&maker->out, offset);
    sink_u64(&maker->out, size);
}

/* The table of features, which are behind all else and move, and the index of traces as one more. */
static void put_features(struct maker *maker)
{
    uint64_t table = maker->data_offset + maker->data_bytes, entry = table;
    uint64_t index_bytes = maker->form.traces ? 8 + 16 * maker->trace_count : 0;
    uint64_t moved = maker->out.size - table + (maker->form.traces ? 16 : 0);
    for (unsigned bit = 0; bit < 256; bit++) {
        if (bit == FEATURE_AUXTRACE && maker->form.traces)
            put_section(maker, maker->in_bytes + moved, index_bytes);
        if (!has_feature(maker, bit))
            continue;
        put_section(maker, get_u64(maker, entry) + moved, get_u64(maker, entry + 8));
        entry += 16;
    }
    sink_bytes(&maker->out, maker->in + entry, maker->in_bytes - (size_t)entry);
    if (!maker->form.traces)
        return;
    patch_u64(maker, 72, get_u64(maker, 72) | UINT64_C(1) << FEATURE_AUXTRACE);
    sink_u64(&maker->out, maker->trace_count);
    for (uint64_t i = 0; i < maker->trace_count; i++)
        put_section(maker, maker->trace_offsets[i], 48);
}

static void make(struct maker *maker)
{
    uint64_t attr = get_u64(maker, 24);
    maker->data_offset = get_u64(maker, 40);
    maker->data_bytes = get_u64(maker, 48);
    if (maker->data_offset + maker->data_bytes > maker->in_bytes)
        die("the input is cut");
    if (get_u64(maker, attr + SAMPLE_TYPE_OFFSET) != PLAIN_TYPE)
        die("the input's samples are not IDENTIFIER|IP|TID|TIME|PERIOD: record with "
            "--sample-identifier");
    sink_bytes(&maker->out, maker->in, (size_t)maker->data_offset);
    if (maker->form.branches)
        patch_u64(maker, attr + SAMPLE_TYPE_OFFSET, PLAIN_TYPE | BRANCH_STACK);
    put_records(maker);
    patch_u64(maker, 48, maker->out.size - maker->data_offset);
    put_features(maker);
}

static struct form form_of(const char *name)
{
    if (strcmp(name, "bts") == 0)
        return (struct form){.traces = true};
    if (strcmp(name, "branches") == 0)
        return (struct form){.branches = true};
    if (strcmp(name, "compressed2") == 0)
        return (struct form){.compressed2 = true};
    if (strcmp(name, "damaged2") == 0)
        return (struct form){.compressed2 = true, .damage = true};
    if (strcmp(name, "nameless") == 0)
        return (struct form){.nameless = true};
    if (strcmp(name, "off_cpu") == 0)
        return (struct form){.off_cpu = true};
    if (strcmp(name, "reserved") == 0)
        return (struct form){.reserved = true};
    die("no such form");
    return (struct form){0};
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(SIZE_MAX_BYTES / 4);
    if (!file || !bytes)
        die("can't read the input");
    *size = fread(bytes, 1, SIZE_MAX_BYTES / 4, file);
    fclose(file);
    return bytes;
}

static void write_file(const char *path, const struct byte_sink *out)
{
    FILE *file = fopen(path, "wb");
    if (out->overflow)
        die("the output is too large");
    if (!file || fwrite(out->data, 1, out->size, file) != out->size || fclose(file))
        die("can't write the output");
}

int main(int argc, char **argv)
{
    static struct maker maker;
    if (argc != 4) {
        fprintf(stderr,
                "usage: rare_form bts|branches|compressed2|nameless|off_cpu|damaged2|reserved "
                "IN OUT\n");
        return 2;
    }
    maker.form = form_of(argv[1]);
    maker.in = read_file(argv[2], &maker.in_bytes);
    uint8_t *out = malloc(SIZE_MAX_BYTES);
    if (!out)
        die("out of memory");
    maker.out = byte_sink_over(out, SIZE_MAX_BYTES);
    make(&maker);
    write_file(argv[3], &maker.out);
    return 0;
}
