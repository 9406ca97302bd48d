/* Extreme values in each field of each public struct, and in each argument: nothing wraps around,
 * nothing outside is touched, and what is taken is there as it was given. */
#include "jitdump/format/byte_sink.h"
#include "jitunwind/frames/machine.h"
#include "tests/unit/jitunwind_test.h"

#include <errno.h>
#include <stdbool.h>

static const uint64_t extremes[] = {
    0,
    1,
    2,
    7,
    8,
    9,
    63,
    64,
    65,
    4095,
    4096,
    4097,
    ARENA_START - 1,
    ARENA_START,
    ARENA_START + 1,
    ARENA_START + ARENA_BYTES - 1,
    ARENA_START + ARENA_BYTES,
    INT32_MAX,
    UINT64_C(1) << 31,
    UINT32_MAX - UINT64_C(1),
    UINT32_MAX,
    UINT64_C(1) << 32,
    (UINT64_C(1) << 32) + 1,
    INT64_MAX,
    UINT64_C(1) << 63,
    (UINT64_C(1) << 63) + 1,
    UINT64_MAX - UINT32_MAX,
    UINT64_MAX - ARENA_BYTES,
    UINT64_MAX - ARENA_BYTES + 1,
    UINT64_MAX - 4096,
    UINT64_MAX - 64,
    UINT64_MAX - 8,
    UINT64_MAX - 1,
    UINT64_MAX,
};

enum { EXTREMES = sizeof extremes / sizeof extremes[0] };

/* ---- Options ---- */

static bool is_arena(uint64_t start, uint64_t bytes)
{
    return bytes && bytes <= UINT32_MAX && start <= UINT64_MAX - bytes;
}

static void test_start_and_bytes(void **state)
{
    struct jitunwind *arena;
    (void)state;
    for (unsigned i = 0; i < EXTREMES; i++)
        for (unsigned k = 0; k < EXTREMES; k++) {
            struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
            options.start = extremes[i];
            options.bytes = extremes[k];
            int error = jitunwind_open(&arena, &options);
            assert_int_equal(error, is_arena(options.start, options.bytes) ? 0 : -EINVAL);
            if (error)
                continue;
            /* Its last byte, and none beside it. */
            const uint64_t last = options.start + (options.bytes - 1);
            assert_int_equal(add_plain(arena, last, 1, "last"), 0);
            expect_name(last, "last");
            expect_name(last + 1, NULL);
            expect_name(options.start - 1, NULL);
            assert_int_equal(add_plain(arena, last + 1, 1, "x"), -EINVAL);
            assert_int_equal(add_plain(arena, last, 2, "x"), -EINVAL);
            assert_int_equal(jitunwind_remove(arena, last), 0);
            jitunwind_close(arena);
        }
}

static void test_the_other_options(void **state)
{
    struct jitunwind *arena;
    (void)state;
    for (unsigned i = 0; i < EXTREMES; i++) {
        struct jitunwind_options options = JITUNWIND_OPTIONS_INIT, given;
        options.start = ARENA_START;
        options.bytes = ARENA_BYTES;
        given = options;
        given.flags = (uint32_t)extremes[i];
        int error = jitunwind_open(&arena, &given);
        assert_true(given.flags > JITUNWIND_EXCEPTIONS ? error == -E2BIG
                                                       : error == 0 || error == -ENOTSUP);
        assert_int_equal(arena != NULL, error == 0);
        jitunwind_close(arena);
        given = options;
        given.reserved = (uint32_t)extremes[i];
        assert_int_equal(jitunwind_open(&arena, &given), given.reserved ? -E2BIG : 0);
        jitunwind_close(arena);
        /* A size may say only what is there: 4096 bytes of which the first are these. */
        union {
            struct jitunwind_options options;
            uint8_t bytes[4096];
        } sized = {.bytes = {0}};
        sized.options = options;
        sized.options.size = (size_t)extremes[i];
        const bool is_size = extremes[i] >= sizeof(size_t) && extremes[i] <= 4096;
        error = jitunwind_open(&arena, &sized.options);
        assert_true(is_size ? error == 0 || (error == -EINVAL && extremes[i] < sizeof options)
                            : error == -EINVAL);
        jitunwind_close(arena);
    }
}

/* ---- Code ---- */

static const uint64_t arena_starts[] = {8, ARENA_START, UINT64_MAX - ARENA_BYTES};

static void test_addr_and_bytes(void **state)
{
    (void)state;
    for (unsigned at = 0; at < 3; at++) {
        struct jitunwind *arena = arena_at(arena_starts[at], ARENA_BYTES);
        for (unsigned i = 0; i < EXTREMES; i++)
            for (unsigned k = 0; k < EXTREMES; k++) {
                const uint64_t addr = extremes[i], bytes = extremes[k];
                const bool is_inside = addr >= arena_starts[at] && bytes && bytes <= ARENA_BYTES &&
                                       addr - arena_starts[at] <= ARENA_BYTES - bytes;
                assert_int_equal(add_plain(arena, addr, bytes, "f"), is_inside ? 0 : -EINVAL);
                assert_int_equal(jitunwind_remove(arena, addr), is_inside ? 0 : -ENOENT);
            }
        jitunwind_close(arena);
    }
}

/* A table of the machine, which begins with "zR" and has one FDE, of the pointer encoding. */
static size_t put_table(uint8_t *bytes, size_t room, uint8_t encoding, uint64_t begin,
                        uint64_t range)
{
    struct byte_sink sink = byte_sink_over(bytes, room);
    sink_u32(&sink, 20);
    sink_u32(&sink, 0);
    sink_bytes(&sink, "\1zR\0\1\x78", 6);
    sink_u8(&sink, MACHINE_RETURN);
    sink_u8(&sink, 1);
    sink_u8(&sink, encoding);
    sink_zeros(&sink, 7);
    sink_u32(&sink, 28);
    sink_u32(&sink, (uint32_t)sink.size);
    sink_u64(&sink, begin);
    sink_u64(&sink, range);
    sink_zeros(&sink, 8);
    sink_u32(&sink, 0); /* the end */
    assert_false(sink.overflow);
    return sink.size;
}

/* Begins, ranges, and the address for which the table was written. */
static void test_tables(void **state)
{
    static const uint8_t encodings[] = {0x00, 0x10, 0x1c}; /* absolute, and relative to its place */
    uint8_t bytes[128];
    unsigned taken = 0;
    (void)state;
    for (unsigned at = 0; at < 3; at++) {
        struct jitunwind *arena = arena_at(arena_starts[at], ARENA_BYTES);
        for (unsigned encoding = 0; encoding < sizeof encodings; encoding++)
            for (unsigned i = 0; i < EXTREMES; i++)
                for (unsigned k = 0; k < EXTREMES; k++) {
                    struct jitunwind_code code = JITUNWIND_CODE_INIT;
                    code.addr = arena_starts[at] + ARENA_BYTES - 15;
                    code.bytes = 15;
                    code.eh_frame = bytes;
                    code.eh_frame_bytes = put_table(bytes, sizeof bytes, encodings[encoding],
                                                    extremes[i], extremes[k]);
                    code.eh_frame_addr = extremes[(i + k) % EXTREMES];
                    int error = jitunwind_add(arena, &code);
                    assert_true(error == 0 || error == -EINVAL);
                    assert_int_equal(jitunwind_remove(arena, code.addr), error ? -ENOENT : 0);
                    taken += error == 0;
                }
        jitunwind_close(arena);
    }
    assert_true(taken > EXTREMES);
}

/* As long as the zero that ends it comes first, a size may say more. */
static void test_the_size_of_a_table(void **state)
{
    struct jitunwind *arena = arena_open();
    uint8_t bytes[128] = {0};
    (void)state;
    const size_t size = put_table(bytes, sizeof bytes, 0, ARENA_START, 64);
    for (unsigned i = 0; i < EXTREMES; i++) {
        struct jitunwind_code code = JITUNWIND_CODE_INIT;
        code.addr = ARENA_START;
        code.bytes = 64;
        code.eh_frame = bytes;
        code.eh_frame_bytes = (size_t)extremes[i];
        int error = jitunwind_add(arena, &code);
        assert_int_equal(error, extremes[i] == 0 || extremes[i] >= size - 4 ? 0 : -EINVAL);
        assert_int_equal(jitunwind_remove(arena, ARENA_START), error ? -ENOENT : 0);
        code.eh_frame = NULL; /* is not read then */
        assert_int_equal(jitunwind_add(arena, &code), 0);
        assert_int_equal(jitunwind_remove(arena, ARENA_START), 0);
        union {
            struct jitunwind_code code;
            uint8_t bytes[4096];
        } sized = {.bytes = {0}};
        sized.code = code;
        sized.code.size = (size_t)extremes[i];
        const bool is_size = extremes[i] >= sizeof(size_t) && extremes[i] <= 4096;
        error = jitunwind_add(arena, &sized.code);
        assert_true(is_size ? error == 0 || extremes[i] < sizeof code : error == -EINVAL);
        if (!error)
            assert_int_equal(jitunwind_remove(arena, ARENA_START), 0);
    }
    jitunwind_close(arena);
}

/* ---- Other arguments ---- */

static void test_arguments(void **state)
{
    struct jitunwind *arena = arena_open();
    struct jitunwind_frame frames[8];
    char name[8];
    uint64_t offset;
    (void)state;
    assert_int_equal(add_plain(arena, ARENA_START, 64, "f"), 0);
    for (unsigned i = 0; i < EXTREMES; i++) {
        const uint64_t value = extremes[i];
        const bool is_there = value - ARENA_START < 64;
        assert_int_equal(jitunwind_name(value, name, sizeof name, &offset), is_there ? 0 : -ENOENT);
        assert_true(!is_there || offset == value - ARENA_START);
        if (value != ARENA_START)
            assert_int_equal(jitunwind_remove(arena, value), -ENOENT);
        name[0] = 'x';
        assert_int_equal(jitunwind_name(ARENA_START, name, (size_t)value, NULL), 0);
        assert_int_equal(name[0], value == 0 ? 'x' : value == 1 ? '\0' : 'f');
        assert_in_range(jitunwind_backtrace(NULL, frames, 8, (uint32_t)value), 1, 8);
    }
    assert_int_equal(jitunwind_backtrace(NULL, NULL, 0, UINT32_MAX), 0);
    jitunwind_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_and_bytes),     cmocka_unit_test(test_the_other_options),
        cmocka_unit_test(test_addr_and_bytes),      cmocka_unit_test(test_tables),
        cmocka_unit_test(test_the_size_of_a_table), cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
