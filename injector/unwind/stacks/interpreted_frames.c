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

/* Where a frame says that it is in its function.  The register is ahead of the word in the frame,
 * which is written for calls alone. */
struct frame_position {
    struct frame_word reg, word;
};

static struct frame_position position_of(const struct jit_interpreter *interpreter,
                                         const struct unwind_frame *frame,
                                         const struct user_stack *stack, bool has_registers)
{
    const uint64_t base = frame->registers[interpreter->frame_register];
    struct frame_position position = {{0}, {0}};
    if (has_registers)
        position.reg = word_in(frame, interpreter->position_register);
    if (interpreter->position_offset)
        position.word = word_at(stack, base + (uint64_t)(int64_t)interpreter->position_offset);
    return position;
}

static bool is_in(struct frame_word word, const struct jit_interpreted *record)
{
    return word.is_known && word.value - record->position < record->position_bytes;
}

static bool has_position(const struct frame_position *position,
                         const struct jit_interpreted *record)
{
    return is_in(position->reg, record) || is_in(position->word, record);
}

/* The function that WORD stands for in a frame.  One that the frame's position is not in is another
 * one that had the memory, unless it is native, or the position is not known. */
static const struct interpreted_function *function_of(const struct interpreted_code *code,
                                                      uint64_t word, uint64_t time_ns,
                                                      const struct frame_position *position)
{
    struct interpreted_function *found = interpreted_code_find(code, word, time_ns);
    for (struct interpreted_function *one = found; one;
         one = interpreted_code_late(code, one, time_ns))
        if (has_position(position, &one->record))
            return one;
    return found && found->record.position_bytes && position->word.value ? NULL : found;
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
    const struct frame_position position = position_of(interpreter, frame, stack, has_registers);
    const struct interpreted_function *function =
        word.is_known ? function_of(code, word.value, time_ns, &position) : NULL;
    if (!function || function->shown == NOT_SHOWN || !log->functions[function->shown].size)
        return 0;
    const uint64_t offset =
        interpreted_offset(function, is_in(position.reg, &function->record) ? position.reg.value
                                                                            : position.word.value);
    /* A caller's address is taken to be behind its call by some. */
    const bool is_behind = !frame->exact && offset < function->record.position_bytes;
    return log->functions[function->shown].addr + offset + is_behind;
}
