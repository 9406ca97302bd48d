/* The records that make perf start its unwinding anew, and the threads and names that they have to
 * bring back. */
#include "injector/inject/merge/added_map.h"

#include "tests/unit/process_builder.h"
#include "tests/unit/profile_builder.h"

#include <cmocka.h>

enum { PID = 4711, CLONE = PID | 1 << 30 };

static struct profile_builder builder;
static struct perf_file file;
static struct records records;
static struct thread_list threads;
static size_t last_record; /* where it begins */
static uint64_t
    mapped_ns; /* when thread 4712 maps memory: where it is not to be in the way, late */

static void add_task(uint32_t type, const uint32_t *ids, size_t count, const char *name,
                     uint64_t time)
{
    size_t start = last_record = profile_begin_record(&builder, type, 0);
    for (size_t i = 0; i < count; i++)
        sink_u32(&builder.sink, ids[i]);
    if (name)
        sink_bytes(&builder.sink, name, 8);
    else
        sink_u64(&builder.sink, time);
    profile_put_trailer(&builder, 0, PID, time);
    profile_end_record(&builder, start);
}

static void add_sample(uint32_t tid, uint64_t time)
{
    size_t start = profile_begin_record(&builder, PERF_RECORD_SAMPLE, PERF_MISC_USER);
    profile_put_field(&builder, 0, PERF_SAMPLE_IP, 0x401000);
    profile_put_trailer(&builder, 0, tid, time);
    sink_u64(&builder.sink, 1); /* period */
    profile_end_record(&builder, start);
}

/* For a thread that is in LINKS namespaces, numbered from FIRST on; a damaged record is too short
 * for them. */
static void add_namespaces(uint32_t tid, uint64_t links, uint64_t first, bool damaged,
                           uint64_t time)
{
    size_t start = profile_begin_record(&builder, PERF_RECORD_NAMESPACES, 0);
    sink_u32(&builder.sink, PID);
    sink_u32(&builder.sink, tid);
    sink_u64(&builder.sink, links);
    for (uint64_t i = 0; i < links && !damaged; i++) {
        sink_u64(&builder.sink, 4);
        sink_u64(&builder.sink, first + i);
    }
    profile_put_trailer(&builder, 0, tid, time);
    profile_end_record(&builder, start);
}

static void add_fork(uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid, uint64_t time)
{
    add_task(PERF_RECORD_FORK, (uint32_t[]){pid, ppid, tid, ptid}, 4, NULL, time);
}

static void add_exit(uint32_t tid, uint64_t time)
{
    add_task(PERF_RECORD_EXIT, (uint32_t[]){PID, PID, tid, PID}, 4, NULL, time);
}

/* NAME has 7 letters. */
static void add_name(uint32_t pid, uint32_t tid, const char *name, uint64_t time)
{
    add_task(PERF_RECORD_COMM, (uint32_t[]){pid, tid}, 2, name, time);
}

static int begin(void **state)
{
    (void)state;
    profile_begin_one(&builder);
    threads = (struct thread_list){0};
    mapped_ns = 1000;
    return 0;
}

static void open_profile(void)
{
    struct findings findings = {0};
    profile_map(&builder, PERF_RECORD_MMAP2, 0, 0x10000, 0x4000, "//anon", mapped_ns);
    profile_end_records(&builder);
    open_built_profile(&builder, &file);
    assert_int_equal(records_read(&records, &file, &findings), 0);
    assert_int_equal(thread_list_read(&threads, &file), 0);
}

static int end(void **state)
{
    (void)state;
    thread_list_free(&threads);
    records_free(&records);
    perf_file_close(&file);
    return 0;
}

static int compare_threads(const void *left, const void *right)
{
    const struct live_thread *a = left, *b = right;
    return a->tid < b->tid ? -1 : a->tid > b->tid;
}

/* The threads of the process at TIME as "tid=name tid=- ...". */
static void assert_threads(uint64_t time, const char *expected)
{
    struct thread_sweep sweep = thread_sweep_begin(&threads, PID);
    char text[256] = "";
    assert_int_equal(thread_sweep_to(&sweep, time), 0);
    if (sweep.count)
        qsort(sweep.threads, sweep.count, sizeof *sweep.threads, compare_threads);
    for (size_t i = 0, at = 0; i < sweep.count; i++, at = strlen(text)) {
        const struct perf_record *comm =
            thread_names_comm(&records.names, PID, sweep.threads[i].tid, time);
        snprintf(text + at, sizeof text - at, "%s%u=%.7s", i ? " " : "", sweep.threads[i].tid,
                 comm ? (const char *)comm->bytes + 16 : ":");
    }
    assert_string_equal(text, expected);
    thread_sweep_end(&sweep);
}

static void test_threads_are_born_named_and_end(void **state)
{
    (void)state;
    add_name(PID, PID, "program", 10);
    add_fork(PID, PID, 20, PID, 20);
    add_name(PID, 20, "worker1", 30);
    add_fork(PID, PID, 40, 20, 40);
    add_name(PID, PID, "renamed", 50);
    add_exit(20, 60);
    open_profile();
    assert_threads(9, "");
    assert_threads(10, "4711=program");
    assert_threads(20, "20=program 4711=program");
    assert_threads(30, "20=worker1 4711=program");
    assert_threads(40, "20=worker1 40=worker1 4711=program");
    assert_threads(50, "20=worker1 40=worker1 4711=renamed");
    assert_threads(60, "40=worker1 4711=renamed");
}

static void test_records_are_played_by_time_and_not_by_place(void **state)
{
    (void)state;
    add_exit(20, 60);
    add_name(PID, 20, "worker1", 30);
    add_fork(PID, PID, 20, PID, 20);
    open_profile();
    assert_threads(25, "20=worker1"); /* nothing else names it */
    assert_threads(30, "20=worker1");
    assert_threads(60, "");
}

static void test_other_processes_do_not_count(void **state)
{
    (void)state;
    add_name(PID - 1, PID - 1, "another", 10);
    add_fork(PID + 1, PID, PID + 1, PID, 20); /* a child */
    add_name(PID + 1, PID + 1, "ourkids", 30);
    add_fork(PID + 1, PID + 1, 99, PID + 1, 40);
    open_profile();
    assert_threads(100, "");
}

static void test_a_thread_that_ran_before_is_known_by_its_name(void **state)
{
    (void)state;
    add_name(PID, 20, "worker1", 0);
    open_profile();
    assert_threads(0, "20=worker1");
}

static void test_what_no_record_introduces_is_known_by_what_it_does(void **state)
{
    (void)state;
    add_name(PID, PID, "program", 10);
    add_sample(20, 30); /* the file's order is not that of time */
    add_sample(20, 20);
    add_sample(20, 25);
    add_fork(PID, PID, 40, 20, 40);
    add_exit(20, 50);
    add_sample(20, 51); /* its last one in the kernel */
    mapped_ns = 60;
    open_profile();
    assert_threads(19, "4711=program");
    assert_threads(20, "20=: 4711=program");
    assert_threads(40, "20=: 40=: 4711=program");
    assert_threads(59, "40=: 4711=program");
    assert_threads(60, "40=: 4711=program 4712=:");
}

static void test_no_other_thread_survives_an_exec(void **state)
{
    (void)state;
    add_fork(PID, PID, 20, PID, 20);
    add_name(PID, PID, "program", 30);
    builder.bytes[last_record + 5] |= PERF_MISC_COMM_EXEC >> 8;
    open_profile();
    assert_threads(29, "20=:");
    assert_threads(30, "4711=program");
}

static void test_a_pid_that_is_used_again_has_new_threads(void **state)
{
    (void)state;
    add_name(PID, PID, "program", 10);
    add_name(PID, 20, "worker1", 20);
    add_fork(PID, PID - 1, PID, PID - 1, 30);
    open_profile();
    assert_threads(30, "4711=:");
}

static uint32_t speaker(uint64_t time)
{
    struct thread_sweep sweep = thread_sweep_begin(&threads, PID);
    assert_int_equal(thread_sweep_to(&sweep, time), 0);
    uint32_t tid = thread_sweep_speaker(&sweep);
    thread_sweep_end(&sweep);
    return tid;
}

static void test_the_oldest_thread_speaks_when_the_main_thread_has_ended(void **state)
{
    (void)state;
    add_name(PID, PID, "program", 10);
    add_fork(PID, PID, 30, PID, 20);
    add_fork(PID, PID, 20, PID, 30);
    add_exit(PID, 40);
    add_sample(PID, 41);
    add_exit(30, 50);
    add_exit(20, 60);
    open_profile();
    assert_int_equal(speaker(39), PID);
    assert_int_equal(speaker(40), 30);
    assert_int_equal(speaker(49), 30);
    assert_int_equal(speaker(50), 20);
    assert_int_equal(speaker(60), PID); /* there is no better one */
}

/* ---- The records ---- */

static struct jit_process process;
static struct timeline timeline;
static struct added_records added;
static uint8_t bytes[ADDED_MAP_MAX_BYTES];

/* Make a reset at each of COUNT times, 100 apart from 100 on. */
static void make_resets_by(size_t count, enum reset_policy policy)
{
    struct thread_sweep sweep = thread_sweep_begin(&threads, PID);
    struct unwinder_reset reset;
    added = (struct added_records){0};
    process = (struct jit_process){
        .pid = PID, .maps = records.maps, .map_count = 1, .trailer_record = records.maps[0].record};
    unwinder_reset_open(&reset, &sweep, &process, 0, &timeline, policy);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(thread_sweep_to(&sweep, 100 * (i + 1)), 0);
        assert_int_equal(unwinder_reset_add(&reset, &added, 100 * (i + 1)), 0);
    }
    thread_sweep_end(&sweep);
}

static void make_resets(size_t count)
{
    make_resets_by(count, RESET_BY_FORKS);
}

/* Record INDEX, read as any other of the file. */
static struct perf_record put(size_t index)
{
    struct added_record_source source = {
        .records = &records, .processes = &process, .dso_dir = "", .threads = &threads};
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    uint64_t time_ns;
    assert_true(index < added.count);
    assert_int_equal(added_map_put(&added.items[index], &source, &sink), 0);
    struct perf_record record = {.bytes = bytes, .size = (uint16_t)sink.size};
    if (sink.size == 0)
        return record;
    assert_int_equal(bytes[6] | bytes[7] << 8, sink.size);
    record.type = bytes[0];
    record.misc = (uint16_t)(bytes[4] | bytes[5] << 8);
    assert_true(perf_record_time(&file, &record, &time_ns));
    assert_int_equal(time_ns, added.items[index].time_ns);
    return record;
}

static void assert_ids(const uint32_t *expected, size_t count)
{
    struct byte_cursor cursor = byte_cursor_over(bytes, sizeof bytes, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(cursor_u32(&cursor), expected[i]);
}

static void assert_fork(size_t index, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid)
{
    struct perf_record record = put(index);
    assert_int_equal(record.type, PERF_RECORD_FORK);
    assert_ids((uint32_t[]){pid, ppid, tid, ptid}, 4);
    assert_int_equal(perf_get_u64(bytes + 24), added.items[index].time_ns);
}

static void test_reset_forks_away_and_back(void **state)
{
    (void)state;
    open_profile();
    make_resets(2);
    assert_int_equal(added.count, 4);
    for (size_t i = 0; i < 4; i += 2) {
        assert_int_equal(added.items[i].time_ns, 100 + i * 50);
        assert_fork(i, CLONE, PID, CLONE, PID);
        assert_fork(i + 1, PID, CLONE, PID, CLONE);
    }
    free(added.items);
}

static void test_reset_brings_threads_and_their_names_back(void **state)
{
    (void)state;
    add_name(PID, PID, "program", 10);
    add_fork(PID, PID, 20, PID, 20);
    add_name(PID, 20, "worker1", 30);
    add_exit(20, 150);
    open_profile();
    make_resets(2);
    assert_int_equal(added.count, 6); /* at 200 the thread is gone */
    assert_fork(2, PID, PID, 20, PID);
    struct perf_record record = put(3);
    assert_int_equal(record.type, PERF_RECORD_COMM);
    assert_int_equal(record.misc, PERF_MISC_USER);
    assert_ids((uint32_t[]){PID, 20}, 2);
    assert_memory_equal(bytes + 16, "worker1", 8);
    free(added.items);
}

static void test_a_thread_without_a_name_keeps_its_number(void **state)
{
    (void)state;
    add_name(PID, PID, "program", 10);
    add_sample(20, 20);
    open_profile();
    make_resets(1);
    assert_int_equal(added.count, 4);
    assert_fork(2, PID, PID, 20, PID);
    assert_int_equal(put(3).type, PERF_RECORD_COMM);
    assert_ids((uint32_t[]){PID, 20}, 2);
    assert_string_equal((char *)bytes + 16, ":20");
    free(added.items);
}

static void test_when_the_main_thread_has_ended_another_one_forks(void **state)
{
    (void)state;
    add_name(PID, PID, "program", 10);
    add_fork(PID, PID, 20, PID, 20);
    add_exit(PID, 50);
    open_profile();
    make_resets(1);
    assert_int_equal(added.count, 5);
    assert_fork(0, CLONE, PID, CLONE, 20);
    assert_fork(1, PID, CLONE, PID, CLONE);
    assert_fork(2, PID, PID, 20, PID);
    assert_int_equal(put(3).type, PERF_RECORD_COMM);
    assert_int_equal(put(4).type, PERF_RECORD_EXIT);
    assert_ids((uint32_t[]){PID, PID, PID, PID}, 4);
    free(added.items);
}

static void assert_namespaces(size_t index, uint32_t tid, uint64_t first)
{
    assert_int_equal(put(index).type, PERF_RECORD_NAMESPACES);
    assert_ids((uint32_t[]){PID, tid}, 2);
    assert_int_equal(perf_get_u64(bytes + 16), 2);
    assert_int_equal(perf_get_u64(bytes + 24), 4);
    assert_int_equal(perf_get_u64(bytes + 32), first);
    assert_int_equal(perf_get_u64(bytes + 48), first + 1);
}

static void test_reset_brings_namespaces_back(void **state)
{
    (void)state;
    add_namespaces(PID, 2, 70, false, 5);
    add_name(PID, PID, "program", 10);
    builder.bytes[last_record + 5] |= PERF_MISC_COMM_EXEC >> 8; /* they survive that */
    add_fork(PID, PID, 20, PID, 20);
    add_namespaces(20, 2, 80, false, 20);
    add_namespaces(20, 2, 90, false, 30);
    add_namespaces(20, 2, 95, true, 40);
    add_namespaces(20, 1000, 97, false, 40);
    open_profile();
    make_resets(1);
    assert_int_equal(added.count, 6);
    assert_namespaces(2, PID, 70);
    assert_fork(3, PID, PID, 20, PID);
    assert_namespaces(5, 20, 90);
    free(added.items);
}

static void test_where_forks_would_do_harm_a_living_thread_execs_under_its_name(void **state)
{
    (void)state;
    add_name(PID, PID, "program", 10);
    add_name(PID, 20, "worker1", 20);
    add_exit(PID, 150);
    open_profile();
    make_resets_by(2, RESET_BY_COMM);
    assert_int_equal(added.count, 2);
    assert_int_equal(put(0).misc, PERF_MISC_USER | PERF_MISC_COMM_EXEC);
    assert_ids((uint32_t[]){PID, PID}, 2);
    assert_memory_equal(bytes + 16, "program", 8);
    put(1);
    assert_ids((uint32_t[]){PID, 20}, 2);
    assert_memory_equal(bytes + 16, "worker1", 8);
    free(added.items);
}

/* A timeline in which each of COUNT functions comes at a moment of its own. */
static void build_timeline(size_t count)
{
    timeline.changes = calloc(count, sizeof *timeline.changes);
    timeline.change_count = count;
    for (size_t i = 0; i < count; i++)
        timeline.changes[i] = (struct change){i, 0, 0, CHANGE_FUNCTION, 0};
}

static void test_where_forks_cost_too_much_the_process_execs_under_its_name(void **state)
{
    (void)state;
    add_name(PID, PID, "program", 10);
    add_fork(PID, PID, 20, PID, 20);
    open_profile();
    build_timeline(2000);
    make_resets(1);
    assert_int_equal(added.count, 4);
    free(added.items);
    free(timeline.changes);
    build_timeline(2048); /* and one map: 2048 * 2049 copies */
    make_resets(1);
    assert_int_equal(added.count, 1);
    struct perf_record record = put(0);
    assert_int_equal(record.type, PERF_RECORD_COMM);
    assert_int_equal(record.misc, PERF_MISC_USER | PERF_MISC_COMM_EXEC);
    assert_ids((uint32_t[]){PID, PID}, 2);
    assert_memory_equal(bytes + 16, "program", 8);
    free(added.items);
    free(timeline.changes);
    timeline = (struct timeline){0};
}

static void test_an_exec_without_a_name_is_left_out(void **state)
{
    (void)state;
    open_profile();
    build_timeline(3000);
    make_resets(1);
    assert_int_equal(put(0).size, 0);
    free(added.items);
    free(timeline.changes);
    timeline = (struct timeline){0};
}

static void test_a_name_cut_short_is_left_out(void **state)
{
    (void)state;
    add_name(PID, 20, "worker1", 0);
    open_profile();
    make_resets(1);
    for (size_t i = 0; i < records.threads.count; i++)
        if (records.threads.events[i].tid == 20)
            records.threads.events[i].record.size = 16;
    assert_int_equal(added.count, 4);
    assert_int_equal(put(3).size, 0);
    free(added.items);
}

#define RESET_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RESET_TEST(test_threads_are_born_named_and_end),
        RESET_TEST(test_records_are_played_by_time_and_not_by_place),
        RESET_TEST(test_other_processes_do_not_count),
        RESET_TEST(test_a_thread_that_ran_before_is_known_by_its_name),
        RESET_TEST(test_reset_forks_away_and_back),
        RESET_TEST(test_reset_brings_threads_and_their_names_back),
        RESET_TEST(test_where_forks_cost_too_much_the_process_execs_under_its_name),
        RESET_TEST(test_an_exec_without_a_name_is_left_out),
        RESET_TEST(test_what_no_record_introduces_is_known_by_what_it_does),
        RESET_TEST(test_no_other_thread_survives_an_exec),
        RESET_TEST(test_a_pid_that_is_used_again_has_new_threads),
        RESET_TEST(test_the_oldest_thread_speaks_when_the_main_thread_has_ended),
        RESET_TEST(test_a_thread_without_a_name_keeps_its_number),
        RESET_TEST(test_when_the_main_thread_has_ended_another_one_forks),
        RESET_TEST(test_reset_brings_namespaces_back),
        RESET_TEST(test_where_forks_would_do_harm_a_living_thread_execs_under_its_name),
        RESET_TEST(test_a_name_cut_short_is_left_out),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
