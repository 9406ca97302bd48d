/* aarch64_frames DIR [walk]: functions with every kind of frame that jitdump/cfi.h can describe,
 * for aarch64.
 *
 *     enter_code ─▶ first ─▶ second ─▶ ... ─▶ last      chains 3 to 10 deep
 *
 * Each function fills the registers that it saved with values of its own, calls the next one twice,
 * once to return at once and once to go on, and leaves by one of two epilogues.  The dump is
 * written to DIR before any of them runs.
 *
 * tests/unit/aarch64_step_test.c runs this under qemu, stops it at enter_code, and from there on at
 * each instruction. enter_code's arguments tell it where the code is.  With "walk" it stops itself
 * at each instruction, and libjitunwind unwinds (aarch64_walk.h); status 1 if a chain is wrong.
 */
#include "tests/producers/aarch64_assembler.h"
#include "tests/producers/aarch64_walk.h"

#include <stdio.h>
#include <sys/mman.h>

enum {
    ARENA_BYTES = 1 << 18,
    FUNCTIONS_MAX = 256,
    RANDOM_FRAMES = 60,
    CHAIN_MIN = 3,
    CHAIN_MAX = 10,
    CODE_ALIGN = 16,
    DYNAMIC_BYTES = 48,
};

/* How a function is put together around its frame. */
enum form {
    FORM_CALLS,      /* one block, two epilogues */
    FORM_TAIL,       /* the same, and one epilogue ends in a jump to the next function */
    FORM_LEAF,       /* calls nobody */
    FORM_HOT_COLD,   /* two blocks; the second begins inside the frame and goes back */
    FORM_COLD_APART, /* the same, but the second is a function of its own, with an epilogue */
    FORM_SUB_FIRST,  /* the rest is described by directives: see their functions */
    FORM_IN_REGISTERS,
    FORM_EXPRESSION,
};

struct shape {
    const char *name;
    enum form form;
    struct jitdump_frame frame;
};

struct jit {
    struct jitdump *dump;
    struct jitdump_cfi *cfi;
    struct jitunwind *unwinder; /* or NULL */
    uint8_t *arena;
    uint64_t end;        /* of the code so far */
    uint16_t next_value; /* to fill a register with */
    unsigned function;   /* how many were made */
    uint64_t random_seed;
};

#define CALLEE_SAVED_X                                                                             \
    JITDUMP_X19, JITDUMP_X20, JITDUMP_X21, JITDUMP_X22, JITDUMP_X23, JITDUMP_X24, JITDUMP_X25,     \
        JITDUMP_X26, JITDUMP_X27, JITDUMP_X28
#define CALLEE_SAVED_D                                                                             \
    JITDUMP_D8, JITDUMP_D9, JITDUMP_D10, JITDUMP_D11, JITDUMP_D12, JITDUMP_D13, JITDUMP_D14,       \
        JITDUMP_D15

static const struct shape callers[] = {
    {"pointer", FORM_CALLS, {.kind = JITDUMP_FRAME_POINTER}},
    {"pointer_pad",
     FORM_TAIL,
     {.kind = JITDUMP_FRAME_POINTER, .flags = JITDUMP_FRAME_LANDING_PAD, .stack_bytes = 16}},
    {"pointer_saved",
     FORM_CALLS,
     {.kind = JITDUMP_FRAME_POINTER,
      JITDUMP_SAVED(JITDUMP_X19, JITDUMP_X20, JITDUMP_X21),
      .stack_bytes = 32}},
    {"pointer_large",
     FORM_CALLS,
     {.kind = JITDUMP_FRAME_POINTER, JITDUMP_SAVED(JITDUMP_X28), .stack_bytes = 4112}},
    {"pointer_dynamic",
     FORM_CALLS,
     {.kind = JITDUMP_FRAME_POINTER,
      .flags = JITDUMP_FRAME_DYNAMIC | JITDUMP_FRAME_LANDING_PAD,
      JITDUMP_SAVED(JITDUMP_X19, JITDUMP_D8, JITDUMP_X20, JITDUMP_X21),
      .stack_bytes = 16}},
    {"pointer_late",
     FORM_CALLS,
     {.kind = JITDUMP_FRAME_POINTER, JITDUMP_SAVED(JITDUMP_X22), .prologue = 12}},
    {"pointer_all",
     FORM_TAIL,
     {.kind = JITDUMP_FRAME_POINTER,
      JITDUMP_SAVED(CALLEE_SAVED_D, CALLEE_SAVED_X),
      .stack_bytes = 64}},
    {"stack", FORM_CALLS, {.kind = JITDUMP_FRAME_STACK, JITDUMP_SAVED(JITDUMP_X30)}},
    {"stack_saved",
     FORM_CALLS,
     {.kind = JITDUMP_FRAME_STACK,
      JITDUMP_SAVED(JITDUMP_X30, JITDUMP_X19, JITDUMP_X20, JITDUMP_D8, JITDUMP_D9),
      .stack_bytes = 4080}},
    {"stack_round",
     FORM_TAIL,
     {.kind = JITDUMP_FRAME_STACK,
      .flags = JITDUMP_FRAME_LANDING_PAD,
      JITDUMP_SAVED(JITDUMP_D15, JITDUMP_X30),
      .stack_bytes = 8192}},
    {"stack_late",
     FORM_CALLS,
     {.kind = JITDUMP_FRAME_STACK,
      JITDUMP_SAVED(JITDUMP_X29, JITDUMP_X30),
      .stack_bytes = 4128,
      .prologue = 4}},
    {"stack_huge",
     FORM_CALLS,
     {.kind = JITDUMP_FRAME_STACK, JITDUMP_SAVED(JITDUMP_X30), .stack_bytes = 0x300010}},
    {"stack_all",
     FORM_CALLS,
     {.kind = JITDUMP_FRAME_STACK,
      JITDUMP_SAVED(JITDUMP_X30, JITDUMP_X29, CALLEE_SAVED_X, CALLEE_SAVED_D),
      .stack_bytes = 48}},
    {"hot_pointer",
     FORM_HOT_COLD,
     {.kind = JITDUMP_FRAME_POINTER, JITDUMP_SAVED(JITDUMP_X28, JITDUMP_D10), .stack_bytes = 4096}},
    {"hot_stack",
     FORM_HOT_COLD,
     {.kind = JITDUMP_FRAME_STACK,
      JITDUMP_SAVED(JITDUMP_X30, JITDUMP_X19, JITDUMP_D8),
      .stack_bytes = 16}},
    {"apart_pointer",
     FORM_COLD_APART,
     {.kind = JITDUMP_FRAME_POINTER,
      .flags = JITDUMP_FRAME_DYNAMIC,
      JITDUMP_SAVED(JITDUMP_X24, JITDUMP_X23, JITDUMP_X22),
      .stack_bytes = 32}},
    {"apart_stack",
     FORM_COLD_APART,
     {.kind = JITDUMP_FRAME_STACK,
      JITDUMP_SAVED(JITDUMP_D11, JITDUMP_D12, JITDUMP_X30, JITDUMP_X27),
      .stack_bytes = 5008}},
    {"sub_first", FORM_SUB_FIRST, {0}},
    {"expression", FORM_EXPRESSION, {0}},
};

static const struct shape leaves[] = {
    {"leaf", FORM_LEAF, {.kind = JITDUMP_FRAME_LEAF}},
    {"leaf_pad", FORM_LEAF, {.kind = JITDUMP_FRAME_LEAF, .flags = JITDUMP_FRAME_LANDING_PAD}},
    {"leaf_locals", FORM_LEAF, {.kind = JITDUMP_FRAME_STACK, .stack_bytes = 64}},
    {"leaf_saved",
     FORM_LEAF,
     {.kind = JITDUMP_FRAME_STACK,
      JITDUMP_SAVED(JITDUMP_X19, JITDUMP_D8, JITDUMP_X20),
      .stack_bytes = 4096}},
    {"in_registers", FORM_IN_REGISTERS, {0}},
};

enum { CALLERS = sizeof callers / sizeof *callers, LEAVES = sizeof leaves / sizeof *leaves };

static void fail(const char *what)
{
    fprintf(stderr, "aarch64_frames: %s\n", what);
    exit(EXIT_FAILURE);
}

/* ---- The way into the code ---- */

/* enter_code calls ENTRY with x0 = AT_ONCE and a value of its own in each register that a function
 * must preserve. */
void enter_code(uint64_t entry, uint64_t arena, uint64_t arena_bytes, uint64_t at_once);

#define FILL_X(n) "movz x" #n ", #0x7700 + " #n "\n"
#define FILL_D(n) "movz x10, #0x6600 + " #n "\n fmov d" #n ", x10\n"

__asm__(".text\n"
        ".balign 4\n"
        ".globl enter_code\n"
        ".type enter_code, %function\n"
        "enter_code:\n"
        "stp x29, x30, [sp, #-160]!\n"
        "stp x19, x20, [sp, #16]\n"
        "stp x21, x22, [sp, #32]\n"
        "stp x23, x24, [sp, #48]\n"
        "stp x25, x26, [sp, #64]\n"
        "stp x27, x28, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\n"
        "stp d10, d11, [sp, #112]\n"
        "stp d12, d13, [sp, #128]\n"
        "stp d14, d15, [sp, #144]\n" FILL_X(19) FILL_X(20) FILL_X(21) FILL_X(22) FILL_X(23)
            FILL_X(24) FILL_X(25) FILL_X(26) FILL_X(27) FILL_X(28) FILL_X(29) FILL_D(8) FILL_D(9)
                FILL_D(10) FILL_D(11) FILL_D(12) FILL_D(13) FILL_D(14)
                    FILL_D(15) "mov x9, x0\n"
                               "mov x0, x3\n"
                               "blr x9\n"
                               "ldp d14, d15, [sp, #144]\n"
                               "ldp d12, d13, [sp, #128]\n"
                               "ldp d10, d11, [sp, #112]\n"
                               "ldp d8, d9, [sp, #96]\n"
                               "ldp x27, x28, [sp, #80]\n"
                               "ldp x25, x26, [sp, #64]\n"
                               "ldp x23, x24, [sp, #48]\n"
                               "ldp x21, x22, [sp, #32]\n"
                               "ldp x19, x20, [sp, #16]\n"
                               "ldp x29, x30, [sp], #160\n"
                               "ret\n"
                               ".size enter_code, . - enter_code\n");

/* ---- Bodies ---- */

/* Lose the caller's values of the registers that FRAME saved, but for what the function itself
 * needs. */
static void fill_saved(struct jit *jit, struct code *code, const struct jitdump_frame *frame)
{
    for (uint32_t i = 0; i < frame->saved_count; i++) {
        unsigned reg = frame->saved[i];
        emit_movz(code, is_d(reg) ? X9 : reg, jit->next_value++);
        if (is_d(reg))
            emit_fmov(code, reg - JITDUMP_D0, X9);
    }
    if (frame->flags & JITDUMP_FRAME_DYNAMIC) {
        emit_movz(code, X9, DYNAMIC_BYTES);
        emit_sub_sp_register(code, X9);
    }
}

/* With x0 = 1 a function returns at once, but for what cold code does. */
static void call_to_return(struct code *code, uint64_t next)
{
    emit_movz(code, 0, 1);
    emit_bl(code, next);
}

static void call_next(struct code *code, uint64_t next)
{
    call_to_return(code, next);
    emit_movz(code, 0, 0);
    emit_bl(code, next);
}

/* Code before the prologue, the prologue, and what every body begins with. */
static void begin_frame(struct jit *jit, struct code *code, const struct jitdump_frame *frame)
{
    while (code_here(code) < frame->prologue)
        emit_movz(code, X9, jit->next_value++);
    emit_prologue(code, frame);
    if (code_here(code) - frame->prologue !=
        (uint64_t)jitdump_cfi_prologue_bytes(JITDUMP_AARCH64, frame))
        fail("jitdump_cfi_prologue_bytes says otherwise");
    fill_saved(jit, code, frame);
}

/* An epilogue, which begins at the offset that this returns. */
static uint64_t end_frame(struct code *code, const struct jitdump_frame *frame)
{
    uint64_t start = code_here(code);
    emit_epilogue(code, frame);
    if (code_here(code) - start != (uint64_t)jitdump_cfi_epilogue_bytes(JITDUMP_AARCH64, frame))
        fail("jitdump_cfi_epilogue_bytes says otherwise");
    return start;
}

/* ---- Logging ---- */

/* Log the SIZE bytes from offset START of CODE, as described in jit->cfi. */
static void add_to_unwinder(const struct jit *jit, const struct jitdump_code *entry)
{
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    code.addr = entry->code_addr;
    code.bytes = entry->code_size;
    code.eh_frame = entry->unwind->data;
    code.eh_frame_bytes = entry->unwind->unwinding_size - entry->unwind->eh_frame_hdr_size;
    code.name = entry->name;
    if (jitunwind_add(jit->unwinder, &code))
        fail("jitunwind_add");
}

static void log_code(struct jit *jit, const struct code *code, const char *name, uint64_t start,
                     uint64_t size)
{
    char full_name[64];
    struct jitdump_unwind unwind;
    struct jitdump_code entry = JITDUMP_CODE_INIT;
    snprintf(full_name, sizeof full_name, "%s#%u", name, jit->function);
    if (jitdump_cfi_finish(jit->cfi, size, &unwind))
        fail(jitdump_cfi_error(jit->cfi));
    entry.name = full_name;
    entry.bytes = (const uint8_t *)code->words + start;
    entry.code_addr = code->addr + start;
    entry.code_size = size;
    entry.unwind = &unwind;
    if (jitdump_add_code(jit->dump, &entry, NULL))
        fail(jitdump_error(jit->dump));
    add_to_unwinder(jit, &entry);
    jitdump_cfi_reset(jit->cfi);
}

/* ---- Forms ---- */

/* One block, with the epilogues that the description then lists. */
static void make_plain(struct jit *jit, struct code *code, const struct shape *shape, uint64_t next)
{
    struct jitdump_frame frame = shape->frame;
    uint64_t epilogues[2];
    begin_frame(jit, code, &frame);
    size_t early = emit_cbnz_x0(code);
    if (shape->form == FORM_CALLS || shape->form == FORM_TAIL)
        call_next(code, next);
    emit_movz(code, 0, 1);
    epilogues[0] = end_frame(code, &frame);
    if (shape->form == FORM_TAIL)
        emit_b(code, next);
    else
        emit_ret(code);
    emit_label_here(code, early);
    emit_nop(code);
    epilogues[1] = end_frame(code, &frame);
    emit_ret(code);
    frame.epilogues = epilogues;
    frame.epilogue_count = 2;
    jitdump_cfi_frame(jit->cfi, &frame);
    log_code(jit, code, shape->name, 0, code_here(code));
}

/* Hot code that jumps to a cold block behind it, which comes back or leaves by itself. */
static void make_hot_cold(struct jit *jit, struct code *code, const struct shape *shape,
                          uint64_t next)
{
    struct jitdump_frame hot = shape->frame, cold = shape->frame;
    bool apart = shape->form == FORM_COLD_APART;
    uint64_t hot_epilogue, cold_epilogue;
    begin_frame(jit, code, &hot);
    size_t early = emit_cbnz_x0(code);
    call_next(code, next);
    uint64_t back = code->addr + code_here(code);
    hot_epilogue = end_frame(code, &hot);
    emit_ret(code);
    uint64_t cold_start = code_here(code);
    emit_label_here(code, early);
    call_to_return(code, next);
    cold_epilogue = code_here(code) - (apart ? cold_start : 0);
    if (apart) {
        end_frame(code, &cold);
        emit_ret(code);
    } else {
        emit_b(code, back);
    }
    hot.epilogues = &hot_epilogue;
    hot.epilogue_count = 1;
    cold.flags |= JITDUMP_FRAME_ENTERED;
    cold.epilogues = &cold_epilogue;
    cold.epilogue_count = apart;
    jitdump_cfi_block(jit->cfi, 0, cold_start);
    jitdump_cfi_frame(jit->cfi, &hot);
    if (apart) {
        log_code(jit, code, shape->name, 0, cold_start);
        jitdump_cfi_frame(jit->cfi, &cold);
        log_code(jit, code, "cold", cold_start, code_here(code) - cold_start);
    } else {
        jitdump_cfi_block(jit->cfi, cold_start, code_here(code) - cold_start);
        jitdump_cfi_frame(jit->cfi, &cold);
        log_code(jit, code, shape->name, 0, code_here(code));
    }
}

/* One epilogue of the function below. */
static void end_sub_first(struct jitdump_cfi *cfi, struct code *code)
{
    jitdump_cfi_remember_state(cfi, code_here(code));
    emit_one(code, true, JITDUMP_X19, OFFSET, 40);
    jitdump_cfi_restore(cfi, code_here(code), JITDUMP_X19);
    emit_two(code, true, JITDUMP_X29, JITDUMP_X30, OFFSET, 16);
    jitdump_cfi_def_cfa(cfi, code_here(code), JITDUMP_SP, 64);
    jitdump_cfi_restore(cfi, code_here(code), JITDUMP_X29);
    jitdump_cfi_same_value(cfi, code_here(code), JITDUMP_X30);
    emit_add_sp(code, 64);
    jitdump_cfi_adjust_cfa_offset(cfi, code_here(code), -64);
    emit_ret(code);
    jitdump_cfi_restore_state(cfi, code_here(code));
}

/* As gcc likes it: the whole frame at once, with x29 and x30 in the middle of it. */
static void make_sub_first(struct jit *jit, struct code *code, const char *name, uint64_t next)
{
    struct jitdump_cfi *cfi = jit->cfi;
    emit_sub_sp(code, 64);
    jitdump_cfi_adjust_cfa_offset(cfi, code_here(code), 64);
    emit_two(code, false, JITDUMP_X29, JITDUMP_X30, OFFSET, 16);
    jitdump_cfi_rel_offset(cfi, code_here(code), JITDUMP_X29, 16);
    jitdump_cfi_rel_offset(cfi, code_here(code), JITDUMP_X30, 24);
    emit_add(code, X29, SP, 16);
    jitdump_cfi_def_cfa(cfi, code_here(code), JITDUMP_X29, 48);
    emit_one(code, false, JITDUMP_X19, OFFSET, 40);
    jitdump_cfi_offset(cfi, code_here(code), JITDUMP_X19, -24);
    emit_movz(code, JITDUMP_X19, jit->next_value++);
    size_t early = emit_cbnz_x0(code);
    call_next(code, next);
    end_sub_first(cfi, code);
    emit_label_here(code, early);
    emit_nop(code);
    end_sub_first(cfi, code);
    log_code(jit, code, name, 0, code_here(code));
}

/* A leaf that keeps the return address and a register in other registers, and no frame. */
static void make_in_registers(struct jit *jit, struct code *code, const char *name)
{
    struct jitdump_cfi *cfi = jit->cfi;
    emit_mov(code, X9, X30);
    jitdump_cfi_register(cfi, code_here(code), JITDUMP_X30, JITDUMP_X9);
    emit_movz(code, X30, jit->next_value++);
    emit_mov(code, JITDUMP_X10, JITDUMP_X26);
    jitdump_cfi_register(cfi, code_here(code), JITDUMP_X26, JITDUMP_X10);
    emit_movz(code, JITDUMP_X26, jit->next_value++);
    emit_nop(code);
    emit_mov(code, JITDUMP_X26, JITDUMP_X10);
    jitdump_cfi_same_value(cfi, code_here(code), JITDUMP_X26);
    emit_movz(code, JITDUMP_X10, jit->next_value++);
    emit_mov(code, X30, X9);
    jitdump_cfi_restore(cfi, code_here(code), JITDUMP_X30);
    emit_movz(code, X9, jit->next_value++);
    emit_ret(code);
    log_code(jit, code, name, 0, code_here(code));
}

/* A frame whose CFA is given by an expression, and the caller's sp by a rule of its own. */
static void make_expression(struct jit *jit, struct code *code, const char *name, uint64_t next)
{
    struct jitdump_cfi *cfi = jit->cfi;
    static const uint8_t sp_plus_48[] = {0x0f, 2, 0x8f, 48}; /* DW_CFA_def_cfa_expression: breg31 */
    emit_one(code, false, JITDUMP_X30, PRE_INDEX, -32);
    jitdump_cfi_def_cfa_offset(cfi, code_here(code), 32);
    jitdump_cfi_offset(cfi, code_here(code), JITDUMP_X30, -32);
    jitdump_cfi_val_offset(cfi, code_here(code), JITDUMP_SP, 0);
    emit_two(code, false, JITDUMP_D13, JITDUMP_D14, OFFSET, 8);
    jitdump_cfi_offset(cfi, code_here(code), JITDUMP_D13, -24);
    jitdump_cfi_offset(cfi, code_here(code), JITDUMP_D14, -16);
    emit_movz(code, X9, jit->next_value++);
    emit_fmov(code, 13, X9);
    emit_sub_sp(code, 16);
    jitdump_cfi_escape(cfi, code_here(code), sp_plus_48, sizeof sp_plus_48);
    emit_movz(code, X9, jit->next_value++);
    emit_fmov(code, 14, X9);
    size_t early = emit_cbnz_x0(code);
    call_next(code, next);
    emit_label_here(code, early);
    emit_nop(code);
    emit_add_sp(code, 16);
    jitdump_cfi_def_cfa(cfi, code_here(code), JITDUMP_SP, 32);
    emit_two(code, true, JITDUMP_D13, JITDUMP_D14, OFFSET, 8);
    jitdump_cfi_restore(cfi, code_here(code), JITDUMP_D13);
    jitdump_cfi_same_value(cfi, code_here(code), JITDUMP_D14);
    emit_one(code, true, JITDUMP_X30, POST_INDEX, 32);
    jitdump_cfi_def_cfa_offset(cfi, code_here(code), 0);
    jitdump_cfi_restore(cfi, code_here(code), JITDUMP_X30);
    emit_ret(code);
    log_code(jit, code, name, 0, code_here(code));
}

/* Make a function of SHAPE that calls NEXT, and return its address. */
static uint64_t make(struct jit *jit, const struct shape *shape, uint64_t next)
{
    struct code code = {.addr = jit->end};
    if (shape->form <= FORM_LEAF)
        make_plain(jit, &code, shape, next);
    else if (shape->form == FORM_SUB_FIRST)
        make_sub_first(jit, &code, shape->name, next);
    else if (shape->form == FORM_IN_REGISTERS)
        make_in_registers(jit, &code, shape->name);
    else if (shape->form == FORM_EXPRESSION)
        make_expression(jit, &code, shape->name, next);
    else
        make_hot_cold(jit, &code, shape, next);
    if (jit->end + code_here(&code) > (uint64_t)(uintptr_t)jit->arena + ARENA_BYTES)
        fail("the arena is full");
    memcpy(jit->arena + (code.addr - (uint64_t)(uintptr_t)jit->arena), code.words,
           code_here(&code));
    jit->end = (jit->end + code_here(&code) + CODE_ALIGN - 1) & ~(uint64_t)(CODE_ALIGN - 1);
    jit->function++;
    return code.addr;
}

/* ---- Random frames ---- */

static uint32_t random_below(struct jit *jit, uint32_t limit)
{
    jit->random_seed = jit->random_seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((jit->random_seed >> 33) % limit);
}

/* Some registers in any order; X30 is among them if MUST_HAVE_X30. */
static void random_saved(struct jit *jit, struct jitdump_frame *frame, bool stack)
{
    uint8_t all[] = {CALLEE_SAVED_X, CALLEE_SAVED_D, JITDUMP_X29, JITDUMP_X30};
    uint32_t count = sizeof all - (stack ? 0 : 2);
    uint32_t wanted = random_below(jit, 12);
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t from = i + random_below(jit, count - i);
        uint8_t reg = all[from];
        all[from] = all[i];
        all[i] = reg;
    }
    memcpy(frame->saved, all, wanted);
    frame->saved_count = wanted;
    if (stack && !memchr(frame->saved, JITDUMP_X30, wanted))
        frame->saved[frame->saved_count++] = JITDUMP_X30;
}

static struct shape random_shape(struct jit *jit)
{
    static const uint32_t sizes[] = {0,    16,   48,   496,  512,  4064,
                                     4080, 4096, 4112, 8176, 8192, 66000};
    static const enum form forms[] = {FORM_CALLS, FORM_CALLS, FORM_TAIL, FORM_HOT_COLD,
                                      FORM_COLD_APART};
    bool stack = random_below(jit, 2);
    struct shape shape = {.name = "random", .form = forms[random_below(jit, 5)]};
    shape.frame.kind = stack ? JITDUMP_FRAME_STACK : JITDUMP_FRAME_POINTER;
    shape.frame.flags = random_below(jit, 2) ? JITDUMP_FRAME_LANDING_PAD : 0;
    if (!stack && random_below(jit, 3) == 0)
        shape.frame.flags |= JITDUMP_FRAME_DYNAMIC;
    shape.frame.stack_bytes = sizes[random_below(jit, 12)] & ~UINT32_C(15);
    shape.frame.prologue = WORD_BYTES * (uint64_t)random_below(jit, 3);
    random_saved(jit, &shape.frame, stack);
    return shape;
}

/* ---- The program ---- */

/* Make chains of all shapes.  Sets their ENTRIES, and returns how many there are. */
static size_t make_chains(struct jit *jit, uint64_t entries[FUNCTIONS_MAX])
{
    size_t chains = 0, caller = 0, depth = CHAIN_MIN;
    while (caller < CALLERS + RANDOM_FRAMES) {
        uint64_t next = make(jit, &leaves[chains % LEAVES], 0);
        for (size_t i = 1; i < depth && caller < CALLERS + RANDOM_FRAMES; i++, caller++) {
            struct shape shape = caller < CALLERS ? callers[caller] : random_shape(jit);
            next = make(jit, &shape, next);
        }
        entries[chains++] = next;
        depth = depth == CHAIN_MAX ? CHAIN_MIN : depth + 1;
    }
    return chains;
}

static void open_unwinder(struct jit *jit)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    options.start = (uint64_t)(uintptr_t)jit->arena;
    options.bytes = ARENA_BYTES;
    if (jitunwind_open(&jit->unwinder, &options))
        fail("jitunwind_open");
}

static void run(const struct jit *jit, const uint64_t *entries, size_t chains)
{
    if (jit->unwinder)
        walk_begin((uint32_t *)(void *)jit->arena,
                   (size_t)(jit->end - (uint64_t)(uintptr_t)jit->arena) / WORD_BYTES);
    for (size_t i = 0; i < 2 * chains; i++) {
        enter_code(entries[i / 2], (uint64_t)(uintptr_t)jit->arena, ARENA_BYTES, i % 2);
        if (jit->unwinder)
            walk_left();
    }
}

int main(int argc, char **argv)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jit jit = {.next_value = 1, .random_seed = 1};
    uint64_t entries[FUNCTIONS_MAX];
    jit.arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "walk")) || jit.arena == MAP_FAILED)
        fail("usage: aarch64_frames DIR [walk]");
    options.dir = argv[1];
    options.flags = JITDUMP_ALWAYS;
    if (jitdump_open(&jit.dump, &options))
        fail(jitdump_error(jit.dump));
    if (argc == 3)
        open_unwinder(&jit);
    jit.cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    jit.end = (uint64_t)(uintptr_t)jit.arena;
    size_t chains = make_chains(&jit, entries);
    jitdump_cfi_free(jit.cfi);
    __builtin___clear_cache((char *)jit.arena, (char *)jit.arena + ARENA_BYTES);
    run(&jit, entries, chains);
    printf("%u functions in %zu chains\n", jit.function, chains);
    bool good = jit.unwinder ? walk_end() : true;
    return jitdump_close(jit.dump) || !good ? EXIT_FAILURE : EXIT_SUCCESS;
}
