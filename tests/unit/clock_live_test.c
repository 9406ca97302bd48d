/* The machine's own clocks, as they are read. */
#include "injector/clock/clock_live.h"
#include "injector/clock/perf_clock.h"
#include "tests/unit/scratch.h"

#include <sys/prctl.h>
#include <time.h>

static uint64_t read_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void test_all_clocks_are_of_one_moment(void **state)
{
    static const struct {
        enum clock_kind kind;
        clockid_t id;
    } clocks[] = {{CLOCK_KIND_RAW, CLOCK_MONOTONIC_RAW},
                  {CLOCK_KIND_BOOTTIME, CLOCK_BOOTTIME},
                  {CLOCK_KIND_REALTIME, CLOCK_REALTIME},
                  {CLOCK_KIND_TAI, CLOCK_TAI}};
    struct clock_live live;
    (void)state;
    uint64_t before = read_ns(CLOCK_MONOTONIC);
    clock_live_read(&live, false);
    assert_in_range(live.now[CLOCK_KIND_MONOTONIC], before, read_ns(CLOCK_MONOTONIC));
    assert_false(live.known[CLOCK_KIND_CYCLES]);
    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
        uint64_t mono = read_ns(CLOCK_MONOTONIC), other = read_ns(clocks[i].id);
        int64_t wanted = (int64_t)(other - mono);
        int64_t got = (int64_t)(live.now[clocks[i].kind] - live.now[CLOCK_KIND_MONOTONIC]);
        assert_true(live.known[clocks[i].kind]);
        assert_true(got - wanted < 50000000 && wanted - got < 50000000);
    }
}

#ifdef __x86_64__
static void test_the_counters_rate_is_measured(void **state)
{
    struct clock_live live, later;
    (void)state;
    clock_live_read(&live, true);
    clock_live_read(&later, true);
    assert_true(live.known[CLOCK_KIND_CYCLES]);
    assert_true(later.now[CLOCK_KIND_CYCLES] > live.now[CLOCK_KIND_CYCLES]);
    double ns = (double)(later.now[CLOCK_KIND_MONOTONIC] - live.now[CLOCK_KIND_MONOTONIC]);
    double cycles = (double)(later.now[CLOCK_KIND_CYCLES] - live.now[CLOCK_KIND_CYCLES]);
    double rate = cycles / ns * 1e9 / (double)live.cycles_per_s;
    assert_true(rate > 0.99 && rate < 1.01);
}
#endif

/* The name that the thread is given to make perf tell the time is the one it had. */
static void test_perfs_clock_goes_forward_and_leaves_the_name(void **state)
{
    struct perf_clock clock;
    char before[16] = "", after[16] = "";
    uint64_t last = 0, now;
    (void)state;
    prctl(PR_GET_NAME, before, 0, 0, 0);
    if (!perf_clock_open(&clock)) {
        perf_clock_close(&clock);
        skip();
    }
    for (int i = 0; i < 1000; i++) { /* some times around the ring */
        assert_true(perf_clock_now(&clock, &now));
        assert_true(now > last);
        assert_true(last == 0 || now - last < UINT64_C(10000000000));
        last = now;
    }
    perf_clock_close(&clock);
    prctl(PR_GET_NAME, after, 0, 0, 0);
    assert_string_equal(before, after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_clocks_are_of_one_moment),
#ifdef __x86_64__
        cmocka_unit_test(test_the_counters_rate_is_measured),
#endif
        cmocka_unit_test(test_perfs_clock_goes_forward_and_leaves_the_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
