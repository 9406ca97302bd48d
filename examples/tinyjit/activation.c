/* See activation.h. */
#include "examples/tinyjit/activation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t word_at(uint64_t addr)
{
    uint64_t word;
    memcpy(&word, (const void *)(uintptr_t)addr, sizeof word);
    return word;
}

static _Noreturn void broken(const char *what, const struct code *code, uint64_t pc)
{
    fprintf(stderr, "tinyjit: bug: %s at %" PRIx64 " in %s\n", what, pc, code ? code->name : "?");
    abort();
}

/* The registers as they were at a call, PC behind it. */
struct frame {
    uint64_t pc, sp, fp;
};

/* By the frame events: is the CFA really CFA?  Then the caller's rbp. */
static uint64_t verified_fp(const struct code *code, const struct frame *frame, uint64_t cfa)
{
    size_t offset = (size_t)(frame->pc - (uint64_t)(uintptr_t)code->addr);
    struct code_frame_rule rule = code_frame_rule_at(code, offset - 1);
    uint64_t base = rule.cfa_register == X86_RBP ? frame->fp : frame->sp;
    if (base + (uint64_t)(int64_t)rule.cfa_offset != cfa)
        broken("the frame events give another CFA", code, frame->pc);
    int32_t saved = rule.saved[X86_RBP];
    return saved ? word_at(cfa - (uint64_t)(int64_t)saved) : frame->fp;
}

void activation_mark(struct runtime *runtime, uint64_t sp, uint64_t fp)
{
    for (size_t i = 0; i < runtime->codes.count; i++)
        runtime->codes.codes[i]->active = false;
    runtime->walks++;
    struct frame frame = {word_at(sp - 8), sp, fp};
    for (;;) {
        struct code *code = code_table_find(&runtime->codes, frame.pc - 1);
        if (!code)
            broken("the stack returns to where no code is", code, frame.pc);
        const struct code_call *call =
            code_find_call(code, (size_t)(frame.pc - (uint64_t)(uintptr_t)code->addr));
        if (!call)
            broken("the stack returns to where no call was", code, frame.pc);
        code->active = true;
        runtime->frames_walked++;
        if (code->kind == CODE_ENTRY)
            return;
        uint64_t cfa = frame.sp + call->cfa_distance;
        if (runtime->options.verify)
            frame.fp = verified_fp(code, &frame, cfa);
        frame.pc = word_at(cfa - 8);
        frame.sp = cfa;
    }
}
