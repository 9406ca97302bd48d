/* The timeline: hand-written sequences of loads, moves, unloads and forks with their exact changes.
 */
#include "injector/log/lines/code_lines.h"
#include "tests/unit/timeline_text.h"

/* ---- Loads ---- */

static void test_load_is_a_change(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    assert_plays("15", "10:1000-1100=f0", "");
    assert_true(state_of(0)->visible);
    assert_int_equal(state_of(0)->generation, 0);
}

static void test_loads_between_two_samples_are_one_moment(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 12, 0x2000, 0x100);
    build_load(&built, 20, 0x3000, 0x100);
    assert_plays("15 25", "10:1000-1100=f0 10:2000-2100=f1 20:3000-3100=f2", "");
}

/* A sample sees what happened at its very time, and ends the moment. */
static void test_sample_at_the_time_of_a_load_sees_it(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 11, 0x1000, 0x100);
    assert_plays("10", "10:1000-1100=f0 11:1000-1100=f1", "");
}

static void test_what_no_sample_could_hit_does_not_appear(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 11, 0x1000, 0x100);
    assert_plays("9 20", "10:1000-1100=f1", "");
    assert_false(state_of(0)->visible);
    assert_true(state_of(1)->visible);
    assert_int_equal(state_of(1)->generation, 0);
}

static void test_reuse_of_an_address_is_a_new_generation(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1000, 0x100);
    build_load(&built, 30, 0x1000, 0x100);
    assert_plays("15 25 35", "10:1000-1100=f0 20:1000-1100=f1 30:1000-1100=f2", "");
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(state_of(i)->generation, i);
}

static void test_generation_is_the_highest_of_all_parts(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1000, 0x80);
    build_load(&built, 30, 0x2000, 0x80);
    build_load(&built, 40, 0x1040, 0x1000);
    assert_plays("15 25 35 45", "10:1000-1100=f0 20:1000-1080=f1 30:2000-2080=f2 40:1040-2040=f3",
                 "");
    assert_int_equal(state_of(1)->generation, 1);
    assert_int_equal(state_of(2)->generation, 0);
    assert_int_equal(state_of(3)->generation, 2);
}

static void test_generation_counts_the_unloaded_too(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_unload(&built, 20, 0);
    build_load(&built, 30, 0x1000, 0x100);
    assert_plays("15 25 35", "10:1000-1100=f0 20:1000-1100=gone 30:1000-1100=f1", "");
    assert_int_equal(state_of(1)->generation, 1);
}

static void test_overwritten_in_part_at_either_side(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0xf80, 0x100);  /* left */
    build_load(&built, 30, 0x10c0, 0x100); /* right */
    assert_plays("15 25 35", "10:1000-1100=f0 20:f80-1080=f1 30:10c0-11c0=f2", "");
}

/* Within one moment the parts that are left are what appears. */
static void test_overwritten_in_the_middle_within_a_moment(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 11, 0x1040, 0x40);
    assert_plays("15", "10:1000-1040=f0 10:1040-1080=f1 10:1080-1100=f0", "");
    assert_int_equal(state_of(0)->generation, 0);
    assert_int_equal(state_of(1)->generation, 1);
}

static void test_repeated_identical_load_changes_nothing(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1000, 0x100);
    built.process.log.functions[1].name = built.process.log.functions[0].name;
    built.process.log.functions[1].code = built.process.log.functions[0].code;
    assert_plays("15 25", "10:1000-1100=f0", "");
    assert_false(state_of(1)->visible);
}

/* The runtime speaks of it by the newer number from then on. */
static void test_repeated_load_can_be_unloaded_by_its_new_number(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1000, 0x100);
    built.process.log.functions[1].name = built.process.log.functions[0].name;
    built.process.log.functions[1].code = built.process.log.functions[0].code;
    build_unload(&built, 30, 1);
    assert_plays("15 25 35", "10:1000-1100=f0 30:1000-1100=gone", "");
}

static void test_same_name_with_other_code_is_no_repetition(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1000, 0x100);
    built.process.log.functions[1].name = built.process.log.functions[0].name;
    assert_plays("15 25", "10:1000-1100=f0 20:1000-1100=f1", "");
}

static void test_load_of_nothing_does_not_appear(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0);
    assert_plays("15", "", "");
    assert_false(state_of(0)->visible);
}

/* ---- Unloads and moves ---- */

static void test_unload_leaves_the_addresses_to_nobody(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_unload(&built, 20, 0);
    assert_plays("15 25", "10:1000-1100=f0 20:1000-1100=gone", "");
}

static void test_unload_of_what_is_left_of_a_function(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1040, 0x40);
    build_unload(&built, 30, 0);
    assert_plays("15 25 35", "10:1000-1100=f0 20:1040-1080=f1 30:1000-1040=gone 30:1080-1100=gone",
                 "");
}

static void test_late_unload_leaves_the_new_owner_alone(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1000, 0x100);
    build_unload(&built, 30, 0);
    assert_plays("15 25 35", "10:1000-1100=f0 20:1000-1100=f1", "");
}

/* The allocator gave the front of it to another function; the rest is free all the same. */
static void test_late_unload_after_reuse_of_the_front_ends_the_rest(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1000, 0x40);
    build_unload(&built, 30, 0);
    assert_plays("15 25 35", "10:1000-1100=f0 20:1000-1040=f1 30:1040-1100=gone", "");
}

static void test_load_and_unload_between_samples_shows_no_function(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1000, 0x80);
    build_unload(&built, 21, 1);
    assert_plays("15 25", "10:1000-1100=f0 20:1000-1080=gone", "");
    assert_false(state_of(1)->visible);
}

static void test_unload_of_what_never_was_is_told(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    struct code_unload unload = {0x5000, 0x100, 77, 0, BUILT_PID, false};
    built.process.log.unloads = malloc(sizeof unload);
    built.process.log.unloads[0] = unload;
    build_event(&built, 20, CODE_EVENT_UNLOAD, 0);
    assert_loses("15 25", "10:1000-1100=f0", 1);
}

static void test_second_unload_is_silent(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_unload(&built, 20, 0);
    build_unload(&built, 30, 0);
    assert_plays("15 25 35", "10:1000-1100=f0 20:1000-1100=gone", "");
}

static void test_move_carries_name_code_and_lines(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_move(&built, 20, 0, 0x2000, 0x100);
    static const struct code_lines lines;
    built.process.log.functions[0].lines = &lines;
    assert_plays("15 25", "10:1000-1100=f0 20:1000-1100=gone 20:2000-2100=f1", "");
    assert_ptr_equal(function(1)->lines, &lines);
    assert_ptr_equal(function(1)->name, function(0)->name);
    assert_ptr_equal(function(1)->code, function(0)->code);
}

static void test_move_to_overlapping_addresses(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_move(&built, 20, 0, 0x1040, 0x100);
    assert_plays("15 25", "10:1000-1100=f0 20:1000-1100=gone 20:1040-1140=f1", "");
    assert_int_equal(state_of(1)->generation, 1);
}

static void test_move_of_a_move(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    uint32_t second = build_move(&built, 20, 0, 0x2000, 0x100);
    build_move(&built, 30, second, 0x3000, 0x100);
    assert_plays("15 35", "10:1000-1100=f0 20:1000-1100=gone 20:2000-2100=gone 20:3000-3100=f2",
                 "");
    assert_false(state_of(1)->visible);
    assert_ptr_equal(function(2)->name, function(0)->name);
}

/* There are no bytes for what a larger move claims. */
static void test_move_that_grows_has_no_code(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_move(&built, 20, 0, 0x2000, 0x101);
    assert_plays("15 25", "10:1000-1100=f0 20:1000-1100=gone 20:2000-2101=f1", "");
    assert_null(function(1)->code);
}

static void test_move_of_unknown_code_is_told(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_move(&built, 20, 0, 0x2000, 0x100);
    built.process.log.moves[0].old_addr = 0x5000; /* where nothing is */
    assert_loses("15 25", "10:1000-1100=f0", 1);
    built.process.log.moves[0].old_addr = 0x1000;
    built.process.log.functions[1].code_index = 77; /* of somebody else */
    assert_loses("15 25", "10:1000-1100=f0", 1);
}

/* Another process's, from memory of its own to memory that both share: what was there is gone. */
static void test_move_of_anothers_code_ends_what_it_covers(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x2080, 0x100);
    build_move(&built, 30, 0, 0x2000, 0x100);
    built.process.log.moves[0].old_addr = 0x5000;
    built.process.log.functions[2].shared = true;
    assert_plays("15 25 35", "10:1000-1100=f0 20:2080-2180=f1 30:2080-2100=gone", "");
}

static void test_unload_of_anothers_code_is_no_loss(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_unload(&built, 20, 0);
    built.process.log.unloads[0].addr = 0x7000;
    built.process.log.unloads[0].code_index = 77;
    assert_loses("15 25", "10:1000-1100=f0", 1);
    built.process.log.unloads[0].shared = true;
    assert_loses("15 25", "10:1000-1100=f0", 0);
}

/* Of a ring: what was loaded, and covered by others, is not in the dump any more. */
static void test_in_a_ring_a_move_of_a_dropped_load_is_no_loss(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_move(&built, 20, 0, 0x2000, 0x100);
    built.process.log.moves[0].old_addr = 0x5000;
    assert_loses("15 25", "10:1000-1100=f0", 1);
    built.process.log.history.dropped = 1;
    assert_loses("15 25", "10:1000-1100=f0", 0);
    assert_plays("15 25", "10:1000-1100=f0", "");
}

static void test_in_a_ring_a_move_of_a_kept_load_is_one(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_move(&built, 20, 0, 0x2000, 0x100);
    built.process.log.history.dropped = 1;
    assert_plays("15 25", "10:1000-1100=f0 20:1000-1100=gone 20:2000-2100=f1", "");
}

static void test_in_a_ring_an_unload_of_a_dropped_load_is_no_loss(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_unload(&built, 20, 0);
    built.process.log.unloads[0].addr = 0x7000;
    built.process.log.unloads[0].code_index = 77;
    assert_loses("15 25", "10:1000-1100=f0", 1);
    built.process.log.history.dropped = 1;
    assert_loses("15 25", "10:1000-1100=f0", 0);
}

/* ---- Two dumps, forks, exec, late stamps ---- */

/* Both JITs call their function number 1. */
static void test_unload_stays_within_its_dump(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1000, 0x100);
    built.process.log.functions[1].code_index = 1;
    built.process.log.functions[1].dump = 1;
    build_unload(&built, 30, 0); /* late */
    assert_plays("15 25 35", "10:1000-1100=f0 20:1000-1100=f1", "");
}

static void test_move_stays_within_its_dump(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    uint32_t moved = build_move(&built, 20, 0, 0x2000, 0x100);
    built.process.log.functions[moved].dump = 1;
    assert_loses("15 25", "10:1000-1100=f0", 1);
}

/* ---- Functions in pieces ---- */

/* COUNT pieces of one function, 0x1000 apart from ADDR on; returns the number of the first. */
static uint32_t load_pieces(uint64_t time_ns, uint64_t addr, uint32_t count)
{
    uint32_t first = build_load(&built, time_ns, addr, 0x100);
    for (uint32_t i = 1; i < count; i++)
        build_load(&built, time_ns, addr + i * UINT64_C(0x1000), 0x100);
    for (uint32_t i = 0; i < count; i++)
        built.process.log.functions[first + i].piece = i + 1;
    built.process.log.has_pieces = true;
    return first;
}

static void test_unload_of_the_first_piece_is_of_all(void **state)
{
    (void)state;
    load_pieces(10, 0x1000, 3);
    load_pieces(10, 0x11000, 2); /* another function's stay */
    build_unload(&built, 20, 0);
    assert_plays("15 25",
                 "10:1000-1100=f0 10:2000-2100=f1 10:3000-3100=f2 10:11000-11100=f3 "
                 "10:12000-12100=f4 20:1000-1100=gone 20:2000-2100=gone 20:3000-3100=gone",
                 "");
}

static void test_unload_of_another_piece_is_of_that_alone(void **state)
{
    (void)state;
    load_pieces(10, 0x1000, 3);
    build_unload(&built, 20, 1);
    build_unload(&built, 30, 0);
    assert_plays("15 25 35",
                 "10:1000-1100=f0 10:2000-2100=f1 10:3000-3100=f2 20:2000-2100=gone "
                 "30:1000-1100=gone 30:3000-3100=gone",
                 "");
}

/* Whichever has moved, by whatever distance, and what others have taken since stays theirs. */
static void test_unload_of_pieces_that_moved(void **state)
{
    (void)state;
    load_pieces(10, 0x1000, 3);
    uint32_t first = build_move(&built, 20, 0, 0x8000, 0x100);
    build_move(&built, 20, 2, 0xa000, 0x100);
    build_load(&built, 22, 0x2000, 0x100); /* over the second */
    build_load(&built, 22, 0x3000, 0x100); /* where the third was */
    build_unload(&built, 30, first);
    assert_plays("15 25 35",
                 "10:1000-1100=f0 10:2000-2100=f1 10:3000-3100=f2 20:1000-1100=gone "
                 "20:3000-3100=gone 20:2000-2100=f5 20:3000-3100=f6 20:8000-8100=f3 "
                 "20:a000-a100=f4 30:8000-8100=gone 30:a000-a100=gone",
                 "");
    assert_int_equal(played.log->functions[3].piece, 1);
    assert_int_equal(played.log->functions[4].piece, 3);
}

static void test_a_piece_without_the_one_before_it_is_alone(void **state)
{
    (void)state;
    load_pieces(10, 0x1000, 2);
    load_pieces(10, 0x11000, 2);
    built.process.log.functions[3].code_index += 5; /* not what follows number 2 */
    build_unload(&built, 20, 2);
    assert_plays("15 25",
                 "10:1000-1100=f0 10:2000-2100=f1 10:11000-11100=f2 10:12000-12100=f3 "
                 "20:11000-11100=gone",
                 "");
}

static void test_fork_ends_a_moment(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_fork(&built, 20, NULL);
    build_load(&built, 30, 0x2000, 0x100);
    assert_plays("35", "10:1000-1100=f0 30:2000-2100=f1", "");
}

static void test_exec_ends_all_code(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 10, 0x3000, 0x100);
    build_load(&built, 90, 0x5000, 0x100); /* the next program's */
    built.process.execed = true;
    built.process.next = (struct life_moment){50, 0};
    assert_plays("15", "10:1000-1100=f0 10:3000-3100=f1 50:1000-3100=gone", "");
}

static void test_sample_shortly_before_a_load_sees_it(void **state)
{
    (void)state;
    built.process.load_slack_ns = 7;
    build_load(&built, 20, 0x1000, 0x100);
    assert_plays("12 14 17", "14:1000-1100=f0", "");
}

static void test_no_stamp_is_late_where_code_was_unloaded(void **state)
{
    (void)state;
    built.process.load_slack_ns = 7;
    build_load(&built, 3, 0x1000, 0x100);
    build_unload(&built, 15, 0);
    build_load(&built, 20, 0x1000, 0x100);
    assert_plays("5 14 17", "3:1000-1100=f0 15:1000-1100=gone 20:1000-1100=f1", "");
}

static void test_where_unloads_are_in_time_a_stamp_may_be_late(void **state)
{
    (void)state;
    built.process.load_slack_ns = 7;
    built.process.unloads_in_time = true;
    build_load(&built, 3, 0x1000, 0x100);
    build_unload(&built, 15, 0);
    build_load(&built, 20, 0x1000, 0x100);
    assert_plays("5 14 17", "3:1000-1100=f0 15:1000-1100=gone 17:1000-1100=f1", "");
}

static void test_late_stamp_reaches_back_to_the_unload_at_most(void **state)
{
    (void)state;
    built.process.load_slack_ns = 7;
    built.process.unloads_in_time = true;
    build_load(&built, 3, 0x1000, 0x100);
    build_unload(&built, 15, 0);
    build_load(&built, 20, 0x1000, 0x100);
    assert_plays("5 14", "3:1000-1100=f0 15:1000-1100=gone 15:1000-1100=f1", "");
}

static void test_late_stamp_reaches_behind_memory_that_grew(void **state)
{
    (void)state;
    built.process.load_slack_ns = 30;
    built.process.unloads_in_time = true;
    build_map(&built, 5, 0x1000, 0x1000, "//anon");
    build_map(&built, 15, 0x1000, 0x2000, "//anon");
    build_load(&built, 20, 0x1000, 0x100);
    build_load(&built, 21, 0x2000, 0x100);
    assert_plays("4 7 14 17", "7:1000-1100=f0 16:1000-1100=f0 17:2000-2100=f1", "");
}

static void test_late_stamp_takes_nothing_from_an_owner(void **state)
{
    (void)state;
    built.process.load_slack_ns = 7;
    build_load(&built, 3, 0x1000, 0x100);
    build_load(&built, 20, 0x1080, 0x100);
    assert_plays("5 14 17 25", "3:1000-1100=f0 20:1080-1180=f1", "");
}

static void test_late_stamp_reaches_back_to_the_last_map_or_fork_at_most(void **state)
{
    (void)state;
    built.process.load_slack_ns = 7;
    build_map(&built, 15, 0x1000, 0x1000, "//anon");
    build_load(&built, 20, 0x1000, 0x100);
    build_fork(&built, 21, NULL);
    build_load(&built, 24, 0x3000, 0x100);
    assert_plays("14 17 22", "17:1000-1100=f0 22:3000-3100=f1", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TIMELINE_TEST(test_load_is_a_change),
        TIMELINE_TEST(test_loads_between_two_samples_are_one_moment),
        TIMELINE_TEST(test_sample_at_the_time_of_a_load_sees_it),
        TIMELINE_TEST(test_what_no_sample_could_hit_does_not_appear),
        TIMELINE_TEST(test_reuse_of_an_address_is_a_new_generation),
        TIMELINE_TEST(test_generation_is_the_highest_of_all_parts),
        TIMELINE_TEST(test_generation_counts_the_unloaded_too),
        TIMELINE_TEST(test_overwritten_in_part_at_either_side),
        TIMELINE_TEST(test_overwritten_in_the_middle_within_a_moment),
        TIMELINE_TEST(test_repeated_identical_load_changes_nothing),
        TIMELINE_TEST(test_repeated_load_can_be_unloaded_by_its_new_number),
        TIMELINE_TEST(test_same_name_with_other_code_is_no_repetition),
        TIMELINE_TEST(test_load_of_nothing_does_not_appear),
        TIMELINE_TEST(test_unload_leaves_the_addresses_to_nobody),
        TIMELINE_TEST(test_unload_of_what_is_left_of_a_function),
        TIMELINE_TEST(test_late_unload_leaves_the_new_owner_alone),
        TIMELINE_TEST(test_late_unload_after_reuse_of_the_front_ends_the_rest),
        TIMELINE_TEST(test_load_and_unload_between_samples_shows_no_function),
        TIMELINE_TEST(test_unload_of_what_never_was_is_told),
        TIMELINE_TEST(test_second_unload_is_silent),
        TIMELINE_TEST(test_move_carries_name_code_and_lines),
        TIMELINE_TEST(test_move_to_overlapping_addresses),
        TIMELINE_TEST(test_move_of_a_move),
        TIMELINE_TEST(test_move_that_grows_has_no_code),
        TIMELINE_TEST(test_move_of_unknown_code_is_told),
        TIMELINE_TEST(test_move_of_anothers_code_ends_what_it_covers),
        TIMELINE_TEST(test_unload_of_anothers_code_is_no_loss),
        TIMELINE_TEST(test_in_a_ring_a_move_of_a_dropped_load_is_no_loss),
        TIMELINE_TEST(test_in_a_ring_a_move_of_a_kept_load_is_one),
        TIMELINE_TEST(test_in_a_ring_an_unload_of_a_dropped_load_is_no_loss),
        TIMELINE_TEST(test_unload_stays_within_its_dump),
        TIMELINE_TEST(test_move_stays_within_its_dump),
        TIMELINE_TEST(test_unload_of_the_first_piece_is_of_all),
        TIMELINE_TEST(test_unload_of_another_piece_is_of_that_alone),
        TIMELINE_TEST(test_unload_of_pieces_that_moved),
        TIMELINE_TEST(test_a_piece_without_the_one_before_it_is_alone),
        TIMELINE_TEST(test_fork_ends_a_moment),
        TIMELINE_TEST(test_exec_ends_all_code),
        TIMELINE_TEST(test_sample_shortly_before_a_load_sees_it),
        TIMELINE_TEST(test_no_stamp_is_late_where_code_was_unloaded),
        TIMELINE_TEST(test_where_unloads_are_in_time_a_stamp_may_be_late),
        TIMELINE_TEST(test_late_stamp_reaches_back_to_the_unload_at_most),
        TIMELINE_TEST(test_late_stamp_reaches_behind_memory_that_grew),
        TIMELINE_TEST(test_late_stamp_takes_nothing_from_an_owner),
        TIMELINE_TEST(test_late_stamp_reaches_back_to_the_last_map_or_fork_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
