/* From a dump's timestamps to the profile's: the formula, and when there is none. */
#include "injector/jit/jit_clock.h"

#include "tests/unit/scratch.h"

#include <time.h>

/* A profile of two events and a dump, as far as the choice of a clock looks at them. */
struct fixture {
    struct perf_event events[2];
    struct perf_file file;
    struct profile profile;
    struct jit_dump dump;
};

static void set_up(struct fixture *fixture, bool use_clockid, bool cycles)
{
    *fixture = (struct fixture){0};
    for (size_t i = 0; i < 2; i++) {
        fixture->events[i].use_clockid = use_clockid;
        fixture->events[i].clockid = CLOCK_MONOTONIC;
    }
    fixture->file.events = fixture->events;
    fixture->file.event_count = 2;
    fixture->profile.file = &fixture->file;
    fixture->profile.time_conv = (struct time_conv){.known = true, .shift = 10, .mult = 341};
    fixture->dump.flags = cycles ? JITDUMP_FLAG_ARCH_TIMESTAMP : 0;
}

static const char *choose(const struct fixture *fixture, struct jit_clock *clock)
{
    return jit_clock_choose(clock, &fixture->profile, &fixture->dump);
}

static void assert_refused(const struct fixture *fixture, const char *words)
{
    struct jit_clock clock;
    const char *why = choose(fixture, &clock);
    assert_non_null(why);
    assert_non_null(strstr(why, words));
    assert_non_null(strstr(why, "record")); /* what to do */
}

static void test_monotonic_times_stay_as_they_are(void **state)
{
    static const uint64_t times[] = {0, 1, 123456789012345, UINT64_MAX};
    struct fixture fixture;
    struct jit_clock clock;
    (void)state;
    set_up(&fixture, true, false);
    assert_null(choose(&fixture, &clock));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(jit_clock_to_perf(&clock, times[i]), times[i]);
}

static void test_monotonic_dump_needs_k_mono_in_every_event(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, false, false);
    assert_refused(&fixture, "perf record -k mono");
    set_up(&fixture, true, false);
    fixture.events[1].use_clockid = false;
    assert_refused(&fixture, "perf record -k mono");
    set_up(&fixture, true, false);
    fixture.events[1].clockid = CLOCK_REALTIME;
    assert_refused(&fixture, "perf record -k mono");
}

static void test_cycles_and_k_do_not_go_together(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, true, true);
    assert_refused(&fixture, "CPU cycles");
    for (size_t i = 0; i < 2; i++) {
        set_up(&fixture, false, true);
        fixture.events[i].use_clockid = true;
        assert_refused(&fixture, "record without -k");
    }
}

static void test_cycles_need_a_conversion(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, false, true);
    fixture.profile.time_conv.known = false;
    assert_refused(&fixture, "TIME_CONV");
}

/* ns = zero + cycles * mult / 2^shift, in 128 bits; a short counter's missing bits come from the base. */
static uint64_t expected_ns(const struct time_conv *conv, uint64_t cycles)
{
    if (conv->short_counter) { /* the first value at or behind the base with these low bits */
        unsigned __int128 period = (unsigned __int128)conv->mask + 1;
        unsigned __int128 full = conv->cycles / period * period + cycles % period;
        if (full < conv->cycles)
            full += period;
        cycles = (uint64_t)full;
    }
    unsigned __int128 ns = (unsigned __int128)cycles * conv->mult >> conv->shift;
    return (uint64_t)(ns + conv->zero_ns);
}

static void assert_converts(const struct time_conv *conv, uint64_t cycles)
{
    struct fixture fixture;
    struct jit_clock clock;
    set_up(&fixture, false, true);
    fixture.profile.time_conv = *conv;
    assert_null(choose(&fixture, &clock));
    assert_int_equal(jit_clock_to_perf(&clock, cycles), expected_ns(conv, cycles));
}

static void test_cycles_match_exact_arithmetic(void **state)
{
    uint64_t seed = 99;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct time_conv conv = {.known = true,
                                 .shift = random_below(&seed, 33),
                                 .mult = 1 + random_below(&seed, UINT32_MAX),
                                 .zero_ns = (uint64_t)random_below(&seed, 1u << 30) << 30};
        uint64_t cycles = (uint64_t)random_below(&seed, UINT32_MAX) << random_below(&seed, 20);
        assert_converts(&conv, cycles + random_below(&seed, 1000));
    }
}

static void test_short_counter_is_extended_from_its_base(void **state)
{
    uint64_t seed = 7;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t mask = (UINT64_C(1) << (32 + random_below(&seed, 25))) - 1;
        struct time_conv conv = {.known = true,
                                 .short_counter = true,
                                 .shift = 10,
                                 .mult = 1 + random_below(&seed, 5000),
                                 .zero_ns = random_below(&seed, UINT32_MAX),
                                 .cycles = (uint64_t)random_below(&seed, UINT32_MAX)
                                           << random_below(&seed, 28),
                                 .mask = mask};
        uint64_t low = ((uint64_t)random_below(&seed, UINT32_MAX) << 25) & mask;
        assert_converts(&conv, low);
        assert_converts(&conv, conv.cycles & mask);       /* the base itself */
        assert_converts(&conv, (conv.cycles - 1) & mask); /* just wrapped */
    }
}

static void test_zero_of_perfs_clock_may_lie_ahead(void **state)
{
    const struct time_conv conv = {
        .known = true, .shift = 31, .mult = 0x2aaaaaab, .zero_ns = UINT64_MAX - 999};
    (void)state;
    assert_converts(&conv, UINT64_C(3000000000) * 86400 * 365);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monotonic_times_stay_as_they_are),
        cmocka_unit_test(test_monotonic_dump_needs_k_mono_in_every_event),
        cmocka_unit_test(test_cycles_and_k_do_not_go_together),
        cmocka_unit_test(test_cycles_need_a_conversion),
        cmocka_unit_test(test_cycles_match_exact_arithmetic),
        cmocka_unit_test(test_short_counter_is_extended_from_its_base),
        cmocka_unit_test(test_zero_of_perfs_clock_may_lie_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
