/* A process that lost its processor between its dump's header and the mapping, so that the pair of
 * the two is off by the wait. */
#include "tests/unit/clock_world.h"

/* The clocks now, a tenth of a second after the recording's end at END, of which its file is. */
static void try_after(uint64_t end)
{
    machine_knows(CLOCK_KIND_MONOTONIC, end + SEC / 10);
    machine_knows(CLOCK_KIND_PERF, end + SEC / 10 + OFFSET);
    machine_knows(CLOCK_KIND_REALTIME, WALL + SEC / 10);
    open_world();
    set_written(WALL);
    choose();
}

static void choose_after(uint64_t end)
{
    try_after(end);
    assert_chosen();
}

/* The process waited for a processor between the header's time and the mapping, whichever came
 * first. */
static void test_a_wait_between_header_and_mapping(void **state)
{
    static const struct {
        int64_t header_early_ns;
        bool is_wait;
    } cases[] = {{(int64_t)(30 * MS), true},
                 {(int64_t)(90 * MS), true},
                 {(int64_t)(150 * MS), false},
                 {-(int64_t)(16 * MS), true},
                 {-(int64_t)(150 * MS), false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t early_ns = (uint64_t)cases[i].header_early_ns, first = MARKER + SEC;
        profile_of_life(-1);
        begin_dump(MARKER - OFFSET - early_ns, false);
        put_two(first, first + 5 * MS); /* of a child: what it inherited is sampled before */
        profile_sample(&world.built, 0, first - SEC / 10);
        choose_after(EXIT);
        assert_becomes(first, first + OFFSET + (cases[i].is_wait ? 0 : early_ns), 0);
        assert_says(FINDING_CLOCK_CONVERTED, cases[i].is_wait
                                                 ? "profile's, by this machine's clocks now"
                                                 : "profile's, by the marker's mapping");
        end_world();
    }
}

/* It waited for less than what clocks may part by: what is closer to the truth, the header or the
 * clocks now, depends on how long ago that was. */
static void test_a_short_wait_before_the_mapping(void **state)
{
    static const struct {
        uint64_t since_exit, becomes;
        const char *error;
        bool unsure;
    } cases[] = {
        {SEC / 10, OFFSET, "(± 70 ", false},
        {1000 * SEC, OFFSET + 900 * US, "(± 1 1", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        profile_of_life(-1);
        begin_dump(MARKER - OFFSET - 900 * US, false);
        put_reuse(MARKER, MARKER + MS);
        machine_knows(CLOCK_KIND_MONOTONIC, EXIT + cases[i].since_exit);
        machine_knows(CLOCK_KIND_PERF, EXIT + cases[i].since_exit + OFFSET);
        decide();
        assert_chosen();
        assert_becomes(MARKER, MARKER + cases[i].becomes, US * 10);
        assert_says(cases[i].unsure ? FINDING_CLOCK_UNSURE : FINDING_CLOCK_CONVERTED,
                    cases[i].error);
        end_world();
    }
}

/* Since the boot perf's clock has gained 18 ppm on CLOCK_MONOTONIC, as where NTP steers the latter:
 * that the offset now is another than by the header is no wait. */
static void test_a_steady_drift_is_no_wait(void **state)
{
    const uint64_t now = EXIT + 100 * SEC;
    (void)state;
    profile_of_life(-1);
    begin_dump(MARKER - MARKER / 1000000 * 18, false);
    put_reuse(MARKER, MARKER + MS);
    machine_knows(CLOCK_KIND_MONOTONIC, now - now / 1000000 * 18);
    machine_knows(CLOCK_KIND_PERF, now);
    decide();
    assert_chosen();
    assert_becomes(MARKER, MARKER + MARKER / 1000000 * 18, US);
    assert_says(FINDING_CLOCK_CONVERTED, "(± 2");
    end_world();
}

/* CLOCK_MONOTONIC_RAW is as far from CLOCK_MONOTONIC as a process may wait: who stamps by it has
 * not waited. */
static void test_stamps_of_another_clock_are_no_wait(void **state)
{
    static const int64_t raw_ahead_ns[] = {-(int64_t)(61 * MS), (int64_t)(30 * MS)};
    (void)state;
    for (size_t i = 0; i < sizeof raw_ahead_ns / sizeof raw_ahead_ns[0]; i++) {
        uint64_t ahead_ns = (uint64_t)raw_ahead_ns[i], first = MARKER + SEC;
        profile_of_life(-1);
        begin_dump(MARKER - OFFSET + ahead_ns, false);
        put_two(first + ahead_ns, first + MS + ahead_ns);
        machine_knows(CLOCK_KIND_RAW, EXIT + SEC / 10 + ahead_ns);
        choose_after(EXIT);
        assert_becomes(first + ahead_ns, first + OFFSET, 0);
        end_world();
    }
}

/* The recording went on for an hour: that it is of this boot its end says, not the process's. */
static void test_a_wait_of_a_process_that_ended_early(void **state)
{
    const uint64_t end = EXIT + 3600 * SEC;
    (void)state;
    profile_of_life(-1);
    profile_sample(&world.built, 0, end);
    begin_dump(MARKER - OFFSET - 90 * MS, false);
    put_two(MARKER, MARKER + MS);
    choose_after(end);
    assert_becomes(MARKER, MARKER + OFFSET, 0);
    end_world();
}

/* The recording came through a pipe, or was copied, an hour later: that it is of this boot its dump
 * says, whose file was made when it was mapped. */
static void test_a_wait_in_a_recording_that_was_copied(void **state)
{
    static const struct {
        int64_t born_late_ns;
        bool is_wait;
    } cases[] = {{-(int64_t)(900 * MS), true},
                 {(int64_t)(900 * MS), true},
                 {-(int64_t)(1100 * MS), false},
                 {(int64_t)(1100 * MS), false},
                 {0, true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        profile_of_life(-1);
        begin_dump(MARKER - OFFSET - 20 * MS, false);
        put_two(MARKER, MARKER + MS);
        machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC / 10);
        machine_knows(CLOCK_KIND_PERF, EXIT + SEC / 10 + OFFSET);
        machine_knows(CLOCK_KIND_REALTIME, WALL + SEC / 10 + OFFSET);
        open_world();
        set_written(WALL + 3600 * SEC);
        set_born(WALL - (EXIT - MARKER) + (uint64_t)cases[i].born_late_ns);
        choose();
        assert_chosen();
        assert_becomes(MARKER, MARKER + OFFSET + (cases[i].is_wait ? 0 : 20 * MS), 0);
        end_world();
    }
}

static void test_a_wait_of_a_process_that_counts_cycles(void **state)
{
    static const uint64_t headers[] = {MARKER - 50 * MS, MARKER + 50 * MS};
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        cycles_without_conv(-1);
        begin_dump(CYCLES(headers[i]), true);
        put_two(CYCLES(MARKER + SEC), CYCLES(MARKER + 2 * SEC));
        machine_knows(CLOCK_KIND_REALTIME, WALL + 100 * SEC);
        machine.cycles_per_s = 2 * SEC;
        open_world();
        set_written(WALL);
        choose();
        assert_chosen();
        assert_becomes(CYCLES(MARKER + SEC), MARKER + SEC, US);
        assert_says(FINDING_CLOCK_CONVERTED, "by this machine's clocks now");
        end_world();
    }
}

/* ---- Waits that another clock might explain ---- */

/* perf recorded with -k mono, and the header is WAITED before the mapping: CLOCK_MONOTONIC_RAW, 99
 * ms behind, may have waited for the rest of that. */
static void test_a_late_mapping_is_no_wait_by_another_clock(void **state)
{
    static const uint64_t waited[] = {15 * MS, 33 * MS, 60 * MS};
    (void)state;
    for (size_t i = 0; i < sizeof waited / sizeof waited[0]; i++) {
        profile_of_life(CLOCK_MONOTONIC);
        begin_dump(MARKER - waited[i], false);
        put_two(MARKER + MS, MARKER + SEC);
        machine_knows(CLOCK_KIND_RAW, EXIT + SEC / 10 - 99 * MS);
        choose_after(EXIT);
        assert_silent();
        assert_becomes(MARKER, MARKER, 0);
        end_world();
    }
}

/* So long after the recording the counter's rate is known only to minutes: ns of soon after the
 * boot pass for cycles, too. */
static void test_a_late_mapping_long_ago_is_no_count_of_cycles(void **state)
{
    const uint64_t now = EXIT + 400000 * SEC;
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER - 50 * MS, false);
    put_two(MARKER + MS, MARKER + 2 * SEC);
    machine_knows(CLOCK_KIND_MONOTONIC, now);
    machine_knows(CLOCK_KIND_CYCLES, now / 10 * 26);
    machine.cycles_per_s = 26 * SEC / 10;
    decide();
    assert_silent();
    assert_becomes(MARKER, MARKER, 0);
    end_world();
}

/* CLOCK_MONOTONIC_RAW is 160 ms behind now, and was 80 ms behind then if it always went alike: it
 * explains 20 ms of the 50 that the header is early by. */
static void test_a_late_mapping_is_no_clock_that_explains_half_of_it(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER - 50 * MS, false);
    put_two(MARKER + MS, MARKER + SEC);
    machine_knows(CLOCK_KIND_MONOTONIC, 2 * MARKER);
    machine_knows(CLOCK_KIND_RAW, 2 * MARKER - 160 * MS);
    decide();
    assert_silent();
    assert_becomes(MARKER, MARKER, 0);
    end_world();
}

/* Stamps by CLOCK_MONOTONIC, flagged as cycles. */
static void test_the_clock_that_waited_less_is_it(void **state)
{
    static const struct {
        uint64_t waited;
        bool refused;
    } cases[] = {{0, false}, {100 * US, false}, {20 * MS, false}, {45 * MS, true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        profile_of_life(-1);
        begin_dump(MARKER - OFFSET - cases[i].waited, true);
        put_two(MARKER + SEC, MARKER + 2 * SEC);
        machine_knows(CLOCK_KIND_RAW, EXIT + SEC / 10 - 99 * MS);
        machine_knows(CLOCK_KIND_CYCLES, 5 * (EXIT + SEC / 10));
        machine.cycles_per_s = 5 * SEC;
        try_after(EXIT);
        if (cases[i].refused) {
            assert_refused("more than one");
        } else {
            assert_chosen();
            assert_becomes(MARKER + SEC, MARKER + SEC + OFFSET, 200 * US);
            assert_says(FINDING_CLOCK_FLAG, "they are CLOCK_MONOTONIC");
        }
        end_world();
    }
}

/* CLOCK_TAI is CLOCK_REALTIME where nobody has set it, and read a moment later. */
static void test_of_clocks_that_come_to_the_same_the_usual_one_is_it(void **state)
{
    const uint64_t ahead = WALL - EXIT;
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER + ahead + 100, false);
    put_two(EXIT - SEC + ahead, EXIT - MS + ahead);
    machine_knows(CLOCK_KIND_TAI, WALL + SEC / 10 + 100);
    choose_after(EXIT);
    assert_becomes(EXIT - SEC + ahead, EXIT - SEC, 0);
    assert_says(FINDING_CLOCK_FLAG, "they are CLOCK_REALTIME");
    end_world();
}

/* ---- With a header that is later than the first record ---- */

/* Its first record is FIRST after the mapping; the only sample hits the second function's address
 * 35 ms before it is there. */
static void sampled_too_early(uint64_t first)
{
    profile_of_life(-1); /* with a sample in CODE at MARKER + SEC */
    begin_dump(MARKER - OFFSET + first + 20 * MS, false);
    put_load(MARKER - OFFSET + first, CODE + 0x200);
    put_load(MARKER - OFFSET + SEC + 35 * MS, CODE);
}

/* By the samples alone the stamps would be this clock's, and the dump's flags wrong. */
static void machine_knows_raw(void)
{
    machine_knows(CLOCK_KIND_RAW, EXIT + SEC / 10 + 61 * MS);
}

static void test_code_that_no_dump_tells_of_ran_there_before(void **state)
{
    static const uint64_t firsts[] = {MS,
                                      90 * MS}; /* with the marker the sample is in conflict; not */
    (void)state;
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        sampled_too_early(firsts[i]);
        choose_after(EXIT);
        assert_becomes(MARKER, MARKER + OFFSET, 0);
        assert_says(FINDING_CLOCK_CONVERTED, "profile's, by this machine's clocks now");
        assert_int_equal(all_findings(), 1);
        end_world();
    }
}

static void test_a_file_s_code_ran_there_before(void **state)
{
    (void)state;
    sampled_too_early(90 * MS);
    profile_map(&world.built, PERF_RECORD_MMAP2, 0, CODE - 0x1000, 0x1001, "/usr/lib/plugin.so",
                MARKER + SEC / 2);
    machine_knows_raw();
    choose_after(EXIT);
    assert_becomes(MARKER, MARKER + OFFSET, 0);
    assert_int_equal(count(FINDING_CLOCK_FLAG), 0);
    end_world();
}

/* Memory, and a file's code beside the function, were not there before it. */
static void test_samples_show_another_clock(void **state)
{
    static const struct {
        uint64_t start, end;
        const char *name;
    } maps[] = {{CODE - 0x1000, CODE + 0x1000, "//anon"},
                {CODE - 0x1000, CODE + 0x1000, "/dev/shm/arena"},
                {CODE - 0x1000, CODE, "/usr/lib/plugin.so"},
                {CODE + CODE_BYTES, CODE + 0x1000, "/usr/lib/plugin.so"}};
    (void)state;
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        sampled_too_early(90 * MS);
        profile_map(&world.built, PERF_RECORD_MMAP2, 0, maps[i].start, maps[i].end - maps[i].start,
                    maps[i].name, MARKER + SEC / 2);
        machine_knows_raw();
        choose_after(EXIT);
        assert_becomes(MARKER, MARKER + OFFSET - 61 * MS, 0);
        assert_says(FINDING_CLOCK_FLAG, "they are CLOCK_MONOTONIC_RAW");
        end_world();
    }
}

/* The machine was started anew since: nothing but the samples could say how far the clocks are
 * apart. */
static void test_samples_that_disagree_on_another_boot(void **state)
{
    (void)state;
    sampled_too_early(MS);
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC / 10);
    machine_knows(CLOCK_KIND_PERF, EXIT + SEC / 10 + OFFSET);
    machine_knows(CLOCK_KIND_REALTIME, WALL + SEC / 10);
    open_world();
    set_written(WALL - 3600 * SEC);
    choose();
    assert_refused("-k mono");
    end_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wait_between_header_and_mapping),
        cmocka_unit_test(test_a_short_wait_before_the_mapping),
        cmocka_unit_test(test_a_steady_drift_is_no_wait),
        cmocka_unit_test(test_stamps_of_another_clock_are_no_wait),
        cmocka_unit_test(test_a_wait_of_a_process_that_ended_early),
        cmocka_unit_test(test_a_wait_in_a_recording_that_was_copied),
        cmocka_unit_test(test_a_wait_of_a_process_that_counts_cycles),
        cmocka_unit_test(test_a_late_mapping_is_no_wait_by_another_clock),
        cmocka_unit_test(test_a_late_mapping_long_ago_is_no_count_of_cycles),
        cmocka_unit_test(test_a_late_mapping_is_no_clock_that_explains_half_of_it),
        cmocka_unit_test(test_the_clock_that_waited_less_is_it),
        cmocka_unit_test(test_of_clocks_that_come_to_the_same_the_usual_one_is_it),
        cmocka_unit_test(test_code_that_no_dump_tells_of_ran_there_before),
        cmocka_unit_test(test_a_file_s_code_ran_there_before),
        cmocka_unit_test(test_samples_show_another_clock),
        cmocka_unit_test(test_samples_that_disagree_on_another_boot),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
