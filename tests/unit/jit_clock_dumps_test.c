/* Two processes of a recording without -k, each with a dump.  One of them waited for 20 ms between
 * its header's time and the mapping. */
#include "tests/unit/process_world.h"

/* 15 years after the machine's start: no machine's clocks now are later. */
#define BEGIN (UINT64_C(500000000) * 1000000000)

/* How far the dumps' clock is behind perf's. */
#define BEHIND (1400312)

static void patch(const char *path, long at, const void *bytes, size_t size)
{
    FILE *stream = fopen(path, "r+b");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, size, 1, stream), 1);
    assert_int_equal(fclose(stream), 0);
}

/* PID's dump, at PATH, is mapped LATE after its header's time. */
static void put_process(uint32_t pid, const char *path, uint64_t mapped_ns, uint64_t late_ns)
{
    uint64_t opened_ns = mapped_ns - BEHIND - late_ns;
    write_two(path, pid, mapped_ns - BEHIND + ms(100), mapped_ns - BEHIND + ms(200));
    patch(path, JITHEADER_TIMESTAMP, &opened_ns, sizeof opened_ns);
    put_fork(pid, 1, mapped_ns - ms(10));
    put_marker(pid, path, mapped_ns);
}

static void say_how_close(const char *path)
{
    const uint32_t pad1 = (uint32_t)JITHEADER_PAD1_TAG << 16 | 2000;
    patch(path, JITHEADER_PAD1, &pad1, sizeof pad1);
}

static void record_without_clockid(void)
{
    size_t attr = PERF_FILE_HEADER_BYTES + BUILT_IDS * 8;
    profile_set_u64(&recording, attr + PERF_ATTR_FLAGS, PERF_ATTR_SAMPLE_ID_ALL);
}

static void assert_loaded(uint32_t pid, uint64_t mapped_ns, uint64_t late_ns)
{
    for (size_t i = 0; i < processes.count; i++) {
        if (processes.items[i].pid != pid)
            continue;
        assert_int_equal(processes.items[i].log.event_count, 2);
        uint64_t time_ns = processes.items[i].log.events[0].time_ns;
        if (time_ns + 1000 < mapped_ns + late_ns + ms(100) ||
            time_ns > mapped_ns + late_ns + ms(100) + 1000)
            fail_msg("%" PRIi64 " ns off", (int64_t)(time_ns - mapped_ns - ms(100)));
        return;
    }
    fail_msg("no process %" PRIu32, pid);
}

/* Two, of which LATE waited; the other one's header says how close it is. */
static void read_two(uint32_t late)
{
    char path[128];
    snprintf(path, sizeof path, "%s/jit-%d.dump", scratch, OTHER);
    record_without_clockid();
    put_process(PID, dump_path, BEGIN, late == PID ? ms(20) : 0);
    put_process(OTHER, path, BEGIN + ms(5), late == OTHER ? ms(20) : 0);
    say_how_close(late == PID ? path : dump_path);
    profile_sample(&recording, 0, BEGIN + ms(3000));
    assert_reads(NULL, 2);
    unlink(path);
}

static void test_the_first_of_two_waited(void **state)
{
    (void)state;
    read_two(PID);
    assert_loaded(PID, BEGIN, 0);
    assert_loaded(OTHER, BEGIN + ms(5), 0);
    assert_int_equal(findings.count[FINDING_CLOCK_CONVERTED], 2);
}

static void test_the_second_of_two_waited(void **state)
{
    (void)state;
    read_two(OTHER);
    assert_loaded(PID, BEGIN, 0);
    assert_loaded(OTHER, BEGIN + ms(5), 0);
}

/* A copy's header need not be of the process: it shows nothing. */
static void test_a_copy_shows_nothing(void **state)
{
    struct stat status;
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s/jit-%d.dump", scratch, OTHER);
    record_without_clockid();
    put_process(PID, dump_path, BEGIN, ms(20));
    put_process(OTHER, path, BEGIN + ms(5), 0);
    say_how_close(path);
    stat(path, &status);
    recording.sink.size = recording.records_start; /* anew, with another inode for OTHER's */
    put_fork(PID, 1, BEGIN - ms(10));
    put_marker(PID, dump_path, BEGIN);
    put_map(OTHER, 0x7000000, path, status.st_dev, status.st_ino + 1, BEGIN + ms(5));
    profile_sample(&recording, 0, BEGIN + ms(3000));
    assert_false(read_all(NULL));
    assert_loaded(PID, BEGIN, ms(20));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(test_the_first_of_two_waited),
        PROCESS_TEST(test_the_second_of_two_waited),
        PROCESS_TEST(test_a_copy_shows_nothing),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
