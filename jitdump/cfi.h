/* Describe the stack frames of JIT code, so that profilers can unwind through it.
 *
 * A profiler that interrupts a function in the middle finds the caller through call frame
 * information.  This is a table.  It says, for each instruction, where the frame begins (the CFA,
 * the value of the stack pointer before the call) and where the caller's registers are saved.  This
 * header builds that table, either from one line
 *
 *     static const struct jitdump_frame frame = {
 *         .kind = JITDUMP_FRAME_POINTER, JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12),
 *         .stack_bytes = 32};
 *     jitdump_cfi_frame(cfi, &frame);
 *
 * for the prologues and epilogues listed below, or from the directives that assemblers have:
 *
 *     jitdump_cfi_def_cfa_offset(cfi, 1, 16);          // .cfi_def_cfa_offset 16, from offset 1 on
 *     jitdump_cfi_offset(cfi, 1, JITDUMP_RBP, -16);    // .cfi_offset %rbp, -16
 *
 * or from .eh_frame bytes that a compiler generated (jitdump_cfi_import).  Then, for all three:
 *
 *     struct jitdump_unwind unwind;
 *     if (jitdump_cfi_finish(cfi, code_size, &unwind) == 0)
 *         code.unwind = &unwind;                       // for jitdump_add_code
 *
 * The bytes are in perf's order, with addresses relative to the layout that perf gives a function:
 * the code, then .eh_frame at the next multiple of 8, then .eh_frame_hdr.  A runtime that puts the
 * tables there itself can pass the .eh_frame to __register_frame.  Then C++ exceptions unwind with
 * it, and debuggers do too.  (perf inject --jit also maps the tables there, over anything else at
 * those addresses.  For perf inject --jit, leave unwinding_size + 7 bytes free after each function.
 * perfjit inject doesn't need that.)
 *
 * All code offsets are in bytes.  They count from the function's first byte, or after
 * jitdump_cfi_begin from the first byte of the buffer that the function is emitted into.  All
 * registers have DWARF numbers.  jitdump_dwarf_register converts register numbers from
 * instructions.
 *
 * Errors stick: after the first one the builder ignores further calls, and jitdump_cfi_finish
 * returns it.  A NULL builder counts as one that ran out of memory, so the result of
 * jitdump_cfi_new needs no check either.  errno is preserved.
 *
 * Threads: one thread at a time per builder; builders are independent.  Signals: not safe in a
 * handler.
 *
 * docs/cfi.md has a worked example of each kind of frame.
 *
 * ---- The frames that struct jitdump_frame can describe ----
 *
 * Prologue and epilogue must have exactly these instructions, in these lengths.  N is saved_count,
 * S is stack_bytes.  An epilogue's offset is the offset of its first instruction.  Its last
 * instruction may be any that leaves the function (ret, or the jump of a tail call).  The code
 * between prologue and epilogue may be anything that leaves the frame unchanged.  Code after an
 * epilogue counts as inside the frame again.
 *
 * x86-64                    bytes  encoding
 *   prologue
 *     endbr64                   4  f3 0f 1e fa        with JITDUMP_FRAME_LANDING_PAD
 *     push rbp                  1  55                 JITDUMP_FRAME_POINTER
 *     mov rbp, rsp              3  48 89 e5           JITDUMP_FRAME_POINTER (or 48 8b ec)
 *     push saved[0] ...       1|2  50+r | 41 50+r     each saved register in order; 2: r8 to r15
 *     sub rsp, S              4|7  48 83 ec | 48 81 ec
 *                                                     7: S > 127, or with JITDUMP_FRAME_IMM32;
 *                                                     absent if S is 0 (also with IMM32)
 *     mov [rsp+k], slots[0]     4|5|8  48 89 04+8r 24 (k = 0) | .. 44+8r 24 k | .. 84+8r 24 k k k k
 *     ...                     each slot in order; REX is 4c for r8 to r15.  8: k > 127, or with
 *                             JITDUMP_FRAME_IMM32
 *     mov [rbp+k], slots[0]     4|7  48 89 45+8r k | 48 89 85+8r k k k k
 *     ...                     instead, with JITDUMP_FRAME_POINTER.  7: k < -128, or with IMM32.
 *                             From slots_at on, if that is set: other code may come before
 *   prologue with JITDUMP_FRAME_RED_ZONE
 *     endbr64                   4                     with JITDUMP_FRAME_LANDING_PAD
 *     mov [rsp-8], rbp          5  48 89 6c 24 f8     instead of push and mov; no saved registers
 *     lea rbp, [rsp-8]          5  48 8d 6c 24 f8
 *     sub rsp, S                4|7                   as above
 *     mov [rbp+k], slots[0] ... 4|7
 *   epilogue
 *     mov slots[0], [rsp+k] ... as the stores, with 8b for 89; [rbp+k] with JITDUMP_FRAME_POINTER
 *     add rsp, S              4|7  48 83 c4 | 48 81 c4   as the sub
 *     pop saved[N-1] ...      1|2  58+r | 41 58+r
 *     pop rbp                   1  5d                 JITDUMP_FRAME_POINTER
 *     ret
 *   epilogue with JITDUMP_FRAME_DYNAMIC
 *     mov slots[0], [rbp+k] ...
 *     lea rsp, [rbp-8*N]        4  48 8d 65 xx        then pops, pop rbp and ret as above
 *   or, if no register is saved by a push,
 *     leave                     1  c9
 *     ret
 *   or, with JITDUMP_FRAME_MOV_POP,
 *     mov rsp, rbp              3  48 89 ec (or 48 8b e5)
 *     pop rbp                   1  5d
 *     ret
 *   epilogue with JITDUMP_FRAME_RED_ZONE
 *     mov slots[0], [rbp+k] ...
 *     lea rsp, [rbp+8]          4  48 8d 65 08
 *     mov rbp, [rsp-8]          5  48 8b 6c 24 f8
 *     ret
 *
 * aarch64 (4 bytes each)       A is the size of the save area: 8 for each saved register, plus 16
 *                              for x29 and x30 of a JITDUMP_FRAME_POINTER, rounded up to 16
 *   prologue
 *     bti c                                   with JITDUMP_FRAME_LANDING_PAD
 *     stp x29, x30, [sp, #-A]!                JITDUMP_FRAME_POINTER
 *     mov x29, sp                             JITDUMP_FRAME_POINTER
 *     stp saved[0], saved[1], [sp, #16] ...   two neighbours of one kind (x or d) in one stp, any
 *     str saved[N-1], [sp, #...]              other register in a str; 8 bytes each, without gaps.
 *                                             Without a frame pointer they start at [sp], and the
 *                                             first of these instructions allocates the area:
 *                                             stp/str ..., [sp, #-A]!
 *     sub sp, sp, #S & 0xfff000               S > 4095
 *     sub sp, sp, #S & 0xfff                  unless that is 0
 *     str slots[0], [sp, #k] ...              each slot in order, one instruction each; [x29, #k]
 *                                             with JITDUMP_FRAME_POINTER
 *   epilogue
 *     ldr slots[0], [sp, #k] ...              as the stores
 *     add sp, sp, #S & 0xfff                  unless that is 0
 *     add sp, sp, #S & 0xfff000               S > 4095
 *                                             with JITDUMP_FRAME_DYNAMIC instead of both:
 *                                             mov sp, x29
 *     ldr/ldp ...                             the stores in reverse order; without a frame pointer
 *                                             the last one frees the area: ldp/ldr ..., [sp], #A
 *     ldp x29, x30, [sp], #A                  JITDUMP_FRAME_POINTER
 *     ret
 *   A JITDUMP_FRAME_STACK function that calls others lists JITDUMP_X30 among its saved registers or
 *   its slots.
 *
 * riscv64 (4 bytes each)       A is the size of the save area: 8 for each saved register, plus 16
 *                              for ra and s0 of a JITDUMP_FRAME_POINTER, rounded up to 16
 *   prologue
 *     lpad                                    with JITDUMP_FRAME_LANDING_PAD
 *     addi sp, sp, -A                         unless A is 0
 *     sd ra, A-8(sp)                          JITDUMP_FRAME_POINTER
 *     sd s0, A-16(sp)                         JITDUMP_FRAME_POINTER
 *     sd saved[0], ... (or fsd)               each 8 below the one before; the first at A-8, or at
 *                                             A-24 with a frame pointer
 *     addi s0, sp, A                          JITDUMP_FRAME_POINTER
 *     addi sp, sp, -S                         unless S is 0
 *     lui t, hi; addi t, t, lo; add sp, sp, t S > 2032: this instead
 *     sd slots[0], k(sp) ... (or fsd)         each slot in order, one instruction each; k(s0) with
 *                                             JITDUMP_FRAME_POINTER.  -2048 <= k <= 2047
 *   epilogue
 *     ld slots[0], k(sp) ... (or fld)         as the stores
 *     addi sp, sp, S                          unless S is 0; S > 2032: three, as above
 *                                             with JITDUMP_FRAME_DYNAMIC instead: addi sp, s0, -A
 *     ld saved[N-1], ... (or fld)
 *     ld s0, A-16(sp)                         JITDUMP_FRAME_POINTER
 *     ld ra, A-8(sp)                          JITDUMP_FRAME_POINTER
 *     addi sp, sp, A                          unless A is 0
 *     ret
 *   None of these is compressed; the code between them may be.  A JITDUMP_FRAME_STACK function that
 *   calls others lists JITDUMP_RISCV_RA among its saved registers or its slots.
 */
#ifndef JITDUMP_CFI_H
#define JITDUMP_CFI_H

#include "jitdump.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Machines, by their ELF e_machine. */
enum jitdump_arch { JITDUMP_X86_64 = 62, JITDUMP_AARCH64 = 183, JITDUMP_RISCV64 = 243 };

/* The machine that this is compiled for, if it is one of them. */
#if defined(__x86_64__)
#define JITDUMP_HOST_ARCH JITDUMP_X86_64
#elif defined(__aarch64__)
#define JITDUMP_HOST_ARCH JITDUMP_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define JITDUMP_HOST_ARCH JITDUMP_RISCV64
#endif

/* DWARF numbers of the x86-64 registers: not those of the instruction encoding. */
enum jitdump_x86_64_register {
    JITDUMP_RAX = 0,
    JITDUMP_RDX = 1,
    JITDUMP_RCX = 2,
    JITDUMP_RBX = 3,
    JITDUMP_RSI = 4,
    JITDUMP_RDI = 5,
    JITDUMP_RBP = 6,
    JITDUMP_RSP = 7,
    JITDUMP_R8 = 8,
    JITDUMP_R9 = 9,
    JITDUMP_R10 = 10,
    JITDUMP_R11 = 11,
    JITDUMP_R12 = 12,
    JITDUMP_R13 = 13,
    JITDUMP_R14 = 14,
    JITDUMP_R15 = 15,
    JITDUMP_RIP = 16 /* the return address */
};

/* DWARF numbers of the aarch64 registers. */
enum jitdump_aarch64_register {
    JITDUMP_X0 = 0,
    JITDUMP_X1,
    JITDUMP_X2,
    JITDUMP_X3,
    JITDUMP_X4,
    JITDUMP_X5,
    JITDUMP_X6,
    JITDUMP_X7,
    JITDUMP_X8,
    JITDUMP_X9,
    JITDUMP_X10,
    JITDUMP_X11,
    JITDUMP_X12,
    JITDUMP_X13,
    JITDUMP_X14,
    JITDUMP_X15,
    JITDUMP_X16,
    JITDUMP_X17,
    JITDUMP_X18,
    JITDUMP_X19,
    JITDUMP_X20,
    JITDUMP_X21,
    JITDUMP_X22,
    JITDUMP_X23,
    JITDUMP_X24,
    JITDUMP_X25,
    JITDUMP_X26,
    JITDUMP_X27,
    JITDUMP_X28,
    JITDUMP_X29, /* the frame pointer */
    JITDUMP_X30, /* the return address */
    JITDUMP_SP = 31,
    JITDUMP_D0 = 64, /* d1 is 65, and so on */
    JITDUMP_D8 = 72,
    JITDUMP_D9,
    JITDUMP_D10,
    JITDUMP_D11,
    JITDUMP_D12,
    JITDUMP_D13,
    JITDUMP_D14,
    JITDUMP_D15
};

/* DWARF numbers of the riscv64 registers: x0 to x31, then f0 to f31.  Since 0.2.0. */
enum jitdump_riscv64_register {
    JITDUMP_RISCV_RA = 1, /* the return address */
    JITDUMP_RISCV_SP = 2,
    JITDUMP_RISCV_T0 = 5,
    JITDUMP_RISCV_T1,
    JITDUMP_RISCV_T2,
    JITDUMP_RISCV_S0, /* the frame pointer */
    JITDUMP_RISCV_S1,
    JITDUMP_RISCV_A0, /* a1 is 11, and so on up to a7 */
    JITDUMP_RISCV_S2 = 18,
    JITDUMP_RISCV_S3,
    JITDUMP_RISCV_S4,
    JITDUMP_RISCV_S5,
    JITDUMP_RISCV_S6,
    JITDUMP_RISCV_S7,
    JITDUMP_RISCV_S8,
    JITDUMP_RISCV_S9,
    JITDUMP_RISCV_S10,
    JITDUMP_RISCV_S11,
    JITDUMP_RISCV_F0 = 32, /* f1 is 33, and so on */
    JITDUMP_RISCV_FS0 = 40,
    JITDUMP_RISCV_FS1,
    JITDUMP_RISCV_FS2 = 50, /* fs3 is 51, and so on */
    JITDUMP_RISCV_FS11 = 59
};

/* A builder of unwind tables for one function.  Opaque. */
struct jitdump_cfi;

enum jitdump_frame_kind {
    JITDUMP_FRAME_LEAF = 0, /* no frame: the stack pointer stays as the caller left it */
    JITDUMP_FRAME_POINTER,  /* rbp, x29 or s0 points to the frame */
    JITDUMP_FRAME_STACK     /* no frame pointer: the frame has a fixed size */
};

/* The block begins inside a frame that other code has set up, for example a cold part that hot code
 * jumps to.  It has no prologue; `prologue` is ignored. */
#define JITDUMP_FRAME_ENTERED 0x1u
/* The prologue begins with endbr64, bti c or lpad. */
#define JITDUMP_FRAME_LANDING_PAD 0x2u
/* Epilogues restore the stack pointer from the frame pointer, because the distance between them
 * varies (alloca, pushed arguments).  JITDUMP_FRAME_POINTER only. */
#define JITDUMP_FRAME_DYNAMIC 0x4u
/* x86-64: sub and add have 32-bit operands even if 8 bits would do (for operands patched later). */
#define JITDUMP_FRAME_IMM32 0x8u

/* x86-64, JITDUMP_FRAME_POINTER: rbp is not pushed but stored below the stack pointer, in the red
 * zone (MIR does this).  Since 0.2.0. */
#define JITDUMP_FRAME_RED_ZONE 0x10u

/* x86-64, with JITDUMP_FRAME_DYNAMIC: if no register is saved by a push, epilogues have mov rsp,
 * rbp and pop rbp instead of leave.  Since 0.2.0. */
#define JITDUMP_FRAME_MOV_POP 0x20u

#define JITDUMP_FRAME_SAVED_MAX 20
#define JITDUMP_FRAME_SLOTS_MAX 64

/* A register that is saved by a store into the frame's stack_bytes.  This struct will not grow,
 * since it is an array element.  Since 0.2.0. */
struct jitdump_slot {
    uint32_t reg;   /* its DWARF number */
    int32_t offset; /* in bytes, from the stack pointer after the prologue; with
                     * JITDUMP_FRAME_POINTER from the frame pointer, so it is negative */
};

/* A frame in short form; all zero is a leaf.  The comment at the top of this file lists the
 * instructions that it describes.  Code with other instructions needs directives. */
struct jitdump_frame {
    enum jitdump_frame_kind kind;
    uint32_t flags;                         /* JITDUMP_FRAME_ENTERED | ... */
    uint8_t saved[JITDUMP_FRAME_SAVED_MAX]; /* registers in the order they are pushed */
    uint32_t saved_count;
    uint32_t stack_bytes;      /* subtracted from the stack pointer at the end of the prologue */
    uint64_t prologue;         /* code offset of the prologue; code before it is like a leaf.  0: at
                                * the function's first byte, also after jitdump_cfi_begin */
    const uint64_t *epilogues; /* code offsets of the epilogues, ascending */
    size_t epilogue_count;
    /* Newer members follow: the calls below pass the struct's size to the library. */
    const struct jitdump_slot *slots; /* slot_count of them, or NULL.  Since 0.2.0 */
    size_t slot_count;
    uint64_t slots_at; /* code offset of the first slot's store, if other code comes before it (a
                        * function with variable arguments saves those first); 0: the store follows
                        * the rest of the prologue directly.  Since 0.2.0 */
};

/* For initialisers: each sets two members from a list.  In a function, a frame with
 * JITDUMP_EPILOGUES cannot be static.  C++ has JITDUMP_SAVED from C++20 on; for C++17, and for
 * lists of epilogues, jitdump.hpp has a frame with setters. */
#ifdef __cplusplus
extern "C++" {
namespace jitdump_detail
{
template <class... Registers> constexpr uint32_t count(Registers...)
{
    return sizeof...(Registers);
}
} // namespace jitdump_detail
}
#define JITDUMP_SAVED(...) .saved = {__VA_ARGS__}, .saved_count = jitdump_detail::count(__VA_ARGS__)
#else
#define JITDUMP_SAVED(...)                                                                         \
    .saved = {__VA_ARGS__}, .saved_count = (uint32_t)sizeof((uint8_t[]){__VA_ARGS__})
#define JITDUMP_EPILOGUES(...)                                                                     \
    .epilogues = (const uint64_t[]){__VA_ARGS__},                                                  \
    .epilogue_count = sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)
/* JITDUMP_SLOTS({JITDUMP_RBX, 8}, {JITDUMP_R12, 16}); like JITDUMP_EPILOGUES, not static. */
#define JITDUMP_SLOTS(...)                                                                         \
    .slots = (const struct jitdump_slot[]){__VA_ARGS__},                                           \
    .slot_count = sizeof((struct jitdump_slot[]){__VA_ARGS__}) / sizeof(struct jitdump_slot)
#endif

/* The DWARF number of a register.  ENCODING is its number in the instructions of ARCH: on x86-64
 * encoding 1 is rcx, whose DWARF number is 2; on aarch64 31 is sp.  ENCODING | JITDUMP_VECTOR is a
 * vector register (xmm, v; on riscv64 f).  Returns -EINVAL if there is no such register or ARCH.
 * Since 0.2.0.
 */
#define JITDUMP_VECTOR 0x100u
JITDUMP_API int jitdump_dwarf_register(enum jitdump_arch arch, unsigned encoding);

/* Make a builder for code of ARCH.
 *
 * Returns NULL if memory runs out; every function below accepts that NULL.  An ARCH that is not in
 * the enum makes a builder whose jitdump_cfi_finish returns -EINVAL.  Free it with
 * jitdump_cfi_free.  Since 0.1.0. */
JITDUMP_API struct jitdump_cfi *jitdump_cfi_new(enum jitdump_arch arch);

/* Free CFI and the tables that jitdump_cfi_finish returned.  CFI may be NULL.  Since 0.1.0. */
JITDUMP_API void jitdump_cfi_free(struct jitdump_cfi *cfi);

/* Reset CFI for the next function: drop its blocks, instructions and errors.  It keeps its memory,
 * so one builder serves many functions without malloc.  The tables that jitdump_cfi_finish returned
 * are no longer valid.  Since 0.1.0. */
JITDUMP_API void jitdump_cfi_reset(struct jitdump_cfi *cfi);

/* Begin a function whose size is not known yet, at offset AT of the buffer that it is emitted into.
 *
 *     jitdump_cfi_begin(cfi, at);                       // a compiler in one pass
 *     ...                                               // directives, or one frame, as it goes
 *     jitdump_cfi_end(cfi, at_the_end, &hot);
 *     jitdump_cfi_begin(cfi, at);                       // the next one, or the cold part
 *     ...
 *
 * From then on code offsets count from the buffer's first byte, until jitdump_cfi_reset.  A
 * function that was begun before and not ended is dropped, with its errors: a compiler may give up
 * in the middle.  The tables that jitdump_cfi_end returned stay valid.  Since 0.2.0. */
JITDUMP_API void jitdump_cfi_begin(struct jitdump_cfi *cfi, uint64_t at);

/* End the function that was begun: it is the code up to AT.  Write its tables and set *UNWIND to
 * them, as jitdump_cfi_finish does.
 *
 * The bytes belong to CFI and live until jitdump_cfi_reset or _free.  So the functions of a buffer
 * can be described while the buffer is filled, and added after it was copied to where it runs: the
 * tables do not depend on the address.
 *
 * Returns the same as jitdump_cfi_finish; also -EINVAL if no function was begun, or AT is before
 * it.  After a failure *UNWIND is all zero, and jitdump_cfi_error has the text until the next
 * jitdump_cfi_begin.  Since 0.2.0. */
JITDUMP_API int jitdump_cfi_end_sized(struct jitdump_cfi *cfi, uint64_t at,
                                      struct jitdump_unwind *unwind, size_t unwind_bytes);
#ifdef JITDUMP_NO_INLINE
JITDUMP_API int jitdump_cfi_end(struct jitdump_cfi *cfi, uint64_t at,
                                struct jitdump_unwind *unwind);
#else
static inline int jitdump_cfi_end(struct jitdump_cfi *cfi, uint64_t at,
                                  struct jitdump_unwind *unwind)
{
    return jitdump_cfi_end_sized(cfi, at, unwind, sizeof *unwind);
}
#endif

/* The first error of CFI, as a sentence with the code offset; "" if there was none.  Never NULL.
 * Valid until the next call with CFI.  Since 0.1.0. */
JITDUMP_API const char *jitdump_cfi_error(const struct jitdump_cfi *cfi);

/* Begin the description of a block of the function: SIZE bytes from code offset START.
 *
 * Each block starts as if just called, and the directives that follow belong to it.  Blocks begin
 * at an instruction (on aarch64 a multiple of 4, on riscv64 of 2), come in any order and must not
 * overlap.  Code outside all blocks has no unwind information.  Empty blocks are left out.  Without
 * a call to this function the whole code is one block.  It is an error to call it after directives
 * given without a block.  Since 0.1.0. */
JITDUMP_API void jitdump_cfi_block(struct jitdump_cfi *cfi, uint64_t start, uint64_t size);

/* The functions behind the inline calls below.  Those pass the size of the struct that they were
 * compiled with. */
JITDUMP_API void jitdump_cfi_frame_sized(struct jitdump_cfi *cfi, const struct jitdump_frame *frame,
                                         size_t frame_bytes);
JITDUMP_API int jitdump_cfi_prologue_bytes_sized(enum jitdump_arch arch,
                                                 const struct jitdump_frame *frame,
                                                 size_t frame_bytes);
JITDUMP_API int jitdump_cfi_epilogue_bytes_sized(enum jitdump_arch arch,
                                                 const struct jitdump_frame *frame,
                                                 size_t frame_bytes);
JITDUMP_API int jitdump_cfi_finish_sized(struct jitdump_cfi *cfi, uint64_t code_size,
                                         struct jitdump_unwind *unwind, size_t unwind_bytes);

/* Describe the current block by FRAME.  FRAME is read before this returns.
 *
 * Produces the same bytes as directives written by hand.  More directives may follow, for code
 * after the last epilogue.  The library's own functions of this name, of the next two, and of
 * jitdump_cfi_end and jitdump_cfi_finish (for dlopen, FFI) know only version 0.1's structs, up to
 * epilogue_count and mapped_size.  For newer members use the calls above.  Since 0.1.0. */
#ifdef JITDUMP_NO_INLINE
JITDUMP_API void jitdump_cfi_frame(struct jitdump_cfi *cfi, const struct jitdump_frame *frame);
#else
static inline void jitdump_cfi_frame(struct jitdump_cfi *cfi, const struct jitdump_frame *frame)
{
    jitdump_cfi_frame_sized(cfi, frame, sizeof *frame);
}
#endif

/* The size in bytes of FRAME's prologue (0 with JITDUMP_FRAME_ENTERED; without the other code
 * before slots_at), and of one of its epilogues without the instruction that leaves the function.
 * A JIT can check its own sizes against these:
 *
 *     assert(emitted_bytes == jitdump_cfi_prologue_bytes(JITDUMP_HOST_ARCH, &frame));
 *
 * Both return -EINVAL for a frame that is not possible on ARCH.  Since 0.1.0. */
#ifdef JITDUMP_NO_INLINE
JITDUMP_API int jitdump_cfi_prologue_bytes(enum jitdump_arch arch,
                                           const struct jitdump_frame *frame);
JITDUMP_API int jitdump_cfi_epilogue_bytes(enum jitdump_arch arch,
                                           const struct jitdump_frame *frame);
#else
static inline int jitdump_cfi_prologue_bytes(enum jitdump_arch arch,
                                             const struct jitdump_frame *frame)
{
    return jitdump_cfi_prologue_bytes_sized(arch, frame, sizeof *frame);
}

static inline int jitdump_cfi_epilogue_bytes(enum jitdump_arch arch,
                                             const struct jitdump_frame *frame)
{
    return jitdump_cfi_epilogue_bytes_sized(arch, frame, sizeof *frame);
}
#endif

/* ---- Directives ----
 *
 * Each does the same as GNU as's .cfi_ directive of that name, from the instruction at code offset
 * AT on.  AT must not decrease within a block, and must lie in it.  It must be a multiple of 4 on
 * aarch64, of 2 on riscv64.  (At the very end of a block a directive covers nothing and is left
 * out.)  Unless stated otherwise, OFFSET is in bytes, within 31 bits, and REG any DWARF number.
 *
 * At the start of a block the CFA is rsp + 8 with the return address at CFA - 8 (x86-64), or sp + 0
 * with the return address in x30 (aarch64) or ra (riscv64).  All other registers have the caller's
 * values.  Since 0.1.0. */

/* The CFA is, in this order: REG + OFFSET; REG + the previous offset; the previous register +
 * OFFSET; DELTA more than before. */
JITDUMP_API void jitdump_cfi_def_cfa(struct jitdump_cfi *cfi, uint64_t at, unsigned reg,
                                     int64_t offset);
JITDUMP_API void jitdump_cfi_def_cfa_register(struct jitdump_cfi *cfi, uint64_t at, unsigned reg);
JITDUMP_API void jitdump_cfi_def_cfa_offset(struct jitdump_cfi *cfi, uint64_t at, int64_t offset);
JITDUMP_API void jitdump_cfi_adjust_cfa_offset(struct jitdump_cfi *cfi, uint64_t at, int64_t delta);

/* The caller's REG is stored at CFA + OFFSET, a multiple of 8.  rel_offset: at OFFSET from the
 * register that the CFA is based on.  val_offset: its value is CFA + OFFSET. */
JITDUMP_API void jitdump_cfi_offset(struct jitdump_cfi *cfi, uint64_t at, unsigned reg,
                                    int64_t offset);
JITDUMP_API void jitdump_cfi_rel_offset(struct jitdump_cfi *cfi, uint64_t at, unsigned reg,
                                        int64_t offset);
JITDUMP_API void jitdump_cfi_val_offset(struct jitdump_cfi *cfi, uint64_t at, unsigned reg,
                                        int64_t offset);

/* The caller's REG is in the register WHERE. */
JITDUMP_API void jitdump_cfi_register(struct jitdump_cfi *cfi, uint64_t at, unsigned reg,
                                      unsigned where);

/* REG, in this order: still has the caller's value; is lost; has the rule that it had at the start
 * of the block. */
JITDUMP_API void jitdump_cfi_same_value(struct jitdump_cfi *cfi, uint64_t at, unsigned reg);
JITDUMP_API void jitdump_cfi_undefined(struct jitdump_cfi *cfi, uint64_t at, unsigned reg);
JITDUMP_API void jitdump_cfi_restore(struct jitdump_cfi *cfi, uint64_t at, unsigned reg);

/* Push all rules on a stack (at most 32 deep); pop them. */
JITDUMP_API void jitdump_cfi_remember_state(struct jitdump_cfi *cfi, uint64_t at);
JITDUMP_API void jitdump_cfi_restore_state(struct jitdump_cfi *cfi, uint64_t at);

/* SIZE bytes of whole call frame instructions, for instructions without a directive: expressions,
 * or aarch64's signed return addresses ("\x2d").  They must not advance the location, and must
 * restore each state that they remember.  rel_offset and adjust_cfa_offset do not know a CFA that
 * they set. */
JITDUMP_API void jitdump_cfi_escape(struct jitdump_cfi *cfi, uint64_t at, const void *bytes,
                                    size_t size);

/* ---- Whole tables ---- */

/* Import the part of an .eh_frame section that is about the code [CODE_ADDR, CODE_ADDR +
 * CODE_SIZE).  EH_FRAME points to the section's SIZE bytes, as they are or would be at address
 * SECTION_ADDR.
 *
 * Each FDE that begins in the code becomes a block.  An FDE that reaches past the code is cut at
 * its end.  Personality and LSDA are left out: they serve exceptions, not unwinding.  The section
 * must be relocated, as a linker or a JIT linker leaves it.  Everything is copied.  More imports
 * and blocks may follow, as long as nothing overlaps.  Directives may follow only in a block of
 * their own.  Takes time proportional to SIZE (times log n for n CIEs), however small the code's
 * part of the section is.
 *
 * Returns 0; -ENOENT if no FDE begins in the code (CFI is unchanged); -EINVAL, with a text, for
 * bytes that are not a valid .eh_frame, or for an FDE that begins before the code and reaches into
 * it; -ENOMEM; or the error that CFI had before.  All but -ENOENT stick.  Since 0.1.0. */
JITDUMP_API int jitdump_cfi_import(struct jitdump_cfi *cfi, const void *eh_frame, size_t size,
                                   uint64_t section_addr, uint64_t code_addr, uint64_t code_size);

/* Write the tables for a function of CODE_SIZE bytes and set *UNWIND to them, for jitdump_add_code.
 *
 * The bytes belong to CFI and live until the next jitdump_cfi_reset, _finish or _free with it.
 * This may be called again, for a copy of the function with another size.  Any other call needs
 * jitdump_cfi_reset first.
 *
 * Returns 0; -EINVAL if the description is wrong (jitdump_cfi_error says where), if blocks overlap
 * or reach past CODE_SIZE, or if there is no code to describe; -EFBIG if code and tables together
 * reach 2 GiB; -ENOMEM.  After a failure *UNWIND is all zero.  Since 0.1.0. */
#ifdef JITDUMP_NO_INLINE
JITDUMP_API int jitdump_cfi_finish(struct jitdump_cfi *cfi, uint64_t code_size,
                                   struct jitdump_unwind *unwind);
#else
static inline int jitdump_cfi_finish(struct jitdump_cfi *cfi, uint64_t code_size,
                                     struct jitdump_unwind *unwind)
{
    return jitdump_cfi_finish_sized(cfi, code_size, unwind, sizeof *unwind);
}
#endif

/* Compare the frames that CFI describes with the function's own instructions, the CODE_SIZE bytes
 * at BYTES.  All direct jumps are followed.  Pushes and pops, changes of the stack and the frame
 * pointer, and stores of saved registers are compared.
 *
 * Returns 0 if nothing contradicts CFI; -EBADMSG if something does; or an error of
 * jitdump_cfi_finish, which it calls.  The tables that were finished for the same CODE_SIZE stay
 * valid.  A fault is not an error of CFI.  jitdump_cfi_checked describes the fault:
 *
 *     at +0x1c (pop %rbx): the CFA is rsp+24 here, the frame says rsp+16
 *
 * This is the first instruction, in the order of addresses, before which the CFA or a saved
 * register is not where CFI says.  Only certain contradictions are faults.  Code is not compared if
 * its state can't be known: behind an indirect jump, where the stack pointer comes from an
 * untracked register or from untracked memory (alloca), and in code that nothing leads to.  After a
 * 0 the text then says where such code begins,
 *
 *     not checked from +0x40 on
 *
 * or that the function is entered in another frame than a call's, and that this frame was taken as
 * described.  The text is "" if everything was compared.  It is valid until the next call with CFI.
 * For riscv64 nothing is compared.
 *
 * After jitdump_cfi_end, until the next _begin, this compares the function that was ended.
 * CODE_SIZE is then its size, and BYTES its first byte, not the buffer's.
 *
 * It takes microseconds, and about 10 bytes of memory for each byte of code: it is for tests and
 * debug builds.  With the word "check" in PERFJIT libjitdump does the same for each function that
 * is added (jitdump.h).  `perfjit check DUMP` does it for all functions of a dump.  Since 0.2.0. */
JITDUMP_API int jitdump_cfi_check(struct jitdump_cfi *cfi, const void *bytes, uint64_t code_size);
JITDUMP_API const char *jitdump_cfi_checked(const struct jitdump_cfi *cfi);

#ifdef __cplusplus
}
#endif

#endif
