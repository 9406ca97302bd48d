/* Frames of an interpreter by the function that it runs in them (interpreted_code.h). */
#ifndef PERFJIT_INTERPRETED_FRAMES_H
#define PERFJIT_INTERPRETED_FRAMES_H

#include "injector/log/code/code_log.h"
#include "injector/unwind/user_stack.h"

/* The address that stands for the function of FRAME, in code of LOG, and for the place in it; 0:
 * the code is no interpreter's, or nothing is known of the word in its frame.  HAS_REGISTERS: no
 * other JIT code runs above the frame, so that its registers are still those of the interpreter. */
uint64_t interpreted_frame_addr(const struct code_log *log, const struct unwind_frame *frame,
                                const struct user_stack *stack, uint64_t time_ns,
                                bool has_registers);

#endif
