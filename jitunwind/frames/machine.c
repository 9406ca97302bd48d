/* See machine.h.  Sources: System V ABI for AMD64, figure 3.36.  DWARF for the Arm 64-bit
 * Architecture, section 4.1.  Intel SDM, volume 2.  Arm ARM, C6.2. */
#include "jitunwind/frames/machine.h"

#include <string.h>
#include <ucontext.h>

#if defined(__x86_64__)

const char *const ju_machine_register_names[MACHINE_REGISTERS] = {
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
    "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip"};

size_t ju_machine_ucontext_offset(unsigned reg)
{
    static const uint8_t numbers[MACHINE_REGISTERS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    unsigned number = reg == MACHINE_IP ? REG_RIP : numbers[reg];
    return offsetof(ucontext_t, uc_mcontext.gregs) + number * sizeof(greg_t);
}

/* How many bytes ModRM, SIB and displacement at CODE are; 0 if there are too few to tell. */
static unsigned operand_bytes(const uint8_t *code, unsigned size)
{
    enum { SIB = 4, RIP_RELATIVE = 5, REGISTER = 3 };
    static const uint8_t displacement[REGISTER] = {0, 1, 4};
    if (size < 1)
        return 0;
    unsigned mode = code[0] >> 6, base = code[0] & 7;
    if (mode == REGISTER)
        return 1;
    if (mode == 0 && base == RIP_RELATIVE)
        return 5;
    bool has_sib = base == SIB;
    if (has_sib && (size < 2 || (mode == 0 && (code[1] & 7) == RIP_RELATIVE)))
        return size < 2 ? 0 : 6;
    return 1u + has_sib + displacement[mode];
}

/* How long a call through ModRM is, opcode and displacement included; 0: it is none. */
static unsigned indirect_call_bytes(const uint8_t *code, unsigned size)
{
    enum { GROUP_5 = 0xff, CALL = 2 };
    if (size < 2 || code[0] != GROUP_5 || (code[1] >> 3 & 7) != CALL)
        return 0;
    unsigned operand = operand_bytes(code + 1, size - 1);
    return operand ? 1 + operand : 0;
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

/* The length of nop, in any of its forms, at the begin of CODE; 0: it is none. */
static unsigned nop_bytes(const uint8_t *code, unsigned size)
{
    enum { OPERAND_SIZE = 0x66, SEGMENT_CS = 0x2e, NOP = 0x90, ESCAPE = 0x0f, LONG_NOP = 0x1f };
    unsigned at = 0;
    while (at < size && (code[at] == OPERAND_SIZE || code[at] == SEGMENT_CS))
        at++;
    if (at < size && code[at] == NOP)
        return at + 1;
    if (size - at < 3 || code[at] != ESCAPE || code[at + 1] != LONG_NOP)
        return 0;
    at += 2;
    unsigned operand = operand_bytes(code + at, size - at);
    return operand && operand <= size - at ? at + operand : 0;
}

unsigned ju_machine_padding(const uint8_t *code, unsigned size)
{
    unsigned at = 0, bytes = 1;
    for (; at < size && bytes; at += bytes)
        bytes = nop_bytes(code + at, size - at);
    return at < size ? at : 0;
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

const char *const ju_machine_register_names[MACHINE_REGISTERS] = {
    "x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
    "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
    "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp"};

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

unsigned ju_machine_padding(const uint8_t *code, unsigned size)
{
    enum { WORD_BYTES = 4 };
    static const uint8_t nop[WORD_BYTES] = {0x1f, 0x20, 0x03, 0xd5};
    unsigned at = 0;
    while (at + WORD_BYTES <= size && memcmp(code + at, nop, sizeof nop) == 0)
        at += WORD_BYTES;
    return at < size ? at : 0;
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

const char *const ju_machine_register_names[MACHINE_REGISTERS] = {"r0"};

size_t ju_machine_ucontext_offset(unsigned reg)
{
    return reg;
}

bool ju_machine_ends_in_call(const uint8_t *code, unsigned size)
{
    (void)code, (void)size;
    return false;
}

unsigned ju_machine_padding(const uint8_t *code, unsigned size)
{
    (void)code, (void)size;
    return 0;
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
