/* What the last whole stack of a thread tells of one that was cut. */
#include "injector/stacks/stack_stitch.h"

#include "tests/unit/scratch.h"

enum { THREAD = 7, OTHER_THREAD = 8, MOST = 8 };

static struct stack_stitches stitches;
static const struct space_source source;
static const struct address_space nowhere = {.source = &source};

/* A stack under way: frame I has the address 100 * I, ends at 10 * I and is in what is called I. */
static uint64_t ips[MOST];
static struct walked_frame frames[MOST];
static struct stack_walker walker;

static int begin(void **state)
{
    (void)state;
    stitches = (struct stack_stitches){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    stack_stitches_free(&stitches);
    return 0;
}

/* The COUNT frames from FIRST on. */
static void put_frames(uint32_t first, size_t count)
{
    walker = (struct stack_walker){
        .ips = ips, .frames = frames, .ip_count = count, .ip_most = MOST, .space = &nowhere};
    for (uint32_t i = 0; i < count; i++) {
        ips[i] = 100 * (first + i);
        frames[i] =
            (struct walked_frame){.cfa = 10 * (first + i), .what = SPACE_NOTHING - first - i};
    }
}

static void keep_whole(uint64_t thread, uint32_t first, size_t count)
{
    put_frames(first, count);
    assert_int_equal(stack_stitch(&stitches, &walker, thread, STACK_WHOLE), STACK_WHOLE);
    assert_int_equal(walker.ip_count, count);
}

static void expect_frames(uint32_t first, size_t count)
{
    assert_int_equal(walker.ip_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(walker.ips[i], 100 * (first + i));
}

static enum stack_end stitch(uint64_t thread)
{
    return stack_stitch(&stitches, &walker, thread, STACK_CUT);
}

static void test_a_frame_of_the_last_whole_stack_has_its_callers(void **state)
{
    (void)state;
    keep_whole(THREAD, 3, 4);
    put_frames(1, 3);
    assert_int_equal(stitch(THREAD), STACK_WHOLE);
    expect_frames(1, 6);
    put_frames(5, 1);
    assert_int_equal(stack_stitch(&stitches, &walker, THREAD, STACK_OUTSIDE), STACK_WHOLE);
    expect_frames(5, 2);
}

static void test_the_outermost_frame_of_the_last_whole_stack_has_none(void **state)
{
    (void)state;
    keep_whole(THREAD, 3, 4);
    put_frames(5, 2);
    assert_int_equal(stitch(THREAD), STACK_CUT);
    expect_frames(5, 2);
}

static void test_a_frame_that_differs_in_its_end_its_code_or_its_address(void **state)
{
    (void)state;
    keep_whole(THREAD, 3, 4);
    put_frames(1, 3);
    frames[2].cfa++;
    assert_int_equal(stitch(THREAD), STACK_CUT);
    put_frames(1, 3);
    frames[2].what++;
    assert_int_equal(stitch(THREAD), STACK_CUT);
    put_frames(1, 3);
    ips[2]++;
    assert_int_equal(stitch(THREAD), STACK_CUT);
    put_frames(1, 3);
    frames[2].cfa = 0; /* where it ends is not known */
    assert_int_equal(stitch(THREAD), STACK_CUT);
}

static void test_callers_that_the_record_has_just_room_for(void **state)
{
    (void)state;
    keep_whole(THREAD, 3, 4);
    put_frames(1, 3);
    walker.ip_most = 6;
    assert_int_equal(stitch(THREAD), STACK_WHOLE);
    expect_frames(1, 6);
    put_frames(1, 3);
    walker.ip_most = 5;
    assert_int_equal(stitch(THREAD), STACK_CUT);
    expect_frames(1, 3);
}

static void test_the_stack_of_another_thread_says_nothing(void **state)
{
    (void)state;
    keep_whole(OTHER_THREAD, 3, 4);
    put_frames(1, 3);
    assert_int_equal(stitch(THREAD), STACK_CUT);
}

static void test_the_last_whole_stack_takes_the_place_of_the_one_before(void **state)
{
    (void)state;
    keep_whole(THREAD, 3, 4);
    keep_whole(THREAD, 4, 2);
    put_frames(1, 3);
    assert_int_equal(stitch(THREAD), STACK_CUT);
    put_frames(2, 3);
    assert_int_equal(stitch(THREAD), STACK_WHOLE);
    expect_frames(2, 4);
}

static void test_ends_that_no_other_stack_helps(void **state)
{
    const enum stack_end ends[] = {STACK_NO_TABLE, STACK_WRONG, STACK_NOT_READ};
    (void)state;
    keep_whole(THREAD, 3, 4);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        put_frames(1, 3);
        assert_int_equal(stack_stitch(&stitches, &walker, THREAD, ends[i]), ends[i]);
        expect_frames(1, 3);
    }
}

static void test_200_threads_have_a_stack_each(void **state)
{
    (void)state;
    for (uint32_t thread = 1; thread <= 200; thread++) {
        keep_whole(thread, thread, 4);
        assert_int_equal(stitches.thread_count, thread);
    }
    for (uint32_t thread = 1; thread <= 200; thread++) {
        put_frames(thread, 1);
        assert_int_equal(stitch(thread), STACK_WHOLE);
        expect_frames(thread, 4);
    }
    assert_int_equal(stitches.thread_count, 200);
}

/* Of each whole stack the frames but the outermost have a caller; a frame that comes again counts
 * once. */
static void test_2000_frames_have_a_known_caller_each(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2000; i++) {
        keep_whole(THREAD, 1 + 2 * i, 2);
        assert_int_equal(stitches.known.count, i + 1);
    }
    keep_whole(THREAD, 1, 2);
    assert_int_equal(stitches.known.count, 2000);
}

#define STITCH_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STITCH_TEST(test_a_frame_of_the_last_whole_stack_has_its_callers),
        STITCH_TEST(test_the_outermost_frame_of_the_last_whole_stack_has_none),
        STITCH_TEST(test_a_frame_that_differs_in_its_end_its_code_or_its_address),
        STITCH_TEST(test_callers_that_the_record_has_just_room_for),
        STITCH_TEST(test_the_stack_of_another_thread_says_nothing),
        STITCH_TEST(test_the_last_whole_stack_takes_the_place_of_the_one_before),
        STITCH_TEST(test_ends_that_no_other_stack_helps),
        STITCH_TEST(test_200_threads_have_a_stack_each),
        STITCH_TEST(test_2000_frames_have_a_known_caller_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
