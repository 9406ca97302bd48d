/* riscv64_frames DIR [wrong]: code with frames of every kind, for riscv64, and what is true at each
 * of its instructions.
 *
 * Every function is run once for each of its instructions, with an ebreak in that one's place, on
 * each of its two ways through.  The handler prints what a profiler would see there and what an
 * unwinder must find; then the instruction is put back and goes on:
 *
 *     stop FUNCTION OFFSET cfa=CFA ra=ADDR rN=VALUE... | rN=VALUE... | ADDR=VALUE...
 *          the truth: the caller's sp, the return address, and each register that it preserves (by
 * DWARF's numbers) | what is in them now, sp and ra among them | the stack from sp to the CFA
 *
 * The dump has the tables that libjitdump made of one line for each function (with `wrong` each is
 * an instruction late). tests/cli/riscv64_rows.py compares them. */
#include "jitdump/cfi.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { CODE_WORDS = 256, RANDOM_FRAMES = 40, SLOTS = 64, EBREAK = 0x00100073, SHORT_MAX = 2032 };
enum { ZERO, RA, SP, T0 = 5, T1, S0 = 8, S1, A0, A1, DYNAMIC_BYTES = 48 };

static const uint8_t preserved[] = {8,  9,  18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
                                    40, 41, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59};
enum { PRESERVED = sizeof preserved };

/* What enter() puts into the preserved registers, finds in them afterwards, and where it was. */
uint64_t truth_values[PRESERVED], truth_after[PRESERVED], truth_sp, truth_return;

static void fail(const char *what)
{
    fprintf(stderr, "riscv64_frames: %s\n", what);
    exit(EXIT_FAILURE);
}

/* enter(CODE, ARGUMENT): call it with truth_values in all registers that it must preserve. */
void enter(const uint32_t *code, uint64_t argument);

#define EACH_X(op, base)                                                                           \
    op " s0, 0(" base ")\n" op " s1, 8(" base ")\n" op " s2, 16(" base ")\n" op " s3, 24(" base    \
       ")\n" op " s4, 32(" base ")\n" op " s5, 40(" base ")\n" op " s6, 48(" base ")\n" op         \
       " s7, 56(" base ")\n" op " s8, 64(" base ")\n" op " s9, 72(" base ")\n" op " s10, 80(" base \
       ")\n" op " s11, 88(" base ")\n"
#define EACH_F(op, base)                                                                           \
    op " fs0, 96(" base ")\n" op " fs1, 104(" base ")\n" op " fs2, 112(" base ")\n" op             \
       " fs3, 120(" base ")\n" op " fs4, 128(" base ")\n" op " fs5, 136(" base ")\n" op            \
       " fs6, 144(" base ")\n" op " fs7, 152(" base ")\n" op " fs8, 160(" base ")\n" op            \
       " fs9, 168(" base ")\n" op " fs10, 176(" base ")\n" op " fs11, 184(" base ")\n"

__asm__(".text\n.globl enter\nenter:\n"
        "addi sp, sp, -208\nsd ra, 192(sp)\n" EACH_X("sd", "sp") EACH_F(
            "fsd",
            "sp") "mv t0, a0\nmv a0, a1\n"
                  "la t1, truth_sp\nsd sp, 0(t1)\nla t2, 1f\nla t1, truth_return\nsd t2, 0(t1)\n"
                  "la t1, truth_values\n" EACH_X("ld", "t1")
                      EACH_F("fld",
                             "t1") "jalr t0\n1:\n"
                                   "la t1, truth_after\n" EACH_X("sd", "t1") EACH_F("fsd", "t1")
                                       EACH_X("ld", "sp")
                                           EACH_F("fld",
                                                  "sp") "ld ra, 192(sp)\naddi sp, sp, 208\nret\n");

/* ---- Instructions ---- */

struct code {
    uint32_t words[CODE_WORDS];
    unsigned count;
};

static void emit(struct code *code, uint32_t word)
{
    if (code->count == CODE_WORDS)
        fail("a function is too long");
    code->words[code->count++] = word;
}

static uint64_t here(const struct code *code)
{
    return 4 * (uint64_t)code->count;
}

static void addi(struct code *code, uint32_t to, uint32_t from, int32_t by)
{
    emit(code, (uint32_t)by << 20 | from << 15 | to << 7 | 0x13);
}

/* sd and fsd, ld and fld: REG by its DWARF number, at BASE + OFFSET. */
static void store(struct code *code, uint32_t reg, uint32_t base, int32_t offset)
{
    uint32_t at = (uint32_t)offset & 0xfff, opcode = reg < 32 ? 0x23 : 0x27;
    emit(code, at >> 5 << 25 | (reg & 31) << 20 | base << 15 | 3 << 12 | (at & 31) << 7 | opcode);
}

static void load(struct code *code, uint32_t reg, uint32_t base, int32_t offset)
{
    emit(code, (uint32_t)offset << 20 | base << 15 | 3 << 12 | (reg & 31) << 7 |
                   (reg < 32 ? 0x03u : 0x07u));
}

/* Some other value in REG. */
static void overwrite(struct code *code, uint32_t reg, int32_t value)
{
    if (reg < 32) {
        addi(code, reg, ZERO, value);
    } else {
        addi(code, T0, ZERO, value);
        emit(code, 0xf2000053 | T0 << 15 | (reg & 31) << 7); /* fmv.d.x */
    }
}

static void add_to_sp(struct code *code, int32_t bytes)
{
    if (bytes >= -2048 && bytes <= SHORT_MAX && bytes != -2048) {
        addi(code, SP, SP, bytes);
        return;
    }
    uint32_t high = ((uint32_t)bytes + 0x800) & 0xfffff000;
    emit(code, high | T1 << 7 | 0x37); /* lui */
    addi(code, T1, T1, (int32_t)((uint32_t)bytes - high));
    emit(code, (uint32_t)T1 << 20 | SP << 15 | SP << 7 | 0x33); /* add */
}

static void leave(struct code *code)
{
    emit(code, RA << 15 | 0x67); /* jalr x0, 0(ra) */
}

/* ---- Frames ---- */

static bool has_pointer(const struct jitdump_frame *frame)
{
    return frame->kind == JITDUMP_FRAME_POINTER;
}

static int32_t area(const struct jitdump_frame *frame)
{
    return (int32_t)(8 * (frame->saved_count + (has_pointer(frame) ? 2 : 0)) + 15) & ~15;
}

static int32_t place(const struct jitdump_frame *frame, uint32_t i)
{
    return area(frame) - 8 * (int32_t)(i + 1) - (has_pointer(frame) ? 16 : 0);
}

static void emit_prologue(struct code *code, const struct jitdump_frame *frame)
{
    if (frame->flags & JITDUMP_FRAME_LANDING_PAD)
        emit(code, 0x00000017); /* lpad 0 */
    if (area(frame))
        addi(code, SP, SP, -area(frame));
    if (has_pointer(frame)) {
        store(code, RA, SP, area(frame) - 8);
        store(code, S0, SP, area(frame) - 16);
    }
    for (uint32_t i = 0; i < frame->saved_count; i++)
        store(code, frame->saved[i], SP, place(frame, i));
    if (has_pointer(frame))
        addi(code, S0, SP, area(frame));
    if (frame->stack_bytes)
        add_to_sp(code, -(int32_t)frame->stack_bytes);
    for (size_t i = 0; i < frame->slot_count; i++)
        store(code, frame->slots[i].reg, has_pointer(frame) ? S0 : SP, frame->slots[i].offset);
}

static void emit_epilogue(struct code *code, const struct jitdump_frame *frame)
{
    for (size_t i = 0; i < frame->slot_count; i++)
        load(code, frame->slots[i].reg, has_pointer(frame) ? S0 : SP, frame->slots[i].offset);
    if (frame->flags & JITDUMP_FRAME_DYNAMIC)
        addi(code, SP, S0, -area(frame));
    else if (frame->stack_bytes)
        add_to_sp(code, (int32_t)frame->stack_bytes);
    for (uint32_t i = frame->saved_count; i-- > 0;)
        load(code, frame->saved[i], SP, place(frame, i));
    if (has_pointer(frame)) {
        load(code, S0, SP, area(frame) - 16);
        load(code, RA, SP, area(frame) - 8);
    }
    if (area(frame))
        addi(code, SP, SP, area(frame));
}

static bool saves(const struct jitdump_frame *frame, uint8_t reg)
{
    for (size_t i = 0; i < frame->slot_count; i++)
        if (frame->slots[i].reg == reg)
            return true;
    return memchr(frame->saved, reg, frame->saved_count) || (has_pointer(frame) && reg == RA);
}

/* A call of the next instruction, which changes ra only. */
static void emit_call(struct code *code)
{
    emit(code, RA << 7 | 0x17);                      /* auipc ra, 0 */
    emit(code, 0x00c00067 | RA << 15 | RA << 7 | 0); /* jalr ra, 12(ra): the one after the next */
    emit(code, 0x0000006f | 8 << 20);                /* j to behind the ret, when that comes back */
    leave(code);
}

static void emit_body(struct code *code, const struct jitdump_frame *frame)
{
    for (uint32_t i = 0; i < frame->saved_count; i++)
        if (frame->saved[i] != RA)
            overwrite(code, frame->saved[i], (int32_t)(100 + i));
    for (size_t i = 0; i < frame->slot_count; i++)
        if (frame->slots[i].reg != RA)
            overwrite(code, frame->slots[i].reg, (int32_t)(200 + i));
    if (frame->flags & JITDUMP_FRAME_DYNAMIC)
        addi(code, SP, SP, -DYNAMIC_BYTES);
    if (saves(frame, RA))
        emit_call(code);
}

/* ---- The functions ---- */

struct jit {
    struct jitdump *dump;
    uint32_t *arena;
    size_t used; /* words of it */
    unsigned functions;
    struct jitdump_slot slots[PRESERVED + 1]; /* of the frame that is being made */
    uint32_t random;
    bool wrong;
};

static void log_function(struct jit *jit, const struct code *code,
                         const struct jitdump_frame *given)
{
    struct jitdump_frame frame = *given;
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    struct jitdump_code entry = JITDUMP_CODE_INIT;
    struct jitdump_unwind unwind;
    char name[32];
    snprintf(name, sizeof name, "f%u", jit->functions);
    frame.prologue += jit->wrong ? 4 : 0;
    jitdump_cfi_frame(cfi, &frame);
    if (jitdump_cfi_finish(cfi, here(code), &unwind))
        fail(jitdump_cfi_error(cfi));
    entry.name = name;
    entry.code_addr = (uintptr_t)(jit->arena + jit->used);
    entry.code_size = here(code);
    entry.bytes = code->words;
    entry.unwind = &unwind;
    if (jitdump_add_code(jit->dump, &entry, NULL))
        fail(jitdump_error(jit->dump));
    jitdump_cfi_free(cfi);
}

static volatile uint32_t *stopped_at; /* the ebreak */
static uint32_t instead_of;           /* what it stands for */
static uint64_t stopped_offset;
static unsigned stopped_function;
static const struct jitdump_frame *stopped_frame;
static bool was_there;

static uint64_t value_of(const mcontext_t *registers, unsigned reg)
{
    return reg < 32 ? registers->__gregs[reg] : registers->__fpregs.__d.__f[reg - 32];
}

static void print_word(uint64_t at)
{
    printf(" %" PRIu64 "=%" PRIu64, at, *(const uint64_t *)(uintptr_t)at);
}

/* The frame's slots as far as they are on the stack, in which they may lie deeper than SLOTS. */
static void print_slots(uint64_t sp, uint64_t s0)
{
    uint64_t base = has_pointer(stopped_frame) ? s0 : sp;
    for (size_t i = 0; i < stopped_frame->slot_count; i++) {
        uint64_t at = base + (uint64_t)(int64_t)stopped_frame->slots[i].offset;
        if (at >= sp && at < truth_sp)
            print_word(at);
    }
}

static void on_stop(int number, siginfo_t *info, void *context)
{
    const mcontext_t *now = &((const ucontext_t *)context)->uc_mcontext;
    (void)number;
    (void)info;
    if (now->__gregs[0] != (uintptr_t)stopped_at)
        abort();
    was_there = true;
    printf("stop f%u %" PRIu64 " cfa=%" PRIu64 " ra=%" PRIu64, stopped_function, stopped_offset,
           truth_sp, truth_return);
    for (unsigned i = 0; i < PRESERVED; i++)
        printf(" r%u=%" PRIu64, preserved[i], truth_values[i]);
    printf(" | r1=%lu r2=%lu", now->__gregs[RA], now->__gregs[SP]);
    for (unsigned i = 0; i < PRESERVED; i++)
        printf(" r%u=%" PRIu64, preserved[i], value_of(now, preserved[i]));
    printf(" |");
    for (uint64_t at = now->__gregs[SP]; at < truth_sp; at += 8)
        if (at >= truth_sp - 8 * SLOTS)
            print_word(at);
    print_slots(now->__gregs[SP], now->__gregs[S0]);
    printf("\n");
    *stopped_at = instead_of;
    __builtin___clear_cache((char *)(uintptr_t)stopped_at, (char *)(uintptr_t)(stopped_at + 1));
}

static void run(uint32_t *code, unsigned count, unsigned function)
{
    for (unsigned i = 0; i < 2 * count; i++) {
        stopped_at = code + i / 2;
        instead_of = *stopped_at;
        stopped_function = function;
        stopped_offset = 4 * (uint64_t)(i / 2);
        was_there = false;
        *stopped_at = EBREAK;
        __builtin___clear_cache((char *)code, (char *)(code + count));
        enter(code, i % 2);
        if (memcmp(truth_values, truth_after, sizeof truth_values) != 0)
            fail("a function does not preserve what it must");
        *stopped_at = instead_of;
    }
}

static void make(struct jit *jit, struct jitdump_frame frame)
{
    struct code code = {.count = 0};
    uint64_t epilogues[2];
    unsigned branch;
    for (uint64_t i = 0; i < frame.prologue / 4; i++)
        addi(&code, T0, T0, 1);
    emit_prologue(&code, &frame);
    if (here(&code) - frame.prologue !=
        (uint64_t)jitdump_cfi_prologue_bytes(JITDUMP_RISCV64, &frame))
        fail("jitdump_cfi_prologue_bytes says otherwise");
    emit_body(&code, &frame);
    branch = code.count;
    emit(&code, 0);
    epilogues[0] = here(&code);
    emit_epilogue(&code, &frame);
    if (here(&code) - epilogues[0] != (uint64_t)jitdump_cfi_epilogue_bytes(JITDUMP_RISCV64, &frame))
        fail("jitdump_cfi_epilogue_bytes says otherwise");
    leave(&code);
    uint32_t by = 4 * (code.count - branch);
    code.words[branch] = (by >> 11 & 1) << 7 | (by >> 1 & 15) << 8 |
                         (by >> 5 & 63) << 25 | /* bnez a0 */
                         A0 << 15 | 1 << 12 | 0x63;
    addi(&code, T0, T0, 1);
    epilogues[1] = here(&code);
    emit_epilogue(&code, &frame);
    leave(&code);
    frame.epilogues = epilogues;
    frame.epilogue_count = 2;
    log_function(jit, &code, &frame);
    memcpy(jit->arena + jit->used, code.words, here(&code));
    stopped_frame = &frame;
    run(jit->arena + jit->used, code.count, jit->functions++);
    jit->used += code.count + 4;
}

static uint32_t below(struct jit *jit, uint32_t limit)
{
    jit->random = jit->random * 1664525 + 1013904223;
    return (jit->random >> 8) % limit;
}

/* Some of the COUNT registers at LEFT in slots, those that a store reaches, from either end. */
static void add_slots(struct jit *jit, struct jitdump_frame *frame, const uint8_t *left,
                      uint32_t count)
{
    int32_t size = (int32_t)frame->stack_bytes,
            bottom = has_pointer(frame) ? -area(frame) - size : 0;
    bool from_top = has_pointer(frame) || below(jit, 2);
    frame->slots = jit->slots;
    for (uint32_t i = 0; i < count && 8 * (int32_t)(i + 1) <= size && below(jit, 4); i++) {
        int32_t offset = from_top ? bottom + size - 8 * (int32_t)(i + 1) : 8 * (int32_t)i;
        if (offset >= -2048 && offset <= 2040)
            jit->slots[frame->slot_count++] = (struct jitdump_slot){left[i], offset};
    }
}

static struct jitdump_frame random_frame(struct jit *jit)
{
    static const uint32_t sizes[] = {0, 16, 48, 2032, 2048, 2064, 4096, 6144, 66000};
    struct jitdump_frame frame = {.kind =
                                      below(jit, 2) ? JITDUMP_FRAME_STACK : JITDUMP_FRAME_POINTER};
    uint8_t all[PRESERVED + 1];
    uint32_t skip = has_pointer(&frame); /* s0 */
    memcpy(all, preserved + skip, PRESERVED - skip);
    uint32_t count = PRESERVED - skip;
    if (!skip)
        all[count++] = RA;
    for (uint32_t i = 0, wanted = below(jit, JITDUMP_FRAME_SAVED_MAX + 1); i < wanted; i++) {
        uint32_t from = i + below(jit, count - i);
        uint8_t reg = all[from];
        all[from] = all[i];
        all[i] = reg;
        frame.saved[frame.saved_count++] = reg;
    }
    frame.flags = below(jit, 2) ? JITDUMP_FRAME_LANDING_PAD : 0;
    if (skip && below(jit, 3) == 0)
        frame.flags |= JITDUMP_FRAME_DYNAMIC;
    frame.stack_bytes = sizes[below(jit, 9)] & ~15u;
    add_slots(jit, &frame, all + frame.saved_count, count - frame.saved_count);
    frame.prologue = 4 * (uint64_t)below(jit, 3);
    return frame;
}

static const struct jitdump_frame frames[] = {
    {.kind = JITDUMP_FRAME_LEAF},
    {.kind = JITDUMP_FRAME_POINTER},
    {.kind = JITDUMP_FRAME_STACK, .stack_bytes = 32},
    {.kind = JITDUMP_FRAME_STACK, JITDUMP_SAVED(JITDUMP_RISCV_RA)},
    {.kind = JITDUMP_FRAME_POINTER,
     JITDUMP_SAVED(JITDUMP_RISCV_S1, JITDUMP_RISCV_FS0),
     .stack_bytes = 2032},
    {.kind = JITDUMP_FRAME_POINTER,
     JITDUMP_SAVED(JITDUMP_RISCV_S2),
     .stack_bytes = 2048,
     JITDUMP_SLOTS({JITDUMP_RISCV_S3, -2048}, {JITDUMP_RISCV_FS2, -40})},
    {.kind = JITDUMP_FRAME_POINTER,
     .flags = JITDUMP_FRAME_DYNAMIC,
     JITDUMP_SAVED(JITDUMP_RISCV_S11)},
    {.kind = JITDUMP_FRAME_STACK,
     .flags = JITDUMP_FRAME_LANDING_PAD,
     JITDUMP_SAVED(JITDUMP_RISCV_RA, JITDUMP_RISCV_S0, JITDUMP_RISCV_FS11),
     .stack_bytes = 4096,
     JITDUMP_SLOTS({JITDUMP_RISCV_S1, 0}, {JITDUMP_RISCV_FS0, 2040}),
     .prologue = 8},
};

int main(int argc, char **argv)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jit jit = {.random = 1, .wrong = argc > 2 && strcmp(argv[2], "wrong") == 0};
    struct sigaction action = {.sa_sigaction = on_stop, .sa_flags = SA_SIGINFO};
    if (argc < 2 || (argc > 2 && !jit.wrong))
        fail("usage: riscv64_frames DIR [wrong]");
    for (unsigned i = 0; i < PRESERVED; i++)
        truth_values[i] = 0x5000000000000000 + i;
    jit.arena =
        mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (jit.arena == MAP_FAILED || sigaction(SIGTRAP, &action, NULL) != 0)
        fail("no memory or no handler");
    options.dir = argv[1];
    options.flags = JITDUMP_ALWAYS;
    if (jitdump_open(&jit.dump, &options))
        fail(jitdump_error(jit.dump));
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        make(&jit, frames[i]);
    for (unsigned i = 0; i < RANDOM_FRAMES; i++)
        make(&jit, random_frame(&jit));
    printf("%u functions\n", jit.functions);
    return jitdump_close(jit.dump) ? EXIT_FAILURE : EXIT_SUCCESS;
}
