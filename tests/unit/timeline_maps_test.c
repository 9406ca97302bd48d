/* The timeline and the profile's mappings: which of them hide code, which are its own memory. */
#include "tests/unit/timeline_text.h"

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
    build_map(&built, 5, 0x1000, 0x2000, "//anon");
    build_load(&built, 10, 0x1f00, 0x200);
    build_map(&built, 20, 0x2000, 0x1000, "/usr/lib/libx.so");
    build_map(&built, 30, 0x2000, 0x1000, "//anon"); /* nothing live is below this one */
    build_unload(&built, 40, 0);
    assert_plays("15 25 35 45", "10:1f00-2100=f0 40:1f00-2000=gone", "");
}

static void test_map_of_a_file_ends_a_moment(void **state)
{
    (void)state;
    build_map(&built, 5, 0x2000, 0x1000, "//anon");
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

/* Records that are added go in front of the profile's own of the same time: the map must not stay
 * behind the code. */
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

/* The arena was not executable, so not recorded, when the code was logged: whatever file it is. */
static void test_file_that_comes_late_is_the_arena(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_map(&built, 20, 0x1000, 0x100, "/dev/shm/x");
    build_load(&built, 30, 0x3000, 0x100);
    build_map(&built, 40, 0x3000, 0x100, "/tmp/arena (deleted)");
    build_load(&built, 50, 0x5000, 0x100);
    build_map(&built, 60, 0x4000, 0x2000, "/usr/bin/program");
    assert_plays(
        "15 35 55 65",
        "10:1000-1100=f0 30:3000-3100=f1 50:5000-5100=f2 60:4000-5000=map2 60:5100-6000=map2",
        "0 1 2");
}

/* The code may be that of another program, which the process was before its exec. */
static void test_file_over_code_from_before_the_process_is_not(void **state)
{
    (void)state;
    built.process.begin.time_ns = 11;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 12, 0x1100, 0x100);
    build_load(&built, 10, 0x3000, 0x100);
    build_map(&built, 20, 0x1000, 0x1000, "/usr/lib/libx.so");
    build_map(&built, 21, 0x3000, 0x1000, "/dev/shm/x");
    build_unload(&built, 30, 0);
    assert_plays("15 25 35",
                 "12:1000-1100=f0 12:1100-1200=f1 12:3000-3100=f2 20:1000-1100=map0 "
                 "20:1200-2000=map0 21:3100-4000=map1",
                 "0 1");
}

/* What was executable when perf record -p or -a began is in the recording: the code there had been
 * freed.  Who knows when the process began knows more. */
static void test_file_over_code_from_before_the_recording_is_not(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 10, 0x3000, 0x100);
    build_load(&built, 16, 0x1100, 0x100);
    build_map(&built, 20, 0x1000, 0x1000, "/usr/lib/libx.so");
    build_map(&built, 21, 0x3000, 0x1000, "/dev/shm/x");
    build_unload(&built, 30, 0);
    assert_plays("15 25 35",
                 "10:1000-1100=f0 10:3000-3100=f1 16:1100-1200=f2 20:1000-1100=map0 "
                 "20:1200-2000=map0 21:3100-4000=map1",
                 "0 1");
}

/* The same of code that a child has inherited. */
static void test_file_over_inherited_code_from_before_the_recording_is_not(void **state)
{
    static struct process_builder child;
    static const uint64_t samples[] = {15, 35, 45};
    struct timeline parents, childs;
    struct findings findings = {0};
    size_t inherited = 0;
    (void)state;
    process_begin(&child);
    build_load(&built, 10, 0x1000, 0x100); /* by its stamp before the first sample */
    build_load(&built, 16, 0x3000, 0x100);
    build_fork(&built, 20, &child.process);
    child.process.parent = &built.process;
    child.process.begin = (struct life_moment){20, 5000};
    child.process.touched = malloc(sizeof(struct address_span));
    assert_non_null(child.process.touched);
    child.process.touched[0] = (struct address_span){0x1000, 0x5000};
    child.process.touched_count = 1;
    build_map(&child, 30, 0x1000, 0x1000, "/usr/lib/libx.so");
    build_map(&child, 31, 0x3000, 0x1000, "/usr/lib/liby.so");
    assert_int_equal(
        timeline_play(&parents, &built.process, NULL, &inherited, samples, 3, &findings), 0);
    assert_int_equal(
        timeline_play(&childs, &child.process, &parents, &inherited, samples, 3, &findings), 0);
    assert_int_equal(childs.dropped_count, 1); /* the library over the first is passed on */
    assert_int_equal(childs.dropped[0], 1001);
    assert_int_equal(childs.change_count, 1);
    assert_int_equal(childs.changes[0].start, 0x3100);
    timeline_free(&parents);
    timeline_free(&childs);
    process_free(&child);
    findings_free(&findings);
}

static void test_file_over_code_from_before_the_first_sample_may_be_the_arena(void **state)
{
    (void)state;
    built.process.begin.time_ns = 5;
    build_load(&built, 10, 0x1000, 0x100);
    build_map(&built, 20, 0x1000, 0x1000, "/usr/lib/libx.so");
    assert_plays("15 25", "10:1000-1100=f0 20:1100-2000=map0", "0");
}

static void test_huge_pages_are_memory(void **state)
{
    (void)state;
    build_load(&built, 10, 0x1000, 0x100);
    build_map(&built, 20, 0x1000, 0x100, "/mnt/huge/x");
    built.maps[0].map.flags = 0x40000; /* MAP_HUGETLB */
    assert_plays("15 25", "10:1000-1100=f0", "0");
}

/* ---- Mappings that perf synthesized after what was recorded ---- */

static void test_a_late_map_in_which_there_was_code_moves_to_its_time(void **state)
{
    (void)state;
    build_map(&built, 0, 0x1000, 0x1000, "//anon");
    build_map(&built, 0, 0x3000, 0x1000, "/memfd:code (deleted)");
    build_map(&built, 0, 0x5000, 0x1000, "/usr/lib/libx.so");
    for (size_t i = 0; i < 3; i++)
        built.maps[i].late = built.maps[i].synthesized = true;
    build_load(&built, 10, 0x1000, 0x100);
    build_load(&built, 20, 0x3f00, 0x100);
    build_map(&built, 22, 0x1000, 0x1000, "//anon"); /* is dropped before the others are */
    build_unload(&built, 30, 1);
    assert_plays("15 25 35",
                 "0:1000-2000=map0 0:3000-4000=map1 10:1000-1100=f0 20:3f00-4000=f1 "
                 "30:3f00-4000=gone",
                 "0 1 3");
}

static void test_a_map_that_was_synthesized_first_stays(void **state)
{
    (void)state;
    build_map(&built, 0, 0x1000, 0x1000, "//anon");
    built.maps[0].synthesized = true;
    build_load(&built, 10, 0x1000, 0x100);
    assert_plays("15", "10:1000-1100=f0", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        TIMELINE_TEST(test_the_same_file_again_is_the_arena),
        TIMELINE_TEST(test_another_part_of_the_file_is_not),
        TIMELINE_TEST(test_another_file_is_not),
        TIMELINE_TEST(test_file_that_comes_late_is_the_arena),
        TIMELINE_TEST(test_file_over_code_from_before_the_process_is_not),
        TIMELINE_TEST(test_file_over_code_from_before_the_recording_is_not),
        TIMELINE_TEST(test_file_over_inherited_code_from_before_the_recording_is_not),
        TIMELINE_TEST(test_file_over_code_from_before_the_first_sample_may_be_the_arena),
        TIMELINE_TEST(test_huge_pages_are_memory),
        TIMELINE_TEST(test_a_late_map_in_which_there_was_code_moves_to_its_time),
        TIMELINE_TEST(test_a_map_that_was_synthesized_first_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
