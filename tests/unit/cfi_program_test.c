/* Call frame information, read and run by perfjit itself: libdw says the same of each address that
 * it is asked about, in the C library and in this program, and by whichever way the entry is found.
 */
#include "injector/native/elf_view.h"
#include "injector/unwind/cfi_expression.h"
#include "tests/unit/scratch.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>

enum { STEP_BYTES = 3, BUDGET = 1 << 20 };

static const struct machine *x86_64(void)
{
    return machine_numbered(EM_X86_64);
}

/* ---- libdw's rules, and ours ---- */

/* Whether OPS, that libdw gives for a register or the CFA, is what RULE says. */
static bool same_rule(const struct register_rule *rule, const Dwarf_Op *ops, size_t count,
                      const Dwarf_Op *of_register)
{
    switch (rule->kind) {
    case REGISTER_SAME:
        return count == 0 && ops == NULL;
    case REGISTER_UNDEFINED:
        return count == 0 && ops == of_register;
    case REGISTER_AT_OFFSET:
        if (rule->offset == 0)
            return count == 1 && ops[0].atom == DW_OP_call_frame_cfa;
        return count == 2 && ops[0].atom == DW_OP_call_frame_cfa &&
               ops[1].atom == DW_OP_plus_uconst && (int64_t)ops[1].number == rule->offset;
    default:
        return count > 0; /* expressions: compared where they are evaluated */
    }
}

static bool same_cfa(const struct cfi_row *row, const Dwarf_Op *ops, size_t count)
{
    if (row->cfa.kind == REGISTER_IS_EXPRESSION)
        return count > 1;
    return count == 1 && ops[0].atom == DW_OP_bregx && ops[0].number == row->cfa_register &&
           (int64_t)ops[0].number2 == row->cfa.offset;
}

static void compare_row(Dwarf_Frame *frame, const struct cfi_row *row, uint64_t pc)
{
    Dwarf_Op *ops, memory[3];
    size_t count;
    assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
    if (!same_cfa(row, ops, count))
        fail_msg("0x%lx: another CFA", (unsigned long)pc);
    for (int reg = 0; reg <= 16; reg++) {
        assert_int_equal(dwarf_frame_register(frame, reg, memory, &ops, &count), 0);
        /* Without a rule libdw goes by the ABI: callee-saved registers stay, rsp is the CFA, others
         * are unknown. */
        bool unsaid = row->registers[reg].kind == REGISTER_SAME && (count == 0 || reg == 7);
        if (!unsaid && !same_rule(&row->registers[reg], ops, count, memory))
            fail_msg("0x%lx: register %d", (unsigned long)pc, reg);
    }
}

/* Compare all that SECTION says with CFI, from FROM to TO.  Returns how many addresses had a row.
 */
static size_t compare_range(Dwarf_CFI *cfi, struct frame_section *section, uint64_t from,
                            uint64_t to)
{
    size_t rows = 0;
    for (uint64_t pc = from; pc < to; pc += STEP_BYTES) {
        struct unwind_budget budget = {BUDGET};
        struct cfi_entry entry;
        struct cfi_row row;
        Dwarf_Frame *frame = NULL;
        bool theirs = dwarf_cfi_addrframe(cfi, pc, &frame) == 0;
        bool ours = frame_section_find(section, pc, &budget, &entry) == 1;
        if (theirs != ours)
            fail_msg("0x%lx: only one has a row", (unsigned long)pc);
        if (!theirs)
            continue;
        assert_true(cfi_row_find(&entry, pc, x86_64(), &budget, &row));
        compare_row(frame, &row, pc);
        free(frame);
        rows++;
    }
    return rows;
}

static void compare_file(const char *path, bool with_table)
{
    struct elf_view view;
    size_t rows = 0;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
    assert_non_null(cfi);
    assert_int_equal(elf_view_open(&view, path), 0);
    if (!with_table)
        view.eh_frame.hdr.size = 0;
    for (size_t i = 0; i < view.segment_count; i++)
        if (view.segments[i].executable)
            rows += compare_range(cfi, &view.eh_frame, view.segments[i].vaddr,
                                  view.segments[i].vaddr + view.segments[i].size);
    assert_true(rows > 1000);
    elf_view_close(&view);
    dwarf_cfi_end(cfi);
    elf_end(elf);
    close(fd);
}

static void test_library_as_libdw(void **state)
{
    Dl_info info;
    (void)state;
    assert_true(dladdr((void *)(uintptr_t)&malloc, &info));
    compare_file(info.dli_fname, true);
}

static void test_program_as_libdw(void **state)
{
    (void)state;
    compare_file("/proc/self/exe", true);
    compare_file("/proc/self/exe", false);
}

/* ---- Instructions one by one ---- */

static const struct cfi_entry plain = {
    .start = 0x1000, .end = 0x2000, .code_align = 1, .data_align = -8, .return_register = 16};

static bool row_of(const uint8_t *program, size_t size, uint64_t pc, struct cfi_row *row)
{
    static const uint8_t initial[] = {0x0c, 7, 8, 0x90, 1}; /* def_cfa rsp+8; ra at CFA-8 */
    struct unwind_budget budget = {BUDGET};
    struct cfi_entry entry = plain;
    entry.initial = initial;
    entry.initial_bytes = sizeof initial;
    entry.instructions = program;
    entry.instructions_bytes = size;
    return cfi_row_find(&entry, pc, x86_64(), &budget, row);
}

#define ROW_OF(pc, row, ...)                                                                       \
    row_of((const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[]){__VA_ARGS__}, pc, row)

static void test_instructions(void **state)
{
    struct cfi_row row;
    (void)state;
    /* advance 1; def_cfa_offset 16; rbp at CFA-16; advance 3; def_cfa_register rbp */
    assert_true(ROW_OF(0x1000, &row, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6));
    assert_int_equal(row.cfa.offset, 8);
    assert_true(ROW_OF(0x1003, &row, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6));
    assert_int_equal(row.cfa_register, 7);
    assert_int_equal(row.registers[6].offset, -16);
    assert_true(ROW_OF(0x1004, &row, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6));
    assert_int_equal(row.cfa_register, 6);
    /* remember; restore rbp; def_cfa_offset 8; advance 1; restore_state */
    assert_true(ROW_OF(0x1000, &row, 0x86, 2, 0x0a, 0xc6, 0x0e, 8, 0x41, 0x0b));
    assert_int_equal(row.registers[6].kind, REGISTER_SAME);
    assert_true(ROW_OF(0x1001, &row, 0x86, 2, 0x0a, 0xc6, 0x0e, 8, 0x41, 0x0b));
    assert_int_equal(row.registers[6].kind, REGISTER_AT_OFFSET);
    /* undefined ra; same_value rbx; register rbx in r12; val_offset */
    assert_true(ROW_OF(0x1000, &row, 0x07, 16, 0x09, 3, 12, 0x14, 5, 2));
    assert_int_equal(row.registers[16].kind, REGISTER_UNDEFINED);
    assert_int_equal(row.registers[3].kind, REGISTER_IN_REGISTER);
    assert_int_equal(row.registers[5].kind, REGISTER_IS_OFFSET);
}

/* What makes no sense gives no row, and what would take for ever is given up. */
static void test_nonsense(void **state)
{
    struct cfi_row row;
    struct cfi_entry entry = plain;
    static uint8_t nops[4096];
    (void)state;
    assert_false(ROW_OF(0x1000, &row, 0x0b));             /* restore_state without one */
    assert_false(ROW_OF(0x1000, &row, 0x3f));             /* unknown */
    assert_false(ROW_OF(0x1000, &row, 0x0e));             /* cut */
    assert_false(ROW_OF(0x1000, &row, 0x0f, 0x7f, 0x10)); /* a block longer than the entry */
    assert_false(ROW_OF(0x1000, &row, 0x0d, 99));         /* a CFA of no register */
    assert_false(ROW_OF(0x1000, &row, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a));
    assert_false(ROW_OF(0xfff, &row, 0x00));
    entry.instructions = nops;
    entry.instructions_bytes = sizeof nops;
    struct unwind_budget budget = {100};
    assert_false(cfi_row_find(&entry, 0x1000, x86_64(), &budget, &row));
    assert_int_equal(budget.left, 0);
}

/* ---- Expressions ---- */

static enum expression_result value_of(const uint8_t *bytes, size_t size, uint64_t *value)
{
    static const uint8_t memory[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const struct user_stack stack = {memory, 0x5000, sizeof memory};
    struct unwind_frame frame = {.pc = 0x1234};
    struct unwind_budget budget = {1000};
    struct cfa_block expression = {bytes, size};
    unwind_frame_set(&frame, 7, 0x5000);
    unwind_frame_set(&frame, 16, 0x1234);
    return cfi_expression_evaluate(&expression, NULL, &frame, &stack, &budget, value);
}

#define VALUE_OF(value, ...)                                                                       \
    value_of((const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[]){__VA_ARGS__}, value)

static void test_expressions(void **state)
{
    uint64_t value;
    (void)state;
    /* A PLT entry's CFA: rsp + 8 + ((rip & 15) >= 11) * 8 */
    assert_int_equal(VALUE_OF(&value, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22),
                     EXPRESSION_DONE);
    assert_int_equal(value, 0x5008);
    assert_int_equal(VALUE_OF(&value, 0x77, 0, 0x06), EXPRESSION_DONE);
    assert_int_equal(value, UINT64_C(0x0807060504030201));
    assert_int_equal(VALUE_OF(&value, 0x77, 8, 0x94, 1), EXPRESSION_DONE);
    assert_int_equal(value, 9);
    assert_int_equal(VALUE_OF(&value, 0x31, 0x32, 0x33, 0x17), EXPRESSION_DONE); /* rot */
    assert_int_equal(value, 2);
    assert_int_equal(VALUE_OF(&value, 0x0b, 0xf0, 0xff, 0x32, 0x26), EXPRESSION_DONE); /* shra */
    assert_int_equal(value, (uint64_t)-4);
    assert_int_equal(VALUE_OF(&value, 0x31, 0x28, 1, 0, 0x35, 0x36), EXPRESSION_DONE); /* bra */
    assert_int_equal(value, 6);
}

static void test_expressions_that_fail(void **state)
{
    uint64_t value;
    uint8_t pushes[64];
    (void)state;
    memset(pushes, 0x31, sizeof pushes);
    assert_int_equal(value_of(pushes, sizeof pushes, &value), EXPRESSION_BROKEN);
    assert_int_equal(VALUE_OF(&value, 0x22), EXPRESSION_BROKEN);
    assert_int_equal(VALUE_OF(&value, 0x2f, 0xfd, 0xff), EXPRESSION_BROKEN); /* for ever */
    assert_int_equal(VALUE_OF(&value, 0x2f, 0, 0x80), EXPRESSION_BROKEN);
    assert_int_equal(VALUE_OF(&value, 0x31, 0x30, 0x1b), EXPRESSION_BROKEN); /* 1 / 0 */
    assert_int_equal(VALUE_OF(&value, 0x0e, 1, 2), EXPRESSION_BROKEN);
    assert_int_equal(VALUE_OF(&value, 0x77, 12, 0x06), EXPRESSION_CUT);
    assert_int_equal(VALUE_OF(&value, 0x73, 0), EXPRESSION_CUT); /* rbx is not known */
    assert_int_equal(VALUE_OF(&value, 0x03, 1, 2, 3, 4, 5, 6, 7, 8), EXPRESSION_BROKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library_as_libdw), cmocka_unit_test(test_program_as_libdw),
        cmocka_unit_test(test_instructions),     cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_expressions),      cmocka_unit_test(test_expressions_that_fail),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
