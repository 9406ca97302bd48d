/* See return_slot.h.  Source: System V ABI, AMD64 supplement, 3.2.2. */
#include "injector/unwind/return_slot.h"

enum { WORD = 8, STACK_ALIGNMENT = 16 };

static void go_to_caller(struct unwind_step *step, uint64_t slot, uint64_t pc,
                         struct unwind_frame *frame)
{
    frame->pc = pc;
    frame->exact = frame->innermost = false;
    step->cfa = slot + WORD;
    unwind_frame_set(frame, step->machine->sp, step->cfa);
}

enum unwind_result unwind_by_slot(struct unwind_step *step, struct unwind_frame *frame)
{
    const struct machine *machine = step->machine;
    uint64_t sp = frame->registers[machine->sp];
    if (!step->calls || frame->innermost || machine->link_register != UNWIND_NO_REGISTER ||
        sp % WORD)
        return UNWIND_WRONG;
    uint64_t slot = sp % STACK_ALIGNMENT ? sp : sp + WORD;
    for (int i = 0; i < SLOTS_BYTES / STACK_ALIGNMENT && user_stack_has(step->stack, slot, WORD);
         i++) {
        uint64_t pc = user_stack_word(step->stack, slot) & machine->address_mask;
        enum call_evidence evidence = step->calls(step->context, pc);
        if (evidence == CALL_POSSIBLE)
            go_to_caller(step, slot, pc, frame);
        if (evidence != CALL_NONE)
            return evidence == CALL_POSSIBLE ? UNWIND_CALLER : UNWIND_WRONG;
        slot += STACK_ALIGNMENT;
    }
    return UNWIND_WRONG;
}
