/* See interpreter_layout.h. */
#include "agents/java/interpreter_layout.h"

enum { WORD_BYTES = 8, DISTANCE_MOST = 32 }; /* in words, from rbp down */

/* The number of the word at ADDR; the count of STACK if it has none. */
static size_t word_at(const struct stack_words *stack, uint64_t addr)
{
    const uint64_t offset = addr - stack->addr;
    return offset % WORD_BYTES == 0 && offset / WORD_BYTES < stack->count
               ? (size_t)(offset / WORD_BYTES)
               : stack->count;
}

/* Whether the frame that has its Method at word NUMBER, DISTANCE below its rbp, has INNER's caller
 * above it, which is OUTER's. */
static bool is_frame(const struct stack_words *stack, size_t number, size_t distance,
                     const struct measured_frame *outer, uint64_t code, uint64_t code_bytes)
{
    if (number + distance + 1 >= stack->count)
        return false;
    const uint64_t caller = stack->words[number + distance];
    const size_t there = word_at(stack, caller - distance * WORD_BYTES);
    return stack->words[number + distance + 1] - code < code_bytes && there > number &&
           there < stack->count && stack->words[there] == outer->method;
}

/* How many words below the rbp at word NUMBER is the place of a frame, whose caller's is at OTHER;
 * 0: it is not there. */
static size_t find_position(const struct stack_words *stack, size_t number, size_t other,
                            const struct measured_frame *inner, const struct measured_frame *outer)
{
    for (size_t i = 1; i <= DISTANCE_MOST && i <= number && inner->position && outer->position; i++)
        if (stack->words[number - i] == inner->position &&
            stack->words[other - i] == outer->position)
            return i;
    return 0;
}

bool interpreter_layout_find(struct interpreter_layout *layout, const struct stack_words *stack,
                             const struct measured_frame *inner, const struct measured_frame *outer,
                             uint64_t code, uint64_t code_bytes)
{
    size_t found = 0;
    for (size_t i = 0; i < stack->count; i++) {
        if (stack->words[i] != inner->method)
            continue;
        for (size_t distance = 1; distance <= DISTANCE_MOST; distance++) {
            if (!is_frame(stack, i, distance, outer, code, code_bytes))
                continue;
            if (found && found != distance)
                return false;
            found = distance;
            const size_t caller = word_at(stack, stack->words[i + distance]);
            const size_t position = find_position(stack, i + distance, caller, inner, outer);
            layout->method_offset = -(int32_t)(distance * WORD_BYTES);
            layout->position_offset = -(int32_t)(position * WORD_BYTES);
        }
    }
    return found > 0;
}
