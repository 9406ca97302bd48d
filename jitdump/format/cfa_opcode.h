/* The opcodes of call frame instructions: DWARF 5, table 7.29, and the GNU extensions that gcc and
 * binutils write. */
#ifndef CFA_OPCODE_H
#define CFA_OPCODE_H

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
    CFA_offset_extended_sf = 0x11,
    CFA_def_cfa_sf = 0x12,
    CFA_def_cfa_offset_sf = 0x13,
    CFA_val_offset = 0x14,
    CFA_val_offset_sf = 0x15,
    CFA_MIPS_advance_loc8 = 0x1d,
    CFA_last = 0x2f,
    LOW_SIX_BITS = 0x3f,
};

#endif
