/* Machine code that does nothing for a while: a block of LOOP_BLOCK_BYTES that counts its argument down and returns.
 *
 * A block needs nothing around it.  So of a function made of blocks every part that was not overwritten still runs. */
#ifndef LOOP_CODE_H
#define LOOP_CODE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LOOP_BLOCK_BYTES = 32, LOOP_MAX_BYTES = 20, LOOP_FILLINGS = 4 };

typedef void loop_code(uint32_t rounds);

/* Write a block to TO; with another FILLING from 0 to LOOP_FILLINGS - 1 it has another size.  Its part behind
 * LOOP_MAX_BYTES never runs. */
static inline void loop_code_put(uint8_t *to, unsigned filling)
{
#if defined(__x86_64__)
    unsigned nops = 3 * filling;
    memset(to, 0xcc, LOOP_BLOCK_BYTES);
    memcpy(to, "\x89\xf9", 2); /* mov ecx, edi */
    memset(to + 2, 0x90, nops);
    uint8_t tail[] = {0xff, 0xc9, 0x75, (uint8_t)(0xfc - nops), 0xc3}; /* dec ecx; jnz; ret */
    memcpy(to + 2 + nops, tail, sizeof tail);
#elif defined(__aarch64__)
    uint32_t code[LOOP_BLOCK_BYTES / 4] = {0};
    unsigned at = 0, nops = filling < 2 ? filling : 1;
    for (; at < nops; at++)
        code[at] = 0xd503201f;                     /* nop */
    code[at++] = 0x71000400;                       /* subs w0, w0, 1 */
    code[at] = 0x54000001 | (0x7ffffu & -at) << 5; /* b.ne to the start */
    code[at + 1] = 0xd65f03c0;                     /* ret */
    memcpy(to, code, sizeof code);
#else
#error "no loop for this machine yet"
#endif
}

/* Write a whole function to TO, which counts down from ROUNDS, 65 535 at most on aarch64, without an
 * argument.  Returns its size. */
static inline size_t loop_code_put_counted(uint8_t *to, uint32_t rounds)
{
#if defined(__x86_64__)
    uint8_t code[] = {0xb9, 0,    0, 0, 0, /* mov ecx, ROUNDS */
                      0xff, 0xc9,          /* dec ecx */
                      0x75, 0xfc,          /* jnz to the dec */
                      0xc3};               /* ret */
    memcpy(code + 1, &rounds, sizeof rounds);
#elif defined(__aarch64__)
    const uint32_t code[] = {0x52800000 | (rounds & 0xffff) << 5, /* mov w0, ROUNDS */
                             0x71000400,                          /* subs w0, w0, 1 */
                             0x54ffffe1,                          /* b.ne to the subs */
                             0xd65f03c0};                         /* ret */
#else
#error "no loop for this machine yet"
#endif
    memcpy(to, code, sizeof code);
    return sizeof code;
}

/* Make BYTES at AT, just written, maybe through another mapping, ready to run in this thread. */
static inline void loop_code_ready(uint8_t *at, size_t bytes)
{
    __builtin___clear_cache((char *)at, (char *)at + bytes);
#if defined(__x86_64__)
    unsigned eax = 0, ebx, ecx = 0, edx;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx) : : "memory");
#endif
}

#endif
