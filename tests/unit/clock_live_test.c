/* All clocks of a machine at one moment.  The machine is the test's: each of its clocks is read at
 * the time that has passed by then, and at most readings something comes in between. */
#include "injector/log/clock/clock_live.h"
#include "injector/log/clock/perf_clock.h"
#include "jitdump/format/dump_clock.h"
#include "tests/unit/scratch.h"

#include <time.h>

#define US UINT64_C(1000)
#define MS (1000 * US)

enum { READING_NS = 40, CYCLES_PER_US = 2600 };

static struct {
    uint64_t passed_ns;
    unsigned readings;
    unsigned undisturbed; /* so many readings before each that is disturbed */
    bool has_counter, has_perf;
    uint64_t slept_ns;
} machine;

/* At no time passed. */
static const uint64_t began_ns[CLOCK_KINDS] = {
    [CLOCK_KIND_MONOTONIC] = 700 * MS,
    [CLOCK_KIND_RAW] = 640 * MS,
    [CLOCK_KIND_BOOTTIME] = 9000 * MS,
    [CLOCK_KIND_REALTIME] = UINT64_C(1700000000) << 30,
    [CLOCK_KIND_TAI] = UINT64_C(1700000037) << 30,
    [CLOCK_KIND_PERF] = 123456 * MS,
};

/* What KIND shows in the middle of a reading. */
static uint64_t read_clock(enum clock_kind kind)
{
    machine.readings++;
    if (machine.undisturbed && machine.readings % (machine.undisturbed + 1) == 0)
        machine.passed_ns += 3 * MS;
    uint64_t shown = machine.passed_ns + READING_NS / 2;
    machine.passed_ns += READING_NS;
    return kind == CLOCK_KIND_CYCLES ? shown * CYCLES_PER_US / 1000 : began_ns[kind] + shown;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int kind = 0;
    while (clock_kind_id((enum clock_kind)kind) != clock)
        kind++;
    uint64_t shown = read_clock((enum clock_kind)kind);
    *now = (struct timespec){.tv_sec = (time_t)(shown / (1000 * MS)),
                             .tv_nsec = (long)(shown % (1000 * MS))};
    return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    machine.slept_ns += (uint64_t)time->tv_sec * 1000 * MS + (uint64_t)time->tv_nsec;
    machine.passed_ns += machine.slept_ns + 5 * MS; /* who wakes up waits for a processor */
    return 0;
}

bool jd_clock_has_counter(void)
{
    return machine.has_counter;
}

uint64_t jd_clock_now(bool counter)
{
    return read_clock(counter ? CLOCK_KIND_CYCLES : CLOCK_KIND_MONOTONIC);
}

bool perf_clock_open(struct perf_clock *clock)
{
    *clock = (struct perf_clock){.fd = -1};
    return machine.has_perf;
}

bool perf_clock_now(struct perf_clock *clock, uint64_t *now_ns)
{
    (void)clock;
    *now_ns = read_clock(CLOCK_KIND_PERF);
    return true;
}

void perf_clock_close(struct perf_clock *clock)
{
    (void)clock;
}

static int begin(void **state)
{
    (void)state;
    memset(&machine, 0, sizeof machine);
    machine.has_counter = machine.has_perf = true;
    return 0;
}

static void assert_apart(const struct clock_live *live, enum clock_kind kind)
{
    uint64_t apart = live->now[kind] - live->now[CLOCK_KIND_MONOTONIC];
    uint64_t wanted = began_ns[kind] - began_ns[CLOCK_KIND_MONOTONIC];
    assert_true(live->known[kind]);
    assert_true(apart - wanted + READING_NS <= 2 * READING_NS);
}

/* Of the tries of each clock one is not disturbed. */
static void test_all_clocks_are_of_one_moment(void **state)
{
    static const unsigned undisturbed[] = {0, 3, 5, 50};
    (void)state;
    for (size_t i = 0; i < sizeof undisturbed / sizeof undisturbed[0]; i++) {
        struct clock_live live;
        machine.undisturbed = undisturbed[i];
        clock_live_read(&live, false);
        assert_true(live.known[CLOCK_KIND_MONOTONIC]);
        for (int kind = CLOCK_KIND_RAW; kind <= CLOCK_KIND_PERF; kind++)
            assert_apart(&live, (enum clock_kind)kind);
        assert_in_range(live.width_ns, READING_NS, 2 * READING_NS);
        assert_false(live.known[CLOCK_KIND_CYCLES]);
        assert_int_equal(machine.slept_ns, 0);
    }
}

/* Where each try is disturbed, that is said. */
static void test_how_far_the_readings_are_apart(void **state)
{
    struct clock_live live;
    (void)state;
    machine.undisturbed = 1;
    clock_live_read(&live, false);
    assert_in_range(live.width_ns, 3 * MS, 4 * MS);
}

static void test_the_counters_rate_is_measured(void **state)
{
    struct clock_live live;
    (void)state;
    machine.undisturbed = 5;
    clock_live_read(&live, true);
    assert_true(live.known[CLOCK_KIND_CYCLES]);
    assert_in_range(live.cycles_per_s, UINT64_C(2599900000), UINT64_C(2600100000));
    uint64_t passed_ns = live.now[CLOCK_KIND_MONOTONIC] - began_ns[CLOCK_KIND_MONOTONIC];
    assert_in_range(live.now[CLOCK_KIND_CYCLES], (passed_ns - 60) * CYCLES_PER_US / 1000,
                    (passed_ns + 60) * CYCLES_PER_US / 1000);
    assert_int_equal(machine.slept_ns, 20 * MS);
    for (int kind = CLOCK_KIND_RAW; kind <= CLOCK_KIND_PERF; kind++)
        assert_apart(&live, (enum clock_kind)kind);
}

static void test_what_there_is_not_is_not_known(void **state)
{
    struct clock_live live;
    (void)state;
    machine.has_counter = machine.has_perf = false;
    clock_live_read(&live, true);
    assert_false(live.known[CLOCK_KIND_CYCLES]);
    assert_false(live.known[CLOCK_KIND_PERF]);
    assert_int_equal(live.cycles_per_s, 0);
    assert_apart(&live, CLOCK_KIND_TAI);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_all_clocks_are_of_one_moment, begin),
        cmocka_unit_test_setup(test_how_far_the_readings_are_apart, begin),
        cmocka_unit_test_setup(test_the_counters_rate_is_measured, begin),
        cmocka_unit_test_setup(test_what_there_is_not_is_not_known, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
