/* Programs of call frame instructions, right and wrong ones: whoever runs them, for a table of code
 * units of 4 bytes and slots of 8, takes the same for wrong.  They begin with the CFA at the
 * register of number 7. */
#ifndef PERFJIT_TEST_CFA_PROGRAMS_H
#define PERFJIT_TEST_CFA_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CFA_CODE_ALIGN = 4, CFA_DATA_ALIGN = -8, CFA_CODE_BYTES = 0x1000 };

struct cfa_case {
    const char *what;
    uint8_t initial[8]; /* of the CIE */
    uint8_t initial_bytes;
    uint8_t program[16];
    uint8_t program_bytes;
    bool has_form; /* each instruction by itself is right */
};

#define CFA_BYTES(...)        {__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define CFA_PLAIN             CFA_BYTES(0x0c, 7, 8)
#define LEB_2_POWER_63_LESS_1 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f

static const struct cfa_case cfa_wrong[] = {
    {"an opcode that there is not", CFA_PLAIN, CFA_BYTES(0x17), false},
    {"the last one", CFA_PLAIN, CFA_BYTES(0x3f), false},
    {"one in the CIE", CFA_BYTES(0x0c, 7, 8, 0x30), CFA_BYTES(0x41), false},
    {"set_loc", CFA_PLAIN, CFA_BYTES(0x01, 0, 0, 0, 0, 0, 0, 0, 0), false},
    {"def_cfa that is cut", CFA_PLAIN, CFA_BYTES(0x0c, 7), false},
    {"advance_loc2 that is cut", CFA_PLAIN, CFA_BYTES(0x03, 1), false},
    {"MIPS_advance_loc8 that is cut", CFA_PLAIN, CFA_BYTES(0x1d, 1, 0, 0, 0, 0, 0, 0), false},
    {"a number that is cut", CFA_PLAIN, CFA_BYTES(0x0e, 0x80), false},
    {"a number of 65 bits", CFA_PLAIN,
     CFA_BYTES(0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02), false},
    {"a block that is cut", CFA_PLAIN, CFA_BYTES(0x16, 3, 2, 0x30), false},
    {"a block of 2 to the power of 63", CFA_PLAIN, CFA_BYTES(0x0f, LEB_2_POWER_63_LESS_1), false},
    {"restore_state without a state", CFA_PLAIN, CFA_BYTES(0x0b), false},
    {"offset beyond 64 bits", CFA_PLAIN, CFA_BYTES(0x83, LEB_2_POWER_63_LESS_1), false},
    {"offset beyond 64 bits, of a register that nobody saves", CFA_PLAIN,
     CFA_BYTES(0x05, 0x7f, LEB_2_POWER_63_LESS_1), false},
    {"val_offset beyond 64 bits", CFA_PLAIN, CFA_BYTES(0x14, 3, LEB_2_POWER_63_LESS_1), false},
    {"def_cfa_offset_sf beyond 64 bits", CFA_PLAIN,
     CFA_BYTES(0x13, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0), false},
    {"an advance beyond 64 bits", CFA_PLAIN,
     CFA_BYTES(0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), false},
    {"def_cfa_register of a CFA by expression", CFA_PLAIN, CFA_BYTES(0x0f, 2, 0x77, 8, 0x0d, 6),
     true},
    {"def_cfa_offset of a CFA by expression", CFA_PLAIN, CFA_BYTES(0x0f, 2, 0x77, 8, 0x0e, 16),
     true},
    {"def_cfa_offset_sf of a CFA by expression", CFA_PLAIN, CFA_BYTES(0x0f, 2, 0x77, 8, 0x13, 2),
     true},
    {"def_cfa_offset without a register", CFA_BYTES(0x00), CFA_BYTES(0x0e, 16), true},
    {"an advance in the CIE", CFA_BYTES(0x0c, 7, 8, 0x41), CFA_BYTES(0x00), true},
#if !defined(__aarch64__)
    {"AARCH64_negate_ra_state", CFA_PLAIN, CFA_BYTES(0x2d), true},
    {"AARCH64_negate_ra_state_with_pc", CFA_PLAIN, CFA_BYTES(0x2c), true},
#endif
};

static const struct cfa_case cfa_right[] = {
    {"MIPS_advance_loc8", CFA_PLAIN, CFA_BYTES(0x1d, 1, 0, 0, 0, 0, 0, 0, 0, 0x0e, 16), true},
    {"an advance by 0 in the CIE", CFA_BYTES(0x0c, 7, 8, 0x40), CFA_BYTES(0x0e, 16), true},
    {"GNU_args_size", CFA_PLAIN, CFA_BYTES(0x2e, 0x80, 1, 0x0e, 16), true},
    {"val_offset_sf in ten bytes", CFA_PLAIN,
     CFA_BYTES(0x15, 3, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x0e, 16),
     true},
    {"def_cfa_register before any offset", CFA_BYTES(0x0d, 7), CFA_BYTES(0x0e, 16), true},
    {"def_cfa_register of a CFA at no general register", CFA_BYTES(0x0c, 0x7f, 16),
     CFA_BYTES(0x0d, 7), true},
    {"def_cfa after an expression", CFA_BYTES(0x0f, 1, 0x30), CFA_BYTES(0x0c, 7, 16), true},
    {"restore_state of an expression's CFA", CFA_PLAIN,
     CFA_BYTES(0x0e, 16, 0x0a, 0x0f, 1, 0x30, 0x0b), true},
};

enum {
    CFA_WRONG = sizeof cfa_wrong / sizeof cfa_wrong[0],
    CFA_RIGHT = sizeof cfa_right / sizeof cfa_right[0],
    CFA_RIGHT_OFFSET = 16, /* of all of them, at the end */
    CFA_RIGHT_REGISTER = 7,
};

#endif
