/* Finds the return address of a frame of which nothing is known.  There is neither a table nor the
 * bytes of its code, and the frame pointer does not lead on.  Only perf maps have such code, for
 * example the trampolines of Python 3.12.
 *
 * It stands above the values that the function has pushed.  On x86-64 the ABI fixes its address up
 * to a multiple of 16: stacks are aligned at each call.  Every second word is none, and holds the
 * rest of calls that are over.  The first of the others that is an address behind a call is taken,
 * if the call can have led here.  The result is no more than likely.  The caller must check whether
 * the tables lead on from there to where the thread began.
 */
#ifndef PERFJIT_RETURN_SLOT_H
#define PERFJIT_RETURN_SLOT_H

#include "injector/unwind/unwind_rule.h"

/* How far above the stack pointer it is looked for.  Larger frames are not those of trampolines,
 * and the more words are looked at the more of them are left from other calls. */
enum { SLOTS_BYTES = 64 };

/* Go from FRAME, which has called another, to its caller's.  UNWIND_WRONG: there is no evidence. */
enum unwind_result unwind_by_slot(struct unwind_step *step, struct unwind_frame *frame);

#endif
