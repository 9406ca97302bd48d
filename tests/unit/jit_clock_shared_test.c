/* Several dumps of one recording: that their processes waited between header and mapping is no
 * matter where one did not.  Nothing tells that the recording is of this boot. */
#include "tests/unit/clock_world.h"

/* The other dumps of the process, by their names. */
static const char *const peer_names[] = {"peer-0.dump", "peer-1.dump"};
static const struct clock_life life = {MARKER - 20 * SEC, EXIT};

/* The world's dump so far becomes the file of PEER, which was mapped at MAPPED_NS. */
static void end_peer(size_t peer, uint64_t mapped_ns)
{
    char own_path[sizeof world.dump_path];
    memcpy(own_path, world.dump_path, sizeof own_path);
    snprintf(world.dump_path, sizeof world.dump_path, "%s/%s", scratch, peer_names[peer]);
    write_dump();
    put_map(world.dump_path, mapped_ns);
    memcpy(world.dump_path, own_path, sizeof own_path);
}

/* A dump of libjitdump's, mapped at MAPPED_NS, that is OFFSET behind and knows it to HALF ns. */
static void put_peer(size_t peer, uint64_t mapped_ns, uint64_t offset, uint32_t half)
{
    begin_dump(mapped_ns - offset, false);
    say_how_close(half);
    put_two(mapped_ns - offset + MS, mapped_ns - offset + 2 * MS);
    end_peer(peer, mapped_ns);
}

static void learn_from(size_t peer, bool in_another_life)
{
    char path[sizeof world.dump_path], cause[256];
    struct jit_dump dump;
    snprintf(path, sizeof path, "%s/%s", scratch, peer_names[peer]);
    assert_int_equal(jit_dump_open(&dump, path, cause, sizeof cause), 0);
    dump.born_ns = 0;
    const struct clock_question question = {.records = &world.records,
                                            .dump = &dump,
                                            .pid = 4711,
                                            .read_live = read_machine,
                                            .life = life,
                                            .in_another_life = in_another_life};
    clock_learn(&world.shared, &question);
    jit_dump_close(&dump);
}

static void learn_and_choose(size_t peers)
{
    open_world();
    for (size_t peer = 0; peer < peers; peer++)
        learn_from(peer, false);
    choose();
}

/* With one peer, time FROM becomes TO, give or take WITHIN. */
static void assert_learned(uint64_t from, uint64_t to, uint64_t within)
{
    learn_and_choose(1);
    assert_chosen();
    assert_becomes(from, to, within);
}

static void machine_knows_clocks(void)
{
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC / 10);
    machine_knows(CLOCK_KIND_PERF, EXIT + SEC / 10 + OFFSET);
}

/* Whichever came first, header or mapping; on this machine or on another. */
static void test_a_header_that_waited(void **state)
{
    static const int64_t late_ns[] = {-(int64_t)(90 * MS), -(int64_t)(20 * MS), (int64_t)(20 * MS),
                                      (int64_t)(90 * MS)};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof late_ns / sizeof late_ns[0]; i++) {
        profile_of_life(-1);
        put_peer(0, MARKER + 2 * MS, OFFSET, 2000);
        begin_dump(MARKER - OFFSET + (uint64_t)late_ns[i / 2], false);
        put_reuse(MARKER - OFFSET + SEC, MARKER - OFFSET + 2 * SEC);
        if (i % 2)
            machine_knows_clocks();
        assert_learned(MARKER, MARKER + OFFSET, US);
        assert_says(FINDING_CLOCK_CONVERTED, "profile's, by another dump of the recording");
        assert_false(world.clock.by_marker);
        end_world();
    }
}

/* Nor does the dump that shows the clocks tell how close its header is: the clocks now do. */
static void test_another_dump_agrees_with_the_clocks_now(void **state)
{
    (void)state;
    profile_of_life(-1);
    put_peer(0, MARKER + 2 * MS, OFFSET + 100 * US, 0);
    begin_dump(MARKER - OFFSET + 20 * MS, false);
    put_reuse(MARKER - OFFSET + SEC, MARKER - OFFSET + 2 * SEC);
    machine_knows_clocks();
    assert_learned(MARKER, MARKER + OFFSET, 0);
    end_world();
}

/* Its header is later than its first record, and a file's code that no record tells of was sampled
 * where a function was put later: alone the dump was refused. */
static void test_a_header_after_the_first_record(void **state)
{
    (void)state;
    for (int with_clocks = 0; with_clocks < 2; with_clocks++) {
        profile_of_life(-1); /* with a sample in CODE at MARKER + SEC */
        put_peer(0, MARKER + 2 * MS, OFFSET, 2000);
        begin_dump(MARKER - OFFSET + 20 * MS, false);
        put_load(MARKER - OFFSET + MS, CODE + 0x200);
        put_load(MARKER - OFFSET + SEC + 35 * MS, CODE);
        if (with_clocks)
            machine_knows_clocks();
        assert_learned(MARKER, MARKER + OFFSET, US);
        assert_says(FINDING_CLOCK_CONVERTED, "by another dump of the recording");
        assert_int_equal(all_findings(), 1);
        end_world();
    }
}

/* Wall-clock microseconds, on another machine: bounds alone would be off by half a second, or,
 * where a sample has cut them to nothing, by a ms. */
static void test_a_header_of_another_clock(void **state)
{
    static const struct {
        uint64_t first, sampled;
    } cases[] = {{SEC / 2, SEC / 2}, {MS, SEC + 1500 * US}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        profile_of_life(-1); /* with a sample in CODE at MARKER + SEC */
        put_peer(0, MARKER + 2 * MS, OFFSET, 2000);
        begin_dump(WALL / 1000, false);
        put_load(MARKER - OFFSET + cases[i].first, CODE + 0x200);
        put_load(MARKER - OFFSET + cases[i].sampled, CODE);
        assert_learned(MARKER, MARKER + OFFSET, US);
        end_world();
    }
}

/* The dump's header, too, is after its first record; its samples fit CLOCK_MONOTONIC_RAW only. */
static void test_samples_show_that_its_clock_is_another(void **state)
{
    (void)state;
    profile_of_life(-1);
    put_peer(0, MARKER + 2 * MS, OFFSET, 2000);
    begin_dump(MARKER - OFFSET + 110 * MS, false);
    put_load(MARKER - OFFSET + 90 * MS, CODE + 0x200);
    put_load(MARKER - OFFSET + SEC + 35 * MS, CODE);
    machine_knows_clocks();
    machine_knows(CLOCK_KIND_RAW, EXIT + SEC / 10 + 61 * MS);
    assert_learned(MARKER, MARKER + OFFSET - 61 * MS, 0);
    assert_says(FINDING_CLOCK_FLAG, "they are CLOCK_MONOTONIC_RAW");
    end_world();
}

/* The recording began after the dump was mapped. */
static void test_a_dump_without_a_mapping(void **state)
{
    (void)state;
    begin_profile(-1);
    put_map("/usr/bin/runtime", 0);
    put_peer(0, MARKER + 2 * MS, OFFSET, 2000);
    profile_sample(&world.built, 0, MARKER + SEC);
    put_exit(EXIT);
    begin_dump(MARKER - 100 * SEC, false);
    put_two(MARKER - OFFSET - 99 * SEC, MARKER - OFFSET + SEC / 2);
    assert_learned(MARKER, MARKER + OFFSET, US);
    end_world();
}

static void test_a_process_that_counts_cycles(void **state)
{
    (void)state;
    cycles_without_conv(-1);
    begin_dump(CYCLES(MARKER + 2 * MS), true);
    say_how_close(4000);
    put_two(CYCLES(MARKER + 3 * MS), CYCLES(MARKER + 4 * MS));
    end_peer(0, MARKER + 2 * MS);
    begin_dump(CYCLES(MARKER - 8 * MS), true);
    put_reuse(CYCLES(MARKER + SEC), CYCLES(MARKER + 2 * SEC));
    machine.cycles_per_s = 2 * SEC;
    assert_learned(CYCLES(MARKER + SEC), MARKER + SEC, US);
    assert_says(FINDING_CLOCK_CONVERTED, "by another dump of the recording");
    end_world();
}

/* Whichever was read first. */
static void test_the_best_of_two(void **state)
{
    (void)state;
    for (size_t best = 0; best < 2; best++) {
        profile_of_life(-1);
        put_peer(best, MARKER + 2 * MS, OFFSET, 1000);
        put_peer(1 - best, MARKER + 4 * MS, OFFSET + 40 * US, 50000);
        begin_dump(MARKER - OFFSET + 20 * MS, false);
        put_reuse(MARKER - OFFSET + SEC, MARKER - OFFSET + 2 * SEC);
        learn_and_choose(2);
        assert_chosen();
        assert_becomes(MARKER, MARKER + OFFSET, US);
        end_world();
    }
}

/* ---- What is not shared ---- */

/* As it would be alone: by its own header, which is WAITED before the mapping. */
static void keeps_its_own(uint64_t waited_ns)
{
    assert_chosen();
    assert_becomes(MARKER, MARKER + OFFSET + waited_ns, US);
    if (all_findings() && strstr(world.findings.first[FINDING_CLOCK_CONVERTED], "another dump"))
        fail_msg("%s", world.findings.first[FINDING_CLOCK_CONVERTED]);
    end_world();
}

static void begin_waited(uint64_t waited_ns)
{
    begin_dump(MARKER - OFFSET - waited_ns, false);
    put_two(MARKER - OFFSET + SEC, MARKER - OFFSET + 2 * SEC);
}

/* No process waits that long: its clock may be another one's, that of a time namespace say. */
static void test_a_header_of_long_before(void **state)
{
    (void)state;
    profile_of_life(-1);
    put_peer(0, MARKER + 2 * MS, OFFSET, 2000);
    begin_waited(150 * MS);
    learn_and_choose(1);
    keeps_its_own(150 * MS);
}

/* It knows its own to 2 us, and the other to 1. */
static void test_a_header_that_says_how_close_it_is(void **state)
{
    (void)state;
    profile_of_life(-1);
    put_peer(0, MARKER + SEC, OFFSET, 1000);
    begin_dump(MARKER - OFFSET - 20 * MS, false);
    say_how_close(2000);
    put_two(MARKER - OFFSET + SEC + MS, MARKER - OFFSET + SEC + 2 * MS);
    learn_and_choose(1);
    keeps_its_own(20 * MS);
}

/* Its records would be from before its mapping, or from after the process's end. */
static void test_records_outside_the_life(void **state)
{
    static const struct {
        uint64_t header, first;
    } cases[] = {{MARKER - 40 * MS, MARKER - 30 * MS}, {MARKER + 40 * MS, EXIT + 5 * MS}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        profile_of_life(-1);
        put_peer(0, MARKER + 2 * MS, OFFSET, 2000);
        begin_dump(cases[i].header, false);
        put_two(cases[i].first, cases[i].first + MS);
        learn_and_choose(1);
        keeps_its_own(MARKER - OFFSET - cases[i].header);
    }
}

/* Nothing shows how long the other process waited itself. */
static void test_another_header_that_does_not_say_how_close_it_is(void **state)
{
    (void)state;
    profile_of_life(-1);
    put_peer(0, MARKER + 2 * MS, OFFSET + 20 * MS, 0);
    begin_dump(WALL / 1000, false);
    put_two(MARKER - OFFSET, MARKER + SEC);
    learn_and_choose(1);
    keeps_its_own(0);
}

static void test_a_file_of_another_life(void **state)
{
    (void)state;
    profile_of_life(-1);
    put_peer(0, MARKER + 2 * MS, OFFSET, 2000);
    begin_waited(20 * MS);
    open_world();
    learn_from(0, true);
    choose();
    keeps_its_own(20 * MS);
}

static void test_a_dump_by_another_clock(void **state)
{
    (void)state;
    cycles_without_conv(-1);
    begin_dump(CYCLES(MARKER + 2 * MS), true);
    say_how_close(4000);
    put_two(CYCLES(MARKER + 3 * MS), CYCLES(MARKER + 4 * MS));
    end_peer(0, MARKER + 2 * MS);
    begin_waited(20 * MS);
    learn_and_choose(1);
    keeps_its_own(20 * MS);
}

/* CLOCK_MONOTONIC_RAW is 61 ms behind: its header did not wait. */
static void test_stamps_of_a_clock_close_by(void **state)
{
    (void)state;
    profile_of_life(-1);
    put_peer(0, MARKER + 2 * MS, OFFSET, 2000);
    begin_waited(61 * MS);
    machine_knows_clocks();
    machine_knows(CLOCK_KIND_RAW, EXIT + SEC / 10 - 61 * MS);
    learn_and_choose(1);
    keeps_its_own(61 * MS);
}

/* On another machine nothing tells how the clocks drift: what another dump shows 10 s before is
 * good to 500 us, and a header to 200. */
static void test_another_dump_of_long_before(void **state)
{
    (void)state;
    profile_of_life(-1);
    put_peer(0, MARKER - 11 * SEC, OFFSET, 2000);
    begin_waited(100 * US);
    learn_and_choose(1);
    keeps_its_own(100 * US);
}

/* With -k mono nothing is asked. */
static void test_one_clock(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    put_peer(0, MARKER + 2 * MS, 0, 2000);
    begin_dump(MARKER, false);
    put_two(MARKER + MS, MARKER + SEC);
    may_read_machine = false;
    learn_and_choose(1);
    assert_silent();
    end_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_header_that_waited),
        cmocka_unit_test(test_another_dump_agrees_with_the_clocks_now),
        cmocka_unit_test(test_a_header_after_the_first_record),
        cmocka_unit_test(test_a_header_of_another_clock),
        cmocka_unit_test(test_samples_show_that_its_clock_is_another),
        cmocka_unit_test(test_a_dump_without_a_mapping),
        cmocka_unit_test(test_a_process_that_counts_cycles),
        cmocka_unit_test(test_the_best_of_two),
        cmocka_unit_test(test_a_header_of_long_before),
        cmocka_unit_test(test_a_header_that_says_how_close_it_is),
        cmocka_unit_test(test_records_outside_the_life),
        cmocka_unit_test(test_another_header_that_does_not_say_how_close_it_is),
        cmocka_unit_test(test_a_file_of_another_life),
        cmocka_unit_test(test_a_dump_by_another_clock),
        cmocka_unit_test(test_stamps_of_a_clock_close_by),
        cmocka_unit_test(test_another_dump_of_long_before),
        cmocka_unit_test(test_one_clock),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
