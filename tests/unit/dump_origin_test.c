/* Whether a file is what a process mapped: device, inode, generation and age; header and mapping.
 */
#include "injector/log/owner/dump_origin.h"

#include "tests/unit/dump_builder.h"

#include <sys/sysmacros.h>

#define SEC UINT64_C(1000000000)

static const struct dump_origin origin = {.recorded_wall_ns = 1000 * SEC,
                                          .written_wall_ns = 1000 * SEC};

static struct perf_map map_of(uint64_t ino, uint64_t generation)
{
    return (struct perf_map){
        .has_inode = true, .maj = 8, .min = 1, .ino = ino, .generation = generation};
}

static struct jit_dump dump_of(ino_t ino, bool has_generation, uint32_t generation,
                               uint64_t born_ns)
{
    return (struct jit_dump){.dev = makedev(8, 1),
                             .ino = ino,
                             .has_generation = has_generation,
                             .generation = generation,
                             .born_ns = born_ns};
}

static void assert_identity(struct perf_map map, struct jit_dump dump, enum file_identity wanted)
{
    assert_int_equal(dump_origin_compare(&origin, &map, &dump), wanted);
}

static void test_device_inode_and_generation(void **state)
{
    (void)state;
    assert_identity(map_of(7, 5), dump_of(7, true, 5, 0), FILE_SAME);
    assert_identity(map_of(7, 5), dump_of(7, true, 6, 0), FILE_OTHER);
    assert_identity(map_of(7, 5), dump_of(8, true, 5, 0), FILE_OTHER);
    struct jit_dump elsewhere = dump_of(7, true, 5, 0);
    elsewhere.dev = makedev(8, 2);
    assert_identity(map_of(7, 5), elsewhere, FILE_UNKNOWN);
}

/* Whose devices may have the numbers of this one's. */
static void test_an_inode_of_another_machine_says_nothing(void **state)
{
    const struct dump_origin others = {.recorded_wall_ns = 1000 * SEC,
                                       .written_wall_ns = 1000 * SEC,
                                       .host = {.name = "another machine"}};
    struct perf_map map = map_of(7, 5);
    struct jit_dump dump = dump_of(8, true, 5, 0);
    (void)state;
    assert_int_equal(dump_origin_compare(&others, &map, &dump), FILE_UNKNOWN);
}

static void test_an_mmap_without_inode_says_nothing(void **state)
{
    struct perf_map map = map_of(7, 5);
    (void)state;
    map.has_inode = false;
    assert_identity(map, dump_of(7, true, 5, 0), FILE_UNKNOWN);
}

/* perf makes up records of what was mapped before it came from /proc, which has no generations;
 * tmpfs does not tell its own. */
static void test_without_generations_the_file_is_as_old_as_the_recording(void **state)
{
    (void)state;
    assert_identity(map_of(7, 0), dump_of(7, true, 5, 999 * SEC), FILE_SAME);
    assert_identity(map_of(7, 0), dump_of(7, true, 5, 1001 * SEC), FILE_OTHER);
    assert_identity(map_of(7, 5), dump_of(7, false, 0, 999 * SEC), FILE_SAME);
    assert_identity(map_of(7, 5), dump_of(7, false, 0, 1001 * SEC), FILE_OTHER);
    assert_identity(map_of(7, 5), dump_of(7, false, 0, 0), FILE_SAME);
}

/* The time at which perf.data was written may be wrong, as that of a copy: it proves no other file,
 * but leaves doubt. */
static void test_what_is_proven(void **state)
{
    struct dump_origin without = {.recorded_wall_ns = UINT64_MAX, .written_wall_ns = 1000 * SEC};
    struct perf_map map = map_of(7, 0);
    struct jit_dump old = dump_of(7, true, 5, 999 * SEC), young = dump_of(7, true, 5, 1001 * SEC);
    (void)state;
    assert_true(dump_origin_is_proven(&without, &map, &old));
    assert_int_equal(dump_origin_compare(&without, &map, &young), FILE_SAME);
    assert_false(dump_origin_is_proven(&without, &map, &young));
    young.born_ns = 0; /* not told: NFS, and tmpfs of old kernels */
    assert_false(dump_origin_is_proven(&without, &map, &young));
    map.generation = 5;
    assert_true(dump_origin_is_proven(&without, &map, &young));
    map.generation = 6;
    assert_false(dump_origin_is_proven(&without, &map, &young));
}

/* ---- Header and mapping ---- */

static struct dump_builder built;
static struct jit_dump dump;

/* A dump with a header of HEADER and a function of FIRST_NS. */
static void build(uint64_t header, uint64_t first_ns)
{
    char cause[256];
    dump_begin(&built, false, JITHEADER_BYTES);
    memcpy(built.bytes + JITHEADER_TIMESTAMP, &header, sizeof header);
    dump_load(&built, first_ns, 0x100000, "first", "code", 1);
    assert_int_equal(
        jit_dump_view(&dump, "a.dump", built.bytes, built.sink.size, cause, sizeof cause), 0);
}

static uint64_t distance_of(const struct dump_origin *from, uint64_t marker_ns,
                            struct jit_clock clock)
{
    const struct recorded_map marker = {.time_ns = marker_ns, .synthesized = marker_ns == 0};
    return dump_origin_distance(from, &marker, &dump, &clock);
}

static const struct jit_clock same;

static void test_header_before_and_after_the_mapping(void **state)
{
    (void)state;
    build(10 * SEC, 11 * SEC);
    assert_int_equal(distance_of(&origin, 10 * SEC + 5, same), 5);
    assert_int_equal(distance_of(&origin, 10 * SEC - 5, same), 5);
    build(10 * SEC, 10 * SEC - 900000); /* JSC's first record is older */
    assert_int_equal(distance_of(&origin, 10 * SEC + 5, same), 5);
}

/* CLOCK_MONOTONIC_RAW may just be so far behind now as two processes began after each other. */
static void test_a_header_is_further_by_a_clock_that_its_flags_do_not_name(void **state)
{
    const struct jit_clock other = {.unflagged = true};
    (void)state;
    build(10 * SEC, 11 * SEC);
    uint64_t near = distance_of(&origin, 10 * SEC, other);
    assert_true(near > distance_of(&origin, 10 * SEC + SEC / 200, same));
    assert_true(near < distance_of(&origin, 10 * SEC + SEC / 50, same));
    assert_int_equal(distance_of(&origin, 10 * SEC + 5, other), near + 5);
}

static void test_times_that_say_nothing(void **state)
{
    (void)state;
    build(10 * SEC, 11 * SEC);
    assert_true(distance_of(&origin, 0, same) == DISTANCE_UNKNOWN);
    assert_true(distance_of(&origin, 10 * SEC, (struct jit_clock){.by_marker = true}) ==
                DISTANCE_UNKNOWN);
    assert_true(distance_of(&origin, 10 * SEC, (struct jit_clock){.frozen = true}) ==
                DISTANCE_UNKNOWN);
    build(UINT64_C(1700000000000000), 11 * SEC); /* V8's, and no wall clock in the recording */
    assert_true(distance_of(&origin, 10 * SEC, same) == DISTANCE_UNKNOWN);
    build(12 * SEC, 11 * SEC - SEC / 2); /* longer after the first record than any runtime takes */
    assert_true(distance_of(&origin, 10 * SEC, same) == DISTANCE_UNKNOWN);
}

/* V8 and CPython: microseconds of the wall clock, which the recording has beside perf's own. */
static void test_a_header_of_the_wall_clock(void **state)
{
    struct dump_origin with_wall = origin;
    (void)state;
    with_wall.host = (struct recording_host){
        .has_wall_clock = true, .wall_ns = 1700000000 * SEC, .perf_ns = 10 * SEC};
    build(UINT64_C(1700000000003000), 11 * SEC);
    assert_int_equal(distance_of(&with_wall, 10 * SEC, same), 3000000);
    build(10 * SEC, 11 * SEC);
    assert_int_equal(distance_of(&with_wall, 10 * SEC + 5, same), 5);
}

/* ---- Lives ---- */

/* How many of two functions, of 100 and of 200 ns, fit a life from BEGIN_NS to END_NS. */
static size_t fit(uint64_t begin_ns, uint64_t end_ns, uint64_t slack_ns, size_t limit)
{
    const struct process_life life = {.begin = {.time_ns = begin_ns}, .end_ns = end_ns};
    size_t total = 0;
    build(50, 100);
    dump_load(&built, 200, 0x200000, "second", "code", 2);
    char cause[256];
    assert_int_equal(
        jit_dump_view(&dump, "a.dump", built.bytes, built.sink.size, cause, sizeof cause), 0);
    size_t fitting = dump_origin_fit(&life, &dump, &same, slack_ns, limit, &total);
    assert_int_equal(total, fitting < limit ? 2 : fitting);
    return fitting;
}

static void test_functions_of_a_lifes_first_and_last_moment_fit(void **state)
{
    (void)state;
    assert_int_equal(fit(100, 200, 0, SIZE_MAX), 2);
    assert_int_equal(fit(101, 200, 0, SIZE_MAX), 1);
    assert_int_equal(fit(100, 199, 0, SIZE_MAX), 1);
    assert_int_equal(fit(101, 199, 0, SIZE_MAX), 0);
    assert_int_equal(fit(101, 199, 1, SIZE_MAX), 2);
    assert_int_equal(fit(102, 198, 1, SIZE_MAX), 0);
    assert_int_equal(fit(100, 200, 0, 1), 1);
}

static void test_slack_before_time_0_and_behind_all_times(void **state)
{
    (void)state;
    assert_int_equal(fit(1, UINT64_MAX, 1000, SIZE_MAX), 2);
    assert_int_equal(fit(0, UINT64_MAX - 1, 1000, SIZE_MAX), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_inode_and_generation),
        cmocka_unit_test(test_an_inode_of_another_machine_says_nothing),
        cmocka_unit_test(test_an_mmap_without_inode_says_nothing),
        cmocka_unit_test(test_without_generations_the_file_is_as_old_as_the_recording),
        cmocka_unit_test(test_what_is_proven),
        cmocka_unit_test(test_header_before_and_after_the_mapping),
        cmocka_unit_test(test_a_header_is_further_by_a_clock_that_its_flags_do_not_name),
        cmocka_unit_test(test_times_that_say_nothing),
        cmocka_unit_test(test_a_header_of_the_wall_clock),
        cmocka_unit_test(test_functions_of_a_lifes_first_and_last_moment_fit),
        cmocka_unit_test(test_slack_before_time_0_and_behind_all_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
