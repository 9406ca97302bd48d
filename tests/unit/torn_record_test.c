/* Records that are torn, or stand inside one another: what the walk finds, and what it does not
 * take for a record. */
#include "tests/unit/dump_builder.h"

#include <time.h>

enum { ADDR = 0x10000, TIME = 1000000 };

static struct dump_builder built;
static uint32_t loaded; /* by loads */

static void load(uint32_t number, const char *name)
{
    dump_load(&built, TIME + number, ADDR + number * 64, name, "code of one of them", number);
}

/* A LOAD for each of LETTERS, which is its name. */
static void loads(const char *letters)
{
    for (; *letters; letters++)
        load(loaded++, (const char[]){*letters, '\0'});
}

/* A dump of such LOADs, to which more may be added. */
static void begin(const char *letters)
{
    dump_begin(&built, false, JITHEADER_BYTES);
    loaded = 0;
    loads(letters);
}

/* Remove BYTES from the end of what is built, but not from its record's total_size. */
static void tear(size_t bytes)
{
    built.sink.size -= bytes;
}

/* What a walk meets, a letter each: the first of a LOAD's name (capital without code), t for a torn
 * stretch, 2 for one that is there twice, b for a broken record, h for a header, . for another, and
 * the end: $ whole, ! cut. */
static const char *walked(void)
{
    static char story[512];
    struct jit_dump dump;
    struct jit_record record;
    size_t count = 0;
    open_built_dump(&built, &dump);
    struct jit_dump_walk walk = jit_dump_begin(&dump);
    for (;;) {
        enum jit_dump_end end = jit_dump_next(&walk, &record);
        assert_true(count < sizeof story - 2);
        if (end == JIT_DUMP_WHOLE || end == JIT_DUMP_CUT) {
            story[count++] = end == JIT_DUMP_WHOLE ? '$' : '!';
            break;
        }
        assert_int_equal(walk.offset, record.offset + record.extent);
        bool is_load = record.id == JIT_CODE_LOAD && !record.broken;
        story[count++] = end == JIT_DUMP_TORN          ? 't'
                         : end == JIT_DUMP_TWICE       ? '2'
                         : record.broken               ? 'b'
                         : record.id == JIT_HEADER     ? 'h'
                         : !is_load                    ? '.'
                         : record.load.name_bytes == 0 ? '_'
                         : record.load.code            ? record.load.name[0]
                                                       : (char)(record.load.name[0] - 'a' + 'A');
    }
    story[count] = '\0';
    jit_dump_close(&dump);
    return story;
}

static void test_sound_records_are_met_one_by_one(void **state)
{
    (void)state;
    begin("x");
    dump_plain(&built, JIT_CODE_CLOSE, TIME, 0);
    loads("y");
    assert_string_equal(walked(), "x.y$");
}

/* Whatever a write left of a record, the next ones are found; a LOAD whose name is whole keeps it.
 */
static void test_every_tear_costs_one_record(void **state)
{
    (void)state;
    for (size_t missing = 1; missing < 77; missing++) {
        begin("x");
        size_t start = built.sink.size;
        loads("y");
        size_t left = built.sink.size - start - missing;
        tear(missing);
        loads("zzzz");
        const char *wanted = left >= JR_CODE_LOAD_BYTES + 2 ? "xYzzzz$" : "xtzzzz$";
        if (strcmp(walked(), wanted))
            fail_msg("%zu bytes left: %s instead of %s", left, walked(), wanted);
    }
}

static void test_a_tear_in_front_of_the_last_record(void **state)
{
    (void)state;
    begin("xy");
    tear(10);
    loads("z");
    assert_string_equal(walked(), "xYz$");
    sink_zeros(&built.sink, 500);
    assert_string_equal(walked(), "xYz$");
}

static void test_noise_between_records_is_stepped_over(void **state)
{
    uint64_t seed = 4711;
    (void)state;
    for (size_t noise = 1; noise < 400; noise += 7) {
        begin("xy");
        for (size_t i = 0; i < noise; i++)
            sink_u8(&built.sink, (uint8_t)(1 + random_below(&seed, 255)));
        loads("zz");
        assert_string_equal(walked(), "xytzz$");
    }
}

/* The chunks that PHP writes of two LOADs, from two threads: prefix and fields, name, code. */
static void put_chunk(uint32_t number, size_t chunk)
{
    if (chunk == 0) {
        size_t start = dump_begin_load(&built, TIME + number, ADDR + number * 64, 8, number);
        dump_set_size(&built, start, JR_CODE_LOAD_BYTES + 2 + 8);
    } else if (chunk == 1) {
        sink_cstr(&built.sink, number == 1 ? "y" : "z");
    } else {
        sink_bytes(&built.sink, "\x0f\x1f\x40\xff\x0f\x1f\x41\xff", 8);
    }
}

static void test_two_threads_chunks_in_any_order_cost_no_third_record(void **state)
{
    (void)state;
    for (unsigned order = 0; order < 64;
         order++) { /* a bit for each place: whose chunk comes next */
        size_t next[2] = {0, 0};
        begin("x");
        for (unsigned place = 0; place < 6; place++) {
            unsigned who = order >> place & 1;
            who = next[who] == 3 ? 1 - who : who;
            put_chunk(1 + who, next[who]++);
        }
        loaded = 3;
        loads("wwwww");
        const char *story = walked();
        size_t length = strlen(story);
        bool sound = strncmp(story, "xyzw", 4) == 0 || strncmp(story, "xzyw", 4) == 0;
        if (story[0] != 'x' || length < 6 || strcmp(story + length - 6, "wwwww$"))
            fail_msg("order %u: %s", order, story);
        if (!sound && !strpbrk(story, "tbYZ")) /* and it is told */
            fail_msg("order %u: %s", order, story);
    }
}

/* A dump's records in the code bytes of a LOAD, as a JIT that logs a copy of its own log has them.
 */
static void load_with_records_inside(uint32_t records)
{
    size_t start = dump_begin_load(&built, TIME + 10, ADDR + 0x8000, 0, 10);
    size_t size_at = start + 40;
    sink_cstr(&built.sink, "x");
    size_t code = built.sink.size;
    for (uint32_t i = 0; i < records; i++)
        load(i + 20, "inside");
    struct byte_sink patch = byte_sink_over(built.bytes + size_at, 8);
    sink_u64(&patch, built.sink.size - code);
    dump_end_record(&built, start);
}

static void test_records_in_code_are_code(void **state)
{
    (void)state;
    for (uint32_t records = 1; records < 20; records++) {
        begin("");
        load_with_records_inside(records);
        loads("y");
        assert_string_equal(walked(), "xy$");
        begin("");
        load_with_records_inside(records);
        assert_string_equal(walked(), "x$");
    }
}

/* Even if the next record can't be one: fewer than eight that end inside are no way out. */
static void test_records_in_code_in_front_of_noise_are_code(void **state)
{
    (void)state;
    for (uint32_t records = 1; records < 8; records++) {
        begin("");
        load_with_records_inside(records);
        sink_bytes(&built.sink, "noise, and more of it, so that it is no prefix", 46);
        loads("yy");
        assert_string_equal(walked(), "xtyy$");
    }
}

static void test_records_of_unknown_id_are_no_tear(void **state)
{
    (void)state;
    begin("x");
    dump_plain(&built, 77, TIME, 200);
    dump_plain(&built, 78, 0, 3);
    loads("y");
    dump_plain(&built, 79, TIME, 0);
    assert_string_equal(walked(), "x..y.$");
}

/* A record that contradicts itself but has the right size is broken, and its neighbours are not. */
static void test_a_broken_record_is_no_tear(void **state)
{
    (void)state;
    begin("x");
    dump_unwinding(&built, TIME, 400, 20, 40);
    loads("y");
    assert_string_equal(walked(), "xby$");
}

static void test_a_cut_behind_a_tear_is_still_told(void **state)
{
    (void)state;
    begin("xy");
    tear(10);
    loads("zzw");
    tear(3);
    assert_string_equal(walked(), "xYzz!");
}

static void test_a_second_header_is_met(void **state)
{
    static struct dump_builder second;
    (void)state;
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        begin("x");
        dump_begin(&second, big_endian, 48);
        dump_load(&second, TIME + 5, ADDR, "z", "code", 1);
        sink_bytes(&built.sink, second.bytes, second.sink.size);
        assert_string_equal(walked(), "xhz$");
    }
}

/* What a child writes of the buffer that it has from its parent: from anywhere in a record on, up
 * to the end of one. */
static void repeat_from(size_t buffer)
{
    sink_bytes(&built.sink, built.bytes + buffer, built.sink.size - buffer);
}

static void test_a_buffer_that_a_child_wrote_too_is_read_once(void **state)
{
    (void)state;
    begin("x");
    size_t first = built.sink.size;
    loads("y");
    size_t second = built.sink.size;
    for (size_t buffer = first + 1; buffer < second; buffer++) {
        begin("xyz");
        size_t child_end = built.sink.size;
        repeat_from(buffer);
        loads("w");
        assert_string_equal(walked(), "xyz2w$");
        repeat_from(child_end); /* the next child has one more record in its buffer */
        assert_string_equal(walked(), "xyz2w2$");
    }
}

static void test_a_buffer_of_a_few_bytes_or_of_many(void **state)
{
    (void)state;
    for (size_t bytes = 8; bytes < 40; bytes++) {
        begin("xy");
        repeat_from(built.sink.size - bytes);
        loads("z");
        assert_string_equal(walked(), "xy2z$");
    }
    begin("x");
    for (int i = 0; i < 3; i++) /* zeros, too, all of which look like what is sought */
        dump_plain(&built, JIT_FILLER, 0, sizeof built.bytes / 10);
    repeat_from(JITHEADER_BYTES + 20);
    loads("y");
    assert_string_equal(walked(), "x...2y$");
}

static void test_each_of_several_children_may_have_written_the_buffer(void **state)
{
    (void)state;
    begin("xy");
    size_t buffer = built.sink.size - 30;
    loads("z");
    size_t bytes = built.sink.size - buffer;
    for (int children = 0; children < 3; children++)
        repeat_from(built.sink.size - bytes);
    loads("w");
    assert_string_equal(walked(), "xyz2w$");
}

/* Each function has the same unwind table, and the buffer begins within one. */
static void test_a_buffer_that_begins_as_many_records_do(void **state)
{
    enum { BEFORE = 200 };
    char story[2 * BEFORE + 8];
    size_t length = 0;
    (void)state;
    begin("");
    for (uint32_t i = 0; i < BEFORE; i++) {
        loads("x");
        dump_unwinding(&built, TIME + i, 100, 20, 100);
        length += (size_t)snprintf(story + length, sizeof story - length, "x.");
    }
    size_t buffer = built.sink.size - 80;
    loads("y");
    repeat_from(buffer);
    loads("z");
    snprintf(story + length, sizeof story - length, "y2z$");
    assert_string_equal(walked(), story);
}

/* What is no record can look like one of unknown id, of a time that never comes. */
static void test_a_record_of_unknown_id_that_is_chance(void **state)
{
    (void)state;
    begin("x");
    sink_u32(&built.sink, 400);
    sink_u32(&built.sink, 20);
    sink_u64(&built.sink, UINT64_MAX - 0xffff);
    sink_bytes(&built.sink, "tail, and more of it that is none", 33);
    loads("yz");
    assert_string_equal(walked(), "xtyz$");
}

/* One that is followed by records is of a newer runtime, whatever its time means. */
static void test_the_time_of_an_unknown_record_is_not_believed(void **state)
{
    (void)state;
    begin("x");
    dump_plain(&built, 400, UINT64_MAX - 0xffff, 8);
    dump_plain(&built, JIT_FILLER, 0, 8); /* has no time */
    sink_bytes(&built.sink, "tail, and more of it that is none", 33);
    loads("yz");
    assert_string_equal(walked(), "x..tyz$");
}

/* A byte that differs is a tear. */
static void test_what_is_only_alike_is_torn(void **state)
{
    (void)state;
    begin("xyz");
    size_t end = built.sink.size;
    repeat_from(end - 120);
    built.bytes[end + 100] ^= 1;
    loads("ww");
    const char *story = walked();
    if (!strchr(story, 't') || strchr(story, '2'))
        fail_msg("%s", story);
}

/* Noise that is everywhere like what was before costs seconds at most, not hours. */
static void test_searching_for_copies_is_bounded(void **state)
{
    (void)state;
    begin("x");
    while (built.sink.size < sizeof built.bytes / 2) {
        sink_zeros(&built.sink, 1);
        for (int i = 0; i < 6; i++)
            sink_bytes(&built.sink, "no record, not at all", 21);
        loaded = 1; /* the same two each time */
        loads("yz");
    }
    struct timespec start, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    struct jit_dump dump;
    struct jit_record record;
    open_built_dump(&built, &dump);
    struct jit_dump_walk walk = jit_dump_begin(&dump);
    while (jit_dump_goes_on(jit_dump_next(&walk, &record)))
        ;
    jit_dump_close(&dump);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    assert_true(end.tv_sec - start.tv_sec < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_of_several_children_may_have_written_the_buffer),
        cmocka_unit_test(test_a_buffer_that_begins_as_many_records_do),
        cmocka_unit_test(test_a_record_of_unknown_id_that_is_chance),
        cmocka_unit_test(test_the_time_of_an_unknown_record_is_not_believed),
        cmocka_unit_test(test_sound_records_are_met_one_by_one),
        cmocka_unit_test(test_every_tear_costs_one_record),
        cmocka_unit_test(test_a_tear_in_front_of_the_last_record),
        cmocka_unit_test(test_noise_between_records_is_stepped_over),
        cmocka_unit_test(test_two_threads_chunks_in_any_order_cost_no_third_record),
        cmocka_unit_test(test_records_in_code_are_code),
        cmocka_unit_test(test_records_in_code_in_front_of_noise_are_code),
        cmocka_unit_test(test_records_of_unknown_id_are_no_tear),
        cmocka_unit_test(test_a_broken_record_is_no_tear),
        cmocka_unit_test(test_a_cut_behind_a_tear_is_still_told),
        cmocka_unit_test(test_a_second_header_is_met),
        cmocka_unit_test(test_a_buffer_that_a_child_wrote_too_is_read_once),
        cmocka_unit_test(test_a_buffer_of_a_few_bytes_or_of_many),
        cmocka_unit_test(test_what_is_only_alike_is_torn),
        cmocka_unit_test(test_searching_for_copies_is_bounded),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
