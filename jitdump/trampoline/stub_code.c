/* See stub_code.h. */
#include "jitdump/trampoline/stub_code.h"

#include <string.h>

#if defined(__x86_64__) || defined(__aarch64__)

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

#endif

#if defined(__x86_64__)

enum { CALL_OPERAND = 10, NUMBER = 20 };

void jd_stub_code_write(uint8_t to[STUB_CODE_BYTES], size_t word_offset, uint32_t number)
{
    static const uint8_t code[STUB_CODE_BYTES] = {
        0xf3, 0x0f, 0x1e, 0xfa,             /* endbr64 */
        0x55,                               /* push rbp */
        0x48, 0x89, 0xe5,                   /* mov rbp, rsp */
        0xff, 0x15, 0,    0,    0, 0,       /* call [rip + ...] */
        0x5d,                               /* pop rbp */
        0xc3,                               /* ret */
        0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0, /* nop [rax + rax + ...] */
    };
    memcpy(to, code, sizeof code);
    put_u32(to + CALL_OPERAND, (uint32_t)(word_offset - STUB_RETURN_OFFSET));
    put_u32(to + NUMBER, number);
}

#elif defined(__aarch64__)

enum { LOAD_OFFSET = 12 };

void jd_stub_code_write(uint8_t to[STUB_CODE_BYTES], size_t word_offset, uint32_t number)
{
    const uint32_t load = 0x58000010 | (uint32_t)((word_offset - LOAD_OFFSET) / 4) << 5;
    const uint32_t code[] = {
        0xd503245f, /* bti c */
        0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
        0x910003fd, /* mov x29, sp */
        load,       /* ldr x16, ... */
        0xd63f0200, /* blr x16 */
        0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
        0xd65f03c0, /* ret */
        number,
    };
    _Static_assert(sizeof code == STUB_CODE_BYTES, "one word each");
    for (size_t i = 0; i < sizeof code / sizeof code[0]; i++)
        put_u32(to + 4 * i, code[i]);
}

#else

void jd_stub_code_write(uint8_t to[STUB_CODE_BYTES], size_t word_offset, uint32_t number)
{
    (void)to, (void)word_offset, (void)number;
}

#endif

bool jd_stub_code_is_known(uint32_t elf_mach)
{
#if defined(__x86_64__) || defined(__aarch64__)
    return elf_mach == JITDUMP_HOST_ARCH;
#else
    (void)elf_mach;
    return false;
#endif
}

#if defined(JITDUMP_HOST_ARCH)
static const enum jitdump_arch host = JITDUMP_HOST_ARCH;
#else
static const enum jitdump_arch host = 0;
#endif

int jd_stub_code_describe(struct jitdump_cfi **cfi, struct jitdump_unwind *unwind)
{
    const uint64_t epilogue = STUB_RETURN_OFFSET;
    const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER,
                                        .flags = JITDUMP_FRAME_LANDING_PAD,
                                        .epilogues = &epilogue,
                                        .epilogue_count = 1};
    *cfi = jitdump_cfi_new(host);
    jitdump_cfi_frame(*cfi, &frame);
    return jitdump_cfi_finish(*cfi, STUB_CODE_BYTES, unwind);
}
