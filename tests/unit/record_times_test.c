/* Recordings in which some records, or all, have no time: which one each gets, and in which layout.
 */
#include "injector/recording/perf_data/perf_input.h"
#include "injector/recording/perf_data/perf_sample.h"

#include "tests/unit/profile_builder.h"

enum { MOST_RECORDS = 16, TIMED = 0, UNTIMED = 1 };

#define WITH    (SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER)
#define WITHOUT (WITH & ~(uint64_t)PERF_SAMPLE_TIME)
#define MS      UINT64_C(1000000)

static struct profile_builder profile;
static struct perf_input input;
static struct findings findings;

static void begin(uint64_t first, uint64_t second)
{
    const uint64_t types[] = {first, second};
    profile_begin(&profile, types, second ? 2 : 1);
}

static void set_flags(size_t events, uint64_t flags)
{
    for (size_t i = 1; i <= events; i++)
        profile_set_u64(&profile,
                        profile.records_start - i * (PERF_SECTION_BYTES + BUILT_ATTR_BYTES) +
                            PERF_ATTR_FLAGS,
                        flags);
}

/* A sample of thread TID, on processor CPU if that is recorded. */
static void put_sample(size_t event, uint32_t tid, uint32_t cpu, uint64_t time_ns)
{
    size_t start = profile_begin_record(&profile, PERF_RECORD_SAMPLE, PERF_MISC_USER);
    profile_put_field(&profile, event, PERF_SAMPLE_IDENTIFIER, 100 * (event + 1));
    profile_put_field(&profile, event, PERF_SAMPLE_IP, 0x401000);
    profile_put_field(&profile, event, PERF_SAMPLE_TID, UINT64_C(4711) | (uint64_t)tid << 32);
    profile_put_field(&profile, event, PERF_SAMPLE_TIME, time_ns);
    profile_put_field(&profile, event, PERF_SAMPLE_CPU, cpu);
    profile_put_field(&profile, event, BUILT_PERIOD, 77);
    profile_end_record(&profile, start);
}

static void put_task(uint32_t type, uint64_t own_ns)
{
    size_t start = profile_begin_record(&profile, type, 0);
    sink_u32(&profile.sink, 4711);
    sink_u32(&profile.sink, 1);
    sink_u32(&profile.sink, 4711);
    sink_u32(&profile.sink, 1);
    sink_u64(&profile.sink, own_ns);
    profile_put_trailer(&profile, 0, 4711, own_ns);
    profile_end_record(&profile, start);
}

static void open_it(void)
{
    profile_end_records(&profile);
    findings = (struct findings){.quiet = true};
    assert_int_equal(perf_input_view(&input, "a.data", profile.bytes, profile.sink.size, &findings),
                     0);
    assert_int_equal(findings_lost(&findings), 0);
}

static void close_it(void)
{
    perf_input_close(&input);
    findings_free(&findings);
}

/* The records of the kernel's, in their order, have these times, and all else that they had. */
static void expect_times(const uint64_t *times_ns, size_t count)
{
    struct perf_walk walk = perf_walk_begin(&input.file);
    struct perf_record record;
    size_t seen = 0;
    while (perf_walk_next(&walk, &record, NULL)) {
        struct perf_sample sample;
        uint64_t time_ns;
        if (record.type >= PERF_RECORD_USER_TYPE_START)
            continue;
        assert_true(seen < count);
        assert_true(perf_record_time(&input.file, &record, &time_ns));
        if (time_ns != times_ns[seen])
            print_error("record %zu\n", seen);
        assert_int_equal(time_ns, times_ns[seen++]);
        if (record.type != PERF_RECORD_SAMPLE)
            continue;
        const struct sample_format *format =
            &input.file.events[perf_sample_event(&input.file, &record)].format;
        assert_true(perf_sample_read(&sample, format, &record, SAMPLE_FIELDS));
        assert_int_equal(sample.ip, 0x401000);
        assert_int_equal(sample.pid, 4711);
        assert_int_equal(sample.period, 77);
    }
    assert_int_equal(seen, count);
}

#define EXPECT_TIMES(...)                                                                          \
    do {                                                                                           \
        const uint64_t expected[] = {__VA_ARGS__};                                                 \
        expect_times(expected, sizeof expected / sizeof expected[0]);                              \
    } while (0)

static void test_a_sample_has_the_time_of_the_one_before_it(void **state)
{
    (void)state;
    begin(WITH, WITHOUT);
    put_sample(TIMED, 1, 0, 1 * MS);
    put_sample(UNTIMED, 1, 0, 0);
    put_sample(UNTIMED, 1, 0, 0);
    put_sample(TIMED, 1, 0, 3 * MS);
    open_it();
    EXPECT_TIMES(1 * MS, 1 * MS, 1 * MS, 3 * MS);
    assert_int_equal(findings.count[FINDING_TIMES_GUESSED], 1);
    assert_true(perf_file_has_times(&input.file));
    close_it();
}

/* One buffer ends and the next begins between the samples of 5 and 2 ms. */
static void test_it_is_of_the_same_processor(void **state)
{
    (void)state;
    begin(WITH | PERF_SAMPLE_CPU, WITHOUT | PERF_SAMPLE_CPU);
    put_sample(TIMED, 1, 0, 5 * MS);
    put_sample(UNTIMED, 1, 0, 0);
    put_sample(UNTIMED, 1, 3, 0);
    put_sample(TIMED, 1, 3, 2 * MS);
    open_it();
    EXPECT_TIMES(5 * MS, 5 * MS, 2 * MS - 1, 2 * MS);
    close_it();
}

static void test_it_is_of_the_same_thread_where_processors_are_not_told(void **state)
{
    (void)state;
    begin(WITH, WITHOUT);
    put_sample(TIMED, 1, 0, 5 * MS);
    put_sample(UNTIMED, 1, 0, 0);
    put_sample(UNTIMED, 2, 0, 0);
    put_sample(TIMED, 2, 0, 2 * MS);
    open_it();
    EXPECT_TIMES(5 * MS, 5 * MS, 2 * MS - 1, 2 * MS);
    close_it();
}

static void test_it_is_of_the_same_round(void **state)
{
    (void)state;
    begin(WITH, WITHOUT);
    put_sample(TIMED, 1, 0, 1 * MS);
    put_sample(TIMED, 1, 0, 5 * MS);
    profile_round(&profile);
    for (int i = 0; i < 10; i++)
        put_sample(UNTIMED, 1, 0, 0), put_sample(TIMED, 1, 0, 8 * MS);
    open_it();
    EXPECT_TIMES(1 * MS, 5 * MS, 8 * MS - 1, 8 * MS, 8 * MS, 8 * MS, 8 * MS, 8 * MS, 8 * MS, 8 * MS,
                 8 * MS, 8 * MS, 8 * MS, 8 * MS, 8 * MS, 8 * MS, 8 * MS, 8 * MS, 8 * MS, 8 * MS,
                 8 * MS, 8 * MS);
    close_it();
}

/* Linux before 2.6.38: samples have times, and nothing else has. */
static void test_records_without_a_sample_id_get_one(void **state)
{
    uint32_t pid;
    struct perf_walk walk;
    struct perf_record record;
    struct perf_sample id;
    (void)state;
    begin(WITH, 0);
    set_flags(1, 0);
    put_sample(TIMED, 1, 0, 1 * MS);
    profile.sample_types[0] = 0;
    profile_map(&profile, PERF_RECORD_MMAP2, 0, 0x5000, 0x1000, "//anon", 0);
    profile.sample_types[0] = WITH;
    put_sample(TIMED, 1, 0, 2 * MS);
    open_it();
    EXPECT_TIMES(1 * MS, 1 * MS, 2 * MS);
    assert_int_equal(findings.count[FINDING_TIMES_GUESSED], 0);
    walk = perf_walk_begin(&input.file);
    assert_true(perf_walk_next(&walk, &record, NULL) && perf_walk_next(&walk, &record, NULL));
    assert_true(perf_sample_id_read(&id, &input.file, &record));
    assert_int_equal(id.pid, 4711);
    assert_int_equal(id.tid, 4712);
    assert_int_equal(id.identifier, 100);
    assert_false(perf_record_sample_thread(&input.file, &record, &pid, &pid));
    close_it();
}

/* A process that ended on one processor has samples in another one's buffer, written later.  What
 * it maps stands in front of its fork there, and behind it here. */
static void test_without_times_a_round_begins_with_maps_and_ends_with_exits(void **state)
{
    (void)state;
    begin(WITHOUT, 0);
    put_sample(0, 1, 0, 0);                                                   /* 1, of 7 */
    profile_map(&profile, PERF_RECORD_MMAP2, 0, 0x5000, 0x1000, "//anon", 0); /* 2 */
    put_task(PERF_RECORD_EXIT, 9 * MS);                                       /* 3 */
    put_sample(0, 1, 0, 0);                                                   /* 4 */
    put_task(PERF_RECORD_FORK, 1 * MS);                                       /* 5 */
    profile_comm(&profile, 0, 0);                                             /* 6 */
    profile_round(&profile);                                                  /* 7 */
    profile_map(&profile, PERF_RECORD_MMAP2, 0, 0x7000, 0x1000, "//anon", 0); /* 8, of 2 */
    put_sample(0, 1, 0, 0);
    open_it();
    EXPECT_TIMES(7 + 1, 5, 2 * 7 + 3, 7 + 4, 2, 7 + 6, 3 * 7 + 2 + 1, 3 * 7 + 2 + 2);
    assert_int_equal(findings.count[FINDING_TIMES_ABSENT], 1);
    assert_false(perf_file_has_times(&input.file));
    close_it();
}

static void put_fork(uint32_t tid, uint32_t pid, uint32_t parent, uint64_t own_ns)
{
    size_t start = profile_begin_record(&profile, PERF_RECORD_FORK, 0);
    sink_u32(&profile.sink, pid);
    sink_u32(&profile.sink, parent);
    sink_u32(&profile.sink, tid);
    sink_u32(&profile.sink, parent);
    sink_u64(&profile.sink, own_ns);
    profile_put_trailer(&profile, 0, parent, 0);
    profile_end_record(&profile, start);
}

/* 4711 was forked on a processor whose buffer is written last, and what it forked, and those, on
 * others. */
static void test_without_times_a_fork_comes_behind_its_parents(void **state)
{
    (void)state;
    begin(WITHOUT, 0);
    put_fork(4714, 4713, 4713, 4 * MS);                                       /* a thread */
    put_fork(4713, 4713, 4712, 3 * MS);                                       /* 2 */
    put_fork(4712, 4712, 4711, 2 * MS);                                       /* 3 */
    profile_map(&profile, PERF_RECORD_MMAP2, 0, 0x5000, 0x1000, "//anon", 0); /* 4, of 4711 */
    put_fork(4711, 4711, 1, 1 * MS);                                          /* 5 */
    put_fork(4715, 4715, 4711, 5 * MS);                                       /* 6 */
    put_sample(0, 1, 0, 0);                                                   /* 7 */
    profile_round(&profile);                                                  /* 8 */
    put_fork(4713, 4713, 4712, 7 * MS); /* a pid that is used again, before its parent's is */
    put_fork(4712, 4712, 1, 6 * MS);
    put_sample(0, 1, 0, 0);
    open_it();
    /* 4711, its map, its last child, its first one, the child of that, and the thread */
    EXPECT_TIMES(6, 5, 4, 2, 1, 3, 8 + 7, 3 * 8 + 2, 3 * 8 + 1, 3 * 8 + 3 + 3);
    close_it();
}

static void test_what_perf_tells_of_running_processes_keeps_no_time(void **state)
{
    (void)state;
    begin(WITHOUT, 0);
    profile_map(&profile, PERF_RECORD_MMAP2, 0, 0x5000, 0x1000, "//anon", 0);
    profile_plain(&profile, PERF_RECORD_FINISHED_INIT, 0);
    put_sample(0, 1, 0, 0);
    open_it();
    EXPECT_TIMES(0, 3 + 3);
    close_it();
}

/* Samples that are seconds away from any time can't be told apart from each other by it. */
static void test_times_that_are_far_apart_are_none(void **state)
{
    (void)state;
    begin(WITH, WITHOUT);
    put_sample(TIMED, 1, 0, 1000 * MS);
    put_sample(UNTIMED, 1, 0, 0);
    put_sample(TIMED, 1, 0, 3000 * MS);
    open_it();
    EXPECT_TIMES(3 + 1, 3 + 2, 3 + 3);
    assert_int_equal(findings.count[FINDING_TIMES_ABSENT], 1);
    close_it();
}

/* A busy machine parts a page fault from all else.  The many samples that have times keep them. */
static void test_one_sample_in_ten_may_be_far_from_all_times(void **state)
{
    (void)state;
    begin(WITH, WITHOUT);
    for (uint64_t ms = 1; ms <= 9; ms++)
        put_sample(TIMED, 1, 0, ms * MS);
    put_sample(UNTIMED, 1, 0, 0);
    put_sample(TIMED, 1, 0, 3000 * MS);
    open_it();
    EXPECT_TIMES(1 * MS, 2 * MS, 3 * MS, 4 * MS, 5 * MS, 6 * MS, 7 * MS, 8 * MS, 9 * MS, 9 * MS,
                 3000 * MS);
    assert_int_equal(findings.count[FINDING_TIMES_GUESSED], 1);
    assert_int_equal(findings.count[FINDING_TIMES_ABSENT], 0);
    close_it();
}

/* perf stat record: counts, and no samples whose names could suffer. */
static void test_a_recording_without_samples_needs_no_times(void **state)
{
    (void)state;
    begin(WITHOUT, 0);
    profile_map(&profile, PERF_RECORD_MMAP2, 0, 0x5000, 0x1000, "//anon", 0);
    open_it();
    assert_int_equal(findings.count[FINDING_TIMES_ABSENT], 0);
    close_it();
}

static void put_stack_sample(size_t bytes)
{
    size_t start = profile_begin_record(&profile, PERF_RECORD_SAMPLE, PERF_MISC_USER);
    profile_put_field(&profile, 0, PERF_SAMPLE_IDENTIFIER, 100);
    profile_put_field(&profile, 0, PERF_SAMPLE_IP, 0x401000);
    profile_put_field(&profile, 0, PERF_SAMPLE_TID, UINT64_C(0x100000001) * 4711);
    profile_put_field(&profile, 0, BUILT_PERIOD, 77);
    sink_u64(&profile.sink, bytes);
    for (size_t i = 0; i < bytes; i++)
        sink_u8(&profile.sink, (uint8_t)(i / 8));
    sink_u64(&profile.sink, bytes);
    profile_end_record(&profile, start);
}

/* Its copy of the stack makes room for the time. */
static void test_the_largest_sample_there_is_gets_a_time(void **state)
{
    enum { FRONT = 8 + 8 + 8 + 8 + 8, BYTES = PERF_RECORD_MOST_BYTES - FRONT - 16 };
    struct perf_walk walk;
    struct perf_record record;
    struct perf_sample sample;
    uint8_t *large = malloc(2 << 16);
    (void)state;
    assert_non_null(large);
    begin(WITHOUT | PERF_SAMPLE_STACK_USER, 0);
    const size_t front = profile.records_start;
    memcpy(large, profile.bytes, front);
    profile.sink = byte_sink_over(profile.bytes, sizeof profile.bytes);
    put_stack_sample(BYTES);
    assert_int_equal(profile.sink.size, PERF_RECORD_MOST_BYTES);
    memcpy(large + front, profile.bytes, profile.sink.size);
    perf_put_u64(large + PERF_HEADER_DATA, front);
    perf_put_u64(large + PERF_HEADER_DATA + 8, PERF_RECORD_MOST_BYTES);
    findings = (struct findings){.quiet = true};
    assert_int_equal(
        perf_input_view(&input, "a.data", large, front + PERF_RECORD_MOST_BYTES, &findings), 0);
    walk = perf_walk_begin(&input.file);
    assert_true(perf_walk_next(&walk, &record, NULL));
    assert_int_equal(record.size, PERF_RECORD_MOST_BYTES);
    assert_true(perf_sample_read(&sample, &input.file.events[0].format, &record, SAMPLE_FIELDS));
    assert_int_equal(sample.time_ns, 2);
    assert_int_equal(sample.period, 77);
    assert_int_equal(sample.user_stack.size, BYTES - 8);
    assert_true(sample.user_stack.cut);
    assert_int_equal(sample.user_stack.bytes[8], 1);
    close_it();
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sample_has_the_time_of_the_one_before_it),
        cmocka_unit_test(test_it_is_of_the_same_processor),
        cmocka_unit_test(test_it_is_of_the_same_thread_where_processors_are_not_told),
        cmocka_unit_test(test_it_is_of_the_same_round),
        cmocka_unit_test(test_records_without_a_sample_id_get_one),
        cmocka_unit_test(test_without_times_a_round_begins_with_maps_and_ends_with_exits),
        cmocka_unit_test(test_without_times_a_fork_comes_behind_its_parents),
        cmocka_unit_test(test_what_perf_tells_of_running_processes_keeps_no_time),
        cmocka_unit_test(test_times_that_are_far_apart_are_none),
        cmocka_unit_test(test_one_sample_in_ten_may_be_far_from_all_times),
        cmocka_unit_test(test_a_recording_without_samples_needs_no_times),
        cmocka_unit_test(test_the_largest_sample_there_is_gets_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
