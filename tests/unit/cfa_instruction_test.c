/* Call frame instructions, taken apart: as readelf and llvm-dwarfdump do, and so that all who run
 * them find the same programs wrong. */
#include "injector/native/cfi_program.h"
#include "jitdump/format/eh_frame.h"
#include "jitunwind/frames/frame_rule.h"
#include "tests/unit/cfa_programs.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { OPCODES = 256, LOAD_ADDR = 0x1000 };

/* Two numbers in LEB128 of two bytes each, 1 and 2, and what can be no instruction. */
static const uint8_t operands[] = {0x81, 0, 0x82, 0, 0x96, 0x97, 0x98, 0x99, 0x9a};

/* The length of each instruction with these operands; 0: there is none.  What binutils 2.40 and
 * LLVM 14 say: of the two that only readelf knows (0x1d and 0x2f) its; 0x2c, which is newer, by
 * aadwarf64.  0x01 is set_loc, which is not followed. */
static const uint8_t lengths[0x40] = {
    1, 0, 2, 3, 5, 5, 3, 3, 3, 5, 1, 1, 5, 3, 3, 4, /* 00 */
    7, 5, 5, 3, 5, 5, 7, 0, 0, 0, 0, 0, 0, 9, 0, 0, /* 10 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 3, 5, /* 20 */
};

static size_t length_of(unsigned byte)
{
    enum { OFFSET = 2 };
    return byte < 0x40 ? lengths[byte] : byte >> 6 == OFFSET ? 3 : 1;
}

/* Decode BYTE and SIZE - 1 bytes of operands. */
static bool decode(unsigned byte, size_t size, struct cfa_decoder *decoder,
                   struct cfa_instruction *instruction)
{
    static uint8_t program[1 + sizeof operands];
    program[0] = (uint8_t)byte;
    memcpy(program + 1, operands, sizeof operands);
    *decoder = cfa_decoder_over(program, size, false, 1, CFA_DATA_ALIGN);
    return cfa_next(decoder, instruction);
}

static void test_lengths(void **state)
{
    struct cfa_decoder decoder;
    struct cfa_instruction instruction;
    (void)state;
    for (unsigned byte = 0; byte < OPCODES; byte++) {
        bool there = decode(byte, 1 + sizeof operands, &decoder, &instruction);
        if (there != (length_of(byte) != 0))
            fail_msg("0x%02x: %s", byte, there ? "is taken" : decoder.wrong);
        if (there)
            assert_int_equal(decoder.program.offset, length_of(byte));
        else
            assert_string_equal(decoder.wrong,
                                byte == CFA_set_loc
                                    ? "call frame instruction set_loc can't be relocated"
                                    : "unknown call frame instruction");
    }
}

static void test_cut_at_each_byte(void **state)
{
    struct cfa_decoder decoder;
    struct cfa_instruction instruction;
    (void)state;
    for (unsigned byte = 0; byte < OPCODES; byte++) {
        for (size_t size = 1; size < length_of(byte); size++) {
            assert_false(decode(byte, size, &decoder, &instruction));
            assert_string_equal(decoder.wrong, "a call frame instruction reaches past its entry");
            assert_false(cfa_next(&decoder, &instruction)); /* nor is there another */
        }
        if (length_of(byte)) {
            assert_true(decode(byte, length_of(byte), &decoder, &instruction));
            assert_false(cfa_next(&decoder, &instruction));
            assert_null(decoder.wrong);
        }
    }
}

static void assert_decoded(unsigned byte, uint8_t opcode, uint64_t delta, uint64_t reg,
                           uint64_t other_reg, int64_t offset)
{
    struct cfa_decoder decoder;
    struct cfa_instruction instruction;
    assert_true(decode(byte, 1 + sizeof operands, &decoder, &instruction));
    assert_int_equal(instruction.opcode, opcode);
    assert_int_equal(instruction.delta, delta);
    assert_int_equal(instruction.reg, reg);
    assert_int_equal(instruction.other_reg, other_reg);
    assert_int_equal(instruction.offset, offset);
}

/* The same that readelf prints. */
static void test_operands(void **state)
{
    struct cfa_decoder decoder;
    struct cfa_instruction instruction;
    (void)state;
    assert_decoded(0x45, CFA_advance_loc, 5, 0, 0, 0);
    assert_decoded(0x02, CFA_advance_loc1, 0x81, 0, 0, 0);
    assert_decoded(0x03, CFA_advance_loc2, 0x81, 0, 0, 0);
    assert_decoded(0x04, CFA_advance_loc4, 0x820081, 0, 0, 0);
    assert_decoded(0x1d, CFA_MIPS_advance_loc8, UINT64_C(0x9998979600820081), 0, 0, 0);
    assert_decoded(0x86, CFA_offset, 0, 6, 0, -8);
    assert_decoded(0xc6, CFA_restore, 0, 6, 0, 0);
    assert_decoded(0x05, CFA_offset_extended, 0, 1, 0, -16);
    assert_decoded(0x11, CFA_offset_extended_sf, 0, 1, 0, -16);
    assert_decoded(0x2f, CFA_GNU_negative_offset_extended, 0, 1, 0, 16);
    assert_decoded(0x14, CFA_val_offset, 0, 1, 0, -16);
    assert_decoded(0x09, CFA_register, 0, 1, 2, 0);
    assert_decoded(0x0c, CFA_def_cfa, 0, 1, 0, 2);
    assert_decoded(0x12, CFA_def_cfa_sf, 0, 1, 0, -16);
    assert_decoded(0x0e, CFA_def_cfa_offset, 0, 0, 0, 1);
    assert_decoded(0x13, CFA_def_cfa_offset_sf, 0, 0, 0, -8);
    assert_true(decode(0x10, 1 + sizeof operands, &decoder, &instruction));
    assert_int_equal(instruction.expression.size, 2);
    assert_memory_equal(instruction.expression.bytes, operands + 4, 2);
}

/* ---- Those who run them ---- */

static bool is_wrong_by_form(const struct cfa_case *program)
{
    const struct eh_cie cie = {.code_align = CFA_CODE_ALIGN, .data_align = CFA_DATA_ALIGN};
    struct cfa_program done;
    return jd_cfa_program_check(&cie, program->initial, program->initial_bytes, false, &done) ||
           jd_cfa_program_check(&cie, program->program, program->program_bytes, false, &done);
}

/* The command's; ROW is the last one. */
static bool command_runs(const struct cfa_case *program, struct cfi_row *row)
{
    struct unwind_budget budget = {1000};
    const struct cfi_entry entry = {.start = LOAD_ADDR,
                                    .end = LOAD_ADDR + CFA_CODE_BYTES,
                                    .code_align = CFA_CODE_ALIGN,
                                    .data_align = CFA_DATA_ALIGN,
                                    .return_register = 16,
                                    .initial = program->initial,
                                    .initial_bytes = program->initial_bytes,
                                    .instructions = program->program,
                                    .instructions_bytes = program->program_bytes};
    return cfi_row_find(&entry, entry.end - 1, machine_numbered(EM_X86_64), &budget, row);
}

/* libjitunwind's; RULE is the last one. */
static bool library_runs(const struct cfa_case *program, struct frame_rule *rule)
{
    struct frame_run run;
    uint64_t from, to;
    const struct cfi_entry entry = {.start = LOAD_ADDR,
                                      .end = LOAD_ADDR + CFA_CODE_BYTES,
                                      .code_align = CFA_CODE_ALIGN,
                                      .data_align = CFA_DATA_ALIGN,
                                      .return_register = MACHINE_RETURN,
                                      .initial = program->initial,
                                      .initial_bytes = program->initial_bytes,
                                      .instructions = program->program,
                                      .instructions_bytes = program->program_bytes};
    ju_frame_run_begin(&run, &entry, 1000);
    while (ju_frame_run_next(&run, &from, &to, rule))
        continue;
    return !run.failed;
}

static void test_wrong_programs(void **state)
{
    struct cfi_row row;
    struct frame_rule rule;
    (void)state;
    for (size_t i = 0; i < CFA_WRONG; i++) {
        if (is_wrong_by_form(&cfa_wrong[i]) == cfa_wrong[i].has_form)
            fail_msg("%s: the check of its form", cfa_wrong[i].what);
        if (command_runs(&cfa_wrong[i], &row))
            fail_msg("%s: the command takes it", cfa_wrong[i].what);
        if (library_runs(&cfa_wrong[i], &rule))
            fail_msg("%s: libjitunwind takes it", cfa_wrong[i].what);
    }
}

static void test_right_programs(void **state)
{
    struct cfi_row row;
    struct frame_rule rule;
    (void)state;
    for (size_t i = 0; i < CFA_RIGHT; i++) {
        if (is_wrong_by_form(&cfa_right[i]))
            fail_msg("%s: the check of its form", cfa_right[i].what);
        if (!command_runs(&cfa_right[i], &row) || row.cfa_register != CFA_RIGHT_REGISTER ||
            row.cfa.kind != REGISTER_IS_OFFSET || row.cfa.offset != CFA_RIGHT_OFFSET)
            fail_msg("%s: the command has another CFA", cfa_right[i].what);
        if (!library_runs(&cfa_right[i], &rule) || rule.cfa_register != CFA_RIGHT_REGISTER ||
            rule.kind != RULE_OFFSET || rule.cfa_offset != CFA_RIGHT_OFFSET)
            fail_msg("%s: libjitunwind has another CFA", cfa_right[i].what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),        cmocka_unit_test(test_cut_at_each_byte),
        cmocka_unit_test(test_operands),       cmocka_unit_test(test_wrong_programs),
        cmocka_unit_test(test_right_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
