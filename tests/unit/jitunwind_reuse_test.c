/* The room of an arena: after functions were removed it is as large as before, for functions of any
 * size.  An arena takes memory only as it is used. */
#include "jitdump/format/byte_sink.h"
#include "jitunwind/arena_list.h"
#include "jitunwind/frames/read_marks.h"
#include "tests/unit/jitunwind_test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SMALL_ARENA = 64 << 10, MOST_ROWS = 2048, PLACE = 64 };

/* A function of BYTES with ROWS rows, which begin at its first bytes.  The CFA of row i is at FIRST
 * + i. */
static int add_rows(struct jitunwind *arena, uint64_t addr, uint64_t bytes, unsigned rows,
                    unsigned first)
{
    static uint8_t section[64 + MOST_ROWS * 4];
    struct byte_sink sink = byte_sink_over(section, sizeof section);
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    sink_u32(&sink, 20);
    sink_u32(&sink, 0);
    sink_bytes(&sink, "\1zR\0\1\x78", 6);
    sink_u8(&sink, MACHINE_RETURN);
    sink_bytes(&sink, "\1\0", 2);
    sink_u8(&sink, 0x0c); /* DW_CFA_def_cfa */
    sink_u8(&sink, MACHINE_SP);
    sink_u8(&sink, 8);
    sink_zeros(&sink, 4);
    const size_t length_at = sink.size;
    sink_u32(&sink, 0);
    sink_u32(&sink, (uint32_t)sink.size);
    sink_u64(&sink, addr);
    sink_u64(&sink, bytes);
    sink_u8(&sink, 0);
    for (unsigned i = 0; i < rows; i++) {
        if (i)
            sink_u8(&sink, 0x41); /* DW_CFA_advance_loc 1 */
        sink_u8(&sink, 0x0e);     /* DW_CFA_def_cfa_offset */
        sink_uleb(&sink, (first + i) % 5000);
    }
    assert_false(sink.overflow);
    const uint32_t length = (uint32_t)(sink.size - length_at - 4);
    memcpy(section + length_at, &length, sizeof length);
    code.addr = addr;
    code.bytes = bytes;
    code.eh_frame = section;
    code.eh_frame_bytes = sink.size;
    return jitunwind_add(arena, &code);
}

/* Whether the function at ADDR has the rows that add_rows was given. */
static bool has_rows(const struct jitunwind *arena, uint64_t addr, unsigned rows, unsigned first)
{
    const struct table_function *function = ju_function_table_find(&arena->table, addr);
    for (unsigned i = 0; function && i < rows; i++) {
        const struct frame_rule *rule = ju_function_table_rule(&arena->table, function, addr + i);
        if (!rule || rule->cfa_offset != (int32_t)((first + i) % 5000))
            return false;
    }
    return function != NULL;
}

/* Add functions of BYTES with ROWS rows until there is no room.  Returns how many. */
static unsigned fill(struct jitunwind *arena, uint64_t bytes, unsigned rows)
{
    unsigned count = 0;
    int error = 0;
    while (!error && (count + 1) * bytes <= arena->table.bytes) {
        error = add_rows(arena, ARENA_START + count * bytes, bytes, rows, count);
        count += error == 0;
    }
    assert_true(error == 0 || error == -ENOSPC);
    return count;
}

static void remove_all(struct jitunwind *arena, uint64_t bytes, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(jitunwind_remove(arena, ARENA_START + i * bytes), 0);
}

static const struct {
    unsigned bytes, rows;
} kinds[] = {{1, 1}, {16, 1}, {32, 3}, {64, 40}, {512, 500}, {2048, MOST_ROWS}, {64, 17}, {8, 8}};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Each kind behind each other kind: as many fit as in an empty arena. */
static void test_removed_functions_make_room_for_all_others(void **state)
{
    unsigned expected[KINDS];
    (void)state;
    for (unsigned i = 0; i < KINDS; i++) {
        struct jitunwind *arena = arena_at(ARENA_START, SMALL_ARENA);
        expected[i] = fill(arena, kinds[i].bytes, kinds[i].rows);
        assert_true(expected[i] > 0);
        jitunwind_close(arena);
    }
    struct jitunwind *arena = arena_at(ARENA_START, SMALL_ARENA);
    for (unsigned i = 0; i < KINDS * KINDS; i++) {
        const unsigned kind = i % 2 ? i / KINDS : i % KINDS;
        assert_int_equal(fill(arena, kinds[kind].bytes, kinds[kind].rows), expected[kind]);
        remove_all(arena, kinds[kind].bytes, expected[kind]);
    }
    jitunwind_close(arena);
}

/* Functions that stay hold their own rows only. */
static void test_what_stays_is_not_moved(void **state)
{
    struct jitunwind *arena = arena_at(ARENA_START, SMALL_ARENA);
    const unsigned count = fill(arena, 32, 3), first_large = count / 4;
    (void)state;
    for (unsigned i = 0; i < count; i++)
        if (i % 64)
            assert_int_equal(jitunwind_remove(arena, ARENA_START + i * 32), 0);
    unsigned added = 0;
    for (unsigned i = first_large; i < count; i++)
        if (i % 64 == 1)
            added += add_rows(arena, ARENA_START + i * 32, 62 * 32, 64, i) == 0;
    assert_true(added > (count - first_large) / 64 - 2);
    for (unsigned i = 0; i < count; i++)
        if (i % 64 == 0)
            assert_true(has_rows(arena, ARENA_START + i * 32, 3, i));
        else if (i % 64 == 1 && i > first_large)
            assert_true(has_rows(arena, ARENA_START + i * 32, 64, i));
    jitunwind_close(arena);
}

static void test_a_large_block_serves_many_small_functions(void **state)
{
    enum { LARGE = 4, SMALL = 2000 };
    struct jitunwind *arena = arena_at(ARENA_START, SMALL_ARENA);
    (void)state;
    for (uint64_t i = 0; i < LARGE; i++)
        assert_int_equal(add_rows(arena, ARENA_START + i * 2048, 2048, MOST_ROWS, 7), 0);
    for (uint64_t i = 0; i + 1 < LARGE; i++)
        assert_int_equal(jitunwind_remove(arena, ARENA_START + i * 2048), 0);
    for (unsigned i = 0; i < SMALL; i++)
        assert_int_equal(add_rows(arena, ARENA_START + i, 1, 1, i), 0);
    for (unsigned i = 0; i < SMALL; i++)
        assert_true(has_rows(arena, ARENA_START + i, 1, i));
    jitunwind_close(arena);
}

/* Whatever was added and removed before. */
static void test_any_history(void **state)
{
    enum { PLACES = SMALL_ARENA / PLACE, STEPS = 40000 };
    static unsigned rows[PLACES], first[PLACES];
    struct jitunwind *arena = arena_at(ARENA_START, SMALL_ARENA);
    uint64_t seed = 88172645463325252u;
    unsigned full = 0;
    (void)state;
    for (unsigned step = 0; step < STEPS; step++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        const unsigned place = (unsigned)(seed % PLACES);
        const uint64_t addr = ARENA_START + (uint64_t)place * PLACE;
        if (rows[place]) {
            assert_true(has_rows(arena, addr, rows[place], first[place]));
            assert_int_equal(jitunwind_remove(arena, addr), 0);
            rows[place] = 0;
            continue;
        }
        const unsigned wanted = 1 + (unsigned)(seed >> 20) % (seed >> 50 & 1 ? 4 : PLACE);
        int error = add_rows(arena, addr, PLACE, wanted, step);
        assert_true(error == 0 || error == -ENOSPC);
        full += error != 0;
        rows[place] = error ? 0 : wanted;
        first[place] = step;
    }
    for (unsigned place = 0; place < PLACES; place++)
        if (rows[place]) {
            const uint64_t addr = ARENA_START + (uint64_t)place * PLACE;
            assert_true(has_rows(arena, addr, rows[place], first[place]));
            assert_int_equal(jitunwind_remove(arena, addr), 0);
        }
    assert_int_equal(add_rows(arena, ARENA_START, 2048, MOST_ROWS, 7), 0);
    assert_int_equal(jitunwind_remove(arena, ARENA_START), 0);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(add_rows(arena, ARENA_START + i * 2048, 2048, MOST_ROWS, 8), 0);
    jitunwind_close(arena);
    assert_in_range(full, 1, STEPS / 2);
}

/* ... until each backtrace that began before has ended. */
static void test_a_reader_keeps_what_was_removed(void **state)
{
    struct jitunwind *arena = arena_at(ARENA_START, SMALL_ARENA);
    const unsigned count = fill(arena, 64, 40);
    (void)state;
    assert_true(count * UINT64_C(64) < SMALL_ARENA);
    unsigned mark = read_begin();
    remove_all(arena, 64, count);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(add_rows(arena, ARENA_START, 64, 40, 0), -ENOSPC);
    read_end(mark);
    assert_int_equal(fill(arena, 64, 40), count);
    jitunwind_close(arena);
}

/* ---- Memory ---- */

/* The bytes of the arena's memory that can be written: these are what mlockall would take. */
static size_t writable_bytes(const struct jitunwind *arena)
{
    const uintptr_t base = (uintptr_t)arena->table.memory;
    const uintptr_t behind = base + arena->table.memory_bytes;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], access[8];
    unsigned long from, to;
    size_t bytes = 0;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &from, &to, access) == 3 && access[1] == 'w' &&
            from < behind && to > base)
            bytes += (to < behind ? to : behind) - (from > base ? from : base);
    fclose(maps);
    return bytes;
}

static void test_memory_is_as_much_as_is_used(void **state)
{
    enum { LARGE = 256 << 20, EMPTY_BYTES = 512 << 10, FUNCTIONS = 20000, APART = 128 };
    struct jitunwind *arena = arena_at(ARENA_START, LARGE);
    (void)state;
    assert_in_range(writable_bytes(arena), 1, EMPTY_BYTES);
    for (uint64_t i = 0; i < FUNCTIONS; i++)
        assert_int_equal(add_rows(arena, ARENA_START + i * APART, 64, 3, 8), 0);
    const size_t used = FUNCTIONS * (40 + 4 * 8 + APART / 8);
    assert_in_range(writable_bytes(arena), used, used + used / 4 + EMPTY_BYTES);
    /* A function at the end, and one that covers a lot. */
    assert_int_equal(add_plain(arena, ARENA_START + LARGE - 1, 1, "last"), 0);
    assert_int_equal(add_plain(arena, ARENA_START + LARGE / 2, LARGE / 4, "large"), 0);
    expect_name(ARENA_START + LARGE - 1, "last");
    expect_name(ARENA_START + LARGE / 2 + LARGE / 4 - 1, "large");
    expect_name(ARENA_START + LARGE / 2 + LARGE / 4, NULL);
    jitunwind_close(arena);
}

/* A process may have a mapping for each of its arenas, not ten. */
static void test_small_arenas_have_few_mappings(void **state)
{
    enum { ARENAS = 64, BYTES = 64 << 10, MOST_EACH = 3 };
    struct jitunwind *arenas[ARENAS];
    unsigned before = 0, after = 0;
    char line[512];
    (void)state;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        before++;
    fclose(maps);
    for (uint64_t i = 0; i < ARENAS; i++) {
        arenas[i] = arena_at(ARENA_START + i * BYTES, BYTES);
        assert_int_equal(add_rows(arenas[i], ARENA_START + i * BYTES, 64, 3, 8), 0);
    }
    maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        after++;
    fclose(maps);
    assert_in_range(after, 1, before + ARENAS * MOST_EACH);
    for (unsigned i = 0; i < ARENAS; i++)
        jitunwind_close(arenas[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removed_functions_make_room_for_all_others),
        cmocka_unit_test(test_what_stays_is_not_moved),
        cmocka_unit_test(test_a_large_block_serves_many_small_functions),
        cmocka_unit_test(test_any_history),
        cmocka_unit_test(test_a_reader_keeps_what_was_removed),
        cmocka_unit_test(test_memory_is_as_much_as_is_used),
        cmocka_unit_test(test_small_arenas_have_few_mappings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
