/* See interpreted_frames.h. */
#include "injector/unwind/stacks/interpreted_frames.h"

enum { WORD_BYTES = 8 };

/* A word of a frame. */
struct frame_word {
    bool is_known;
    uint64_t value;
};

static struct frame_word word_at(const struct user_stack *stack, uint64_t addr)
{
    const bool is_known = user_stack_has(stack, addr, WORD_BYTES);
    return (struct frame_word){is_known, is_known ? user_stack_word(stack, addr) : 0};
}

static struct frame_word word_in(const struct unwind_frame *frame, uint32_t reg)
{
    const bool is_known = unwind_frame_knows(frame, reg);
    return (struct frame_word){is_known, is_known ? frame->registers[reg] : 0};
}

static bool is_position(struct frame_word word, const struct jit_interpreted *record)
{
    return word.is_known && word.value - record->position < record->position_bytes;
}

/* The register is ahead of the word in the frame, which is written for calls alone. */
static uint64_t position_of(const struct jit_interpreter *interpreter,
                            const struct unwind_frame *frame, const struct user_stack *stack,
                            bool has_registers, const struct jit_interpreted *record)
{
    const struct frame_word reg = word_in(frame, interpreter->position_register);
    const uint64_t base = frame->registers[interpreter->frame_register];
    if (has_registers && is_position(reg, record))
        return reg.value;
    const struct frame_word word =
        interpreter->position_offset
            ? word_at(stack, base + (uint64_t)(int64_t)interpreter->position_offset)
            : (struct frame_word){0};
    return is_position(word, record) ? word.value : record->position + record->position_bytes;
}

uint64_t interpreted_frame_addr(const struct code_log *log, const struct unwind_frame *frame,
                                const struct user_stack *stack, uint64_t time_ns,
                                bool has_registers)
{
    const struct interpreted_code *code = &log->interpreted;
    const struct jit_interpreter *interpreter =
        code->shown_count
            ? interpreted_code_interpreter(code, frame->exact ? frame->pc : frame->pc - 1)
            : NULL;
    if (!interpreter || !unwind_frame_knows(frame, interpreter->frame_register))
        return 0;
    const struct frame_word word =
        word_at(stack, frame->registers[interpreter->frame_register] +
                           (uint64_t)(int64_t)interpreter->function_offset);
    const struct interpreted_function *function =
        word.is_known ? interpreted_code_find(code, word.value, time_ns) : NULL;
    if (!function || function->shown == NOT_SHOWN || !log->functions[function->shown].size)
        return 0;
    const uint64_t position =
        position_of(interpreter, frame, stack, has_registers, &function->record);
    const uint64_t offset = interpreted_offset(function, position);
    /* A caller's address is taken to be behind its call by some. */
    const bool is_behind = !frame->exact && offset < function->record.position_bytes;
    return log->functions[function->shown].addr + offset + is_behind;
}
