/* Which registers, and what memory, an x86-64 instruction changes. */
#ifndef JITDUMP_X86_64_EFFECT_H
#define JITDUMP_X86_64_EFFECT_H

#include "jitdump/instructions/x86_64_decoder.h"

/* What an instruction changes:
 *
 *     .  no such register            r  ModRM's register      e  ModRM's operand, here or in memory
 *     E  ModRM's operand in memory   x  both                  a  rax
 *     d  rdx                         D  rax, rdx              o  the register in the opcode
 *     O  that and rax                k  rax, rdx, e           q  rax, rbx, rcx, rdx, e
 *     s  rsi, rdi, rcx, rax, and the memory at rdi            F  much memory, and rax
 *     v  the register in VEX.vvvv, and r                      *  it is done by hand
 */
char jd_x86_effect(const struct x86_instruction *instruction);

#endif
