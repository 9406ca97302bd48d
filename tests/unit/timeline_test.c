/* The timeline: hand-written sequences with their exact changes, and random ones against a model. */
#include "injector/jit/line_info.h"
#include "injector/timeline/timeline.h"

#include "tests/unit/process_builder.h"
#include "tests/unit/timeline_model.h"

#include <inttypes.h>

static struct process_builder built;

static int begin(void **state)
{
    (void)state;
    process_begin(&built);
    return 0;
}

static int end(void **state)
{
    (void)state;
    process_free(&built);
    return 0;
}

/* ---- A timeline as text ---- */

static size_t parse_times(const char *text, uint64_t times[64])
{
    size_t count = 0;
    for (char *rest; *text; text = rest) {
        times[count++] = strtoull(text, &rest, 10);
        assert_ptr_not_equal(rest, text);
    }
    return count;
}

static void print_change(const struct change *change, char *text, size_t bytes)
{
    size_t at = (size_t)snprintf(text, bytes, "%" PRIu64 ":%" PRIx64 "-%" PRIx64 "=",
                                 change->time_ns, change->start, change->end);
    if (change->kind == CHANGE_UNLOADED)
        snprintf(text + at, bytes - at, "gone");
    else
        snprintf(text + at, bytes - at, "%s%" PRIu32, change->kind == CHANGE_MAP ? "map" : "f",
                 change->index);
}

/* BUILT with samples at TIMES plays to CHANGES, and the map records numbered in DROPPED are left out. */
static void assert_plays(const char *times, const char *changes, const char *dropped)
{
    struct timeline timeline;
    struct findings findings = {0};
    uint64_t sample_times[64], numbers[64];
    char text[2048] = "";
    size_t sample_count = parse_times(times, sample_times);
    assert_int_equal(
        timeline_play(&timeline, &built.process, sample_times, sample_count, &findings), 0);
    for (size_t i = 0, at = 0; i < timeline.change_count; i++, at = strlen(text)) {
        if (i > 0)
            text[at++] = ' ';
        print_change(&timeline.changes[i], text + at, sizeof text - at);
    }
    assert_string_equal(text, changes);
    assert_int_equal(parse_times(dropped, numbers), timeline.dropped_count);
    for (size_t i = 0; i < timeline.dropped_count; i++)
        assert_int_equal(timeline.dropped[i], 1000 + numbers[i]);
    assert_int_equal(findings_lost(&findings), 0);
    timeline_free(&timeline);
    findings_free(&findings);
}

/* The same, where COUNT events speak of code that was never loaded. */
static void assert_loses(const char *times, const char *changes, uint64_t count)
{
    struct timeline timeline;
    struct findings findings = {0};
    uint64_t sample_times[64];
    char text[256] = "";
    size_t sample_count = parse_times(times, sample_times);
    assert_int_equal(
        timeline_play(&timeline, &built.process, sample_times, sample_count, &findings), 0);
    if (timeline.change_count == 1)
        print_change(timeline.changes, text, sizeof text);
    assert_true(timeline.change_count <= 1);
    assert_string_equal(text, changes);
    assert_int_equal(findings.count[FINDING_CODE_LOST], count);
    timeline_free(&timeline);
    findings_free(&findings);
}

static const struct jit_function *function(uint32_t index)
{
    return &built.process.log.functions[index];
}

/* ---- Loads ---- */

static void test_load_is_a_change(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    assert_plays("15", "10:1000-1100=f0", "");
    assert_true(function(0)->visible);
    assert_int_equal(function(0)->generation, 0);
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
    assert_false(function(0)->visible);
    assert_true(function(1)->visible);
    assert_int_equal(function(1)->generation, 0);
}

static void test_reuse_of_an_address_is_a_new_generation(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1000, 0x100);
    build_load(&built, 30, 0x1000, 0x100);
    assert_plays("15 25 35", "10:1000-1100=f0 20:1000-1100=f1 30:1000-1100=f2", "");
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(function(i)->generation, i);
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
    assert_int_equal(function(1)->generation, 1);
    assert_int_equal(function(2)->generation, 0);
    assert_int_equal(function(3)->generation, 2);
}

static void test_generation_counts_the_unloaded_too(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_unload(&built, 20, 0);
    build_load(&built, 30, 0x1000, 0x100);
    assert_plays("15 25 35", "10:1000-1100=f0 20:1000-1100=gone 30:1000-1100=f1", "");
    assert_int_equal(function(1)->generation, 1);
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
    assert_int_equal(function(0)->generation, 0);
    assert_int_equal(function(1)->generation, 1);
}

static void test_repeated_identical_load_changes_nothing(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1000, 0x100);
    built.process.log.functions[1].name = built.process.log.functions[0].name;
    built.process.log.functions[1].code = built.process.log.functions[0].code;
    assert_plays("15 25", "10:1000-1100=f0", "");
    assert_false(function(1)->visible);
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
    assert_false(function(0)->visible);
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
    assert_false(function(1)->visible);
}

static void test_unload_of_what_never_was_is_told(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    struct code_unload unload = {0x5000, 0x100, 77, 0, BUILT_PID};
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
    assert_int_equal(function(1)->generation, 1);
}

static void test_move_of_a_move(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    uint32_t second = build_move(&built, 20, 0, 0x2000, 0x100);
    build_move(&built, 30, second, 0x3000, 0x100);
    assert_plays("15 35", "10:1000-1100=f0 20:1000-1100=gone 20:2000-2100=gone 20:3000-3100=f2",
                 "");
    assert_false(function(1)->visible);
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

/* ---- The profile's mappings ---- */

static void test_anonymous_map_over_live_code_is_dropped(void **state)
{
    (void)state;
    build_map(&built, 5, 0x1000, 0x1000, "//anon");
    build_load(&built, 10, 0x1000, 0x100);
    build_map(&built, 20, 0x1000, 0x1000, "//anon");
    assert_plays("15 25", "10:1000-1100=f0", "1");
}

static void test_memory_has_many_names(void **state)
{
    static const char *const names[] = {"//anon",
                                        "[anon:v8]",
                                        "/memfd:jit (deleted)",
                                        "/dev/zero",
                                        "/anon_hugepage (deleted)",
                                        "/SYSV00000000",
                                        "[heap]",
                                        "[stack]",
                                        "[anon_shmem:v8]"};
    (void)state;
    build_map(&built, 5, 0x1000, 0x1000, "//anon");
    build_load(&built, 10, 0x1000, 0x100);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        build_map(&built, 20 + i, 0x1000, 0x1000, names[i]);
    assert_plays("15", "10:1000-1100=f0", "1 2 3 4 5 6 7 8 9");
}

static void test_anonymous_map_without_live_code_passes(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_unload(&built, 20, 0);
    build_map(&built, 30, 0x1000, 0x1000, "//anon");
    build_map(&built, 40, 0x8000, 0x1000, "//anon");
    assert_plays("15 25 35", "10:1000-1100=f0 20:1000-1100=gone", "");
}

/* What no earlier mapping covered is added again, but for the live code. */
static void test_parts_by_which_an_arena_grows_are_restored(void **state)
{
    (void)state;
    build_map(&built, 5, 0x2000, 0x1000, "//anon");
    build_load(&built, 10, 0x2000, 0x100);
    build_map(&built, 20, 0x1000, 0x3000, "//anon");
    assert_plays("15 25", "10:2000-2100=f0 20:1000-2000=map1 20:3000-4000=map1", "1");
}

static void test_arena_that_was_never_mapped_is_restored_around_its_code(void **state)
{
    (void)state;
    build_load(&built, 10, 0x2000, 0x100);
    build_load(&built, 11, 0x2800, 0x100);
    build_map(&built, 20, 0x1000, 0x3000, "//anon");
    assert_plays("15 25",
                 "10:2000-2100=f0 10:2800-2900=f1 20:1000-2000=map0 20:2100-2800=map0 "
                 "20:2900-4000=map0",
                 "0");
}

static void test_memory_over_a_file_is_new(void **state)
{
    (void)state;
    build_map(&built, 5, 0x1000, 0x3000, "/usr/lib/libx.so");
    build_load(&built, 10, 0x2000, 0x100);
    build_map(&built, 20, 0x1000, 0x3000, "//anon");
    build_map(&built, 30, 0x1000, 0x3000, "//anon");
    assert_plays("15 25", "10:2000-2100=f0 20:1000-2000=map1 20:2100-4000=map1", "1 2");
}

/* A load that no sample separates from the arena's new map still comes first. */
static void test_growing_arena_ends_the_moment(void **state)
{
    (void)state;
    build_load(&built, 10, 0x2000, 0x100);
    build_map(&built, 20, 0x2000, 0x1000, "//anon");
    build_load(&built, 30, 0x2200, 0x100);
    assert_plays("35", "10:2000-2100=f0 20:2100-3000=map0 30:2200-2300=f1", "0");
}

static void test_map_of_a_file_ends_the_code_below_it(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1f00, 0x200);
    build_map(&built, 20, 0x2000, 0x1000, "/usr/lib/libx.so");
    build_map(&built, 30, 0x2000, 0x1000, "//anon"); /* nothing live is below this one */
    build_unload(&built, 40, 0);
    assert_plays("15 25 35 45", "10:1f00-2100=f0 40:1f00-2000=gone", "");
}

static void test_map_of_a_file_ends_a_moment(void **state)
{
    (void)state;
    build_load(&built, 10, 0x2000, 0x100);
    build_map(&built, 20, 0x2000, 0x1000, "/usr/lib/libx.so");
    build_load(&built, 30, 0x2000, 0x100);
    assert_plays("35", "10:2000-2100=f0 30:2000-2100=f1", "");
}

static void test_marker_of_the_dump_is_no_map_of_a_file(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_map(&built, 20, 0x1000, 0x1000, "/tmp/jit-4711.dump");
    assert_plays("15 25", "10:1000-1100=f0", "");
}

/* Records that are added go in front of the profile's own of the same time: the map must not stay behind the code. */
static void test_code_as_old_as_its_arenas_map_stays(void **state)
{
    (void)state;
    build_map(&built, 10, 0x1000, 0x1000, "//anon");
    build_load(&built, 10, 0x1000, 0x100);
    assert_plays("15", "10:1000-1100=f0 10:1100-2000=map0", "0");
}

/* The code is logged before the arena becomes executable, and so known to the profile. */
static void test_alignment_in_an_arena_that_comes_late_stays_with_the_code(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x20);
    build_load(&built, 11, 0x1040, 0x20);
    build_load(&built, 12, 0x1100, 0x20);
    build_map(&built, 20, 0x1000, 0x1000, "//anon");
    assert_plays(
        "15", "10:1000-1020=f0 10:1040-1060=f1 10:1100-1120=f2 20:1060-1100=map0 20:1120-2000=map0",
        "0");
}

static void test_nothing_happens(void **state)
{
    (void)state;
    assert_plays("", "", "");
    build_map(&built, 5, 0x1000, 0x1000, "//anon");
    assert_plays("1 2 3", "", "");
}

static void test_without_samples_all_is_one_moment(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x1000, 0x100);
    assert_plays("", "10:1000-1100=f1", "");
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

/* ---- Files that are memory ---- */

static void set_file(size_t map, uint64_t ino, uint64_t pgoff)
{
    built.maps[map].map.has_inode = true;
    built.maps[map].map.ino = ino;
    built.maps[map].map.pgoff = pgoff;
}

static void test_the_same_file_again_is_the_arena(void **state)
{
    (void)state;
    build_map(&built, 5, 0x1000, 0x1000, "/tmp/ffi (deleted)");
    build_load(&built, 10, 0x1000, 0x100);
    build_map(&built, 20, 0x1000, 0x1000, "/tmp/ffi");
    set_file(0, 7, 0x8000);
    set_file(1, 7, 0x8000);
    assert_plays("15 25", "10:1000-1100=f0", "1");
}

static void test_another_part_of_the_file_is_not(void **state)
{
    (void)state;
    build_map(&built, 5, 0x1000, 0x1000, "/dev/shm/x");
    build_load(&built, 10, 0x1000, 0x100);
    build_map(&built, 20, 0x1000, 0x1000, "/dev/shm/x");
    set_file(0, 7, 0x8000);
    set_file(1, 7, 0x9000);
    build_unload(&built, 30, 0);
    assert_plays("15 25 35", "10:1000-1100=f0", "");
}

static void test_another_file_is_not(void **state)
{
    (void)state;
    build_map(&built, 5, 0x1000, 0x1000, "/dev/shm/x");
    build_load(&built, 10, 0x1000, 0x100);
    build_map(&built, 20, 0x1000, 0x1000, "/dev/shm/x");
    set_file(0, 7, 0);
    set_file(1, 8, 0);
    assert_plays("15 25", "10:1000-1100=f0", "");
}

/* The arena was not executable, so not recorded, when the code was logged. */
static void test_shared_memory_that_comes_late_is_the_arena(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_map(&built, 20, 0x1000, 0x100, "/dev/shm/x");
    build_load(&built, 30, 0x3000, 0x100);
    build_map(&built, 40, 0x3000, 0x100, "/tmp/arena (deleted)");
    build_load(&built, 50, 0x5000, 0x100);
    build_map(&built, 60, 0x5000, 0x100, "/tmp/arena");
    assert_plays("15 35 55 65", "10:1000-1100=f0 30:3000-3100=f1 50:5000-5100=f2", "0 1");
}

static void test_huge_pages_are_memory(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_map(&built, 20, 0x1000, 0x100, "/mnt/huge/x");
    built.maps[0].map.flags = 0x40000; /* MAP_HUGETLB */
    assert_plays("15 25", "10:1000-1100=f0", "0");
}

/* ---- Random sequences ---- */

static struct process_builder child;

struct played {
    struct timeline parent, child;
};

static const struct process_builder *builder_of(const struct family *family, bool is_child)
{
    return is_child ? family->child : family->parent;
}

static void assert_seen_at(const struct family *family, const struct played *played, bool is_child,
                           uint64_t time_ns)
{
    const struct process_builder *builder = builder_of(family, is_child);
    struct model model = model_at(family, builder, time_ns);
    uint32_t seen[SPACE] = {0};
    reader_at(family->parent, &played->parent, is_child ? family->fork_ns : time_ns, FUNCTION,
              seen);
    if (is_child)
        reader_at(family->child, &played->child, time_ns, CHILD, seen);
    for (size_t i = 0; i < SPACE; i++) {
        assert_int_equal(seen[i] >= FUNCTION ? seen[i] : NOTHING, model.owners[i]);
        if (model.owners[i] < FUNCTION)
            assert_true(seen[i] == model.backing[i] || seen[i] == GONE);
    }
}

/* A record is left out only where it would have hidden live code. */
static void assert_dropped_hide_code(const struct family *family, const struct played *played,
                                     bool is_child)
{
    const struct process_builder *builder = builder_of(family, is_child);
    const struct timeline *timeline = is_child ? &played->child : &played->parent;
    for (size_t i = 0; i < timeline->dropped_count; i++) {
        size_t map = (size_t)timeline->dropped[i] - 1000;
        const struct perf_map *dropped = &builder->maps[map].map;
        struct model model = model_begin(family, builder);
        bool covers = false;
        model_play(family, builder, &model, builder->maps[map].time_ns,
                   builder->process.log.event_count, map + 1);
        for (uint64_t at = dropped->start; at < dropped->start + dropped->len; at += CELL_BYTES)
            covers = covers || model.owners[cell_of(at)] >= FUNCTION;
        assert_true(covers);
    }
}

/* Functions of one generation share an image, so they must not overlap. */
static void assert_generations_do_not_overlap(const struct code_log *log)
{
    for (uint32_t i = 0; i < log->function_count; i++)
        for (uint32_t j = 0; j < i; j++) {
            const struct jit_function *a = &log->functions[i], *b = &log->functions[j];
            if (a->visible && b->visible && a->generation == b->generation)
                assert_true(a->addr + a->size <= b->addr || b->addr + b->size <= a->addr);
        }
}

static void assert_in_order(const struct timeline *timeline)
{
    for (size_t i = 1; i < timeline->change_count; i++)
        assert_true(timeline->changes[i - 1].time_ns <= timeline->changes[i].time_ns);
}

/* A child that is forked at a random time of BUILT, at which it has no record of its own, and wants to know all. */
static void build_child(struct family *family, uint64_t *seed, uint64_t last_ns)
{
    family->fork_ns = 10000;
    for (size_t i = 0; i < built.process.fork_count && family->fork_ns == 10000; i++)
        if (random_below(seed, 3) == 0 || i + 1 == built.process.fork_count) {
            family->fork_ns = built.process.forks[i].at.time_ns;
            built.process.forks[i].heir = &child.process;
        }
    if (family->fork_ns == 10000) {
        family->fork_ns = last_ns + 2 - last_ns % 2;
        build_fork(&built, family->fork_ns, &child.process);
    }
    child.process.parent = &built.process;
    child.process.begin = (struct life_moment){family->fork_ns, 5000};
    child.process.heritage.wanted = malloc(sizeof(struct address_span));
    assert_non_null(child.process.heritage.wanted);
    child.process.heritage.wanted[0] =
        (struct address_span){BASE, BASE + (uint64_t)CELL_BYTES * SPACE};
    child.process.heritage.wanted_count = 1;
    build_random(&child, seed, family->fork_ns + 1, &built);
}

static void play_random(uint64_t seed)
{
    struct family family = {&built, &child, 0};
    struct played played;
    struct findings findings = {0};
    uint64_t samples[MODEL_SAMPLES], time_ns = 1;
    uint32_t pace = 1 + random_below(&seed, 10);
    built.process.load_slack_ns = child.process.load_slack_ns = random_below(&seed, 2) * 7;
    build_child(&family, &seed, build_random(&built, &seed, 0, NULL));
    for (size_t i = 0; i < MODEL_SAMPLES; i++)
        samples[i] = time_ns += 2 * random_below(&seed, pace);
    assert_int_equal(
        timeline_play(&played.parent, &built.process, samples, MODEL_SAMPLES, &findings), 0);
    assert_int_equal(
        timeline_play(&played.child, &child.process, samples, MODEL_SAMPLES, &findings), 0);
    assert_in_order(&played.parent);
    assert_in_order(&played.child);
    for (size_t i = 0; i < MODEL_SAMPLES; i++) {
        assert_seen_at(&family, &played, false, samples[i]);
        if (samples[i] > family.fork_ns)
            assert_seen_at(&family, &played, true, samples[i]);
    }
    assert_dropped_hide_code(&family, &played, false);
    assert_dropped_hide_code(&family, &played, true);
    assert_generations_do_not_overlap(&built.process.log);
    assert_generations_do_not_overlap(&child.process.log);
    timeline_free(&played.parent);
    timeline_free(&played.child);
    findings_free(&findings);
}

static void test_random_sequences_show_what_a_model_knows(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        process_begin(&built);
        process_begin(&child);
        play_random(seed * 7919);
        process_free(&child);
        process_free(&built);
    }
}

#define TIMELINE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

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
        TIMELINE_TEST(test_anonymous_map_over_live_code_is_dropped),
        TIMELINE_TEST(test_memory_has_many_names),
        TIMELINE_TEST(test_anonymous_map_without_live_code_passes),
        TIMELINE_TEST(test_parts_by_which_an_arena_grows_are_restored),
        TIMELINE_TEST(test_arena_that_was_never_mapped_is_restored_around_its_code),
        TIMELINE_TEST(test_memory_over_a_file_is_new),
        TIMELINE_TEST(test_growing_arena_ends_the_moment),
        TIMELINE_TEST(test_map_of_a_file_ends_the_code_below_it),
        TIMELINE_TEST(test_map_of_a_file_ends_a_moment),
        TIMELINE_TEST(test_marker_of_the_dump_is_no_map_of_a_file),
        TIMELINE_TEST(test_code_as_old_as_its_arenas_map_stays),
        TIMELINE_TEST(test_alignment_in_an_arena_that_comes_late_stays_with_the_code),
        TIMELINE_TEST(test_nothing_happens),
        TIMELINE_TEST(test_without_samples_all_is_one_moment),
        TIMELINE_TEST(test_unload_stays_within_its_dump),
        TIMELINE_TEST(test_move_stays_within_its_dump),
        TIMELINE_TEST(test_fork_ends_a_moment),
        TIMELINE_TEST(test_exec_ends_all_code),
        TIMELINE_TEST(test_sample_shortly_before_a_load_sees_it),
        TIMELINE_TEST(test_no_stamp_is_late_where_code_was_unloaded),
        TIMELINE_TEST(test_late_stamp_takes_nothing_from_an_owner),
        TIMELINE_TEST(test_late_stamp_reaches_back_to_the_last_map_or_fork_at_most),
        TIMELINE_TEST(test_the_same_file_again_is_the_arena),
        TIMELINE_TEST(test_another_part_of_the_file_is_not),
        TIMELINE_TEST(test_another_file_is_not),
        TIMELINE_TEST(test_shared_memory_that_comes_late_is_the_arena),
        TIMELINE_TEST(test_huge_pages_are_memory),
        cmocka_unit_test(test_random_sequences_show_what_a_model_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
