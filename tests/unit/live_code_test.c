/* Which records a ring keeps: of functions that are alive, of pieces, and of what has overwritten
 * others. */
#include "jitdump/ring/live_code.h"

#include "tests/unit/dump_builder.h"

#include <errno.h>
#include <inttypes.h>

enum { FIRST_INDEX = 10, SIZE = 0x100, LOAD_BYTES = 56 + 2 + SIZE };

static struct dump_builder dump;
static struct live_code live;
static uint64_t now; /* the time of the next record */

static int begin(void **state)
{
    (void)state;
    dump_begin(&dump, false, JITHEADER_BYTES);
    live = (struct live_code){0};
    now = 1000;
    return 0;
}

static int end(void **state)
{
    (void)state;
    jd_live_end(&live);
    return 0;
}

/* ---- A dump ---- */

static void load(uint64_t index, uint64_t addr)
{
    size_t start = dump_begin_load(&dump, now++, addr, SIZE, index);
    sink_cstr(&dump.sink, "f");
    sink_zeros(&dump.sink, SIZE);
    dump_end_record(&dump, start);
}

/* Of a function, its pieces from NUMBER on up to, without it, END; 0x1000 apart. */
static void load_pieces(uint64_t index, uint64_t addr, uint32_t number, uint32_t end_number,
                        uint32_t pieces)
{
    for (; number < end_number; number++) {
        uint64_t at = addr + number * UINT64_C(0x1000);
        dump_piece(&dump, now, at, index, number, pieces);
        load(index + number, at);
    }
}

static void move(uint64_t index, uint64_t from, uint64_t to)
{
    dump_move(&dump, now++, from, to, SIZE, index);
}

static void unload(uint64_t index, uint64_t addr)
{
    dump_unload(&dump, now++, addr, SIZE, index);
}

static void judge(void)
{
    struct record_window window;
    assert_false(dump.sink.overflow);
    assert_int_equal(jd_window_begin(&window, NULL, 0, dump.bytes, dump.sink.size), 0);
    jd_live_begin(&live, JITHEADER_BYTES, FIRST_INDEX);
    assert_int_equal(jd_live_read(&live, &window, dump.sink.size), 0);
    assert_int_equal(live.next, dump.sink.size);
    jd_window_end(&window);
    assert_int_equal(jd_live_judge(&live), 0);
}

/* The events that are kept, as "L10 M11 U12": loads, moves and unloads; "+" behind one that is kept
 * as it is. */
static void assert_keeps(const char *expected)
{
    char text[512] = "";
    judge();
    for (uint32_t i = 0; i < live.count; i++) {
        const struct live_event *event = jd_live_event(&live, i);
        size_t at = strlen(text);
        if (event->keep)
            snprintf(text + at, sizeof text - at, "%s%c%" PRIu64 "%s", at ? " " : "",
                     event->id == JIT_CODE_LOAD   ? 'L'
                     : event->id == JIT_CODE_MOVE ? 'M'
                                                  : 'U',
                     event->code_index, event->whole ? "+" : "");
    }
    assert_string_equal(text, expected);
}

static void assert_loads(uint64_t kept, uint64_t dropped)
{
    assert_int_equal(live.kept_loads, kept);
    assert_int_equal(live.dropped_loads, dropped);
}

/* ---- Functions of one piece ---- */

static void test_what_is_unloaded_or_covered_is_dropped(void **state)
{
    (void)state;
    load(10, 0x10000);
    load(11, 0x20000);
    load(12, 0x30000);
    unload(11, 0x20000);
    load(13, 0x30000);
    assert_keeps("L10 L13");
    assert_loads(2, 2);
    assert_int_equal(live.kept_bytes, 2 * LOAD_BYTES);
}

static void test_a_function_of_which_a_byte_is_left_is_kept(void **state)
{
    (void)state;
    load(10, 0x10000);
    load(11, 0x10001);
    load(12, 0x20000);
    load(13, 0x20000);
    assert_keeps("L10 L11 L13");
}

static void test_of_a_moved_function_the_last_place_is_kept(void **state)
{
    (void)state;
    load(10, 0x10000);
    move(10, 0x10000, 0x20000);
    move(10, 0x20000, 0x30000);
    assert_keeps("M10");
    assert_loads(1, 0);
    assert_int_equal(live.kept_bytes, LOAD_BYTES); /* it becomes a load */
}

static void test_an_unload_of_what_was_never_loaded_is_dropped(void **state)
{
    (void)state;
    load(10, 0x10000);
    unload(12, 0x10000);
    move(13, 0x40000, 0x50000);
    assert_keeps("L10");
}

/* Without the one that is gone, all of the older one would be there again. */
static void test_what_is_gone_but_covered_a_part_is_kept_whole(void **state)
{
    (void)state;
    load(10, 0x10000);
    load(11, 0x10080);
    unload(11, 0x10080);
    assert_keeps("L10 L11+ U11+");
    assert_loads(2, 0);
}

/* The numbers below FIRST_INDEX are those of a parent's dump. */
static void test_of_a_parents_function_the_first_event_is_kept(void **state)
{
    (void)state;
    move(3, 0x10000, 0x20000);
    move(3, 0x20000, 0x30000);
    unload(FIRST_INDEX - 1, 0x40000);
    unload(FIRST_INDEX, 0x50000);
    load(11, 0x60000);
    assert_keeps("M3 U9 L11");
    assert_int_equal(jd_live_event(&live, 0)->last, 1);
    assert_int_equal(jd_live_event(&live, 2)->last, 2);
}

/* ---- Functions in pieces ---- */

static void test_pieces_are_kept_together_with_all_their_events(void **state)
{
    (void)state;
    load_pieces(10, 0x10000, 0, 3, 3);
    load(20, 0x11000); /* over the second */
    load(21, 0x12000); /* and the third */
    assert_keeps("L10+ L11+ L12+ L20 L21");
    assert_loads(5, 0);
}

static void test_an_unload_of_the_first_piece_is_of_all(void **state)
{
    (void)state;
    load_pieces(10, 0x10000, 0, 3, 3);
    unload(10, 0x10000);
    assert_keeps("");
    assert_loads(0, 3);
}

static void test_an_unload_of_another_piece_is_of_that_alone(void **state)
{
    (void)state;
    load_pieces(10, 0x10000, 0, 3, 3);
    unload(11, 0x11000);
    assert_keeps("L10+ L11+ L12+ U11+");
}

/* What covers the first piece's new place ends no other one. */
static void test_a_move_of_the_first_piece_is_of_that_alone(void **state)
{
    (void)state;
    load_pieces(10, 0x10000, 0, 2, 2);
    move(10, 0x10000, 0x30000);
    load(20, 0x30000);
    assert_keeps("L10+ L11+ M10+ L20");
}

static void test_an_unload_of_the_first_piece_is_of_those_that_moved(void **state)
{
    (void)state;
    load_pieces(10, 0x10000, 0, 3, 3);
    move(11, 0x11000, 0x30000);
    move(10, 0x10000, 0x40000);
    unload(10, 0x40000);
    assert_keeps("");
}

static void test_an_unload_is_not_of_the_functions_beside_it(void **state)
{
    (void)state;
    load_pieces(10, 0x10000, 0, 2, 2);
    load_pieces(12, 0x20000, 0, 2, 2);
    load_pieces(14, 0x30000, 0, 2, 2);
    load(16, 0x40000);
    unload(12, 0x20000);
    assert_keeps("L10+ L11+ L14+ L15+ L16");
}

static void test_a_piece_without_code_has_no_load(void **state)
{
    (void)state;
    load_pieces(10, 0x10000, 0, 1, 4);
    load_pieces(10, 0x10000, 2, 4, 4);
    load_pieces(14, 0x20000, 1, 2, 4);
    unload(10, 0x10000);
    assert_keeps("L15+");
    jd_live_end(&live);
    begin(NULL);
    load_pieces(10, 0x10000, 1, 4, 4); /* the first has none: nothing unloads them all */
    unload(10, 0x10000);
    assert_keeps("L11+ L12+ L13+");
}

/* ---- Reading ---- */

/* A group goes up to its LOAD; the next piece of the same function belongs to it, too. */
static void test_reading_stops_between_groups(void **state)
{
    struct record_window window;
    (void)state;
    load(10, 0x10000);
    size_t until = dump.sink.size;
    load_pieces(12, 0x20000, 0, 2, 2);
    size_t behind = dump.sink.size;
    load(14, 0x30000);
    assert_int_equal(jd_window_begin(&window, NULL, 0, dump.bytes, dump.sink.size), 0);
    jd_live_begin(&live, JITHEADER_BYTES, FIRST_INDEX);
    assert_int_equal(jd_live_read(&live, &window, until), 0);
    assert_int_equal(live.count, 1);
    assert_int_equal(live.next, until);
    assert_int_equal(jd_live_read(&live, &window, until + 1), 0);
    assert_int_equal(live.count, 3);
    assert_int_equal(live.next, behind);
    assert_int_equal(live.time, now - 2);
    assert_int_equal(jd_live_event(&live, 1)->offset, until);
    jd_window_end(&window);
}

static void test_a_record_that_was_cut_is_none(void **state)
{
    struct record_window window;
    (void)state;
    load(10, 0x10000);
    size_t whole = dump.sink.size;
    for (size_t cut = 1; cut < LOAD_BYTES; cut++) {
        assert_int_equal(jd_window_begin(&window, NULL, 0, dump.bytes, whole - cut), 0);
        jd_live_begin(&live, JITHEADER_BYTES, FIRST_INDEX);
        assert_int_equal(jd_live_read(&live, &window, whole), -ESTALE);
        jd_live_end(&live);
        jd_window_end(&window);
    }
}

/* What stands 8 bytes behind its begin could be a record, too. */
static void test_a_record_of_8_bytes_is_no_record(void **state)
{
    struct record_window window;
    (void)state;
    dump_plain(&dump, JIT_CODE_CLOSE, JIT_CODE_CLOSE | UINT64_C(16) << 32, 8);
    dump_set_size(&dump, JITHEADER_BYTES, 8);
    assert_int_equal(jd_window_begin(&window, NULL, 0, dump.bytes, dump.sink.size), 0);
    jd_live_begin(&live, JITHEADER_BYTES, FIRST_INDEX);
    assert_int_equal(jd_live_read(&live, &window, dump.sink.size), -ESTALE);
    dump_set_size(&dump, JITHEADER_BYTES, JR_PREFIX_BYTES + 8);
    jd_live_begin(&live, JITHEADER_BYTES, FIRST_INDEX);
    window.offset = window.bytes = 0; /* it is read again */
    assert_int_equal(jd_live_read(&live, &window, dump.sink.size), 0);
    jd_window_end(&window);
}

/* ---- Interpreted functions ---- */

static void put_interpreted(uint32_t id, uint64_t function, uint32_t bytes)
{
    size_t start = dump_begin_record(&dump, id, now++);
    sink_u64(&dump.sink, function);
    sink_u32(&dump.sink, bytes);
    sink_zeros(&dump.sink, 20);
    dump_end_record(&dump, start);
}

/* Which of the events are kept, as "101". */
static void assert_kept(const char *expected)
{
    char text[32] = "";
    judge();
    for (uint32_t i = 0; i < live.count; i++)
        text[i] = jd_live_event(&live, i)->keep ? '1' : '0';
    assert_string_equal(text, expected);
}

static void test_interpreted_functions_are_kept_until_others_have_their_memory(void **state)
{
    (void)state;
    put_interpreted(JIT_INTERPRETED_FUNCTION, 0x10000, 88);
    put_interpreted(JIT_INTERPRETED_FUNCTION, 0x20000, 88);
    put_interpreted(JIT_INTERPRETED_FUNCTION, 0x30000, 88);
    put_interpreted(JIT_INTERPRETED_FUNCTION, 0x10000 + 87, 88);
    put_interpreted(JIT_INTERPRETED_FUNCTION, 0x20000 + 88, 88);
    put_interpreted(JIT_INTERPRETED_FUNCTION, 0x30000, 88);
    assert_kept("010111");
    assert_loads(0, 0);
    assert_int_equal(live.kept_bytes, 4 * 48);
}

static void test_an_interpreters_frame_is_kept_beside_its_code(void **state)
{
    (void)state;
    load(10, 0x10000);
    put_interpreted(JIT_INTERPRETER_FRAME, 0x10000, 0);
    put_interpreted(JIT_INTERPRETED_FUNCTION, 0x20000, 88);
    load(11, 0x30000);
    unload(11, 0x30000);
    unload(10, 0x10000);
    assert_kept("011000");
}

#define LIVE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE_TEST(test_interpreted_functions_are_kept_until_others_have_their_memory),
        LIVE_TEST(test_an_interpreters_frame_is_kept_beside_its_code),
        LIVE_TEST(test_what_is_unloaded_or_covered_is_dropped),
        LIVE_TEST(test_a_function_of_which_a_byte_is_left_is_kept),
        LIVE_TEST(test_of_a_moved_function_the_last_place_is_kept),
        LIVE_TEST(test_an_unload_of_what_was_never_loaded_is_dropped),
        LIVE_TEST(test_what_is_gone_but_covered_a_part_is_kept_whole),
        LIVE_TEST(test_of_a_parents_function_the_first_event_is_kept),
        LIVE_TEST(test_pieces_are_kept_together_with_all_their_events),
        LIVE_TEST(test_an_unload_of_the_first_piece_is_of_all),
        LIVE_TEST(test_an_unload_of_another_piece_is_of_that_alone),
        LIVE_TEST(test_a_move_of_the_first_piece_is_of_that_alone),
        LIVE_TEST(test_an_unload_of_the_first_piece_is_of_those_that_moved),
        LIVE_TEST(test_an_unload_is_not_of_the_functions_beside_it),
        LIVE_TEST(test_a_piece_without_code_has_no_load),
        LIVE_TEST(test_reading_stops_between_groups),
        LIVE_TEST(test_a_record_that_was_cut_is_none),
        LIVE_TEST(test_a_record_of_8_bytes_is_no_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
