/* Chains of perf record --call-graph fp,defer: which record of type 22 is a sample's, in every
 * order and in records that tell little, and what a recording is when they are joined. */
#include "injector/recording/perf_data/perf_input.h"
#include "injector/recording/perf_data/perf_sample.h"

#include "tests/unit/profile_builder.h"

#include <zstd.h>

enum { TAIL = 0x7a11, KERNEL_IP = 0x5e, MOST_STEPS = 8 };

#define DEFERS     PERF_ATTR_DEFERS
#define ALL_FIELDS (SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)

enum kind { END, SAMPLE, CHAIN, MARKED_CHAIN, FORK };

/* A record; CHAINS hold the address VALUE, and SAMPLES are to get it (0: they find none). */
struct step {
    enum kind kind;
    uint32_t tid;
    uint64_t time_ns, cookie, value;
};

static struct profile_builder profile;

static void put_entries(const uint64_t *entries, size_t count)
{
    sink_u64(&profile.sink, count);
    for (size_t i = 0; i < count; i++)
        sink_u64(&profile.sink, entries[i]);
}

static void put_thread_and_time(const struct step *step)
{
    profile_put_field(&profile, 0, PERF_SAMPLE_TID, UINT64_C(4711) | (uint64_t)step->tid << 32);
    profile_put_field(&profile, 0, PERF_SAMPLE_TIME, step->time_ns);
}

static void put_sample(const struct step *step)
{
    const uint64_t chain[] = {PERF_CONTEXT_KERNEL, KERNEL_IP, PERF_CONTEXT_USER_DEFERRED,
                              step->cookie};
    size_t start = profile_begin_record(&profile, PERF_RECORD_SAMPLE, PERF_MISC_KERNEL);
    profile_put_field(&profile, 0, PERF_SAMPLE_IP, KERNEL_IP);
    put_thread_and_time(step);
    profile_put_field(&profile, 0, BUILT_PERIOD, 1);
    profile_put_field(&profile, 0, PERF_SAMPLE_READ, PERF_CONTEXT_USER_DEFERRED);
    put_entries(chain, 4);
    sink_u32(&profile.sink, 4);
    sink_u32(&profile.sink, TAIL);
    profile_end_record(&profile, start);
}

static void put_chain(const struct step *step)
{
    const uint64_t chain[] = {PERF_CONTEXT_USER, step->value, 0x77};
    bool marked = step->kind == MARKED_CHAIN;
    size_t start = profile_begin_record(&profile, PERF_RECORD_CALLCHAIN_DEFERRED, PERF_MISC_USER);
    sink_u64(&profile.sink, step->cookie);
    put_entries(marked ? chain : chain + 1, marked ? 3 : 2);
    put_thread_and_time(step);
    profile_end_record(&profile, start);
}

static void put_fork(const struct step *step)
{
    size_t start = profile_begin_record(&profile, PERF_RECORD_FORK, 0);
    sink_u32(&profile.sink, 4711);
    sink_u32(&profile.sink, 4711);
    sink_u32(&profile.sink, step->tid);
    sink_u32(&profile.sink, 4711);
    sink_u64(&profile.sink, step->time_ns);
    put_thread_and_time(step);
    profile_end_record(&profile, start);
}

static void build(const struct step *steps, uint64_t sample_type)
{
    profile_begin(&profile, &sample_type, 1);
    size_t flags = profile.records_start - PERF_SECTION_BYTES - BUILT_ATTR_BYTES + PERF_ATTR_FLAGS;
    profile_set_u64(&profile, flags, DEFERS | PERF_ATTR_SAMPLE_ID_ALL);
    for (; steps->kind != END; steps++)
        (steps->kind == SAMPLE ? put_sample : steps->kind == FORK ? put_fork : put_chain)(steps);
    profile_end_records(&profile);
}

/* The records, as perf record -z has them. */
static void pack(void)
{
    static uint8_t packed[4096];
    size_t size = ZSTD_compress(packed, sizeof packed, profile.bytes + profile.records_start,
                                profile.sink.size - profile.records_start, 1);
    assert_false(ZSTD_isError(size));
    profile.sink.size = profile.records_start;
    size_t start = profile_begin_record(&profile, PERF_RECORD_COMPRESSED, 0);
    sink_bytes(&profile.sink, packed, size);
    profile_end_record(&profile, start);
    profile_end_records(&profile);
}

static void open_it(struct perf_input *input, struct findings *findings)
{
    assert_int_equal(perf_input_view(input, "a.data", profile.bytes, profile.sink.size, findings),
                     0);
    uint64_t flags =
        perf_get_u64(input->file.data + input->file.events[0].attr.offset + PERF_ATTR_FLAGS);
    assert_int_equal(flags & DEFERS, 0);
}

/* RECORD is that of STEP, with its chain. */
static void check_sample(const struct perf_file *file, const struct perf_record *record,
                         const struct step *step)
{
    const uint64_t expected[] = {PERF_CONTEXT_KERNEL, KERNEL_IP, PERF_CONTEXT_USER, step->value,
                                 0x77};
    struct perf_sample sample;
    assert_true(perf_sample_read(&sample, &file->events[0].format, record, SAMPLE_FIELDS));
    assert_int_equal(sample.chain.count, step->value ? 5 : 2);
    for (size_t i = 0; i < sample.chain.count; i++)
        assert_int_equal(perf_get_u64(sample.chain.entries + 8 * i), expected[i]);
    assert_int_equal(sample.raw.size, 4);
    assert_int_equal(sample.raw.bytes[0] | sample.raw.bytes[1] << 8, TAIL);
}

/* STEPS, in records with the fields of SAMPLE_TYPE, become what they tell. */
static void check(const struct step *steps, uint64_t sample_type, bool packed)
{
    struct findings findings = {.quiet = true};
    struct perf_input input;
    struct perf_record record;
    uint64_t missing = 0;
    build(steps, sample_type);
    if (packed)
        pack();
    open_it(&input, &findings);
    struct perf_walk walk = perf_walk_begin(&input.file);
    for (; steps->kind != END; steps++) {
        if (steps->kind == CHAIN || steps->kind == MARKED_CHAIN)
            continue;
        assert_true(perf_walk_next(&walk, &record, NULL));
        assert_int_equal(record.type, steps->kind == FORK ? PERF_RECORD_FORK : PERF_RECORD_SAMPLE);
        if (steps->kind == SAMPLE)
            check_sample(&input.file, &record, steps);
        missing += steps->kind == SAMPLE && !steps->value;
    }
    assert_false(perf_walk_next(&walk, &record, NULL));
    assert_int_equal(findings.count[FINDING_CALLERS_MISSING], missing);
    assert_int_equal(findings_lost(&findings), 0);
    perf_input_close(&input);
    findings_free(&findings);
}

static const struct step of_threads[][MOST_STEPS] = {
    /* one chain for the samples of one kernel entry */
    {{SAMPLE, 1, 10, 7, 0xa}, {SAMPLE, 1, 20, 7, 0xa}, {CHAIN, 1, 30, 7, 0xa}, {END}},
    {{SAMPLE, 1, 10, 7, 0xa}, {MARKED_CHAIN, 1, 30, 7, 0xa}, {END}},
    /* from another processor's buffer */
    {{CHAIN, 1, 30, 7, 0xa}, {SAMPLE, 1, 10, 7, 0xa}, {SAMPLE, 1, 30, 7, 0xa}, {END}},
    /* a cookie that is used again, and one in two threads */
    {{SAMPLE, 1, 10, 7, 0xa},
     {CHAIN, 1, 11, 7, 0xa},
     {SAMPLE, 1, 20, 7, 0xb},
     {CHAIN, 1, 21, 7, 0xb},
     {END}},
    {{SAMPLE, 1, 10, 7, 0xa},
     {SAMPLE, 2, 10, 7, 0xb},
     {CHAIN, 2, 11, 7, 0xb},
     {CHAIN, 1, 12, 7, 0xa},
     {END}},
    /* twice, for two events */
    {{SAMPLE, 1, 10, 7, 0xa}, {CHAIN, 1, 11, 7, 0xa}, {CHAIN, 1, 12, 7, 0xb}, {END}},
    /* missing, but for another thread, another cookie, before the sample */
    {{SAMPLE, 1, 10, 7, 0},
     {CHAIN, 2, 11, 7, 0xa},
     {CHAIN, 1, 11, 8, 0xa},
     {CHAIN, 1, 9, 7, 0xa},
     {END}},
    /* another thread with the same number */
    {{SAMPLE, 1, 10, 7, 0},
     {FORK, 1, 12, 0, 0},
     {SAMPLE, 1, 13, 7, 0xb},
     {CHAIN, 1, 14, 7, 0xb},
     {END}},
    {{FORK, 1, 10, 0, 0},
     {SAMPLE, 1, 10, 7, 0xa},
     {CHAIN, 1, 14, 7, 0xa},
     {FORK, 1, 15, 0, 0},
     {END}},
};

static void test_thread_cookie_and_time_tell_whose_a_chain_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof of_threads / sizeof *of_threads; i++) {
        check(of_threads[i], ALL_FIELDS, false);
        check(of_threads[i], ALL_FIELDS | PERF_SAMPLE_READ, false);
        check(of_threads[i], ALL_FIELDS, true);
    }
}

static void test_without_threads_the_cookie_tells_whose_a_chain_is(void **state)
{
    static const struct step steps[] = {{SAMPLE, 1, 10, 7, 0xa}, {SAMPLE, 2, 11, 8, 0xb},
                                        {CHAIN, 2, 12, 8, 0xb},  {CHAIN, 1, 13, 7, 0xa},
                                        {SAMPLE, 1, 14, 9, 0},   {END}};
    (void)state;
    check(steps, ALL_FIELDS & ~(uint64_t)PERF_SAMPLE_TID, false);
}

/* ---- Sizes ---- */

static void begin_long(struct byte_sink *sink, uint32_t type, size_t size)
{
    sink_u32(sink, type);
    sink_u16(sink, PERF_MISC_USER);
    sink_u16(sink, (uint16_t)size);
}

/* A sample with RAW_BYTES and a chain of COUNT entries, of which the record says SAID. */
static struct perf_input build_long(size_t raw_bytes, size_t count, size_t said,
                                    struct findings *findings)
{
    static uint8_t large[1 << 18];
    const uint64_t type = ALL_FIELDS, thread = 1, time_ns = 10;
    struct byte_sink sink = byte_sink_over(large, sizeof large);
    struct perf_input input;
    profile_begin(&profile, &type, 1);
    profile_set_u64(&profile,
                    profile.records_start - PERF_SECTION_BYTES - BUILT_ATTR_BYTES + PERF_ATTR_FLAGS,
                    DEFERS | PERF_ATTR_SAMPLE_ID_ALL);
    sink_bytes(&sink, profile.bytes, profile.records_start);
    begin_long(&sink, PERF_RECORD_SAMPLE, 8 * 8 + 4 + raw_bytes);
    const uint64_t words[] = {KERNEL_IP, thread, time_ns, 1, 2, PERF_CONTEXT_USER_DEFERRED, 7};
    for (size_t i = 0; i < 7; i++)
        sink_u64(&sink, words[i]);
    sink_u32(&sink, (uint32_t)raw_bytes);
    sink_zeros(&sink, raw_bytes);
    begin_long(&sink, PERF_RECORD_CALLCHAIN_DEFERRED, 8 * (5 + count));
    sink_u64(&sink, 7);
    sink_u64(&sink, said);
    for (size_t i = 0; i < count; i++)
        sink_u64(&sink, 0x1000 + i);
    sink_u64(&sink, thread);
    sink_u64(&sink, time_ns);
    perf_put_u64(large + PERF_HEADER_DATA, profile.records_start);
    perf_put_u64(large + PERF_HEADER_DATA + 8, sink.size - profile.records_start);
    assert_int_equal(perf_input_view(&input, "a.data", large, sink.size, findings), 0);
    return input;
}

static void test_a_chain_is_cut_to_the_room_of_a_record(void **state)
{
    enum { RAW_BYTES = 40004, ENTRIES = 3180 };
    struct findings findings = {.quiet = true};
    struct perf_record record;
    struct perf_sample sample;
    (void)state;
    size_t cut = 0;
    for (size_t more = 0; more < 64; more += 8) {
        struct perf_input input = build_long(RAW_BYTES + more, ENTRIES, ENTRIES, &findings);
        struct perf_walk walk = perf_walk_begin(&input.file);
        assert_true(perf_walk_next(&walk, &record, NULL));
        assert_true(
            perf_sample_read(&sample, &input.file.events[0].format, &record, SAMPLE_FIELDS));
        size_t all = record.size + 8 * (1 + ENTRIES - sample.chain.count);
        assert_int_equal(record.size, all <= 65528 ? all : 65528);
        cut += all > 65528;
        assert_int_equal(sample.raw.size, RAW_BYTES + more);
        assert_int_equal(perf_get_u64(sample.chain.entries), PERF_CONTEXT_USER);
        assert_int_equal(perf_get_u64(sample.chain.entries + 8), 0x1000);
        perf_input_close(&input);
    }
    assert_int_equal(cut, 4);
    findings_free(&findings);
}

static void test_a_chain_that_its_record_cannot_hold_is_missing(void **state)
{
    static const struct {
        size_t count, said;
    } lies[] = {{4, 5}, {4, 7}, {4, SIZE_MAX}, {4, SIZE_MAX / 8 + 1}, {0, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct findings findings = {.quiet = true};
        struct perf_input input = build_long(12, lies[i].count, lies[i].said, &findings);
        assert_int_equal(findings.count[FINDING_CALLERS_MISSING], 1);
        perf_input_close(&input);
        findings_free(&findings);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thread_cookie_and_time_tell_whose_a_chain_is),
        cmocka_unit_test(test_without_threads_the_cookie_tells_whose_a_chain_is),
        cmocka_unit_test(test_a_chain_is_cut_to_the_room_of_a_record),
        cmocka_unit_test(test_a_chain_that_its_record_cannot_hold_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
