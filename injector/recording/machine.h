/* The machines (CPU architectures) that perf runs on: all that the command knows of one stands in
 * its entry in machine.c.  Other files use a part of the entry, and report it if the entry does not
 * have that part.  Two files ask for a machine itself, for what only its ELF files have:
 * native/symbols/plt_symbols.c (x86-64) and symbol_index.c (Thumb).  unwind/unwind_rule.c takes a
 * frame record to begin where the frame pointer points to; on riscv64 and loongarch64 it ends
 * there.
 *
 * How to add a machine: its entry in machine.c, with its names and how ELF has it.  For stacks, the
 * registers in the entry, and how its code looks: a row in unwind/code_shape.c, named in enum
 * machine_code.  For bt, the words of its registers in the entry.  For gdb, its registers' names in
 * the entry, and a line in MACHINES of debug/perfjit_gdb.py.  For checked frames, and for
 * jitdump/cfi.h, see jitdump/instructions/code_step.h and jitdump/cfi/cfi_arch.h.
 */
#ifndef PERFJIT_MACHINE_H
#define PERFJIT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum byte_order { LITTLE, BIG, EITHER };

/* How a machine's code looks (unwind/code_shape.h). */
enum machine_code { CODE_UNKNOWN, CODE_X86_64, CODE_AARCH64, MACHINE_CODES };

/* Registers by DWARF's numbers. x86-64 has 16, and the return address as the 17th. aarch64 has x0
 * to x30, sp and RA_SIGN_STATE, which is the 33rd here (DWARF's 34). */
enum { UNWIND_REGISTERS = 33, UNWIND_SAVED = 12, UNWIND_NO_REGISTER = 255 };

enum { MACHINE_NAMES = 4, PERF_REGISTERS = 33, MACHINE_TEXT_BYTES = 48 };

struct machine {
    const char *names[MACHINE_NAMES]; /* its names in uname -m, and so in perf record */

    /* ---- ELF and dumps ---- */
    uint16_t elf_mach;
    uint16_t compat; /* of 32-bit programs that can run there; 0: the same number */
    uint8_t address_bytes;
    uint8_t order;          /* enum byte_order */
    const char *image_name; /* in the names of ELF files; NULL: its number */

    /* ---- Stacks, if saved_count is not 0 ---- */
    uint8_t sp, fp;
    uint8_t return_register;     /* the column of the return address */
    uint8_t link_register;       /* that holds it when a function begins; or UNWIND_NO_REGISTER */
    uint8_t least_growth;        /* of the stack, by a frame that has called another */
    uint8_t saved[UNWIND_SAVED]; /* whose places a short rule has, the return address first */
    uint8_t saved_count;
    uint8_t perf_pc;                       /* perf's number of the program counter */
    uint8_t perf_count;                    /* perf's registers that follow */
    uint8_t dwarf_of_perf[PERF_REGISTERS]; /* DWARF's number of perf's, or UNWIND_NO_REGISTER */
    bool signs_returns;                    /* its tables may say that return addresses are signed */
    uint8_t code;                          /* enum machine_code */
    uint64_t address_mask;                 /* of a user's address: the bits that remain of a signed
                                            * one */

    /* ---- Snapshots, if word_count is not 0 ---- */
    uint8_t word_count;                   /* of 8 bytes, in NT_PRSTATUS and from PTRACE_GETREGSET */
    uint8_t word_of_perf[PERF_REGISTERS]; /* where perf's register is among them */
    uint16_t context_sp; /* where sp is in the kernel's ucontext on the stack, in bytes */

    /* ---- gdb, if gdb_pc is not NULL ---- */
    const char *gdb_pc, *gdb_sp, *gdb_fp;
};

/* The machine called NAME, of BYTES letters, or NULL. */
const struct machine *machine_named(const char *name, size_t bytes);

/* The machine that a header with this number is of, or NULL. */
const struct machine *machine_numbered(uint32_t elf_mach);

/* The same where addresses have so many bytes, and words this order. */
const struct machine *machine_of_elf(uint32_t elf_mach, uint8_t address_bytes, bool big_endian);

/* The machine that this program is for, or NULL. */
const struct machine *machine_here(void);

/* How wide addresses are where nothing but ELF_MACH is known. */
uint8_t machine_address_bytes(uint32_t elf_mach);

/* The number of the machine of 64 bits that runs programs of ELF_MACH; or ELF_MACH. */
uint32_t machine_wide(uint32_t elf_mach);

/* Whether stacks of MACHINE can be unwound, and whether its registers can be read from a core or a
 * process.  NULL is no machine that is known. */
bool machine_unwinds(const struct machine *machine);
bool machine_has_words(const struct machine *machine);

/* DWARF's number of the register that perf numbers so, and the reverse; or UNWIND_NO_REGISTER. */
unsigned machine_dwarf_of_perf(const struct machine *machine, unsigned perf);
unsigned machine_perf_of_dwarf(const struct machine *machine, unsigned dwarf);

/* The registers that unwinding wants, a bit for each of perf's numbers. */
uint64_t machine_perf_mask(const struct machine *machine);

/* "machine 22 (s390x)", for messages; "machine 4711" if it is not known. */
const char *machine_text(char text[MACHINE_TEXT_BYTES], uint32_t elf_mach);

#endif
