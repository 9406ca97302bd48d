/* See code_unwind.h. */
#include "examples/tinyjit/code_unwind.h"

static const uint8_t dwarf_registers[X86_REGISTERS] = {
    [X86_RAX] = JITDUMP_RAX, [X86_RCX] = JITDUMP_RCX, [X86_RDX] = JITDUMP_RDX,
    [X86_RBX] = JITDUMP_RBX, [X86_RSP] = JITDUMP_RSP, [X86_RBP] = JITDUMP_RBP,
    [X86_RSI] = JITDUMP_RSI, [X86_RDI] = JITDUMP_RDI, [X86_R8] = JITDUMP_R8,
    [X86_R9] = JITDUMP_R9,   [X86_R10] = JITDUMP_R10, [X86_R11] = JITDUMP_R11,
    [X86_R12] = JITDUMP_R12, [X86_R13] = JITDUMP_R13, [X86_R14] = JITDUMP_R14,
    [X86_R15] = JITDUMP_R15,
};

/* ---- In short ---- */

/* EPILOGUE outlives *FRAME. */
static void fill_frame(struct jitdump_frame *frame, const struct code_frame *from,
                       const uint64_t *epilogue)
{
    frame->kind = from->prologue_bytes == 0 ? JITDUMP_FRAME_LEAF
                  : from->pointer           ? JITDUMP_FRAME_POINTER
                                            : JITDUMP_FRAME_STACK;
    for (size_t i = 0; i < from->saved_count; i++)
        frame->saved[i] = dwarf_registers[from->saved[i]];
    frame->saved_count = (uint32_t)from->saved_count;
    frame->stack_bytes = from->local_bytes;
    frame->epilogues = epilogue;
    frame->epilogue_count = from->prologue_bytes != 0;
}

/* Returns false, and has done nothing, if the code's frame isn't one that can be said so. */
static bool describe_in_short(struct jitdump_cfi *cfi, const struct code *code)
{
    struct jitdump_frame frame = {0};
    const uint64_t epilogue = code->frame.epilogue;
    fill_frame(&frame, &code->frame, &epilogue);
    int prologue_bytes = jitdump_cfi_prologue_bytes(JITDUMP_HOST_ARCH, &frame);
    if (!code->frame.plain || prologue_bytes != (int)code->frame.prologue_bytes)
        return false;
    jitdump_cfi_frame(cfi, &frame);
    return true;
}

/* ---- At length ---- */

static void describe_cfa(struct jitdump_cfi *cfi, const struct code_frame_event *event,
                         struct code_frame_rule *rule)
{
    enum x86_register reg = event->kind == FRAME_CFA_RSP ? X86_RSP : X86_RBP;
    if (reg != rule->cfa_register)
        jitdump_cfi_def_cfa(cfi, event->code_offset, dwarf_registers[reg], event->value);
    else if (event->value != rule->cfa_offset)
        jitdump_cfi_def_cfa_offset(cfi, event->code_offset, event->value);
    rule->cfa_register = reg;
    rule->cfa_offset = event->value;
}

static void describe_register(struct jitdump_cfi *cfi, const struct code_frame_event *event,
                              struct code_frame_rule *rule)
{
    int32_t below_cfa = event->kind == FRAME_SAVED ? event->value : 0;
    unsigned reg = dwarf_registers[event->reg];
    if (below_cfa == rule->saved[event->reg])
        return;
    if (below_cfa)
        jitdump_cfi_offset(cfi, event->code_offset, reg, -below_cfa);
    else
        jitdump_cfi_restore(cfi, event->code_offset, reg);
    rule->saved[event->reg] = below_cfa;
}

/* A directive for each event that changes something. */
static void describe_at_length(struct jitdump_cfi *cfi, const struct code *code)
{
    struct code_frame_rule rule = {X86_RSP, 8, {0}}; /* as jitdump_cfi starts, too */
    for (size_t i = 0; i < code->frame_event_count; i++) {
        const struct code_frame_event *event = &code->frame_events[i];
        if (event->kind == FRAME_CFA_RSP || event->kind == FRAME_CFA_RBP)
            describe_cfa(cfi, event, &rule);
        else
            describe_register(cfi, event, &rule);
    }
}

int code_unwind_tables(struct jitdump_cfi *cfi, const struct code *code,
                       struct jitdump_unwind *unwind)
{
    jitdump_cfi_reset(cfi);
    if (code->kind == CODE_TIER2 || !describe_in_short(cfi, code))
        describe_at_length(cfi, code);
    return jitdump_cfi_finish(cfi, code->size, unwind);
}
