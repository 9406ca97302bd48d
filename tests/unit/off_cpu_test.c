/* Samples of threads that waited (perf record --off-cpu of 6.16 and later): who, where and how long
 * stands in RAW. */
#include "injector/recording/perf_data/perf_sample.h"

#include "tests/unit/profile_builder.h"

enum {
    TYPE = SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER,
    WAITED = TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER,
    OUTPUT = 10, /* the config of what BPF programs write */
    EVENTS = 2,
    PID = 50,
    TID = 51,
    NS = 700,
};

static struct profile_builder built;
static struct perf_file file;
static struct perf_record record;
static struct perf_sample sample;

static void begin(void)
{
    const uint64_t types[EVENTS] = {TYPE, WAITED};
    size_t attr = PERF_FILE_HEADER_BYTES + EVENTS * BUILT_IDS * 8;
    profile_begin(&built, types, EVENTS);
    profile_set_u64(&built, attr + (BUILT_ATTR_BYTES + PERF_SECTION_BYTES) + PERF_ATTR_CONFIG,
                    OUTPUT);
}

/* A sample of the second event, of the thread that runs (4711, in the kernel), with RAW. */
static void waited(const uint8_t *raw, size_t bytes)
{
    struct byte_sink *sink = &built.sink;
    size_t start = profile_begin_record(&built, PERF_RECORD_SAMPLE, PERF_MISC_KERNEL);
    sink_u64(sink, 200);
    sink_u64(sink, 0xffffffff81000000);
    sink_u64(sink, UINT64_C(0x100000001) * 4711);
    sink_u64(sink, 10);
    sink_u64(sink, 1);
    sink_u64(sink, 1);
    sink_u64(sink, PERF_CONTEXT_KERNEL);
    sink_u32(sink, (uint32_t)bytes);
    sink_bytes(sink, raw, bytes);
    sink_zeros(sink, (8 - (bytes + 4) % 8) % 8);
    sink_u64(sink, SAMPLE_ABI_NONE);
    profile_end_record(&built, start);
}

/* RAW with COUNT entries that says it has NR, in BYTES. */
static size_t put_raw(uint8_t *bytes, size_t size, uint64_t nr, const uint64_t *entries,
                      size_t count)
{
    struct byte_sink sink = byte_sink_over(bytes, size);
    sink_u32(&sink, PID);
    sink_u32(&sink, TID);
    sink_u64(&sink, NS);
    sink_u64(&sink, nr);
    for (size_t i = 0; i < count; i++)
        sink_u64(&sink, entries[i]);
    sink_u64(&sink, 9); /* cgroup */
    sink_u32(&sink, 0);
    return sink.size;
}

/* Names of both events; NULL: none. */
static void finish(const char *name)
{
    profile_end_records(&built);
    if (name)
        profile_put_names(&built, (const char *[EVENTS]){"cpu-clock", name}, EVENTS);
    open_built_profile(&built, &file);
    struct perf_walk walk = perf_walk_begin(&file);
    assert_true(perf_walk_next(&walk, &record, NULL));
    assert_int_equal(perf_sample_event(&file, &record), 1);
}

static bool read_it(enum sample_field last)
{
    return perf_sample_read(&sample, &file.events[1].format, &record, last);
}

static void waited_at(const uint64_t *entries, size_t count)
{
    uint8_t raw[256];
    begin();
    waited(raw, put_raw(raw, sizeof raw, count, entries, count));
}

static void assert_is_its_own(void)
{
    uint32_t pid, tid;
    uint64_t ip;
    assert_true(read_it(SAMPLE_AUX));
    assert_int_equal(sample.pid, 4711);
    assert_int_equal(sample.period, 1);
    assert_int_equal(sample.chain.count, 1);
    assert_int_equal(perf_sample_mode(&sample), PERF_MISC_KERNEL);
    assert_int_equal(perf_record_sample_mode(&file, &record), PERF_MISC_KERNEL);
    assert_true(perf_record_sample(&file, &record, &pid, &ip));
    assert_int_equal(pid, 4711);
    assert_true(ip == 0xffffffff81000000);
    assert_true(perf_record_sample_thread(&file, &record, &pid, &tid));
    assert_int_equal(tid, 4711);
}

static const uint64_t at_home[] = {PERF_CONTEXT_USER, 0x401000, 0x402000};

static void assert_waited(void)
{
    uint32_t pid, tid;
    uint64_t ip;
    assert_int_equal(sample.pid, PID);
    assert_int_equal(sample.tid, TID);
    assert_int_equal(sample.period, NS);
    assert_true(sample.has & PERF_SAMPLE_PERIOD);
    assert_int_equal(sample.time_ns, 10);
    assert_int_equal(sample.ip, 0x401000);
    assert_int_equal(sample.chain.count, 3);
    assert_int_equal(perf_get_u64(sample.chain.entries + 16), 0x402000);
    assert_int_equal(perf_sample_mode(&sample), PERF_MISC_USER);
    assert_int_equal(perf_record_sample_mode(&file, &record), PERF_MISC_USER);
    assert_true(perf_record_sample(&file, &record, &pid, &ip));
    assert_int_equal(pid, PID);
    assert_int_equal(ip, 0x401000);
    assert_true(perf_record_sample_thread(&file, &record, &pid, &tid));
    assert_int_equal(tid, TID);
}

static void test_a_thread_that_waited(void **state)
{
    static const char *const names[] = {"offcpu-time", "offcpu-time:u", "offcpu-time/period=1/",
                                        NULL};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        waited_at(at_home, 3);
        finish(names[i]);
        assert_true(file.events[1].off_cpu);
        assert_false(file.events[0].off_cpu);
        assert_true(read_it(SAMPLE_AUX));
        assert_waited();
        assert_true(read_it(SAMPLE_TID)); /* RAW is read all the same */
        assert_waited();
        perf_file_close(&file);
    }
}

static void test_other_outputs_are_as_they_say(void **state)
{
    (void)state;
    static const char *const names[] = {"offcpu-timer", "bpf-output", "offcpu"};
    for (size_t i = 0; i < 3; i++) {
        waited_at(at_home, 3);
        finish(names[i]);
        assert_false(file.events[1].off_cpu);
        assert_is_its_own();
        perf_file_close(&file);
    }
}

/* Its registers and stack would be those of another thread. */
static void test_registers_are_left_out(void **state)
{
    (void)state;
    waited_at(at_home, 3);
    finish("offcpu-time");
    assert_true(read_it(SAMPLE_AUX));
    assert_null(sample.user_registers.values);
    assert_int_equal(sample.user_registers.mask, 0);
    perf_file_close(&file);
}

static void test_a_wait_in_the_kernel(void **state)
{
    (void)state;
    static const uint64_t entries[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000010, PERF_CONTEXT_USER,
                                       0x401000};
    waited_at(entries, 4);
    finish("offcpu-time");
    assert_true(read_it(SAMPLE_AUX));
    assert_int_equal(perf_sample_mode(&sample), PERF_MISC_KERNEL);
    assert_true(sample.ip == 0xffffffff81000010);
    perf_file_close(&file);
}

static void test_no_stack(void **state)
{
    (void)state;
    static const uint64_t marks[] = {PERF_CONTEXT_USER};
    for (size_t count = 0; count < 2; count++) {
        waited_at(marks, count);
        finish("offcpu-time");
        assert_true(read_it(SAMPLE_AUX));
        assert_int_equal(sample.pid, PID);
        assert_int_equal(sample.ip, 0);
        assert_int_equal(sample.chain.count, count);
        perf_file_close(&file);
    }
}

/* More entries than there are bytes: who waited, and how long, is known all the same. */
static void test_a_stack_that_is_cut(void **state)
{
    (void)state;
    static const uint64_t too_many[] = {6, UINT64_MAX, UINT64_C(1) << 61};
    for (size_t i = 0; i < 3; i++) {
        uint8_t raw[256];
        begin();
        waited(raw, put_raw(raw, sizeof raw, too_many[i], at_home, 3));
        finish("offcpu-time");
        assert_true(read_it(SAMPLE_AUX));
        assert_int_equal(sample.pid, PID);
        assert_int_equal(sample.period, NS);
        assert_int_equal(sample.chain.count, 0);
        assert_int_equal(sample.ip, 0);
        perf_file_close(&file);
    }
}

static void test_bytes_that_are_too_few(void **state)
{
    (void)state;
    uint8_t raw[256];
    put_raw(raw, sizeof raw, 0, NULL, 0);
    for (size_t bytes = 4; bytes < 16; bytes += 4) {
        begin();
        waited(raw, bytes);
        finish("offcpu-time");
        assert_is_its_own();
        perf_file_close(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread_that_waited),
        cmocka_unit_test(test_other_outputs_are_as_they_say),
        cmocka_unit_test(test_registers_are_left_out),
        cmocka_unit_test(test_a_wait_in_the_kernel),
        cmocka_unit_test(test_no_stack),
        cmocka_unit_test(test_a_stack_that_is_cut),
        cmocka_unit_test(test_bytes_that_are_too_few),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
