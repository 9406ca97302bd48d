/* Each number in each public struct of libjitdump and libperfmap, and each number that a call
 * takes, with the values at which arithmetic overflows.  No call fails but by an error that it may
 * return, no memory is touched that is not there, and what is written can be read.  The sanitizers
 * see overflows of signed numbers. */
#include "jitdump/cfi.h"
#include "jitdump/trampoline.h"
#include "perfmap/perfmap.h"
#include "tests/unit/jitdump_inventory.h"

#include <inttypes.h>

static const uint64_t values[] = {0,
                                  1,
                                  7,
                                  8,
                                  255,
                                  4095,
                                  4096,
                                  4097,
                                  INT32_MAX - 1,
                                  INT32_MAX,
                                  (uint64_t)INT32_MAX + 1,
                                  UINT32_MAX - 7,
                                  UINT32_MAX,
                                  (uint64_t)UINT32_MAX + 1,
                                  INT64_MAX - 8,
                                  INT64_MAX,
                                  (uint64_t)INT64_MAX + 1,
                                  UINT64_MAX - 4096,
                                  UINT64_MAX - 8,
                                  UINT64_MAX - 1,
                                  UINT64_MAX};
enum { VALUES = sizeof values / sizeof *values };

/* Nobody has so much memory: as without the sanitizer. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void assert_is_result(int result)
{
    static const int results[] = {0,       -EINVAL,  -E2BIG,   -EFBIG,     -ENOMEM,
                                  -ENOENT, -EBADMSG, -ENOTSUP, -EOPNOTSUPP};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (result == results[i])
            return;
    fail_msg("result %d", result);
}

/* ---- struct jitdump_options ---- */

static void test_options(void **state)
{
    (void)state;
    for (int field = 0; field < 4; field++)
        for (int i = 0; i < VALUES; i++) {
            struct jitdump_options options = options_in_dir();
            struct jitdump *dump;
            if (field == 0)
                options.size =
                    values[i] <= 4096 && values[i] > sizeof options ? sizeof options : values[i];
            else if (field == 1)
                options.flags = (uint32_t)values[i];
            else if (field == 2)
                options.elf_mach = (uint32_t)values[i];
            else
                options.max_bytes = values[i];
            int result = jitdump_open(&dump, &options);
            assert_is_result(result);
            jitdump_add(dump, "f", &options, 16, NULL);
            jitdump_close(dump);
        }
}

/* ---- struct jitdump_code and its parts ---- */

enum { ROWS = 4, FIELDS = 16 };

struct whole_code {
    struct jitdump_code code, piece;
    struct jitdump_line lines[ROWS];
    struct jitdump_inline inlines[2];
    uint32_t line_inlines[ROWS];
    struct jitdump_unwind unwind;
};

enum { CODE_BYTES = 64 };

static const uint8_t bytes[8192]; /* more than any size that is copied */

static void fill(struct whole_code *whole, bool inlined, bool pieces)
{
    memset(whole, 0, sizeof *whole);
    whole->code = whole->piece = (struct jitdump_code)JITDUMP_CODE_INIT;
    whole->code.name = "f";
    whole->code.code_addr = 0x10000;
    whole->code.code_size = whole->piece.code_size = CODE_BYTES;
    whole->code.bytes = whole->piece.bytes = bytes;
    whole->piece.code_addr = 0x20000;
    for (int i = 0; i < ROWS; i++)
        whole->lines[i] = (struct jitdump_line){0x10000 + (uint64_t)i, "f.src", 1, 1};
    whole->code.lines = whole->lines;
    whole->code.line_count = ROWS;
    whole->unwind = (struct jitdump_unwind){bytes, 32, 12, 32};
    whole->code.unwind = &whole->unwind;
    whole->inlines[0] =
        (struct jitdump_inline){"g", "f.src", "g.src", 1, 1, 1, JITDUMP_NOT_INLINED};
    whole->inlines[1] = (struct jitdump_inline){"h", "g.src", "h.src", 1, 1, 1, 0};
    if (inlined) {
        whole->code.inlines = whole->inlines;
        whole->code.inline_count = 2;
        whole->code.line_inlines = whole->line_inlines;
    }
    if (pieces) {
        whole->code.pieces = &whole->piece;
        whole->code.piece_count = 1;
    }
}

/* A count of what is in memory must be true, unless no dump can hold so many. */
static uint64_t count_of(uint64_t value, uint64_t there)
{
    return value <= there || value > UINT32_MAX ? value : there;
}

static void set_field(struct whole_code *whole, int field, uint64_t value)
{
    struct jitdump_code *code = &whole->code;
    switch (field) {
    case 0:
        code->code_addr = value;
        break;
    case 1:
        code->code_size = value;
        break;
    case 2:
        code->line_count = count_of(value, ROWS);
        break;
    case 3:
        code->inline_count = count_of(value, code->inline_count);
        break;
    case 4:
        code->unwind_size = count_of(value, sizeof whole->unwind);
        break;
    case 5:
        code->flags = value;
        break;
    case 6:
        code->flags = JITDUMP_RELATIVE;
        code->buffer_offset = value;
        break;
    case 7:
        code->piece_count = count_of(value, code->piece_count);
        break;
    case 8:
        whole->lines[1].addr = value;
        break;
    case 9:
        whole->lines[1].line = whole->lines[2].column = (uint32_t)value;
        break;
    case 10:
        whole->inlines[1].parent = whole->line_inlines[2] = (uint32_t)value;
        break;
    case 11:
        whole->unwind.unwinding_size = count_of(value, CODE_BYTES);
        break;
    case 12:
        whole->unwind.eh_frame_hdr_size = whole->unwind.mapped_size = value;
        break;
    case 13:
        whole->piece.code_addr = value;
        break;
    case 14:
        whole->piece.code_size = value;
        break;
    default:
        code->code_addr = whole->piece.code_addr = UINT64_MAX - 63;
        code->code_size = value;
    }
}

static void add_extremes(struct jitdump *dump, unsigned *recorded)
{
    struct whole_code whole;
    for (int form = 0; form < 4; form++)
        for (int field = 0; field < FIELDS; field++)
            for (int i = 0; i < VALUES; i++) {
                uint64_t index;
                fill(&whole, form & 1, form & 2);
                set_field(&whole, field, values[i]);
                if (whole.code.code_size > 1 << 20 && whole.code.code_size <= UINT32_MAX)
                    continue; /* 4 GiB of zeros are a test of their own */
                if (whole.piece.code_size > 1 << 20 && whole.piece.code_size <= UINT32_MAX)
                    continue;
                int result = jitdump_add_code(dump, &whole.code, &index);
                assert_is_result(result);
                assert_int_equal(result == 0, index != JITDUMP_NO_CODE);
                *recorded += result == 0;
            }
}

static void test_code(void **state)
{
    unsigned recorded = 0;
    (void)state;
    for (int checked = 0; checked < 2; checked++) {
        setenv("PERFJIT", checked ? "check" : "", 1);
        struct jitdump *dump = open_dump();
        add_extremes(dump, &recorded);
        for (int i = 0; i < VALUES; i++)
            for (int j = 0; j < VALUES; j++) {
                const struct jitdump_piece_move move = {values[i], values[j], values[i]};
                assert_is_result(
                    jitdump_move_code(dump, values[i], values[j], values[i], values[j]));
                assert_is_result(jitdump_unload_code(dump, values[i], values[j], values[i]));
                assert_is_result(jitdump_move_pieces(dump, values[j], &move, 1));
            }
        jitdump_close(dump);
        struct dump_bytes written = read_dump(path);
        struct record record;
        size_t offset = JITHEADER_BYTES;
        while (next_record(&written, &offset, &record))
            ;
        assert_int_equal(offset, written.size); /* all of it are records */
        free(written.data);
        remove_dump(path);
    }
    assert_true(recorded > 200);
    unsetenv("PERFJIT");
}

/* Two pieces of which one reaches past the end of memory overlap, or not: it is refused. */
static void test_pieces_at_the_end_of_memory(void **state)
{
    struct jitdump *dump = open_dump();
    struct whole_code whole;
    (void)state;
    fill(&whole, false, true);
    whole.code.code_addr = UINT64_MAX - 10;
    whole.piece.code_addr = 16;
    assert_int_equal(jitdump_add_code(dump, &whole.code, NULL), -EINVAL);
    assert_non_null(strstr(jitdump_error(dump), "past the end of memory"));
    jitdump_close(dump);
}

/* ---- Frames and directives ---- */

static const enum jitdump_arch archs[] = {JITDUMP_X86_64, JITDUMP_AARCH64, JITDUMP_RISCV64};

static void set_frame_field(struct jitdump_frame *frame, int field, uint64_t value,
                            uint64_t epilogue[1], struct jitdump_slot slot[1])
{
    switch (field) {
    case 0:
        frame->kind = (enum jitdump_frame_kind)(value & 3);
        frame->flags = (uint32_t)value;
        break;
    case 1:
        frame->saved_count = (uint32_t)value;
        break;
    case 2:
        frame->saved[0] = (uint8_t)value;
        frame->saved_count = 1;
        break;
    case 3:
        frame->stack_bytes = (uint32_t)value;
        break;
    case 4:
        frame->prologue = value;
        break;
    case 5:
        epilogue[0] = value;
        frame->epilogues = epilogue;
        frame->epilogue_count = 1;
        break;
    case 6:
        slot[0].reg = (uint32_t)value;
        frame->slots = slot;
        frame->slot_count = 1;
        break;
    case 7:
        slot[0].offset = (int32_t)(uint32_t)value;
        frame->slots = slot;
        frame->slot_count = 1;
        break;
    case 8:
        frame->slots = slot;
        frame->slot_count = value > 1 && value <= JITDUMP_FRAME_SLOTS_MAX ? 1 : value;
        break;
    default:
        frame->slots = slot;
        frame->slot_count = 1;
        frame->slots_at = value;
    }
}

static void check_end(struct jitdump_cfi *cfi, uint64_t code_size)
{
    struct jitdump_unwind unwind;
    int result = jitdump_cfi_finish(cfi, code_size, &unwind);
    assert_is_result(result);
    assert_int_equal(result == 0, *jitdump_cfi_error(cfi) == '\0');
    assert_int_equal(result == 0, unwind.unwinding_size > 0);
    if (code_size <= CODE_BYTES)
        assert_is_result(jitdump_cfi_check(cfi, bytes, code_size));
    jitdump_cfi_reset(cfi);
}

static void test_frames(void **state)
{
    (void)state;
    for (size_t a = 0; a < 3; a++) {
        struct jitdump_cfi *cfi = jitdump_cfi_new(archs[a]);
        for (int kind = JITDUMP_FRAME_LEAF; kind <= JITDUMP_FRAME_STACK; kind++)
            for (int field = 0; field < 10; field++)
                for (int i = 0; i < VALUES * 2; i++) {
                    struct jitdump_frame frame = {.kind = (enum jitdump_frame_kind)kind};
                    uint64_t epilogue[1];
                    struct jitdump_slot slot[1] = {{a == 0 ? 3 : 19, -16}};
                    set_frame_field(&frame, field, values[i % VALUES], epilogue, slot);
                    int prologue = jitdump_cfi_prologue_bytes(archs[a], &frame);
                    assert_true(prologue >= 0 || prologue == -EINVAL);
                    jitdump_cfi_epilogue_bytes(archs[a], &frame);
                    if (i >= VALUES)
                        jitdump_cfi_begin(cfi, values[(i * 7) % VALUES]);
                    jitdump_cfi_frame(cfi, &frame);
                    check_end(cfi, CODE_BYTES);
                }
        jitdump_cfi_free(cfi);
    }
}

static void directive(struct jitdump_cfi *cfi, int which, uint64_t at, uint64_t value)
{
    unsigned reg = (unsigned)value;
    int64_t offset = (int64_t)value;
    switch (which) {
    case 0:
        jitdump_cfi_def_cfa(cfi, at, reg, offset);
        break;
    case 1:
        jitdump_cfi_def_cfa(cfi, at, 7, offset);
        break;
    case 2:
        jitdump_cfi_def_cfa_offset(cfi, at, offset);
        break;
    case 3:
        jitdump_cfi_def_cfa_offset(cfi, at, 16);
        jitdump_cfi_adjust_cfa_offset(cfi, at, offset);
        break;
    case 4:
        jitdump_cfi_offset(cfi, at, 3, offset);
        break;
    case 5:
        jitdump_cfi_rel_offset(cfi, at, 3, offset);
        break;
    case 6:
        jitdump_cfi_val_offset(cfi, at, 3, offset);
        break;
    case 7:
        jitdump_cfi_offset(cfi, at, reg, -16);
        break;
    case 8:
        jitdump_cfi_register(cfi, at, reg, reg);
        break;
    case 9:
        jitdump_cfi_block(cfi, at, value);
        break;
    case 10:
        jitdump_cfi_begin(cfi, at);
        jitdump_cfi_def_cfa_offset(cfi, value, 16);
        break;
    case 11:
        jitdump_cfi_escape(cfi, at, bytes, value > CODE_BYTES ? SIZE_MAX / 2 : value);
        break;
    case 12:
        jitdump_cfi_restore(cfi, at, reg);
        jitdump_cfi_undefined(cfi, at, reg);
        break;
    default:
        jitdump_cfi_remember_state(cfi, at);
        jitdump_cfi_restore_state(cfi, value);
    }
}

static void test_directives(void **state)
{
    struct jitdump_unwind unwind;
    (void)state;
    for (size_t a = 0; a < 3; a++) {
        struct jitdump_cfi *cfi = jitdump_cfi_new(archs[a]);
        for (int which = 0; which < 14; which++)
            for (int i = 0; i < VALUES; i++)
                for (int j = 0; j < VALUES; j++) {
                    directive(cfi, which, values[i], values[j]);
                    check_end(cfi, values[(i + j) % VALUES]);
                    directive(cfi, which, values[i], values[j]);
                    assert_is_result(jitdump_cfi_end(cfi, values[(i + j) % VALUES], &unwind));
                    jitdump_cfi_reset(cfi);
                }
        for (int i = 0; i < VALUES; i++)
            jitdump_dwarf_register(archs[a], (unsigned)values[i]);
        jitdump_cfi_free(cfi);
    }
}

/* Tables that are sound, said to be anywhere. */
static void test_import(void **state)
{
    struct jitdump_cfi *made = jitdump_cfi_new(JITDUMP_X86_64),
                       *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    (void)state;
    assert_int_equal(jitdump_cfi_finish(made, CODE_BYTES, &unwind), 0);
    size_t frame_bytes = (size_t)(unwind.unwinding_size - unwind.eh_frame_hdr_size);
    for (int i = 0; i < VALUES; i++)
        for (int j = 0; j < VALUES; j++)
            for (int k = 0; k < VALUES; k++) {
                assert_is_result(jitdump_cfi_import(cfi, unwind.data, frame_bytes, values[i],
                                                    values[j], values[k]));
                jitdump_cfi_reset(cfi);
            }
    jitdump_cfi_free(made);
    jitdump_cfi_free(cfi);
}

/* ---- libperfmap ---- */

static void test_perf_map(void **state)
{
    char text[256], error[200];
    (void)state;
    for (int i = 0; i < VALUES; i++)
        for (int j = 0; j < VALUES; j++) {
            struct perfmap_table *table;
            size_t count;
            snprintf(text, sizeof text, "%" PRIx64 " %" PRIx64 " f\n%" PRIx64 " 10 g\n", values[i],
                     values[j], values[j]);
            assert_int_equal(perfmap_parse(&table, text, strlen(text)), 0);
            const struct perfmap_entry *entries = perfmap_entries(table, &count);
            for (size_t k = 0; k < count; k++) {
                if (!entries[k].size_bytes)
                    continue;
                assert_true(entries[k].addr + (entries[k].size_bytes - 1) >= entries[k].addr);
                assert_ptr_equal(perfmap_find(table, entries[k].addr), &entries[k]);
            }
            for (int k = 0; k < VALUES; k++)
                perfmap_find(table, values[k]);
            perfmap_free(table);
        }
    for (int field = 0; field < 3; field++)
        for (int i = 0; i < VALUES; i++) {
            struct perfmap_options options = PERFMAP_OPTIONS_INIT;
            struct perfmap *map;
            struct perfmap_table *table;
            options.dir = dir;
            options.flags = PERFMAP_ALWAYS;
            if (field == 0 && (values[i] > 4096 || values[i] <= sizeof options))
                options.size = values[i];
            if (field == 1)
                options.flags = (uint32_t)values[i];
            if (field == 2)
                options.reserved = (uint32_t)values[i];
            assert_is_result(perfmap_open(&map, &options));
            for (int j = 0; map && j < VALUES; j++)
                perfmap_add(map, values[i], values[j], "f");
            if (map && *perfmap_path(map))
                assert_int_equal(perfmap_read(&table, perfmap_path(map), error, sizeof error), 0);
            if (map && *perfmap_path(map))
                perfmap_free(table);
            perfmap_close(map);
        }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_options),  TEST(test_code),       TEST(test_pieces_at_the_end_of_memory),
        TEST(test_frames),   TEST(test_directives), TEST(test_import),
        TEST(test_perf_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
