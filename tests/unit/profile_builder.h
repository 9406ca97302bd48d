/* A perf.data file in memory: header, event ids, attrs, records, feature sections. */
#ifndef PERFJIT_TEST_PROFILE_BUILDER_H
#define PERFJIT_TEST_PROFILE_BUILDER_H

#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_record.h"
#include "jitdump/format/byte_sink.h"
#include "tests/unit/scratch.h"

#include <time.h>

enum {
    BUILT_ATTR_BYTES = 136,
    BUILT_EVENTS = 4,
    BUILT_IDS = 2,  /* of each event: 100, 101; 200, 201; ... */
    BUILT_COMM = 3, /* a kernel record that says nothing here */
    BUILT_PERIOD = 1 << 8,
    SAMPLE_TYPE = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | BUILT_PERIOD,
};

struct profile_builder {
    uint8_t bytes[1 << 16];
    struct byte_sink sink;
    uint64_t sample_types[BUILT_EVENTS];
    size_t events;
    size_t records_start, records_end;
};

static inline void profile_set_u64(struct profile_builder *profile, size_t at, uint64_t value)
{
    struct byte_sink patch = byte_sink_over(profile->bytes + at, 8);
    sink_u64(&patch, value);
}

static inline void profile_put_attr(struct profile_builder *profile, size_t event)
{
    struct byte_sink *sink = &profile->sink;
    size_t start = sink->size;
    sink_u32(sink, 1); /* a software event */
    sink_u32(sink, BUILT_ATTR_BYTES);
    sink_zeros(sink, PERF_ATTR_SAMPLE_TYPE - 8);
    sink_u64(sink, profile->sample_types[event]);
    sink_zeros(sink, 8);
    sink_u64(sink, PERF_ATTR_SAMPLE_ID_ALL | PERF_ATTR_USE_CLOCKID);
    sink_zeros(sink, PERF_ATTR_CLOCKID - PERF_ATTR_FLAGS - 8);
    sink_u32(sink, CLOCK_MONOTONIC);
    sink_zeros(sink, start + BUILT_ATTR_BYTES - sink->size);
    sink_u64(sink, PERF_FILE_HEADER_BYTES + event * BUILT_IDS * 8);
    sink_u64(sink, BUILT_IDS * 8);
}

/* Everything in front of the records, for EVENTS events with the given sample_types. */
static inline void profile_begin(struct profile_builder *profile, const uint64_t *sample_types,
                                 size_t events)
{
    struct byte_sink *sink = &profile->sink;
    *sink = byte_sink_over(profile->bytes, sizeof profile->bytes);
    memcpy(profile->sample_types, sample_types, events * sizeof *sample_types);
    profile->events = events;
    sink_u64(sink, PERF_MAGIC);
    sink_u64(sink, PERF_FILE_HEADER_BYTES);
    sink_u64(sink, BUILT_ATTR_BYTES + PERF_SECTION_BYTES);
    sink_u64(sink, PERF_FILE_HEADER_BYTES + events * BUILT_IDS * 8);
    sink_u64(sink, events * (BUILT_ATTR_BYTES + PERF_SECTION_BYTES));
    sink_zeros(sink, PERF_FILE_HEADER_BYTES - sink->size); /* data by profile_end_records */
    for (size_t i = 0; i < events * BUILT_IDS; i++)
        sink_u64(sink, 100 * (i / BUILT_IDS + 1) + i % BUILT_IDS);
    for (size_t i = 0; i < events; i++)
        profile_put_attr(profile, i);
    profile->records_start = sink->size;
}

static inline void profile_begin_one(struct profile_builder *profile)
{
    const uint64_t sample_type = SAMPLE_TYPE;
    profile_begin(profile, &sample_type, 1);
}

static inline size_t profile_begin_record(struct profile_builder *profile, uint32_t type,
                                          uint16_t misc)
{
    size_t start = profile->sink.size;
    sink_u32(&profile->sink, type);
    sink_u16(&profile->sink, misc);
    sink_u16(&profile->sink, 0);
    return start;
}

/* Returns the record's offset, START. */
static inline size_t profile_end_record(struct profile_builder *profile, size_t start)
{
    struct byte_sink patch = byte_sink_over(profile->bytes + start + 6, 2);
    sink_u16(&patch, (uint16_t)(profile->sink.size - start));
    return start;
}

/* One field of a sample or trailer, if the event has it. */
static inline void profile_put_field(struct profile_builder *profile, size_t event, uint64_t bit,
                                     uint64_t value)
{
    if (profile->sample_types[event] & bit)
        sink_u64(&profile->sink, value);
}

static inline size_t profile_sample(struct profile_builder *profile, size_t event, uint64_t time)
{
    uint64_t id = 100 * (event + 1) + 1, pid_and_tid = UINT64_C(0x100000001) * 4711;
    size_t start = profile_begin_record(profile, PERF_RECORD_SAMPLE, PERF_MISC_USER);
    profile_put_field(profile, event, PERF_SAMPLE_IDENTIFIER, id);
    profile_put_field(profile, event, PERF_SAMPLE_IP, 0x401000);
    profile_put_field(profile, event, PERF_SAMPLE_TID, pid_and_tid);
    profile_put_field(profile, event, PERF_SAMPLE_TIME, time);
    profile_put_field(profile, event, PERF_SAMPLE_ID, id);
    profile_put_field(profile, event, PERF_SAMPLE_STREAM_ID, id);
    profile_put_field(profile, event, PERF_SAMPLE_CPU, 3);
    profile_put_field(profile, event, BUILT_PERIOD, 1);
    return profile_end_record(profile, start);
}

static inline void profile_put_trailer(struct profile_builder *profile, size_t event, uint32_t tid,
                                       uint64_t time)
{
    uint64_t id = 100 * (event + 1);
    profile_put_field(profile, event, PERF_SAMPLE_TID, UINT64_C(4711) | (uint64_t)tid << 32);
    profile_put_field(profile, event, PERF_SAMPLE_TIME, time);
    profile_put_field(profile, event, PERF_SAMPLE_ID, id);
    profile_put_field(profile, event, PERF_SAMPLE_STREAM_ID, id);
    profile_put_field(profile, event, PERF_SAMPLE_CPU, 3);
    profile_put_field(profile, event, PERF_SAMPLE_IDENTIFIER, id);
}

/* An MMAP2 (or MMAP) of process 4711, of memory as executable as a JIT's. */
static inline size_t profile_map(struct profile_builder *profile, uint32_t type, size_t event,
                                 uint64_t addr, uint64_t len, const char *filename, uint64_t time)
{
    struct byte_sink *sink = &profile->sink;
    size_t start = profile_begin_record(profile, type, PERF_MISC_USER);
    sink_u32(sink, 4711);
    sink_u32(sink, 4712);
    sink_u64(sink, addr);
    sink_u64(sink, len);
    sink_u64(sink, 0x3000); /* pgoff */
    if (type == PERF_RECORD_MMAP2) {
        sink_u64(sink, 0x1122334455667788); /* maj, min */
        sink_u64(sink, 0x99aabbccddeeff00); /* ino */
        sink_u64(sink, 7);
        /* Nobody writes to a program's or library's file. */
        sink_u32(sink, filename[0] == '/' && filename[1] != '/' ? 5 : 7); /* prot */
        sink_u32(sink, 2);                                                /* flags */
    }
    sink_cstr(sink, filename);
    sink_zeros(sink, (8 - (sink->size - start) % 8) % 8);
    profile_put_trailer(profile, event, 4712, time);
    return profile_end_record(profile, start);
}

static inline size_t profile_comm(struct profile_builder *profile, size_t event, uint64_t time)
{
    size_t start = profile_begin_record(profile, BUILT_COMM, 0);
    sink_u64(&profile->sink, 4711);
    sink_bytes(&profile->sink, "program", 8);
    profile_put_trailer(profile, event, 4711, time);
    return profile_end_record(profile, start);
}

/* A record of perf's own, without a time. */
static inline size_t profile_plain(struct profile_builder *profile, uint32_t type, size_t bytes)
{
    size_t start = profile_begin_record(profile, type, 0);
    sink_zeros(&profile->sink, bytes);
    return profile_end_record(profile, start);
}

static inline size_t profile_round(struct profile_builder *profile)
{
    return profile_plain(profile, PERF_RECORD_FINISHED_ROUND, 0);
}

/* An AUXTRACE record with PAYLOAD bytes behind it that look like records, but are none. */
static inline size_t profile_auxtrace(struct profile_builder *profile, size_t payload)
{
    size_t start = profile_begin_record(profile, PERF_RECORD_AUXTRACE, 0);
    sink_u64(&profile->sink, payload);
    sink_zeros(&profile->sink, PERF_AUXTRACE_BYTES - 16);
    profile_end_record(profile, start);
    for (size_t i = 0; i < payload; i++)
        sink_u8(&profile->sink, 0x44);
    return start;
}

static inline void profile_end_records(struct profile_builder *profile)
{
    profile->records_end = profile->sink.size;
    profile_set_u64(profile, PERF_HEADER_DATA, profile->records_start);
    profile_set_u64(profile, PERF_HEADER_DATA + 8, profile->records_end - profile->records_start);
}

/* After the records: the only feature, with the NAMES, shorter than 24 characters, of COUNT events.
 */
static inline void profile_put_names(struct profile_builder *profile, const char *const names[],
                                     uint32_t count)
{
    enum { NAME_BYTES = 24 };
    struct byte_sink *sink = &profile->sink;
    sink_u64(sink, sink->size + PERF_SECTION_BYTES);
    sink_u64(sink, 8 + count * (BUILT_ATTR_BYTES + 8 + NAME_BYTES));
    sink_u32(sink, count);
    sink_u32(sink, BUILT_ATTR_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        sink_zeros(sink, BUILT_ATTR_BYTES);
        sink_u32(sink, 0);
        sink_u32(sink, NAME_BYTES);
        sink_bytes(sink, names[i], strlen(names[i]));
        sink_zeros(sink, NAME_BYTES - strlen(names[i]));
    }
    profile_set_u64(profile, PERF_HEADER_FEATURES, UINT64_C(1) << PERF_FEATURE_EVENT_DESC);
}

/* The KEPT first of these feature sections: 3, 13 and, if there are TRACES, an index of them:
 * {offset, size} each. */
static inline void profile_features_first(struct profile_builder *profile,
                                          const uint64_t (*traces)[2], size_t trace_count,
                                          size_t kept)
{
    static const unsigned bits[] = {3, 13, PERF_FEATURE_AUXTRACE};
    struct byte_sink *sink = &profile->sink;
    const size_t sizes[] = {8, 16, 8 + 16 * trace_count};
    uint64_t set = 0, contents = sink->size + kept * PERF_SECTION_BYTES;
    for (size_t i = 0; i < kept; i++) {
        set |= UINT64_C(1) << bits[i];
        sink_u64(sink, contents);
        sink_u64(sink, sizes[i]);
        contents += sizes[i];
    }
    profile_set_u64(profile, PERF_HEADER_FEATURES, set);
    if (kept > 0)
        sink_bytes(sink, "hostname", 8);
    if (kept > 1)
        sink_bytes(sink, "sixteen bytes ..", 16);
    if (kept > 2)
        sink_u64(sink, trace_count);
    for (size_t i = 0; kept > 2 && i < trace_count; i++) {
        sink_u64(sink, traces[i][0]);
        sink_u64(sink, traces[i][1]);
    }
}

static inline void profile_features(struct profile_builder *profile, const uint64_t (*traces)[2],
                                    size_t trace_count)
{
    profile_features_first(profile, traces, trace_count, 2 + (trace_count > 0));
}

/* The feature sections HOSTNAME, ARCH and CLOCK_DATA alone: the wall clock and perf's at one
 * moment. */
static inline void profile_host(struct profile_builder *profile, const char *name, const char *arch,
                                uint32_t clock_version, const uint64_t clocks_ns[2])
{
    struct byte_sink *sink = &profile->sink;
    uint64_t at = sink->size + 3 * PERF_SECTION_BYTES;
    const uint64_t bytes[] = {4 + strlen(name) + 1, 4 + strlen(arch) + 1, 24};
    for (size_t i = 0; i < 3; i++) {
        sink_u64(sink, at);
        sink_u64(sink, bytes[i]);
        at += bytes[i];
    }
    sink_u32(sink, (uint32_t)strlen(name) + 1);
    sink_cstr(sink, name);
    sink_u32(sink, (uint32_t)strlen(arch) + 1);
    sink_cstr(sink, arch);
    sink_u32(sink, clock_version);
    sink_u32(sink, 1);
    sink_u64(sink, clocks_ns[0]);
    sink_u64(sink, clocks_ns[1]);
    profile_set_u64(profile, PERF_HEADER_FEATURES,
                    UINT64_C(1) << PERF_FEATURE_HOSTNAME | UINT64_C(1) << PERF_FEATURE_ARCH |
                        UINT64_C(1) << PERF_FEATURE_CLOCK_DATA);
}

/* Write what has been built, cut after SIZE bytes, and open it. */
static inline int open_cut_profile(const struct profile_builder *profile, size_t size,
                                   struct perf_file *file, struct findings *findings)
{
    assert_false(profile->sink.overflow);
    write_scratch(profile->bytes, size);
    return perf_file_open(file, scratch_file, findings);
}

static inline void open_built_profile(const struct profile_builder *profile, struct perf_file *file)
{
    struct findings findings = {0};
    if (open_cut_profile(profile, profile->sink.size, file, &findings))
        fail_msg("%s", findings.failure);
    assert_int_equal(findings_lost(&findings), 0);
}

#endif
