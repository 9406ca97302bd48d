/* The reader of CODE_INLINE_INFO: every field in both byte orders, and everything that it calls
 * broken. */
#include "tests/unit/dump_builder.h"

enum { ADDR = 0x10000, NONE = -1 };

/* A record in numbers, so that a test can change one of them. */
struct sketch {
    uint32_t nr_inline, nr_span, strings_bytes, pad1;
    uint32_t inlines[2]
                    [7]; /* parent, call_file, call_line, call_column, name, decl_file, decl_line */
    uint32_t spans[3][2]; /* code_offset, inline_index */
    char strings[16];
    uint32_t written_inlines, written_spans, written_strings;
};

static const struct sketch SOUND = {
    2,
    3,
    9,
    0,
    {{(uint32_t)NONE, 0, 3, 5, 5, 0, 10}, {0, (uint32_t)NONE, 0, 0, 7, (uint32_t)NONE, 0}},
    {{2, 0}, {5, 1}, {12, (uint32_t)NONE}},
    "a.js\0g\0h",
    2,
    3,
    9};

static struct dump_builder built;

static void build(const struct sketch *sketch, bool big_endian)
{
    dump_begin(&built, big_endian, JITHEADER_BYTES);
    size_t start = dump_begin_record(&built, JIT_CODE_INLINE_INFO, 5);
    sink_u64(&built.sink, ADDR);
    sink_u32(&built.sink, sketch->nr_inline);
    sink_u32(&built.sink, sketch->nr_span);
    sink_u32(&built.sink, sketch->strings_bytes);
    sink_u32(&built.sink, sketch->pad1);
    for (size_t i = 0; i < sketch->written_inlines; i++)
        for (size_t k = 0; k < 7; k++)
            sink_u32(&built.sink, sketch->inlines[i][k]);
    for (size_t i = 0; i < sketch->written_spans; i++)
        for (size_t k = 0; k < 2; k++)
            sink_u32(&built.sink, sketch->spans[i][k]);
    sink_bytes(&built.sink, sketch->strings, sketch->written_strings);
    dump_end_record(&built, start);
}

/* Open BUILT, which holds one record, and read that. */
static void read_one(struct jit_dump *dump, struct jit_record *record)
{
    open_built_dump(&built, dump);
    struct jit_dump_walk walk = jit_dump_begin(dump);
    assert_int_equal(jit_dump_next(&walk, record), JIT_DUMP_MORE);
    assert_int_equal(jit_dump_next(&walk, &(struct jit_record){0}), JIT_DUMP_WHOLE);
    assert_string_equal(jit_record_name(record->id), "CODE_INLINE_INFO");
}

static void expect_broken(const struct sketch *sketch, const char *words)
{
    struct jit_dump dump;
    struct jit_record record;
    build(sketch, false);
    read_one(&dump, &record);
    if (!record.broken || !strstr(record.broken, words))
        fail_msg("'%s' does not say '%s'", record.broken, words);
    jit_dump_close(&dump);
}

static void expect_sound(const struct sketch *sketch)
{
    struct jit_dump dump;
    struct jit_record record;
    build(sketch, false);
    read_one(&dump, &record);
    assert_null(record.broken);
    assert_int_equal(record.inline_info.nr_inline, sketch->nr_inline);
    assert_int_equal(record.inline_info.nr_span, sketch->nr_span);
    jit_dump_close(&dump);
}

/* ---- Sound ones ---- */

static void expect_calls(const struct jit_inline_info *info)
{
    struct jit_inline call;
    jit_inline_at(info, 0, &call);
    assert_int_equal(call.parent, JIT_INLINE_NONE);
    assert_string_equal(call.call_file, "a.js");
    assert_int_equal(call.call_line, 3);
    assert_int_equal(call.call_column, 5);
    assert_string_equal(call.name, "g");
    assert_string_equal(call.decl_file, "a.js");
    assert_int_equal(call.decl_line, 10);
    jit_inline_at(info, 1, &call);
    assert_int_equal(call.parent, 0);
    assert_null(call.call_file);
    assert_int_equal(call.call_line, 0);
    assert_string_equal(call.name, "h");
    assert_null(call.decl_file);
}

static void expect_spans(const struct jit_inline_info *info)
{
    struct jit_inline_span span;
    for (uint32_t i = 0; i < 3; i++) {
        jit_inline_span_at(info, i, &span);
        assert_int_equal(span.code_offset, SOUND.spans[i][0]);
        assert_int_equal(span.inline_index, SOUND.spans[i][1]);
    }
}

static void test_every_field_in_both_byte_orders(void **state)
{
    (void)state;
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        struct jit_dump dump;
        struct jit_record record;
        build(&SOUND, big_endian);
        read_one(&dump, &record);
        assert_null(record.broken);
        assert_int_equal(record.inline_info.code_addr, ADDR);
        assert_int_equal(record.inline_info.nr_inline, 2);
        assert_int_equal(record.inline_info.nr_span, 3);
        assert_int_equal(record.inline_info.strings_bytes, 9);
        expect_calls(&record.inline_info);
        expect_spans(&record.inline_info);
        jit_dump_close(&dump);
    }
}

static void test_empty_parts(void **state)
{
    struct sketch sketch = {0};
    (void)state;
    expect_sound(&sketch); /* nothing at all */
    sketch.nr_span = sketch.written_spans = 1;
    sketch.spans[0][1] = JIT_INLINE_NONE;
    expect_sound(&sketch); /* all of it is the function's own */
    sketch = SOUND;
    sketch.nr_span = sketch.written_spans = 0;
    expect_sound(&sketch); /* calls that left no instruction */
    sketch = SOUND;
    sketch.inlines[1][4] = 8; /* the last NUL: a name of no letters */
    sketch.pad1 = 77;         /* nobody's business */
    expect_sound(&sketch);
}

/* ---- Broken ones ---- */

static void test_sizes_that_do_not_add_up(void **state)
{
    static const char words[] = "not as long as its counts say";
    struct sketch sketch = SOUND;
    (void)state;
    sketch.nr_inline = 3;
    expect_broken(&sketch, words);
    sketch.nr_inline = 1;
    expect_broken(&sketch, words);
    sketch = SOUND;
    sketch.nr_span = 4;
    expect_broken(&sketch, words);
    sketch = SOUND;
    sketch.strings_bytes = 8;
    expect_broken(&sketch, words);
    sketch.strings_bytes = 10;
    expect_broken(&sketch, words);
    sketch.strings_bytes = UINT32_MAX;
    expect_broken(&sketch, words);
    sketch = SOUND;
    sketch.nr_inline = sketch.nr_span = UINT32_MAX;
    expect_broken(&sketch, words);
    /* In 32 bits these would be as many bytes as there are. */
    sketch = SOUND;
    sketch.nr_span += 1u << 29;
    expect_broken(&sketch, words);
    sketch = SOUND;
    sketch.nr_inline += 1u << 30;
    expect_broken(&sketch, words);
}

static void test_cut_at_every_byte_is_broken(void **state)
{
    struct jit_dump dump;
    struct jit_record record;
    (void)state;
    build(&SOUND, false);
    uint32_t total_size = (uint32_t)(built.sink.size - JITHEADER_BYTES);
    for (uint32_t size = JR_PREFIX_BYTES; size < total_size; size++) {
        dump_set_size(&built, JITHEADER_BYTES, size);
        built.sink.size = JITHEADER_BYTES + size;
        read_one(&dump, &record);
        assert_non_null(record.broken);
        assert_int_equal(strstr(record.broken, "shorter than its fixed part") != NULL, size < 40);
        jit_dump_close(&dump);
    }
}

static void test_strings_without_end(void **state)
{
    struct sketch sketch = SOUND;
    (void)state;
    sketch.strings[8] = 'x';
    expect_broken(&sketch, "string without end");
    sketch = SOUND;
    sketch.strings_bytes = sketch.written_strings = 0;
    expect_broken(&sketch, "string without end");
}

static void test_strings_outside(void **state)
{
    static const size_t strings[] = {1, 4, 5}; /* call_file, name, decl_file */
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct sketch sketch = SOUND;
        sketch.inlines[1][strings[i]] = 9;
        expect_broken(&sketch, "past the end of its strings");
        sketch.inlines[1][strings[i]] = UINT32_MAX - 1;
        expect_broken(&sketch, "past the end of its strings");
    }
}

static void test_calls_without_a_name_or_behind_their_parent(void **state)
{
    struct sketch sketch = SOUND;
    (void)state;
    sketch.inlines[1][4] = JIT_INLINE_NONE;
    expect_broken(&sketch, "call without a name");
    sketch = SOUND;
    sketch.inlines[1][0] = 1;
    expect_broken(&sketch, "before its parent");
    sketch = SOUND;
    sketch.inlines[0][0] = 0;
    expect_broken(&sketch, "before its parent");
    sketch.inlines[0][0] = UINT32_MAX - 1;
    expect_broken(&sketch, "before its parent");
}

static void test_bad_spans(void **state)
{
    struct sketch sketch = SOUND;
    (void)state;
    sketch.spans[1][0] = 2;
    expect_broken(&sketch, "do not ascend");
    sketch.spans[1][0] = 13;
    expect_broken(&sketch, "do not ascend");
    sketch = SOUND;
    sketch.spans[2][1] = 2;
    expect_broken(&sketch, "a call that it does not have");
    sketch.spans[2][1] = UINT32_MAX - 1;
    expect_broken(&sketch, "a call that it does not have");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_in_both_byte_orders),
        cmocka_unit_test(test_empty_parts),
        cmocka_unit_test(test_sizes_that_do_not_add_up),
        cmocka_unit_test(test_cut_at_every_byte_is_broken),
        cmocka_unit_test(test_strings_without_end),
        cmocka_unit_test(test_strings_outside),
        cmocka_unit_test(test_calls_without_a_name_or_behind_their_parent),
        cmocka_unit_test(test_bad_spans),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
