/* Where the copy of a stack ends, what the thread's last whole stack tells of the rest.
 *
 * Of a stack that is cut it is known at which address its last frame ends (the CFA).  If the last
 * whole stack of that thread has a frame of the same code that ends there, that one's callers are
 * most probably this one's: outer frames live long.  It is an inference, and only made if it is
 * asked for.
 */
#ifndef PERFJIT_STACK_STITCH_H
#define PERFJIT_STACK_STITCH_H

#include "injector/stacks/stack_walk.h"

struct stitch_thread {
    uint64_t thread; /* its life, and in that its tid */
    bool used;
    struct walked_frame *frames; /* of its last whole stack: the innermost first */
    uint64_t *ips;
    size_t count, capacity;
};

struct stack_stitches {
    struct stitch_thread *threads; /* by hash */
    size_t thread_count, size;     /* a power of 2 */
};

/* The stack of THREAD that WALKER has walked to END: if it is whole, it is kept; if it is cut, what
 * is known of its outer frames is added to WALKER's.  Returns the end that it has then, or
 * STACK_ENDS without memory. */
enum stack_end stack_stitch(struct stack_stitches *stitches, struct stack_walker *walker,
                            uint64_t thread, enum stack_end end);

void stack_stitches_free(struct stack_stitches *stitches);

#endif
