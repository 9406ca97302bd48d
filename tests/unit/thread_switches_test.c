/* When threads waited, and how many ran: by SWITCH records, by samples of sched_switch, in any
 * order. */
#include "injector/recording/thread_switches.h"

#include "injector/recording/perf_data/perf_sample.h"
#include "tests/unit/profile_builder.h"

enum {
    CLOCK,    /* event 0, of the samples */
    SWITCHES, /* event 1: sched_switch, or context-switches */
    EVENTS,
    TYPE = SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER,
    RAW_BYTES =
        64, /* of sched_switch: u32 size, prev_pid at 24, prev_state at 32, next_pid at 56 */
    OUT = PERF_MISC_SWITCH_OUT,
    PREEMPTED = PERF_MISC_SWITCH_OUT | PERF_MISC_SWITCH_OUT_PREEMPT,
    SLEEPS = 1,
    DEAD = 0x10,
};

static struct profile_builder built;
static struct perf_file file;
static struct thread_switches switches;

static size_t attr_at(size_t event)
{
    return PERF_FILE_HEADER_BYTES + EVENTS * BUILT_IDS * 8 +
           event * (BUILT_ATTR_BYTES + PERF_SECTION_BYTES);
}

static void begin(uint32_t type, uint64_t config, uint64_t flags)
{
    const uint64_t types[EVENTS] = {TYPE,
                                    TYPE | (type == PERF_TYPE_TRACEPOINT ? PERF_SAMPLE_RAW : 0)};
    profile_begin(&built, types, EVENTS);
    struct byte_sink patch = byte_sink_over(built.bytes + attr_at(SWITCHES), 4);
    sink_u32(&patch, type);
    profile_set_u64(&built, attr_at(SWITCHES) + PERF_ATTR_CONFIG, config);
    profile_set_u64(&built, attr_at(SWITCHES) + PERF_ATTR_PERIOD, 1);
    profile_set_u64(&built, attr_at(CLOCK) + PERF_ATTR_FLAGS,
                    PERF_ATTR_SAMPLE_ID_ALL | PERF_ATTR_USE_CLOCKID | flags);
}

static void begin_recorded(void)
{
    begin(PERF_TYPE_SOFTWARE, 3, PERF_ATTR_SWITCHES);
}

static void begin_traced(void)
{
    begin(PERF_TYPE_TRACEPOINT, 316, 0);
}

static size_t sample(size_t event, uint32_t tid, uint64_t time_ns)
{
    size_t start = profile_begin_record(&built, PERF_RECORD_SAMPLE, PERF_MISC_USER);
    sink_u64(&built.sink, 100 * (event + 1));
    sink_u64(&built.sink, 0x401000);
    sink_u64(&built.sink, 4711 | (uint64_t)tid << 32);
    sink_u64(&built.sink, time_ns);
    sink_u64(&built.sink, 1);
    return profile_end_record(&built, start);
}

/* PREV, in perf's number TID, goes in STATE, and NEXT comes. */
static size_t traced(uint32_t tid, uint32_t prev, uint64_t state, uint32_t next, uint64_t time_ns)
{
    size_t start = sample(SWITCHES, tid, time_ns);
    struct byte_sink *sink = &built.sink;
    sink_u32(sink, RAW_BYTES + 4);
    sink_zeros(sink, 24);
    sink_u32(sink, prev);
    sink_u32(sink, 120);
    sink_u64(sink, state);
    sink_zeros(sink, 16);
    sink_u32(sink, next);
    sink_u32(sink, 120);
    sink_zeros(sink, 4);
    return profile_end_record(&built, start);
}

static size_t switched(uint32_t type, uint16_t misc, uint32_t tid, uint64_t time_ns)
{
    size_t start = profile_begin_record(&built, type, misc);
    if (type == PERF_RECORD_SWITCH_CPU_WIDE)
        sink_u64(&built.sink, 0);
    profile_put_trailer(&built, CLOCK, tid, time_ns);
    return profile_end_record(&built, start);
}

static void goes(uint16_t misc, uint32_t tid, uint64_t time_ns)
{
    switched(PERF_RECORD_SWITCH, misc, tid, time_ns);
}

static void comes(uint32_t tid, uint64_t time_ns)
{
    switched(PERF_RECORD_SWITCH, 0, tid, time_ns);
}

static void task(uint32_t type, uint32_t tid, uint64_t time_ns)
{
    size_t start = profile_begin_record(&built, type, 0);
    sink_u32(&built.sink, 4711);
    sink_u32(&built.sink, 4711);
    sink_u32(&built.sink, tid);
    sink_u32(&built.sink, 4711);
    sink_u64(&built.sink, time_ns);
    profile_put_trailer(&built, CLOCK, tid, time_ns);
    profile_end_record(&built, start);
}

/* Read it; the second event's NAME is that. */
static void read_as(const char *name)
{
    profile_end_records(&built);
    profile_put_names(&built, (const char *[EVENTS]){"cpu-clock", name}, EVENTS);
    open_built_profile(&built, &file);
    assert_int_equal(thread_switches_read(&switches, &file), 0);
}

static int end(void **state)
{
    (void)state;
    thread_switches_free(&switches);
    perf_file_close(&file);
    return 0;
}

static void assert_wait(size_t number, uint32_t tid, uint64_t from_ns, uint64_t to_ns,
                        uint64_t stack)
{
    assert_true(number < switches.wait_count);
    const struct thread_wait *wait = &switches.waits[number];
    assert_int_equal(wait->tid, tid);
    assert_int_equal(wait->from_ns, from_ns);
    assert_int_equal(wait->to_ns, to_ns);
    assert_int_equal(wait->stack, stack);
}

static void a_thread_waits_from_out_to_in(void **state)
{
    (void)state;
    begin_recorded();
    size_t before = sample(CLOCK, 7, 90);
    goes(OUT, 7, 100);
    comes(7, 150);
    goes(PREEMPTED, 7, 160);
    comes(7, 170);
    comes(8, 180);
    goes(OUT, 8, 200);
    read_as("context-switches");
    assert_int_equal(switches.source, SWITCHES_RECORDED);
    assert_int_equal(switches.wait_count, 2);
    assert_wait(0, 7, 100, 150, before);
    assert_wait(1, 7, 160, 170, before);
    assert_false(switches.waits[0].preempted);
    assert_true(switches.waits[1].preempted);
    assert_false(switches.waits[0].exact);
    assert_int_equal(switches.exact_count, 0);
    assert_int_equal(switches.open_count, 1);
}

/* The record of a processor's buffer may stand behind those of another's. */
static void records_are_taken_by_time(void **state)
{
    (void)state;
    begin_recorded();
    comes(7, 150);
    goes(OUT, 7, 200);
    comes(7, 210);
    goes(OUT, 7, 100);
    size_t late = sample(CLOCK, 7, 190), early = sample(CLOCK, 7, 50);
    read_as("context-switches");
    assert_int_equal(switches.wait_count, 2);
    assert_wait(0, 7, 100, 150, early);
    assert_wait(1, 7, 200, 210, late);
}

/* The sample is taken in front of the record, and is the wait's own. */
static void a_sample_of_the_switch_has_the_stack(void **state)
{
    (void)state;
    begin_recorded();
    sample(CLOCK, 7, 90);
    size_t own = sample(SWITCHES, 7, 99);
    goes(OUT, 7, 100);
    comes(7, 150);
    goes(OUT, 7, 160); /* its sample was lost */
    comes(7, 170);
    goes(OUT, 8, 180); /* never sampled */
    comes(8, 190);
    read_as("context-switches");
    assert_int_equal(switches.wait_count, 3);
    assert_wait(0, 7, 100, 150, own);
    assert_true(switches.waits[0].exact);
    assert_wait(1, 7, 160, 170, own);
    assert_false(switches.waits[1].exact);
    assert_wait(2, 8, 180, 190, 0);
    assert_int_equal(switches.exact_count, 1);
    assert_int_equal(switches.without_stack_count, 1);
}

static void what_was_lost_is_no_wait(void **state)
{
    (void)state;
    begin_recorded();
    comes(7, 50); /* it had gone before the recording */
    goes(OUT, 7, 100);
    goes(OUT, 7, 200); /* it had come back in between */
    comes(7, 220);
    comes(7, 240);
    read_as("context-switches");
    assert_int_equal(switches.wait_count, 1);
    assert_wait(0, 7, 200, 220, 0);
    assert_int_equal(switches.endless_count, 1);
}

static void a_number_that_is_used_again_is_another_thread(void **state)
{
    (void)state;
    begin_recorded();
    sample(CLOCK, 7, 90);
    task(PERF_RECORD_EXIT, 7, 100);
    goes(OUT, 7, 110);
    task(PERF_RECORD_FORK, 7, 500);
    comes(7, 510);
    goes(OUT, 7, 520);
    comes(7, 530);
    read_as("context-switches");
    assert_int_equal(switches.wait_count, 1);
    assert_wait(0, 7, 520, 530, 0);
    assert_int_equal(switches.open_count, 0);
}

static void the_idle_task_is_no_thread(void **state)
{
    (void)state;
    begin_recorded();
    switched(PERF_RECORD_SWITCH_CPU_WIDE, OUT, 0, 100);
    switched(PERF_RECORD_SWITCH_CPU_WIDE, OUT, 7, 110);
    switched(PERF_RECORD_SWITCH_CPU_WIDE, 0, 0, 120);
    switched(PERF_RECORD_SWITCH_CPU_WIDE, 0, 7, 130);
    switched(PERF_RECORD_SWITCH_CPU_WIDE, OUT, UINT32_MAX, 140); /* it has ended */
    switched(PERF_RECORD_SWITCH_CPU_WIDE, 0, UINT32_MAX, 150);
    read_as("context-switches");
    assert_true(switches.of_processors);
    assert_int_equal(switches.wait_count, 1);
    assert_wait(0, 7, 110, 130, 0);
}

static void sched_switch_names_who_comes(void **state)
{
    (void)state;
    begin_traced();
    size_t first = traced(7, 7, SLEEPS, 8, 100), second = traced(8, 8, 0, 0, 150);
    traced(0, 0, 0, 7, 180);
    traced(7, 7, DEAD, 8, 190);
    traced(8, 8, SLEEPS, 7, 200);
    read_as("sched:sched_switch:H");
    assert_int_equal(switches.source, SWITCHES_TRACED);
    assert_int_equal(switches.wait_count, 2);
    assert_wait(0, 7, 100, 180, first);
    assert_wait(1, 8, 150, 190, second);
    assert_true(switches.waits[0].exact);
    assert_false(switches.waits[0].preempted);
    assert_true(switches.waits[1].preempted);
    assert_int_equal(switches.open_count, 1);
}

/* Of one command, nothing tells when a thread came back from the idle task: only that it did. */
static void a_wait_without_an_end_is_not_counted(void **state)
{
    (void)state;
    begin_traced();
    traced(7, 7, SLEEPS, 0, 100);
    sample(CLOCK, 7, 150);
    traced(7, 7, SLEEPS, 0, 200);
    traced(7, 7, SLEEPS, 0, 300);
    read_as("sched:sched_switch");
    assert_int_equal(switches.wait_count, 0);
    assert_int_equal(switches.endless_count, 2);
}

/* perf in a namespace has other numbers than the tracepoint. */
static void numbers_of_a_namespace_are_followed(void **state)
{
    (void)state;
    begin_traced();
    traced(7, 40007, SLEEPS, 40008, 100);
    traced(8, 40008, SLEEPS, 40007, 150);
    traced(7, 40007, SLEEPS, 40008, 170);
    read_as("sched:sched_switch");
    assert_int_equal(switches.wait_count, 2);
    assert_wait(0, 7, 100, 150, switches.waits[0].stack);
    assert_wait(1, 8, 150, 170, switches.waits[1].stack);
}

/* perf has no number of it then. */
static void a_thread_may_wait_while_it_ends(void **state)
{
    (void)state;
    begin_traced();
    traced(7, 40007, SLEEPS, 40008, 100);
    traced(8, 40008, SLEEPS, 40007, 150);
    traced(7, 40007, SLEEPS, 40008, 170);
    traced(UINT32_MAX, 40008, 0, 40007, 180);
    traced(7, 40007, SLEEPS, 40008, 200);
    traced(UINT32_MAX, 40008, DEAD, 0, 210);
    read_as("sched:sched_switch");
    assert_int_equal(switches.wait_count, 4);
    assert_int_equal(switches.endless_count, 0);
    assert_wait(0, 7, 100, 150, switches.waits[0].stack);
    assert_wait(1, 8, 150, 170, switches.waits[1].stack);
    assert_wait(2, 7, 170, 180, switches.waits[2].stack);
    assert_wait(3, 8, 180, 200, switches.waits[3].stack);
}

/* One of 4000 switches says nothing of when a thread was away. */
static void a_part_of_the_switches_tells_no_times(void **state)
{
    (void)state;
    begin_traced();
    profile_set_u64(&built, attr_at(SWITCHES) + PERF_ATTR_FLAGS,
                    PERF_ATTR_SAMPLE_ID_ALL | PERF_ATTR_USE_CLOCKID | PERF_ATTR_FREQ);
    traced(7, 7, SLEEPS, 8, 100);
    traced(8, 8, SLEEPS, 7, 150);
    read_as("sched:sched_switch");
    assert_int_equal(switches.source, SWITCHES_NONE);
    assert_int_equal(switches.wait_count, 0);
    assert_true(switches.not_all);
}

static void a_recording_without_switches_is_not_read(void **state)
{
    (void)state;
    begin(PERF_TYPE_SOFTWARE, 1, 0);
    sample(CLOCK, 7, 100);
    read_as("page-faults");
    assert_false(thread_switches_are_in(&file));
    assert_int_equal(switches.wait_count, 0);
    assert_int_equal(thread_switches_running(&switches, 100, 0), 0);
}

/* What perf 7.2 counts in the same records: perf report -F parallelism. */
static void as_many_threads_run_as_perf_counts(void **state)
{
    (void)state;
    begin_recorded();
    size_t samples[12], n = 0;
    samples[n++] = sample(CLOCK, 10, 5);
    comes(11, 10);
    comes(12, 20);
    samples[n++] = sample(CLOCK, 10, 30);
    task(PERF_RECORD_FORK, 13, 35);
    samples[n++] = sample(CLOCK, 10, 40);
    goes(PREEMPTED, 12, 50);
    samples[n++] = sample(CLOCK, 10, 50);
    comes(14, 55);
    task(PERF_RECORD_EXIT, 11, 60);
    samples[n++] = sample(CLOCK, 10, 65);
    goes(OUT, 14, 66);
    goes(OUT, 10, 70);
    goes(OUT, 10, 80);
    samples[n++] = sample(CLOCK, 10, 90);
    comes(10, 100);
    samples[n++] = sample(CLOCK, 10, 110);
    read_as("context-switches");
    static const struct {
        uint64_t time_ns;
        uint32_t running;
    } wanted[] = {{5, 1}, {30, 3}, {40, 3}, {50, 2}, {65, 2}, {90, 1}, {110, 1}};
    for (size_t i = 0; i < n; i++)
        assert_int_equal(thread_switches_running(&switches, wanted[i].time_ns, samples[i]),
                         wanted[i].running);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, end)
    const struct CMUnitTest tests[] = {
        TEST(a_thread_waits_from_out_to_in),
        TEST(records_are_taken_by_time),
        TEST(a_sample_of_the_switch_has_the_stack),
        TEST(what_was_lost_is_no_wait),
        TEST(a_number_that_is_used_again_is_another_thread),
        TEST(the_idle_task_is_no_thread),
        TEST(sched_switch_names_who_comes),
        TEST(a_wait_without_an_end_is_not_counted),
        TEST(numbers_of_a_namespace_are_followed),
        TEST(a_thread_may_wait_while_it_ends),
        TEST(a_part_of_the_switches_tells_no_times),
        TEST(a_recording_without_switches_is_not_read),
        TEST(as_many_threads_run_as_perf_counts),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
