/* The call frame instructions: DWARF 5, table 7.29, with the extensions of GNU, MIPS and aarch64,
 * by the names that they have there.  The table has each instruction's operands behind its opcode,
 * and its subject.
 */
#ifndef CFA_OPCODE_H
#define CFA_OPCODE_H

#include <stdint.h>

enum {
    CFA_advance_loc = 0x40, /* the three with an operand in their low six bits */
    CFA_offset = 0x80,
    CFA_restore = 0xc0,
    CFA_nop = 0x00,
    CFA_set_loc = 0x01,
    CFA_advance_loc1 = 0x02,
    CFA_advance_loc2 = 0x03,
    CFA_advance_loc4 = 0x04,
    CFA_offset_extended = 0x05,
    CFA_restore_extended = 0x06,
    CFA_undefined = 0x07,
    CFA_same_value = 0x08,
    CFA_register = 0x09,
    CFA_remember_state = 0x0a,
    CFA_restore_state = 0x0b,
    CFA_def_cfa = 0x0c,
    CFA_def_cfa_register = 0x0d,
    CFA_def_cfa_offset = 0x0e,
    CFA_def_cfa_expression = 0x0f,
    CFA_expression = 0x10,
    CFA_offset_extended_sf = 0x11,
    CFA_def_cfa_sf = 0x12,
    CFA_def_cfa_offset_sf = 0x13,
    CFA_val_offset = 0x14,
    CFA_val_offset_sf = 0x15,
    CFA_val_expression = 0x16,
    CFA_MIPS_advance_loc8 = 0x1d,
    CFA_AARCH64_negate_ra_state_with_pc = 0x2c,
    CFA_AARCH64_negate_ra_state = 0x2d, /* on SPARC: GNU_window_save */
    CFA_GNU_args_size = 0x2e,
    CFA_GNU_negative_offset_extended = 0x2f,
    LOW_SIX_BITS = 0x3f,
};

/* The place of an instruction's register. */
enum cfa_register_operand {
    REGISTER_NONE,
    REGISTER_LOW, /* in the opcode's low six bits */
    REGISTER_LEB, /* behind the opcode, in LEB128 */
};

/* Its other operands; numbers without a size are in LEB128. */
enum cfa_operand {
    OPERAND_NONE,
    OPERAND_DELTA_LOW, /* in the opcode's low six bits; all deltas: times code_align */
    OPERAND_DELTA_1,   /* in that many bytes */
    OPERAND_DELTA_2,
    OPERAND_DELTA_4,
    OPERAND_DELTA_8,
    OPERAND_ADDRESS, /* in the encoding of the CIE */
    OPERAND_REGISTER,
    OPERAND_OFFSET,          /* in bytes */
    OPERAND_FACTORED,        /* times data_align */
    OPERAND_FACTORED_SIGNED, /* the same, of a signed number */
    OPERAND_FACTORED_MINUS,  /* the same, of the number's negative */
    OPERAND_BLOCK,           /* a length and as many bytes */
};

/* The subject of an instruction. */
enum cfa_subject {
    CFA_IS_UNKNOWN, /* no such instruction */
    CFA_IS_NOTHING, /* that an unwinder goes by */
    CFA_IS_ADVANCE,
    CFA_IS_CFA,      /* struct cfa_rule */
    CFA_IS_SAVED_AT, /* a register: stored at CFA + offset */
    CFA_IS_VALUE,    /* is CFA + offset */
    CFA_IS_IN_REGISTER,
    CFA_IS_SAVED_AT_EXPRESSION,
    CFA_IS_VALUE_OF_EXPRESSION,
    CFA_IS_UNDEFINED,
    CFA_IS_SAME,
    CFA_IS_RESTORED, /* to what the CIE says */
    CFA_IS_REMEMBER,
    CFA_IS_RECALL,
    CFA_IS_SIGNED, /* from here on the return address is signed, or no more: aarch64 alone */
};

struct cfa_form {
    uint8_t subject; /* enum cfa_subject */
    uint8_t reg;     /* enum cfa_register_operand */
    uint8_t operand; /* enum cfa_operand */
};

/* By opcode, without an operand in its low six bits. */
static const struct cfa_form cfa_forms[CFA_restore + 1] = {
    [CFA_advance_loc] = {CFA_IS_ADVANCE, REGISTER_NONE, OPERAND_DELTA_LOW},
    [CFA_offset] = {CFA_IS_SAVED_AT, REGISTER_LOW, OPERAND_FACTORED},
    [CFA_restore] = {CFA_IS_RESTORED, REGISTER_LOW, OPERAND_NONE},
    [CFA_nop] = {CFA_IS_NOTHING, REGISTER_NONE, OPERAND_NONE},
    [CFA_set_loc] = {CFA_IS_ADVANCE, REGISTER_NONE, OPERAND_ADDRESS},
    [CFA_advance_loc1] = {CFA_IS_ADVANCE, REGISTER_NONE, OPERAND_DELTA_1},
    [CFA_advance_loc2] = {CFA_IS_ADVANCE, REGISTER_NONE, OPERAND_DELTA_2},
    [CFA_advance_loc4] = {CFA_IS_ADVANCE, REGISTER_NONE, OPERAND_DELTA_4},
    [CFA_offset_extended] = {CFA_IS_SAVED_AT, REGISTER_LEB, OPERAND_FACTORED},
    [CFA_restore_extended] = {CFA_IS_RESTORED, REGISTER_LEB, OPERAND_NONE},
    [CFA_undefined] = {CFA_IS_UNDEFINED, REGISTER_LEB, OPERAND_NONE},
    [CFA_same_value] = {CFA_IS_SAME, REGISTER_LEB, OPERAND_NONE},
    [CFA_register] = {CFA_IS_IN_REGISTER, REGISTER_LEB, OPERAND_REGISTER},
    [CFA_remember_state] = {CFA_IS_REMEMBER, REGISTER_NONE, OPERAND_NONE},
    [CFA_restore_state] = {CFA_IS_RECALL, REGISTER_NONE, OPERAND_NONE},
    [CFA_def_cfa] = {CFA_IS_CFA, REGISTER_LEB, OPERAND_OFFSET},
    [CFA_def_cfa_register] = {CFA_IS_CFA, REGISTER_LEB, OPERAND_NONE},
    [CFA_def_cfa_offset] = {CFA_IS_CFA, REGISTER_NONE, OPERAND_OFFSET},
    [CFA_def_cfa_expression] = {CFA_IS_CFA, REGISTER_NONE, OPERAND_BLOCK},
    [CFA_expression] = {CFA_IS_SAVED_AT_EXPRESSION, REGISTER_LEB, OPERAND_BLOCK},
    [CFA_offset_extended_sf] = {CFA_IS_SAVED_AT, REGISTER_LEB, OPERAND_FACTORED_SIGNED},
    [CFA_def_cfa_sf] = {CFA_IS_CFA, REGISTER_LEB, OPERAND_FACTORED_SIGNED},
    [CFA_def_cfa_offset_sf] = {CFA_IS_CFA, REGISTER_NONE, OPERAND_FACTORED_SIGNED},
    [CFA_val_offset] = {CFA_IS_VALUE, REGISTER_LEB, OPERAND_FACTORED},
    [CFA_val_offset_sf] = {CFA_IS_VALUE, REGISTER_LEB, OPERAND_FACTORED_SIGNED},
    [CFA_val_expression] = {CFA_IS_VALUE_OF_EXPRESSION, REGISTER_LEB, OPERAND_BLOCK},
    [CFA_MIPS_advance_loc8] = {CFA_IS_ADVANCE, REGISTER_NONE, OPERAND_DELTA_8},
    [CFA_AARCH64_negate_ra_state_with_pc] = {CFA_IS_SIGNED, REGISTER_NONE, OPERAND_NONE},
    [CFA_AARCH64_negate_ra_state] = {CFA_IS_SIGNED, REGISTER_NONE, OPERAND_NONE},
    [CFA_GNU_args_size] = {CFA_IS_NOTHING, REGISTER_NONE, OPERAND_OFFSET},
    [CFA_GNU_negative_offset_extended] = {CFA_IS_SAVED_AT, REGISTER_LEB, OPERAND_FACTORED_MINUS},
};

#endif
