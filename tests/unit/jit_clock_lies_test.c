/* From a dump's timestamps to the profile's: CPU cycles, flags that lie, and stamps that are no
 * times. */
#include "tests/unit/clock_world.h"

/* ---- Cycles ---- */

static void test_cycles_by_time_conv_need_nothing_more(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(CYCLES(MARKER), true);
    put_reuse(CYCLES(MARKER + MS), CYCLES(EXIT - SEC));
    may_read_machine = false;
    decide_with_conv(CONV_2_GHZ);
    assert_silent();
    assert_becomes(CYCLES(MARKER + 7), MARKER + 7, 1);
    end_world();
}

static void test_cycles_and_k_mono_by_time_conv_and_marker(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(CYCLES(MARKER + OFFSET), true); /* perf's clock is ahead of CLOCK_MONOTONIC */
    say_how_close(4000);
    put_two(CYCLES(MARKER + OFFSET + MS), CYCLES(MARKER + OFFSET + SEC + MS));
    decide_with_conv(CONV_2_GHZ);
    assert_chosen();
    assert_becomes(CYCLES(MARKER + OFFSET + SEC), MARKER + SEC, 1);
    assert_says(FINDING_CLOCK_CONVERTED, "CPU cycles: converted by perf's TIME_CONV");
    assert_says(FINDING_CLOCK_CONVERTED, "(± 52 000 ns)"); /* 4000 cycles, and drift */
    end_world();
}

static void test_cycles_without_time_conv_by_the_rate_since(void **state)
{
    (void)state;
    for (int clockid = -1; clockid <= CLOCK_MONOTONIC; clockid += 2) {
        cycles_without_conv(clockid);
        decide();
        assert_chosen();
        assert_becomes(CYCLES(MARKER + SEC), MARKER + SEC, 1);
        assert_says(FINDING_CLOCK_CONVERTED,
                    "CPU cycles: converted by the marker's mapping, and by");
        end_world();
    }
}

static void test_a_counter_of_another_boot_has_no_rate(void **state)
{
    (void)state;
    cycles_without_conv(CLOCK_MONOTONIC);
    machine.now[CLOCK_KIND_CYCLES] += 100 * SEC;
    decide();
    assert_refused("CPU cycles");
    end_world();
}

static void test_cycles_without_any_rate(void **state)
{
    (void)state;
    cycles_without_conv(-1);
    memset(&machine, 0, sizeof machine);
    decide();
    assert_refused("TIME_CONV");
    end_world();
}

/* ---- Flags that lie ---- */

/* libxsmm. */
static void test_flagged_cycles_that_are_nanoseconds(void **state)
{
    (void)state;
    for (int clockid = -1; clockid <= CLOCK_MONOTONIC; clockid += 2) {
        profile_of_life(clockid);
        begin_dump(MARKER, true);
        put_two(MARKER + MS, MARKER + SEC);
        decide_with_conv(CONV_2_GHZ);
        assert_chosen();
        assert_becomes(MARKER + MS, MARKER + MS, 0);
        assert_says(FINDING_CLOCK_FLAG, "CPU cycles; they are");
        assert_int_equal(count(FINDING_CLOCK_CONVERTED), clockid < 0);
        assert_int_equal(findings_lost(&world.findings), 0);
        end_world();
    }
}

/* The profile's own clock would do as well, but for the header: the dump was opened when it was
 * mapped. */
static void test_flagged_cycles_that_are_another_clock_than_the_profile(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC_RAW);
    begin_dump(MARKER + 61 * MS, true);
    put_two(MARKER + 62 * MS, MARKER + SEC);
    machine_knows(CLOCK_KIND_RAW, EXIT + SEC);
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC + 61 * MS);
    decide();
    assert_chosen();
    assert_becomes(MARKER + SEC, MARKER + SEC - 61 * MS, 0);
    assert_says(FINDING_CLOCK_FLAG, "they are CLOCK_MONOTONIC");
    end_world();
}

static void test_unflagged_cycles(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(CYCLES(MARKER), false);
    put_two(CYCLES(MARKER + MS), CYCLES(MARKER + SEC));
    decide_with_conv(CONV_2_GHZ);
    assert_chosen();
    assert_becomes(CYCLES(MARKER + SEC), MARKER + SEC, 1);
    assert_says(FINDING_CLOCK_FLAG, "CLOCK_MONOTONIC; they are CPU cycles");
    end_world();
}

static void test_unflagged_cycles_with_k_mono(void **state)
{
    (void)state;
    cycles_without_conv(CLOCK_MONOTONIC);
    begin_dump(CYCLES(MARKER), false);
    put_two(CYCLES(MARKER + MS), CYCLES(MARKER + SEC));
    decide();
    assert_chosen();
    assert_becomes(CYCLES(MARKER + SEC), MARKER + SEC, 1);
    assert_says(FINDING_CLOCK_FLAG, "CLOCK_MONOTONIC; they are CPU cycles");
    assert_int_equal(count(FINDING_CLOCK_CONVERTED), 1);
    end_world();
}

static void test_wall_clock_stamps(void **state)
{
    (void)state;
    for (int clockid = -1; clockid <= CLOCK_MONOTONIC; clockid += 2) {
        profile_of_life(clockid);
        begin_dump(WALL + MARKER, false);
        put_two(WALL + MARKER + MS, WALL + MARKER + SEC);
        decide();
        assert_chosen();
        assert_becomes(WALL + MARKER + SEC, MARKER + SEC, 0);
        assert_says(FINDING_CLOCK_FLAG, "they are CLOCK_REALTIME");
        end_world();
    }
}

/* CLOCK_MONOTONIC_RAW runs beside CLOCK_MONOTONIC: so many ms that no process was born so early, or
 * a few only. */
static void test_stamps_of_a_clock_close_by(void **state)
{
    static const uint64_t ahead[] = {61 * MS, 3 * SEC, 0 - 61 * MS, 0 - 3 * SEC};
    (void)state;
    for (size_t i = 0; i < sizeof ahead / sizeof ahead[0]; i++) {
        profile_of_life(CLOCK_MONOTONIC);
        begin_dump(MARKER + ahead[i], false);
        put_two(MARKER + MS + ahead[i], MARKER + SEC + ahead[i]);
        machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC);
        machine_knows(CLOCK_KIND_RAW, EXIT + SEC + ahead[i]);
        machine_knows(CLOCK_KIND_BOOTTIME, EXIT + 500 * SEC);
        decide();
        assert_chosen();
        assert_becomes(MARKER + SEC + ahead[i], MARKER + SEC, 0);
        assert_says(FINDING_CLOCK_FLAG, "they are CLOCK_MONOTONIC_RAW");
        assert_int_equal(count(FINDING_CLOCK_CONVERTED), 1);
        end_world();
    }
}

/* A machine so busy that half a second went by between header and mapping. */
static void test_a_late_marker_alone_is_no_other_clock(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER - SEC / 2, false);
    put_two(MARKER + MS, MARKER + SEC);
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC);
    machine_knows(CLOCK_KIND_RAW, EXIT + SEC - 61 * MS);
    decide();
    assert_silent();
    assert_becomes(MARKER, MARKER, 0);
    end_world();
}

static void test_no_clock_fits(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER + 7000 * SEC, false);
    put_two(MARKER + 7000 * SEC, MARKER + 7001 * SEC);
    decide();
    assert_refused("do not fit a profile");
    end_world();
}

static void test_two_clocks_fit_and_differ(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(WALL / 1000, false); /* no help */
    put_two(MARKER + 7000 * SEC, MARKER + 7001 * SEC);
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC);
    machine_knows(CLOCK_KIND_RAW, EXIT + SEC + 6999 * SEC + 900 * MS);
    machine_knows(CLOCK_KIND_BOOTTIME, EXIT + SEC + 6999 * SEC + 500 * MS);
    decide();
    assert_refused("more than one");
    end_world();
}

/* A busy machine let 13 ms pass between the header and the mapping.  CLOCK_BOOTTIME goes as
 * CLOCK_MONOTONIC does while the machine is awake, so it explains nothing. */
static void test_a_late_mapping_is_no_other_clock(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER - 13 * MS, false);
    put_two(MARKER + MS, MARKER + SEC);
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + 60 * SEC);
    machine_knows(CLOCK_KIND_BOOTTIME, EXIT + 60 * SEC);
    machine_knows(CLOCK_KIND_RAW, EXIT + 63 * SEC);
    decide();
    assert_silent();
    assert_becomes(MARKER + SEC, MARKER + SEC, 0);
    end_world();
}

/* CLOCK_MONOTONIC_RAW is 40 ms away 37 minutes after the boot: 18 ppm.  In the 20 minutes since the
 * recording it went 22 ms, so it was not 155 ms away then, as the header is from the mapping. */
static void test_a_late_mapping_is_no_raw_clock(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER - 155 * MS, false);
    put_two(MARKER + MS, MARKER + SEC);
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + 1200 * SEC);
    machine_knows(CLOCK_KIND_RAW, EXIT + 1200 * SEC - 40 * MS);
    decide();
    assert_silent();
    assert_becomes(MARKER + SEC, MARKER + SEC, 0);
    end_world();
}

/* ---- Stamps that are no times ---- */

static void assert_useless(uint64_t stamp, const char *words)
{
    assert_chosen();
    assert_becomes(stamp, MARKER, 0);
    assert_becomes(stamp + 1000, MARKER, 0);
    assert_says(FINDING_CLOCK_USELESS, words);
    assert_int_equal(findings_lost(&world.findings), 1);
}

static void test_stamps_of_zero(void **state)
{
    (void)state;
    for (int clockid = -1; clockid <= CLOCK_MONOTONIC; clockid += 2) {
        profile_of_life(clockid);
        begin_dump(MARKER, false);
        put_two(0, 0);
        decide();
        assert_useless(0, "2 records are all 0");
        end_world();
    }
}

static void test_equal_stamps_of_no_moment_of_the_life(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(4711, false);
    put_two(3 * SEC, 3 * SEC);
    decide();
    assert_useless(3 * SEC, "all equal");
    end_world();
}

static void test_equal_stamps_of_a_moment_are_one_moment(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER, false);
    put_two(MARKER + SEC, MARKER + SEC);
    may_read_machine = false;
    decide();
    assert_silent();
    end_world();
}

static void test_stamps_that_count_records(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(0, false);
    put_two(1, 2);
    decide();
    assert_useless(1, "first second after boot");
    end_world();
}

/* ---- The formulas ---- */

/* ns = zero + cycles * mult / 2^shift, in 128 bits; a short counter's missing bits come from the
 * base. */
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
    const struct jit_clock clock = {.cycles = true, .conv = *conv};
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

static void test_offsets_stop_at_the_ends_of_time(void **state)
{
    const struct jit_clock behind = {.from_ref = 0, .to_ref = 1000};
    const struct jit_clock ahead = {.from_ref = 1000, .to_ref = 0};
    const struct jit_clock slow = {.from_ref = 500, .to_ref = 100, .from_span = 1, .to_span = 3};
    (void)state;
    assert_int_equal(jit_clock_to_perf(&behind, UINT64_MAX - 999), UINT64_MAX);
    assert_int_equal(jit_clock_to_perf(&behind, UINT64_MAX - 1000), UINT64_MAX);
    assert_int_equal(jit_clock_to_perf(&behind, UINT64_MAX - 1001), UINT64_MAX - 1);
    assert_int_equal(jit_clock_to_perf(&ahead, 999), 0);
    assert_int_equal(jit_clock_to_perf(&ahead, 1001), 1);
    assert_int_equal(jit_clock_to_perf(&slow, 510), 130);
    assert_int_equal(jit_clock_to_perf(&slow, 490), 70);
    assert_int_equal(jit_clock_to_perf(&slow, 400), 0);
    assert_int_equal(jit_clock_to_perf(&slow, UINT64_MAX), UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cycles_by_time_conv_need_nothing_more),
        cmocka_unit_test(test_cycles_and_k_mono_by_time_conv_and_marker),
        cmocka_unit_test(test_cycles_without_time_conv_by_the_rate_since),
        cmocka_unit_test(test_a_counter_of_another_boot_has_no_rate),
        cmocka_unit_test(test_cycles_without_any_rate),
        cmocka_unit_test(test_flagged_cycles_that_are_nanoseconds),
        cmocka_unit_test(test_flagged_cycles_that_are_another_clock_than_the_profile),
        cmocka_unit_test(test_unflagged_cycles),
        cmocka_unit_test(test_unflagged_cycles_with_k_mono),
        cmocka_unit_test(test_wall_clock_stamps),
        cmocka_unit_test(test_stamps_of_a_clock_close_by),
        cmocka_unit_test(test_a_late_marker_alone_is_no_other_clock),
        cmocka_unit_test(test_no_clock_fits),
        cmocka_unit_test(test_two_clocks_fit_and_differ),
        cmocka_unit_test(test_a_late_mapping_is_no_other_clock),
        cmocka_unit_test(test_a_late_mapping_is_no_raw_clock),
        cmocka_unit_test(test_stamps_of_zero),
        cmocka_unit_test(test_equal_stamps_of_no_moment_of_the_life),
        cmocka_unit_test(test_equal_stamps_of_a_moment_are_one_moment),
        cmocka_unit_test(test_stamps_that_count_records),
        cmocka_unit_test(test_cycles_match_exact_arithmetic),
        cmocka_unit_test(test_short_counter_is_extended_from_its_base),
        cmocka_unit_test(test_zero_of_perfs_clock_may_lie_ahead),
        cmocka_unit_test(test_offsets_stop_at_the_ends_of_time),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
