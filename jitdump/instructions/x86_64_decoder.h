/* How long an x86-64 instruction is, and what its operands are: legacy, VEX, EVEX and XOP
 * encodings of 64-bit mode.
 *
 *      prefixes             66, 67, f0, f2, f3, segments, in any order; then perhaps
 *      REX                  40 to 4f, right before the opcode
 *      opcode               map 0: one byte; 1: 0f; 2: 0f 38; 3: 0f 3a
 *        or VEX             c5 [RvvvvLpp], c4 [RXBmmmmm] [WvvvvLpp], then the opcode
 *        or EVEX            62 and three bytes: the map is the lower three bits of the first
 *        or XOP             8f [RXBmmmmm], with a map from 8 on
 *      ModRM, SIB           if the opcode has operands in them
 *      displacement         0, 1 or 4 bytes
 *      immediate            0 to 8 bytes
 *
 * Sources: Intel SDM, volume 2, chapter 2 and appendix A; AMD APM, volume 3, appendix A (XOP).
 */
#ifndef JITDUMP_X86_64_DECODER_H
#define JITDUMP_X86_64_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum x86_encoding { X86_LEGACY, X86_VEX, X86_EVEX, X86_XOP };

enum { X86_NO_REGISTER = 255, X86_LONGEST_BYTES = 15 };

struct x86_instruction {
    uint8_t length;
    uint8_t encoding;
    uint8_t map, opcode;
    uint8_t prefix;  /* the last of 66, f2 and f3, or VEX's pp in that form; 0: none */
    bool operand_16; /* the prefix 66 */
    bool wide;       /* REX.W */
    bool has_rex;
    bool has_modrm;
    uint8_t mode;            /* of ModRM; 3: rm is a register */
    uint8_t reg, rm;         /* as the instruction numbers them, 0 to 15, or 31 with EVEX */
    uint8_t opcode_register; /* in the opcode's lower three bits and REX.B */
    uint8_t vvvv;
    uint8_t vector_bytes; /* 16, 32 or 64, by VEX.L */
    uint8_t base, index;  /* registers of the memory operand, or X86_NO_REGISTER */
    bool based_on_rip;
    int32_t displacement;
    int64_t immediate; /* sign-extended; enter's and extrq's first one alone */
};

/* Read the instruction at CODE, of which SIZE bytes are there.  Returns false if it is none that is
 * known, or not whole. */
bool jd_x86_decode(const uint8_t *code, size_t size, struct x86_instruction *instruction);

#endif
