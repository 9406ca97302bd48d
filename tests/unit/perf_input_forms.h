/* A plain recording, the other forms that it may have, and whether it is opened as what it was. */
#ifndef PERFJIT_TEST_PERF_INPUT_FORMS_H
#define PERFJIT_TEST_PERF_INPUT_FORMS_H

#include "injector/recording/perf_data/perf_input.h"

#include "tests/unit/profile_builder.h"

#include <zstd.h>

static struct profile_builder plain;
static uint8_t form[1 << 18]; /* the recording in another form */

/* ---- The plain file: rounds, two layouts, and two traces in the middle ---- */

struct marks {
    size_t first_trace, first_round, second_trace, second_round;
};

static inline struct marks put_records(struct profile_builder *profile, uint64_t (*traces)[2],
                                       bool rounds)
{
    struct marks marks;
    for (uint64_t time = 10; time < 50; time++)
        profile_sample(profile, time % 2, time);
    traces[0][0] = marks.first_trace = profile_auxtrace(profile, 24);
    marks.first_round = profile->sink.size;
    if (rounds)
        profile_round(profile);
    for (uint64_t time = 50; time < 90; time++)
        profile_comm(profile, time % 2, time);
    traces[1][0] = marks.second_trace = profile_auxtrace(profile, 16);
    traces[0][1] = traces[1][1] = PERF_AUXTRACE_BYTES;
    marks.second_round = profile->sink.size;
    if (rounds)
        profile_round(profile);
    return marks;
}

static inline struct marks build_plain(struct profile_builder *profile, bool rounds)
{
    static const uint64_t types[] = {SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER,
                                     SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_CPU};
    uint64_t traces[2][2];
    profile_begin(profile, types, 2);
    struct marks marks = put_records(profile, traces, rounds);
    profile_end_records(profile);
    profile_features(profile, (const uint64_t(*)[2])traces, 2);
    return marks;
}

/* ---- Opening ---- */

static inline struct findings assert_opens_as(const char *path,
                                              const struct profile_builder *expected)
{
    struct perf_input input;
    struct findings findings = {0};
    if (perf_input_open(&input, path, &findings))
        fail_msg("%s", findings.failure);
    for (size_t i = 0; i < input.file.size && i < expected->sink.size; i++)
        if (input.file.data[i] != expected->bytes[i])
            fail_msg("byte 0x%zx is 0x%x, not 0x%x", i, input.file.data[i], expected->bytes[i]);
    assert_int_equal(input.file.size, expected->sink.size);
    perf_input_close(&input);
    return findings;
}

static inline void assert_opens_well(const char *path, const struct profile_builder *expected)
{
    struct findings findings = assert_opens_as(path, expected);
    assert_int_equal(findings_lost(&findings), 0);
}

static inline void assert_refused(const char *path, const char *words)
{
    struct perf_input input;
    struct findings findings = {0};
    assert_int_equal(perf_input_open(&input, path, &findings), -1);
    if (!strstr(findings.failure, words))
        fail_msg("'%s' does not say '%s'", findings.failure, words);
    perf_input_close(&input);
    findings_free(&findings);
}

/* ---- Compressed ---- */

struct zipper {
    ZSTD_CCtx *stream;
    struct byte_sink out;
    uint32_t type;
    size_t piece_bytes;
};

static inline void zip_piece(struct zipper *zipper, const uint8_t *bytes, size_t count)
{
    static uint8_t packed[1 << 16];
    ZSTD_inBuffer in = {bytes, count, 0};
    ZSTD_outBuffer out = {packed, sizeof packed, 0};
    assert_int_equal(ZSTD_compressStream2(zipper->stream, &out, &in, ZSTD_e_flush), 0);
    bool second = zipper->type == PERF_RECORD_COMPRESSED2;
    size_t padding = second ? (8u - out.pos % 8) % 8 : 0, fields = second ? 8 : 0;
    sink_u32(&zipper->out, zipper->type);
    sink_u16(&zipper->out, 0);
    sink_u16(&zipper->out, (uint16_t)(8 + fields + out.pos + padding));
    if (second)
        sink_u64(&zipper->out, out.pos);
    sink_bytes(&zipper->out, packed, out.pos);
    sink_zeros(&zipper->out, padding);
}

/* The records from FROM to TO, in pieces that end where they may. */
static inline void zip(struct zipper *zipper, const struct profile_builder *profile, size_t from,
                       size_t to)
{
    for (size_t at = from; at < to; at += zipper->piece_bytes)
        zip_piece(zipper, profile->bytes + at,
                  to - at < zipper->piece_bytes ? to - at : zipper->piece_bytes);
}

/* PROFILE's records, traces and marks as they are, all else compressed. */
static inline void zip_records(struct zipper *zipper, const struct profile_builder *profile,
                               const struct marks *marks)
{
    size_t second_comm = marks->first_round + PERF_RECORD_HEADER_BYTES;
    zipper->stream = ZSTD_createCCtx();
    zip(zipper, profile, profile->records_start, marks->first_trace);
    sink_bytes(&zipper->out, profile->bytes + marks->first_trace, second_comm - marks->first_trace);
    zip(zipper, profile, second_comm, marks->second_trace);
    sink_bytes(&zipper->out, profile->bytes + marks->second_trace,
               profile->records_end - marks->second_trace);
    ZSTD_freeCCtx(zipper->stream);
}

#endif
