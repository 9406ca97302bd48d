/* What is added to a stack whose copy ends early: the callers of the same frame in the thread's
 * last whole stack, or those of any frame that ended where this one does. */
#include "injector/unwind/stacks/stack_stitch.h"

#include "tests/unit/eh_frame_section.h"
#include "tests/unit/scratch.h"

#include <elf.h>

enum {
    BASE = 0x400000, /* where the only file is mapped */
    FUNCTION_BYTES = 16,
    FUNCTIONS = 8,
    CALL_BYTES = 5,
    FILE_BYTES = FUNCTIONS * FUNCTION_BYTES,
    THREAD = 7,
    SP = 0x7000, /* of all stacks */
    MOST_FRAMES = 64
};

/* A frame of a test: its address, where it ends, and what its code is: 0 is the file. */
struct frame {
    uint64_t ip, cfa;
    uint32_t what;
};

/* A process with one file of FUNCTIONS functions, which have tables and what code a test puts. */
struct world {
    uint8_t code[FILE_BYTES], tables[1024];
    struct section section;
    struct elf_segment segment;
    struct native_file file, *files;
    uint32_t of_map;
    struct recorded_map map;
    struct records records;
    struct space_source source;
    struct address_space space;
    uint64_t ips[MOST_FRAMES];
    struct walked_frame frames[MOST_FRAMES];
    struct stack_walker walker;
    struct stack_stitches stitches;
};

static struct world world;

static int begin(void **state)
{
    (void)state;
    world = (struct world){.map = {.map = {.start = BASE, .len = FILE_BYTES, .filename = "/file"}},
                           .segment = {0, 0, FILE_BYTES, true},
                           .files = &world.file,
                           .of_map = 1};
    world.section.sink = byte_sink_over(world.tables, sizeof world.tables);
    size_t cie = put_cie(&world.section, 0, 0);
    for (size_t i = 0; i < FUNCTIONS; i++)
        put_fde(&world.section, cie);
    world.records = (struct records){.maps = &world.map, .map_count = 1};
    world.source.records = &world.records;
    world.space.source = &world.source;
    world.file = (struct native_file){.map = &world.map,
                                      .was_read = true,
                                      .debug_sought = true,
                                      .number = 1,
                                      .view = {.bytes = world.code,
                                               .size = FILE_BYTES,
                                               .address_bytes = 8,
                                               .segments = &world.segment,
                                               .segment_count = 1}};
    world.file.view.eh_frame.entries.bytes = world.tables;
    world.file.view.eh_frame.entries.size = world.section.sink.size;
    world.walker = (struct stack_walker){
        .source = &world.source,
        .machine = machine_numbered(EM_X86_64),
        .files = {.records = &world.records, .of_map = &world.of_map, .items = &world.files},
        .ips = world.ips,
        .frames = world.frames,
        .ip_most = MOST_FRAMES,
        .space = &world.space};
    return address_map_set(&world.space.map, BASE, BASE + FILE_BYTES, 0);
}

static int end(void **state)
{
    (void)state;
    stack_stitches_free(&world.stitches);
    frame_section_free(&world.file.view.eh_frame);
    address_map_free(&world.space.map);
    return 0;
}

/* An address in function NUMBER, which is OFFSET bytes behind its begin. */
static uint64_t in_function(uint64_t number, uint64_t offset)
{
    return BASE + number * FUNCTION_BYTES + offset;
}

/* Put a call (or a jump, OPCODE 0xe9) of function TO into function FROM, at OFFSET. */
static void put_branch(uint8_t opcode, size_t from, size_t offset, size_t to)
{
    size_t at = from * FUNCTION_BYTES + offset;
    int32_t by = (int32_t)(to * FUNCTION_BYTES) - (int32_t)(at + CALL_BYTES);
    world.code[at] = opcode;
    memcpy(world.code + at + 1, &by, sizeof by);
}

static void put_call(size_t from, size_t offset, size_t to)
{
    put_branch(0xe8, from, offset, to);
}

/* The walker found these COUNT frames, the innermost first, and then END. */
static enum stack_end walked(uint64_t thread, enum stack_end end, const struct frame *frames,
                             size_t count)
{
    for (size_t i = 0; i < MOST_FRAMES; i++) { /* what is left of an earlier stack is no good */
        world.ips[i] = 0xdead;
        world.frames[i] = (struct walked_frame){0xdead, 0xdead, false};
    }
    for (size_t i = 0; i < count; i++) {
        world.ips[i] = frames[i].ip;
        world.frames[i] = (struct walked_frame){frames[i].cfa, frames[i].what, false};
    }
    world.walker.ip_count = count;
    return stack_stitch(&world.stitches, &world.walker, thread, end);
}

#define COUNT(...) (sizeof(struct frame[]){__VA_ARGS__} / sizeof(struct frame))
#define WALKED(thread, end, ...)                                                                   \
    walked(thread, end, (const struct frame[]){__VA_ARGS__}, COUNT(__VA_ARGS__))

#define assert_whole(thread, ...)                                                                  \
    assert_int_equal(WALKED(thread, STACK_WHOLE, __VA_ARGS__), STACK_WHOLE)

/* Of a stack with END nothing is added. */
#define assert_stays(thread, end, ...)                                                             \
    assert_int_equal(WALKED(thread, end, __VA_ARGS__), end);                                       \
    assert_int_equal(world.walker.ip_count, COUNT(__VA_ARGS__))

/* The walker's addresses are these COUNT. */
static void assert_ips(const uint64_t *ips, size_t count)
{
    assert_int_equal(world.walker.ip_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(world.ips[i], ips[i]);
}

#define ASSERT_IPS(...)                                                                            \
    assert_ips((const uint64_t[]){__VA_ARGS__}, sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))

/* ---- Frames that the last whole stack has ---- */

static void test_a_frame_of_the_last_whole_stack_has_its_callers(void **state)
{
    (void)state;
    assert_whole(THREAD, {1, 0x100, 5}, {2, 0x200, 6}, {3, 0x300, 7}, {4, 0x400, 8});
    assert_int_equal(WALKED(THREAD, STACK_CUT, {9, 0x50, 9}, {2, 0x200, 6}), STACK_WHOLE);
    ASSERT_IPS(9, 2, 3, 4);
    assert_int_equal(WALKED(THREAD, STACK_OUTSIDE, {1, 0x100, 5}), STACK_WHOLE);
    ASSERT_IPS(1, 2, 3, 4);
}

static void test_another_frame_than_the_kept_one_has_no_callers(void **state)
{
    (void)state;
    assert_whole(THREAD, {1, 0x100, 5}, {2, 0x200, 6}, {3, 0x300, 7});
    assert_stays(THREAD, STACK_CUT, {2, 0x208, 6}); /* ends elsewhere */
    assert_stays(THREAD, STACK_CUT, {2, 0x200, 5}); /* other code */
    assert_stays(THREAD, STACK_CUT, {3, 0x200, 6}); /* calls from elsewhere */
    assert_stays(THREAD + 1, STACK_CUT, {2, 0x200, 6});
    assert_int_equal(WALKED(THREAD, STACK_CUT, {2, 0x200, 6}), STACK_WHOLE);
}

/* The same function calls itself from the same place: only where its frame ends tells which it is.
 */
static void test_of_a_recursion_of_three_depths_the_one_that_ends_there(void **state)
{
    (void)state;
    assert_whole(THREAD, {2, 0x100, 6}, {2, 0x200, 6}, {2, 0x300, 6}, {4, 0x400, 8});
    assert_int_equal(WALKED(THREAD, STACK_CUT, {2, 0x200, 6}), STACK_WHOLE);
    ASSERT_IPS(2, 2, 4);
    assert_int_equal(WALKED(THREAD, STACK_CUT, {2, 0x300, 6}), STACK_WHOLE);
    ASSERT_IPS(2, 4);
    assert_int_equal(WALKED(THREAD, STACK_CUT, {2, 0x100, 6}), STACK_WHOLE);
    ASSERT_IPS(2, 2, 2, 4);
}

/* A function without a frame of its own ends where its caller does. */
static void test_of_two_frames_that_end_at_one_place_the_one_of_that_code(void **state)
{
    (void)state;
    assert_whole(THREAD, {1, 0x100, 5}, {2, 0x200, 6}, {2, 0x200, 7}, {3, 0x200, 7}, {4, 0x400, 8});
    assert_int_equal(WALKED(THREAD, STACK_CUT, {2, 0x200, 7}), STACK_WHOLE);
    ASSERT_IPS(2, 3, 4);
    assert_int_equal(WALKED(THREAD, STACK_CUT, {3, 0x200, 7}), STACK_WHOLE);
    ASSERT_IPS(3, 4);
}

static void test_the_outermost_frame_has_no_callers_and_stays_cut(void **state)
{
    (void)state;
    assert_whole(THREAD, {1, 0x100, 5}, {2, 0x200, 6});
    assert_stays(THREAD, STACK_CUT, {2, 0x200, 6});
    assert_stays(THREAD, STACK_CUT, {1, 0x100, 5}, {2, 0x200, 6});
}

static void test_a_chain_with_room_for_all_callers_and_for_one_less(void **state)
{
    (void)state;
    assert_whole(THREAD, {1, 0x100, 5}, {2, 0x200, 6}, {3, 0x300, 7}, {4, 0x400, 8});
    world.walker.ip_most = 3;
    assert_int_equal(WALKED(THREAD, STACK_CUT, {2, 0x200, 6}), STACK_WHOLE);
    ASSERT_IPS(2, 3, 4);
    assert_stays(THREAD, STACK_CUT, {9, 0x50, 9}, {2, 0x200, 6});
    assert_int_equal(world.ips[2], 0xdead);
}

static void test_the_callers_are_those_of_the_latest_whole_stack(void **state)
{
    (void)state;
    assert_whole(THREAD, {1, 0x100, 5}, {2, 0x200, 6}, {3, 0x300, 7}, {4, 0x400, 8});
    assert_whole(THREAD, {1, 0x100, 5}, {9, 0x300, 7});
    assert_int_equal(WALKED(THREAD, STACK_CUT, {1, 0x100, 5}), STACK_WHOLE);
    ASSERT_IPS(1, 9);
    assert_stays(THREAD, STACK_CUT, {2, 0x200, 6}); /* it is in none of that one's frames */
}

static void test_a_stack_that_was_completed_is_not_kept(void **state)
{
    (void)state;
    assert_whole(THREAD, {1, 0x100, 5}, {2, 0x200, 6}, {3, 0x300, 7});
    assert_int_equal(WALKED(THREAD, STACK_CUT, {9, 0x50, 9}, {1, 0x100, 5}), STACK_WHOLE);
    assert_stays(THREAD, STACK_CUT, {9, 0x50, 9});
    assert_int_equal(WALKED(THREAD, STACK_CUT, {2, 0x200, 6}), STACK_WHOLE);
    ASSERT_IPS(2, 3);
}

static void test_other_ends_and_unknown_frames_stay_as_they_are(void **state)
{
    static const enum stack_end ends[] = {STACK_NO_TABLE, STACK_WRONG, STACK_NOT_READ};
    (void)state;
    assert_whole(THREAD, {1, 0, 5}, {2, 0x200, 6}, {3, 0x300, 7});
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        assert_stays(THREAD, ends[i], {2, 0x200, 6});
    }
    assert_stays(THREAD, STACK_CUT, {1, 0, 5}); /* where it ends is not known */
    assert_int_equal(walked(THREAD, STACK_CUT, NULL, 0), STACK_CUT);
    assert_int_equal(world.walker.ip_count, 0);
}

static void test_a_whole_stack_of_one_frame_is_nobodys_caller(void **state)
{
    (void)state;
    assert_whole(THREAD, {1, 0x100, 5});
    assert_stays(THREAD, STACK_CUT, {1, 0x100, 5});
}

/* Thread number T of some lives that have some threads each. */
static uint64_t thread_number(uint64_t t)
{
    return t % 10 << 32 | t * 7;
}

/* As many as make the table grow some times, with stacks of many lengths. */
static void test_1000_threads_have_callers_of_their_own(void **state)
{
    enum { THREADS = 1000 };
    (void)state;
    for (uint64_t t = 0; t < THREADS; t++) {
        struct frame frames[MOST_FRAMES];
        size_t count = 2 + t % (MOST_FRAMES - 2);
        for (size_t i = 0; i < count; i++)
            frames[i] = (struct frame){1 + (i ? i + t * 100 : 0), 0x100 + i, 5};
        assert_int_equal(walked(thread_number(t), STACK_WHOLE, frames, count), STACK_WHOLE);
    }
    for (uint64_t t = 0; t < THREADS; t++) {
        size_t count = 2 + t % (MOST_FRAMES - 2);
        assert_int_equal(WALKED(thread_number(t), STACK_CUT, {1, 0x100, 5}), STACK_WHOLE);
        assert_int_equal(world.walker.ip_count, count);
        assert_int_equal(world.ips[count - 1], count + t * 100);
    }
}

/* ---- Frames that no whole stack has ---- */

/* A whole stack: function 1, which function 2 called from CALLED_FROM, and that one's callers. */
static void keep_caller(uint64_t called_from)
{
    assert_whole(THREAD, {in_function(1, 3), SP, 0}, {in_function(2, called_from), SP + 0x40, 0},
                 {in_function(3, 2), SP + 0x80, 0});
}

static void test_a_frame_that_ends_where_another_did_was_called_by_its_caller(void **state)
{
    (void)state;
    put_call(2, 1, 1);
    put_call(2, 8, 5);
    keep_caller(5);
    assert_int_equal(WALKED(THREAD, STACK_CUT, {9, 0x50, 9}, {in_function(5, 4), SP, 0}),
                     STACK_WHOLE);
    ASSERT_IPS(9, in_function(5, 4), in_function(2, 12), in_function(3, 2));
}

static void test_code_that_does_not_call_it_once_is_not_its_caller(void **state)
{
    (void)state;
    put_call(2, 1, 1);
    keep_caller(5);
    assert_stays(THREAD, STACK_CUT, {in_function(5, 4), SP, 0}); /* no call */
    put_call(2, 1, 6);
    put_call(2, 8, 6);
    assert_stays(THREAD, STACK_CUT, {in_function(6, 4), SP, 0}); /* two of them */
    assert_stays(THREAD, STACK_CUT, {in_function(FUNCTIONS, 4), SP, SPACE_NOTHING});
}

/* What the code of the frame's caller was is gone from its addresses. */
static void test_code_that_is_there_no_more_is_not_its_caller(void **state)
{
    (void)state;
    put_call(2, 8, 5);
    keep_caller(5);
    assert_int_equal(
        address_map_set(&world.space.map, in_function(2, 0), in_function(3, 0), SPACE_NOTHING), 0);
    assert_stays(THREAD, STACK_CUT, {in_function(5, 4), SP, 0});
}

static void test_of_two_calls_one_of_a_function_that_goes_on_in_it(void **state)
{
    (void)state;
    put_call(2, 1, 6);
    put_call(2, 8, 5);
    put_branch(0xe9, 6, 2, 5);
    keep_caller(5);
    assert_stays(THREAD, STACK_CUT, {in_function(5, 4), SP, 0});
}

static void test_known_callers_are_of_that_thread_and_that_place(void **state)
{
    (void)state;
    put_call(2, 8, 5);
    keep_caller(5);
    assert_stays(THREAD + 1, STACK_CUT, {in_function(5, 4), SP, 0});
    assert_stays(THREAD, STACK_CUT, {in_function(5, 4), SP + 8, 0});
    assert_stays(THREAD, STACK_CUT, {in_function(5, 4), SP + 0x80, 0}); /* the outermost's */
    assert_int_equal(WALKED(THREAD, STACK_CUT, {in_function(5, 4), SP, 0}), STACK_WHOLE);
}

/* The places of these two threads are one number to the table. */
static void test_a_place_of_two_threads_that_are_mixed_alike(void **state)
{
    const uint64_t one = 1, other = UINT64_C(1) << 52;
    (void)state;
    put_call(2, 8, 5);
    assert_whole(one, {in_function(1, 3), SP, 0}, {in_function(2, 5), SP + 0x40, 0});
    assert_stays(other, STACK_CUT, {in_function(5, 4), SP, 0});
    assert_whole(other, {in_function(1, 3), SP, 0}, {in_function(2, 5), SP + 0x40, 0},
                 {in_function(3, 2), SP + 0x80, 0});
    assert_int_equal(WALKED(one, STACK_CUT, {in_function(5, 4), SP, 0}), STACK_WHOLE);
    ASSERT_IPS(in_function(5, 4), in_function(2, 12));
    assert_int_equal(WALKED(other, STACK_CUT, {in_function(5, 4), SP, 0}), STACK_WHOLE);
    ASSERT_IPS(in_function(5, 4), in_function(2, 12), in_function(3, 2));
}

static void test_known_callers_with_room_for_all_and_for_one_less(void **state)
{
    (void)state;
    put_call(2, 8, 5);
    keep_caller(5);
    world.walker.ip_most = 3;
    assert_int_equal(WALKED(THREAD, STACK_CUT, {in_function(5, 4), SP, 0}), STACK_WHOLE);
    ASSERT_IPS(in_function(5, 4), in_function(2, 12), in_function(3, 2));
    assert_stays(THREAD, STACK_CUT, {9, 0x50, 9}, {in_function(5, 4), SP, 0});
    assert_int_equal(world.ips[2], 0xdead);
}

/* The address inside the call is kept with the callee: another one, and the same, are asked for. */
static void test_of_one_place_two_callees_in_turn(void **state)
{
    (void)state;
    put_call(2, 1, 6);
    put_call(2, 8, 5);
    keep_caller(5);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(WALKED(THREAD, STACK_CUT, {in_function(5, 4), SP, 0}), STACK_WHOLE);
        ASSERT_IPS(in_function(5, 4), in_function(2, 12), in_function(3, 2));
        assert_int_equal(WALKED(THREAD, STACK_CUT, {in_function(6, 4), SP, 0}), STACK_WHOLE);
        ASSERT_IPS(in_function(6, 4), in_function(2, 5), in_function(3, 2));
        assert_stays(THREAD, STACK_CUT, {in_function(7, 4), SP, 0});
    }
}

static void test_the_latest_whole_stack_tells_who_calls_from_there(void **state)
{
    (void)state;
    put_call(2, 8, 5);
    put_call(4, 8, 5);
    keep_caller(5);
    assert_int_equal(WALKED(THREAD, STACK_CUT, {in_function(5, 4), SP, 0}), STACK_WHOLE);
    assert_whole(THREAD, {in_function(1, 3), SP, 0}, {in_function(4, 5), SP + 0x20, 0},
                 {in_function(7, 2), SP + 0x80, 0});
    assert_int_equal(WALKED(THREAD, STACK_CUT, {in_function(5, 4), SP, 0}), STACK_WHOLE);
    ASSERT_IPS(in_function(5, 4), in_function(4, 12), in_function(7, 2));
    assert_whole(THREAD, {in_function(6, 3), SP + 0x10, 0}); /* it says nothing of that place */
    assert_int_equal(WALKED(THREAD, STACK_CUT, {in_function(5, 4), SP, 0}), STACK_WHOLE);
    ASSERT_IPS(in_function(5, 4), in_function(4, 12), in_function(7, 2));
}

static void test_a_frame_of_which_the_end_is_unknown_tells_nothing(void **state)
{
    (void)state;
    put_call(2, 8, 5);
    put_call(3, 8, 5);
    assert_whole(THREAD, {in_function(1, 3), 0, 0}, {in_function(2, 5), SP, 0},
                 {in_function(3, 2), SP + 0x80, 0});
    assert_int_equal(WALKED(THREAD, STACK_CUT, {in_function(5, 4), SP, 0}), STACK_WHOLE);
    ASSERT_IPS(in_function(5, 4), in_function(3, 12));
}

/* As many as make the table grow twice. */
static void test_callers_of_5000_places(void **state)
{
    enum { PLACES = 5000 };
    (void)state;
    put_call(2, 8, 5);
    for (uint64_t i = 0; i < PLACES; i++) {
        assert_whole(THREAD, {in_function(1, 3), SP + 8 * i, 0}, {in_function(2, 5), 0, 0},
                     {in_function(3, i % 16), 0, 0});
    }
    for (uint64_t i = 0; i < PLACES; i++) {
        assert_int_equal(WALKED(THREAD, STACK_CUT, {in_function(5, 4), SP + 8 * i, 0}),
                         STACK_WHOLE);
        ASSERT_IPS(in_function(5, 4), in_function(2, 12), in_function(3, i % 16));
    }
}

#define STITCH_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STITCH_TEST(test_a_frame_of_the_last_whole_stack_has_its_callers),
        STITCH_TEST(test_another_frame_than_the_kept_one_has_no_callers),
        STITCH_TEST(test_of_a_recursion_of_three_depths_the_one_that_ends_there),
        STITCH_TEST(test_of_two_frames_that_end_at_one_place_the_one_of_that_code),
        STITCH_TEST(test_the_outermost_frame_has_no_callers_and_stays_cut),
        STITCH_TEST(test_a_chain_with_room_for_all_callers_and_for_one_less),
        STITCH_TEST(test_the_callers_are_those_of_the_latest_whole_stack),
        STITCH_TEST(test_a_stack_that_was_completed_is_not_kept),
        STITCH_TEST(test_other_ends_and_unknown_frames_stay_as_they_are),
        STITCH_TEST(test_a_whole_stack_of_one_frame_is_nobodys_caller),
        STITCH_TEST(test_1000_threads_have_callers_of_their_own),
        STITCH_TEST(test_a_frame_that_ends_where_another_did_was_called_by_its_caller),
        STITCH_TEST(test_code_that_does_not_call_it_once_is_not_its_caller),
        STITCH_TEST(test_code_that_is_there_no_more_is_not_its_caller),
        STITCH_TEST(test_of_two_calls_one_of_a_function_that_goes_on_in_it),
        STITCH_TEST(test_known_callers_are_of_that_thread_and_that_place),
        STITCH_TEST(test_a_place_of_two_threads_that_are_mixed_alike),
        STITCH_TEST(test_known_callers_with_room_for_all_and_for_one_less),
        STITCH_TEST(test_of_one_place_two_callees_in_turn),
        STITCH_TEST(test_the_latest_whole_stack_tells_who_calls_from_there),
        STITCH_TEST(test_a_frame_of_which_the_end_is_unknown_tells_nothing),
        STITCH_TEST(test_callers_of_5000_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
