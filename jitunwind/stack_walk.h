/* One step from a frame to its caller's, by the best available rule. */
#ifndef JITUNWIND_STACK_WALK_H
#define JITUNWIND_STACK_WALK_H

#include "jitunwind/frames/frame_rule.h"
#include "jitunwind/frames/memory_reader.h"
#include "jitunwind/frames/rule_cache.h"
#include "jitunwind/jitunwind.h"

struct stack_walk {
    struct memory_reader memory;
    struct rule_cache *cache; /* or NULL */
    struct machine_frame frame;
    bool exact; /* frame.ip is the instruction itself, not the one behind a call */
    bool innermost;
    bool scan; /* JITUNWIND_SCAN */
    /* The available information about the code at frame.ip: */
    struct frame_rule rule;
    uint32_t changed;  /* as in struct cached_rule */
    bool is_code;      /* the registry or a file has it, */
    bool has_rule;     /* and a rule for it, */
    bool is_jit;       /* the registry */
    bool signal_frame; /* a table says that handlers return there */
};

/* Begin with the frame HERE, which is one of this thread's, or, if that is NULL, with the one that
 * UCONTEXT holds.  Returns false if that can't be read.  In either case ju_stack_walk_end follows.
 */
bool ju_stack_walk_begin(struct stack_walk *walk, const void *ucontext,
                         const struct machine_frame *here);
void ju_stack_walk_end(struct stack_walk *walk);

/* Go on to the caller.  Returns JITUNWIND_GOES_ON and sets *HOW, or returns why there is none. */
enum jitunwind_end ju_stack_walk_next(struct stack_walk *walk, enum jitunwind_how *how);

#endif
