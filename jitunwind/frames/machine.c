/* See machine.h.  Sources: System V ABI for AMD64, figure 3.36; DWARF for the Arm 64-bit
 * Architecture, section 4.1; Intel SDM, volume 2; Arm ARM, C6.2. */
#include "jitunwind/frames/machine.h"

#include <string.h>
#include <ucontext.h>

#if defined(__x86_64__)

size_t ju_machine_ucontext_offset(unsigned reg)
{
    static const uint8_t numbers[MACHINE_REGISTERS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    unsigned number = reg == MACHINE_IP ? REG_RIP : numbers[reg];
    return offsetof(ucontext_t, uc_mcontext.gregs) + number * sizeof(greg_t);
}

/* How long a call through ModRM is, opcode and displacement included; 0: it is none. */
static unsigned indirect_call_bytes(const uint8_t *code, unsigned size)
{
    enum { GROUP_5 = 0xff, CALL = 2, SIB = 4, RIP_RELATIVE = 5, REGISTER = 3 };
    static const uint8_t displacement[REGISTER] = {0, 1, 4};
    if (size < 2 || code[0] != GROUP_5 || (code[1] >> 3 & 7) != CALL)
        return 0;
    unsigned mode = code[1] >> 6, base = code[1] & 7;
    if (mode == REGISTER)
        return 2;
    if (mode == 0 && base == RIP_RELATIVE)
        return 6;
    bool has_sib = base == SIB;
    if (has_sib && (size < 3 || (mode == 0 && (code[2] & 7) == RIP_RELATIVE)))
        return size < 3 ? 0 : 7;
    return 2u + has_sib + displacement[mode];
}

bool ju_machine_ends_in_call(const uint8_t *code, unsigned size)
{
    enum { CALL_REL32 = 0xe8, CALL_REL32_BYTES = 5, LONGEST_INDIRECT = 7 };
    if (size >= CALL_REL32_BYTES && code[size - CALL_REL32_BYTES] == CALL_REL32)
        return true;
    for (unsigned bytes = 2; bytes <= LONGEST_INDIRECT && bytes <= size; bytes++)
        if (indirect_call_bytes(code + size - bytes, bytes) == bytes)
            return true;
    return false;
}

bool ju_machine_is_signal_return(const uint8_t *code)
{
    /* mov $15, %rax; syscall */
    static const uint8_t sigreturn[MACHINE_SIGNAL_RETURN_BYTES] = {0x48, 0xc7, 0xc0, 15,  0,
                                                                   0,    0,    0x0f, 0x05};
    return memcmp(code, sigreturn, sizeof sigreturn) == 0;
}

uint64_t ju_machine_signal_ucontext(uint64_t sp)
{
    return sp;
}

#elif defined(__aarch64__)

size_t ju_machine_ucontext_offset(unsigned reg)
{
    if (reg == MACHINE_IP)
        return offsetof(ucontext_t, uc_mcontext.pc);
    if (reg == MACHINE_SP)
        return offsetof(ucontext_t, uc_mcontext.sp);
    return offsetof(ucontext_t, uc_mcontext.regs) + reg * sizeof(uint64_t);
}

bool ju_machine_ends_in_call(const uint8_t *code, unsigned size)
{
    enum { WORD_BYTES = 4 };
    uint32_t word;
    if (size < WORD_BYTES)
        return false;
    memcpy(&word, code + size - WORD_BYTES, sizeof word);
    /* bl, blr, blraa and its like */
    return (word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000 ||
           (word & 0xfefff800) == 0xd63f0800;
}

bool ju_machine_is_signal_return(const uint8_t *code)
{
    /* mov x8, #139; svc #0 */
    static const uint8_t sigreturn[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
    return memcmp(code, sigreturn, sizeof sigreturn) == 0;
}

uint64_t ju_machine_signal_ucontext(uint64_t sp)
{
    enum { SIGINFO_BYTES = 128 }; /* of the kernel's frame, in front of the ucontext */
    return sp + SIGINFO_BYTES;
}

#else

size_t ju_machine_ucontext_offset(unsigned reg)
{
    return reg;
}

bool ju_machine_ends_in_call(const uint8_t *code, unsigned size)
{
    (void)code, (void)size;
    return false;
}

bool ju_machine_is_signal_return(const uint8_t *code)
{
    (void)code;
    return false;
}

uint64_t ju_machine_signal_ucontext(uint64_t sp)
{
    return sp;
}

#endif
