/* Where tier 2 keeps each local variable: the busiest ones in registers that survive calls, the others in the
 * frame. */
#ifndef TINYJIT_REGISTER_HOMES_H
#define TINYJIT_REGISTER_HOMES_H

#include "examples/tinyjit/emitter.h"

struct home {
    bool in_register;
    enum x86_register reg;
    uint32_t frame_local; /* for emitter_local(), if not in a register */
    uint64_t uses;        /* those in loops weigh more; 0: never used */
};

struct register_homes {
    struct home *homes; /* of each local */
    enum x86_register used[MAX_SAVED];
    size_t used_count;
    uint32_t frame_locals;
};

/* With a frame pointer rbp is taken; without, it is one more home. */
void register_homes_assign(struct register_homes *homes, const struct function *function,
                           bool frame_pointer);

void register_homes_free(struct register_homes *homes);

#endif
