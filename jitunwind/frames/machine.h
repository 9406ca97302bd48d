/* The registers of the machine that this is compiled for, by DWARF's numbers.  A new machine has
 * its part here, and in machine.c; table_program.c has the code that other unwinders run. */
#ifndef JITUNWIND_MACHINE_H
#define JITUNWIND_MACHINE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
enum {
    MACHINE_KNOWN = 1,
    MACHINE_ELF = EM_X86_64,
    MACHINE_REGISTERS = 17, /* the last one for the return address */
    MACHINE_SP = 7,
    MACHINE_FP = 6,
    MACHINE_RETURN = 16,
    MACHINE_SAVED = 7,
    MACHINE_CFA_OFFSET = 8, /* of a function's first instruction */
    MACHINE_SIGNS = 0,      /* return addresses */
};
/* The registers that a rule has slots for: the return address, and the registers that functions
 * preserve. */
static const uint8_t machine_saved[MACHINE_SAVED] = {16, 6, 3, 12, 13, 14, 15};
#define MACHINE_ADDRESS_MASK UINT64_MAX
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum {
    MACHINE_KNOWN = 1,
    MACHINE_ELF = EM_AARCH64,
    MACHINE_REGISTERS = 32,
    MACHINE_SP = 31,
    MACHINE_FP = 29,
    MACHINE_RETURN = 30,
    MACHINE_SAVED = 12,
    MACHINE_CFA_OFFSET = 0,
    MACHINE_SIGNS = 1,
};
static const uint8_t machine_saved[MACHINE_SAVED] = {30, 29, 19, 20, 21, 22,
                                                     23, 24, 25, 26, 27, 28};
/* Without the signature and the tag that an address may carry. */
#define MACHINE_ADDRESS_MASK ((UINT64_C(1) << 48) - 1)
#else
enum {
    MACHINE_KNOWN = 0,
    MACHINE_ELF = EM_NONE,
    MACHINE_REGISTERS = 1,
    MACHINE_SP = 0,
    MACHINE_FP = 0,
    MACHINE_RETURN = 0,
    MACHINE_SAVED = 1,
    MACHINE_CFA_OFFSET = 0,
    MACHINE_SIGNS = 0,
};
static const uint8_t machine_saved[MACHINE_SAVED] = {0};
#define MACHINE_ADDRESS_MASK UINT64_MAX
#endif

/* A frame: where it goes on, and its registers as far as they are known. */
struct machine_frame {
    uint64_t ip;
    uint64_t registers[MACHINE_REGISTERS];
    uint64_t known; /* a bit for each of the registers */
};

static inline bool machine_knows(const struct machine_frame *frame, unsigned reg)
{
    return reg < MACHINE_REGISTERS && (frame->known >> reg & 1);
}

static inline void machine_set(struct machine_frame *frame, unsigned reg, uint64_t value)
{
    frame->registers[reg] = value;
    frame->known |= UINT64_C(1) << reg;
}

/* Set FRAME to that of the function that this is a part of: what functions preserve, the stack
 * pointer, and where it is. */
__attribute__((always_inline)) static inline void machine_take_frame(struct machine_frame *frame)
{
#if defined(__x86_64__)
    __asm__ volatile("lea 0(%%rip), %%rax\n\tmov %%rax, %0\n\t"
                     "mov %%rbx, %1\n\tmov %%rbp, %2\n\tmov %%rsp, %3\n\t"
                     "mov %%r12, %4\n\tmov %%r13, %5\n\tmov %%r14, %6\n\tmov %%r15, %7"
                     : "=m"(frame->ip), "=m"(frame->registers[3]), "=m"(frame->registers[6]),
                       "=m"(frame->registers[7]), "=m"(frame->registers[12]),
                       "=m"(frame->registers[13]), "=m"(frame->registers[14]),
                       "=m"(frame->registers[15])
                     :
                     : "rax");
#elif defined(__aarch64__)
    __asm__ volatile("adr x9, .\n\tstr x9, [%0]\n\tmov x9, sp\n\tstr x9, [%1, #248]\n\t"
                     "stp x19, x20, [%1, #152]\n\tstp x21, x22, [%1, #168]\n\t"
                     "stp x23, x24, [%1, #184]\n\tstp x25, x26, [%1, #200]\n\t"
                     "stp x27, x28, [%1, #216]\n\tstp x29, x30, [%1, #232]"
                     :
                     : "r"(&frame->ip), "r"(frame->registers)
                     : "x9", "memory");
#endif
    for (unsigned i = 0; i < MACHINE_SAVED; i++)
        if (MACHINE_CFA_OFFSET == 0 || machine_saved[i] != MACHINE_RETURN)
            frame->known |= UINT64_C(1) << machine_saved[i];
    frame->known |= UINT64_C(1) << MACHINE_SP;
}

/* What a crash report calls them. */
extern const char *const ju_machine_register_names[MACHINE_REGISTERS];

/* The place of a register in a ucontext_t; MACHINE_IP: the program counter. */
enum { MACHINE_IP = 255 };
size_t ju_machine_ucontext_offset(unsigned reg);

/* Whether the SIZE bytes in front of a return address, CODE, end in a call. */
bool ju_machine_ends_in_call(const uint8_t *code, unsigned size);

/* How many bytes of instructions that do nothing the SIZE bytes at CODE begin with; 0 if there is
 * nothing else. */
enum { MACHINE_PADDING_BYTES = 64 }; /* at most */
unsigned ju_machine_padding(const uint8_t *code, unsigned size);

/* Whether CODE, MACHINE_SIGNAL_RETURN_BYTES, is where signal handlers return to. */
enum { MACHINE_SIGNAL_RETURN_BYTES = 9 };
bool ju_machine_is_signal_return(const uint8_t *code);

/* The address of a handler's ucontext_t, from the stack pointer at the handler's return. */
uint64_t ju_machine_signal_ucontext(uint64_t sp);

#endif
