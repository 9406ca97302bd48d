/* From a dump's timestamps to the profile's: which conversion is chosen on what evidence. */
#include "tests/unit/clock_world.h"

/* ---- One clock ---- */

static void test_one_clock_needs_nothing(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER - 3 * US, false);
    put_reuse(MARKER + 5 * MS, EXIT - SEC);
    may_read_machine = false;
    decide();
    assert_silent();
    assert_becomes(0, 0, 0);
    assert_becomes(UINT64_MAX, UINT64_MAX, 0);
    end_world();
}

static void test_a_dump_without_code_has_no_wrong_times(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(77, false);
    dump_plain(&world.built_dump, JIT_CODE_CLOSE, 5, 0);
    may_read_machine = false;
    decide();
    assert_silent();
    end_world();
}

static void test_wall_clock_in_the_header_alone_is_nothing(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(WALL / 1000, false);
    put_two(MARKER + 11 * MS, EXIT - SEC);
    may_read_machine = false;
    decide();
    assert_silent();
    assert_becomes(MARKER, MARKER, 0);
    end_world();
}

/* Code that was logged with the time it was made, into a dump that was opened later. */
static void test_records_from_before_the_marker_stay(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER, false);
    put_two(MARKER - SEC / 2, EXIT - SEC);
    decide();
    assert_silent();
    assert_becomes(MARKER - SEC / 2, MARKER - SEC / 2, 0);
    end_world();
}

static void test_events_of_different_clocks(void **state)
{
    (void)state;
    for (int same = 0; same < 2; same++) {
        profile_of_life(CLOCK_MONOTONIC);
        begin_dump(MARKER, false);
        put_two(MARKER + MS, MARKER + SEC);
        open_world();
        struct perf_event events[2] = {world.file.events[0], world.file.events[0]};
        struct perf_event *one = world.file.events;
        events[1].clockid = same ? CLOCK_MONOTONIC : CLOCK_BOOTTIME;
        world.file.events = events;
        world.file.event_count = 2;
        choose();
        if (same)
            assert_silent();
        else
            assert_refused("different clocks");
        world.file.events = one;
        end_world();
    }
}

/* CLOCK_MONOTONIC_COARSE: nobody knows how far off, but marker and header know. */
static void test_a_clock_that_has_no_name_here(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC_COARSE);
    begin_dump(MARKER - OFFSET, false);
    put_two(MARKER + MS, MARKER + SEC);
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC);
    decide();
    assert_chosen();
    assert_becomes(MARKER, MARKER + OFFSET, 0);
    assert_says(FINDING_CLOCK_CONVERTED, "-k that perfjit does not know");
    end_world();
}

static void test_attached_recording_of_one_clock(void **state)
{
    (void)state;
    begin_profile(CLOCK_MONOTONIC);
    put_map("/tmp/jit-4711.dump", 0); /* perf record -p: from /proc */
    profile_sample(&world.built, 0, MARKER);
    begin_dump(5 * SEC, false);
    put_two(6 * SEC, MARKER + SEC);
    may_read_machine = false;
    decide();
    assert_silent();
    assert_becomes(6 * SEC, 6 * SEC, 0);
    end_world();
}

/* perf ended while the process began, or even before it made its dump.  (By CLOCK_REALTIME the
 * records would be of any time.) */
static void test_all_records_are_later_than_the_recording(void **state)
{
    (void)state;
    for (int is_marked = 0; is_marked < 2; is_marked++) {
        begin_profile(CLOCK_MONOTONIC);
        put_map("/usr/bin/runtime", MARKER - SEC);
        if (is_marked)
            put_map("/tmp/jit-4711.dump", MARKER);
        profile_sample(&world.built, 0, MARKER + MS);
        begin_dump((WALL + MARKER) / 1000, false);
        put_load(MARKER + SEC, CODE + 0x100); /* what ran was not logged */
        put_load(MARKER + 2 * SEC, CODE + 0x100);
        machine_knows(CLOCK_KIND_MONOTONIC, MARKER + 3 * SEC);
        machine_knows(CLOCK_KIND_REALTIME, WALL + MARKER + 3 * SEC);
        decide();
        assert_silent();
        assert_becomes(MARKER + SEC, MARKER + SEC, 0);
        end_world();
    }
}

/* What perf record --off-cpu has left at the end, which nobody sampled then. */
#define LEFT_OVER (~UINT64_C(0) << 32)
#define DAYS      (10 * 86400 * SEC)

static void test_left_over_samples_say_nothing_of_the_end(void **state)
{
    (void)state;
    begin_profile(CLOCK_MONOTONIC);
    put_map("/tmp/jit-4711.dump", 0);
    profile_sample(&world.built, 0, DAYS + MARKER);
    profile_sample(&world.built, 0, LEFT_OVER);
    begin_dump(DAYS + 5 * SEC, false);
    put_two(DAYS + 6 * SEC, DAYS + MARKER + SEC);
    may_read_machine = false;
    decide();
    assert_silent();
    assert_int_equal(records_last_sample_ns(&world.records), DAYS + MARKER);
    end_world();
}

static void test_a_recording_of_left_over_samples_alone_has_no_last(void **state)
{
    (void)state;
    begin_profile(CLOCK_MONOTONIC);
    profile_sample(&world.built, 0, LEFT_OVER);
    begin_dump(5 * SEC, false);
    open_world();
    assert_int_equal(records_last_sample_ns(&world.records), 0);
    end_world();
}

/* ---- An offset ---- */

static void test_offset_by_the_marker(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(MARKER - OFFSET, false);
    say_how_close(2345);
    put_reuse(MARKER + 5 * MS, MARKER + 5 * MS + SEC);
    decide();
    assert_chosen();
    assert_becomes(MARKER, MARKER + OFFSET, 0);
    assert_says(FINDING_CLOCK_CONVERTED, "1 400 312 ns (± 52 345) behind the profile's");
    assert_says(FINDING_CLOCK_CONVERTED, "recorded without -k mono");
    assert_says(FINDING_CLOCK_CONVERTED, "by the marker's mapping");
    assert_int_equal(findings_lost(&world.findings), 0);
    end_world();
}

static void test_foreign_headers_are_not_so_close(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(MARKER + OFFSET, false);
    put_two(MARKER + OFFSET, MARKER + OFFSET);
    decide();
    assert_chosen();
    assert_becomes(MARKER + OFFSET, MARKER, 0);
    assert_says(FINDING_CLOCK_CONVERTED, "1 400 312 ns (± 200 000) ahead of the profile's");
    end_world();
}

static void test_other_clocks_than_mono(void **state)
{
    static const struct {
        int clockid;
        uint64_t offset;
        const char *words;
    } cases[] = {
        {CLOCK_MONOTONIC_RAW, 0 - 61 * MS, "-k raw"},
        {CLOCK_BOOTTIME, 86400 * SEC, "-k boottime"},
        {CLOCK_REALTIME, WALL, "-k realtime"},
        {CLOCK_TAI, WALL + 37 * SEC, "-k tai"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t marker = MARKER + cases[i].offset;
        begin_profile(cases[i].clockid);
        put_map("/tmp/jit-4711.dump", marker);
        put_exit(marker + 10 * SEC);
        begin_dump(MARKER, false);
        put_two(MARKER + MS, MARKER + SEC);
        decide();
        assert_chosen();
        assert_becomes(MARKER + MS, marker + MS, 0);
        assert_says(FINDING_CLOCK_CONVERTED, cases[i].words);
        end_world();
    }
}

static void test_rough_times_matter_where_addresses_are_used_again(void **state)
{
    (void)state;
    for (int reused = 0; reused < 2; reused++) {
        profile_of_life(-1);
        begin_dump(MARKER - OFFSET, false);
        /* 30 s of drift; of the process's end nothing is known. */
        world.built.sink.size = world.built.records_start;
        put_map("/tmp/jit-4711.dump", MARKER);
        profile_sample(&world.built, 0, MARKER + 40 * SEC);
        (reused ? put_reuse : put_two)(MARKER + MS, MARKER + MS + 30 * SEC);
        decide();
        assert_chosen();
        assert_says(reused ? FINDING_CLOCK_UNSURE : FINDING_CLOCK_CONVERTED, "(± 1 700 000)");
        assert_int_equal(findings_lost(&world.findings), reused);
        end_world();
    }
}

/* In the profile that is begun the dump's mapping is the one at MARKER. */
static void assert_placed_by_the_marker(void)
{
    put_exit(EXIT);
    begin_dump(MARKER - OFFSET, false);
    put_two(MARKER + MS, MARKER + SEC);
    decide();
    assert_chosen();
    assert_becomes(MARKER, MARKER + OFFSET, 0);
    end_world();
}

static void test_the_mapping_of_the_file_as_it_is(void **state)
{
    (void)state;
    begin_profile(-1);
    put_map("/tmp/jit-4711.dump", MARKER - 5 * SEC); /* before an exec */
    put_map("/tmp/jit-4711.dump", MARKER);
    assert_placed_by_the_marker();
}

static void test_a_dump_that_was_deleted_was_mapped_all_the_same(void **state)
{
    (void)state;
    begin_profile(-1);
    put_map("/tmp/jit-4711.dump.old", MARKER + 2 * MS); /* another file */
    put_map("/home/jit-4711.dump (deleted)", MARKER);
    assert_placed_by_the_marker();
}

/* Two JITs in one process, each with a dump in a directory of its own: the other's mapping is
 * nearer to the header's time. */
static void test_the_mapping_of_another_dump_of_the_same_name(void **state)
{
    char path[128];
    (void)state;
    begin_profile(-1);
    put_map("/home/jit-4711.dump", MARKER - OFFSET);
    snprintf(path, sizeof path, "%s/jit-4711.dump", scratch);
    put_map(path, MARKER);
    put_map("/srv/jit-4711.dump", MARKER - OFFSET);
    assert_placed_by_the_marker();
}

/* ---- The clocks now ---- */

/* 100 s after the exit perf's clock is DRIFTED ns further ahead of CLOCK_MONOTONIC than by the
 * header. */
static void machine_after(uint64_t drifted)
{
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + 100 * SEC);
    machine_knows(CLOCK_KIND_PERF, EXIT + 100 * SEC + OFFSET + drifted);
}

static void test_drift_since_the_recording(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(MARKER - OFFSET, false);
    say_how_close(1000);
    put_two(MARKER + MS, MARKER + MS + 9 * SEC);
    machine_after(1100 * US);
    decide();
    assert_chosen();
    assert_becomes(MARKER - OFFSET, MARKER, 0);
    assert_becomes(MARKER - OFFSET + 5 * SEC, MARKER + 5 * SEC + 50 * US, US);
    assert_says(FINDING_CLOCK_CONVERTED, "marker's mapping, and by this machine's clocks now");
    end_world();
}

static void test_the_clocks_now_are_closer_than_a_foreign_header(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(MARKER - OFFSET - 90 * US, false);
    put_two(EXIT - SEC, EXIT - SEC + MS);
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC / 10);
    machine_knows(CLOCK_KIND_PERF, EXIT + SEC / 10 + OFFSET);
    decide();
    assert_chosen();
    assert_becomes(EXIT - SEC, EXIT - SEC + OFFSET, 0);
    assert_says(FINDING_CLOCK_CONVERTED, "profile's, by this machine's clocks now");
    end_world();
}

static void test_clocks_of_another_boot_are_left_alone(void **state)
{
    (void)state;
    for (int earlier = 0; earlier < 2; earlier++) {
        profile_of_life(-1);
        begin_dump(MARKER - OFFSET, false);
        put_two(MARKER + MS, MARKER + MS + 2 * SEC);
        machine_after(60 * MS);
        if (earlier) { /* the machine runs for 17 s only */
            machine_knows(CLOCK_KIND_MONOTONIC, 17 * SEC);
            machine_knows(CLOCK_KIND_PERF, 17 * SEC + OFFSET);
        }
        decide();
        assert_chosen();
        assert_becomes(MARKER, MARKER + OFFSET, 0);
        assert_says(FINDING_CLOCK_CONVERTED,
                    "(± 300 000) behind the profile's, by the marker's mapping");
        end_world();
    }
}

/* They may be as far apart as that machine's by chance.  A container's name is another one, but its
 * recording was written when the clocks now say. */
static void test_clocks_of_another_machine_are_left_alone(void **state)
{
    (void)state;
    for (int written = 0; written < 2; written++) {
        profile_of_life(-1);
        world.host = "elsewhere";
        begin_dump(MARKER - OFFSET - 90 * US, false);
        put_two(EXIT - SEC, EXIT - SEC + MS);
        machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC / 10);
        machine_knows(CLOCK_KIND_PERF, EXIT + SEC / 10 + OFFSET);
        machine_knows(CLOCK_KIND_REALTIME, WALL);
        open_world();
        set_written(written ? WALL : WALL - 3600 * SEC);
        choose();
        assert_chosen();
        assert_becomes(EXIT - SEC, EXIT - SEC + OFFSET + (written ? 0 : 90 * US), 0);
        assert_says(FINDING_CLOCK_CONVERTED, written ? "by this machine's clocks now"
                                                     : "profile's, by the marker's mapping");
        end_world();
    }
}

/* V8, CPython. */
static void test_wall_clock_header_and_the_clocks_now(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump((WALL + MARKER - OFFSET) / 1000, false);
    put_two(MARKER + 11 * MS, MARKER + 11 * MS + SEC);
    machine_after(0);
    machine_knows(CLOCK_KIND_REALTIME, WALL + EXIT + 100 * SEC);
    decide();
    assert_chosen();
    assert_becomes(MARKER + 11 * MS, MARKER + 11 * MS + OFFSET, US);
    assert_says(FINDING_CLOCK_CONVERTED, "marker's mapping, and by this machine's clocks now");
    end_world();
}

static void wall_clock_header(bool reused)
{
    profile_of_life(-1); /* with a sample at MARKER + SEC, in the function at CODE */
    begin_dump(WALL / 1000, false);
    if (reused)
        put_reuse(MARKER + 200 * MS, MARKER + 201 * MS);
    put_load(MARKER + 11 * MS - OFFSET, reused ? CODE + 0x100 : CODE);
    put_load(MARKER + 300 * MS, CODE + 0x200);
}

static void test_bounds_by_marker_and_samples(void **state)
{
    (void)state;
    wall_clock_header(false);
    decide();
    assert_chosen();
    /* No address is used again: as early as the marker allows. */
    assert_becomes(MARKER + 11 * MS - OFFSET, MARKER, 0);
    assert_says(FINDING_CLOCK_CONVERTED, "samples, which are newer");
    assert_says(FINDING_CLOCK_CONVERTED, "(± 1 000 000 000)");
    assert_int_equal(findings_lost(&world.findings), 0);
    end_world();
}

static void sample_at(uint64_t ip, uint64_t time)
{
    size_t sample = profile_sample(&world.built, 0, time);
    profile_set_u64(&world.built, sample + 8, ip);
}

static void test_the_closest_sample_bounds_best(void **state)
{
    (void)state;
    wall_clock_header(false); /* with a function at MARKER + 300 ms, at CODE + 0x200 */
    put_load(MARKER + 310 * MS, CODE + 0x300);
    sample_at(CODE + 0x1ff, MARKER + 320 * MS); /* in front of it */
    sample_at(CODE + 0x210, MARKER + 320 * MS); /* behind it */
    sample_at(CODE + 0x20f, MARKER + 350 * MS);
    sample_at(CODE + 0x30f, MARKER + 900 * MS);
    decide();
    assert_chosen();
    assert_says(FINDING_CLOCK_CONVERTED, "(± 59 599 688)"); /* 350 - 300 ms, and 11 less OFFSET */
    end_world();
}

/* Before the function was there, something else was: by such a sample the first record would be
 * older than the mapping.  If there are more of them than one in ten, the stamps are no ns. */
static void test_few_samples_that_the_marker_disproves_bound_nothing(void **state)
{
    (void)state;
    for (size_t strays = 1; strays <= 2; strays++) {
        wall_clock_header(false); /* with two functions, one of which has a sample */
        sample_at(CODE + 0x200, MARKER + 200 * MS);
        for (size_t i = 0; i < 8; i++) {
            put_load(MARKER + (310 + i) * MS, CODE + 0x300 + i * 0x100);
            sample_at(CODE + 0x300 + i * 0x100, MARKER + (i < strays - 1 ? 100 : 900) * MS);
        }
        decide();
        if (strays == 1) {
            assert_chosen();
            assert_becomes(MARKER + 11 * MS - OFFSET, MARKER, 0);
            assert_says(FINDING_CLOCK_CONVERTED, "(± 592 599 688)"); /* 900 - 317 ms, and 11 */
        } else {
            assert_refused("-k mono");
        }
        end_world();
    }
}

static void test_left_over_samples_bound_nothing(void **state)
{
    (void)state;
    wall_clock_header(false);
    put_load(MARKER + 310 * MS, CODE + 0x300);
    sample_at(CODE + 0x20f, MARKER + 350 * MS);
    sample_at(CODE + 0x30f, LEFT_OVER);
    decide();
    assert_chosen();
    assert_says(FINDING_CLOCK_CONVERTED, "(± 59 599 688)");
    end_world();
}

/* From the marker to the END of the process the dump of wall_clock_header can lie anywhere. */
static void assert_in_the_middle(uint64_t end)
{
    uint64_t room = end - MARKER - (MARKER + 300 * MS - (MARKER + 11 * MS - OFFSET));
    decide();
    assert_chosen();
    assert_becomes(MARKER + 11 * MS - OFFSET, MARKER + room / 2, US);
}

static void test_bounds_by_marker_and_exit(void **state)
{
    (void)state;
    wall_clock_header(true);
    assert_in_the_middle(EXIT);
    assert_int_equal(count(FINDING_CLOCK_UNSURE), 1);
    end_world();
}

static void test_only_the_end_of_its_own_process_bounds_a_dump(void **state)
{
    (void)state;
    wall_clock_header(true);
    put_exit_of(4712, 4712, MARKER + 400 * MS); /* other processes */
    put_exit_of(4713, 4713, EXIT + SEC);
    put_exit_of(4711, 4713, MARKER + 400 * MS); /* a thread */
    assert_in_the_middle(EXIT);
    end_world();
}

/* Its main thread ended, others go on. */
static void test_a_process_ends_with_its_last_thread(void **state)
{
    (void)state;
    wall_clock_header(true);
    put_exit_of(4711, 4713, EXIT + SEC);
    assert_in_the_middle(EXIT + SEC);
    end_world();
}

/* The profile that is begun does not say when the process ended. */
static void assert_without_bounds(void)
{
    begin_dump(WALL / 1000, false);
    put_two(MARKER + MS, MARKER + SEC);
    decide();
    assert_refused("-k mono");
    end_world();
}

static void test_no_bounds_no_conversion(void **state)
{
    (void)state;
    begin_profile(-1);
    put_map("/tmp/jit-4711.dump", MARKER);
    assert_without_bounds();
}

static void test_the_end_of_a_thread_is_not_the_process_s(void **state)
{
    (void)state;
    begin_profile(-1);
    put_map("/tmp/jit-4711.dump", MARKER);
    put_exit_of(4711, 4713, EXIT);
    assert_without_bounds();
}

/* perf record -p: the marker's record has no time. */
static void attached(void)
{
    begin_profile(-1);
    put_map("/tmp/jit-4711.dump", 0);
    profile_sample(&world.built, 0, MARKER);
    begin_dump(5 * SEC, false);
    put_load(6 * SEC, CODE);
    put_load(MARKER - SEC, CODE + 0x100);
    machine_knows(CLOCK_KIND_MONOTONIC, MARKER + 20 * SEC - OFFSET);
    machine_knows(CLOCK_KIND_PERF, MARKER + 20 * SEC);
    machine_knows(CLOCK_KIND_REALTIME, WALL + 20 * SEC);
}

static void test_attached_recording_by_the_clocks_now(void **state)
{
    (void)state;
    attached();
    open_world();
    set_written(WALL + SEC); /* the recording ended at WALL */
    choose();
    assert_chosen();
    assert_becomes(6 * SEC, 6 * SEC + OFFSET, 0);
    assert_says(FINDING_CLOCK_CONVERTED, "profile's, by this machine's clocks now");
    end_world();
}

static void test_attached_recording_of_another_time(void **state)
{
    (void)state;
    for (int copied = 0; copied < 2; copied++) {
        attached();
        open_world();
        set_written(copied ? WALL + 3600 * SEC : WALL - 3600 * SEC);
        choose();
        assert_refused("-k mono");
        end_world();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_clock_needs_nothing),
        cmocka_unit_test(test_a_dump_without_code_has_no_wrong_times),
        cmocka_unit_test(test_wall_clock_in_the_header_alone_is_nothing),
        cmocka_unit_test(test_records_from_before_the_marker_stay),
        cmocka_unit_test(test_events_of_different_clocks),
        cmocka_unit_test(test_a_clock_that_has_no_name_here),
        cmocka_unit_test(test_attached_recording_of_one_clock),
        cmocka_unit_test(test_all_records_are_later_than_the_recording),
        cmocka_unit_test(test_left_over_samples_say_nothing_of_the_end),
        cmocka_unit_test(test_a_recording_of_left_over_samples_alone_has_no_last),
        cmocka_unit_test(test_offset_by_the_marker),
        cmocka_unit_test(test_foreign_headers_are_not_so_close),
        cmocka_unit_test(test_other_clocks_than_mono),
        cmocka_unit_test(test_rough_times_matter_where_addresses_are_used_again),
        cmocka_unit_test(test_the_mapping_of_the_file_as_it_is),
        cmocka_unit_test(test_a_dump_that_was_deleted_was_mapped_all_the_same),
        cmocka_unit_test(test_the_mapping_of_another_dump_of_the_same_name),
        cmocka_unit_test(test_drift_since_the_recording),
        cmocka_unit_test(test_the_clocks_now_are_closer_than_a_foreign_header),
        cmocka_unit_test(test_clocks_of_another_boot_are_left_alone),
        cmocka_unit_test(test_clocks_of_another_machine_are_left_alone),
        cmocka_unit_test(test_wall_clock_header_and_the_clocks_now),
        cmocka_unit_test(test_bounds_by_marker_and_samples),
        cmocka_unit_test(test_the_closest_sample_bounds_best),
        cmocka_unit_test(test_few_samples_that_the_marker_disproves_bound_nothing),
        cmocka_unit_test(test_left_over_samples_bound_nothing),
        cmocka_unit_test(test_bounds_by_marker_and_exit),
        cmocka_unit_test(test_only_the_end_of_its_own_process_bounds_a_dump),
        cmocka_unit_test(test_a_process_ends_with_its_last_thread),
        cmocka_unit_test(test_no_bounds_no_conversion),
        cmocka_unit_test(test_the_end_of_a_thread_is_not_the_process_s),
        cmocka_unit_test(test_attached_recording_by_the_clocks_now),
        cmocka_unit_test(test_attached_recording_of_another_time),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
