/* The machine code of a trampoline, and its frame.
 *
 * A stub calls the function in its word, and returns.  It changes no register of an argument or a
 * result, so it works for any entry that has all of these in registers.  Stubs differ in the place
 * of their word, and in a number behind the code that never runs.  Without the number perf inject
 * would give functions with the same bytes the same build-id, and some versions (up to 6.17) then
 * show one function's name for all.
 *
 * x86-64                               aarch64
 *    0  endbr64                           0  bti c
 *    4  push rbp                          4  stp x29, x30, [sp, #-16]!
 *    5  mov rbp, rsp                      8  mov x29, sp
 *    8  call [rip + word]                12  ldr x16, word
 *                                        16  blr x16
 *   14  pop rbp                          20  ldp x29, x30, [sp], #16
 *   15  ret                              24  ret
 *   16  nop [rax + rax + number]         28  number
 *   24                                   32
 */
#ifndef JITDUMP_STUB_CODE_H
#define JITDUMP_STUB_CODE_H

#include "jitdump/cfi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code's size, and where the call in it returns to, which is where its epilogue begins. */
#if defined(__x86_64__)
enum { STUB_CODE_BYTES = 24, STUB_RETURN_OFFSET = 14 };
#elif defined(__aarch64__)
enum { STUB_CODE_BYTES = 32, STUB_RETURN_OFFSET = 20 };
#else /* there is no such code */
enum { STUB_CODE_BYTES = 4, STUB_RETURN_OFFSET = 0 };
#endif

/* Whether there is such code for this machine, and ELF_MACH, the dump's, is this machine. */
bool jd_stub_code_is_known(uint32_t elf_mach);

/* Write the code of a stub whose word is WORD_OFFSET bytes behind its first byte, at most 1 MiB. */
void jd_stub_code_write(uint8_t to[STUB_CODE_BYTES], size_t word_offset, uint32_t number);

/* Describe the frame of a stub, which is that of all: the tables do not depend on the address. *CFI
 * owns them; it may be NULL after a failure.  Returns 0 or a negative errno. */
int jd_stub_code_describe(struct jitdump_cfi **cfi, struct jitdump_unwind *unwind);

#endif
