/* Adds the rest of a stack behind the end of its copy, from the thread's last whole stack.
 *
 * For a stack that is cut, the address at which its last frame ends (the CFA) is known.  The last
 * whole stack of that thread may have a frame of the same code that ends there.  Then the callers
 * of that frame are most probably this frame's callers: outer frames live long.
 *
 * A frame that is larger than the copy is in no whole stack.  But its caller calls other functions,
 * too, and has the same place in their stacks.  So the latest whole stack in which any frame ends
 * at that CFA is taken.  Its callers are used if the first of them can have made that call.  It can
 * if its code has exactly one direct call of that function; the caller then stands at that call.
 *
 * Both are inferences, and only made on request.
 */
#ifndef PERFJIT_STACK_STITCH_H
#define PERFJIT_STACK_STITCH_H

#include "injector/arrays/number_map.h"
#include "injector/unwind/stacks/chain_tree.h"
#include "injector/unwind/stacks/stack_walk.h"

struct stitch_thread {
    struct walked_frame *frames; /* its last stack that led to its begin: the innermost first */
    uint64_t *ips;
    size_t count, capacity;
    bool doubted; /* callers may be left out */
};

/* The caller of the frame of THREAD that ended at CFA. */
struct known_caller {
    uint64_t thread, cfa;
    uint32_t callers;             /* in the tree: the first of them; 0: this entry is empty */
    uint32_t what;                /* its code, as address_space_at says */
    struct stack_function callee; /* the last callee that was looked up */
    uint64_t call;                /* and the address inside the call of it; 0: there is none */
};

struct known_callers {
    struct known_caller *items; /* by hash */
    size_t count, size;         /* a power of 2 */
    struct chain_tree tree;
};

struct stack_stitches {
    struct stitch_thread *threads;
    size_t thread_count, thread_capacity;
    struct number_map by_thread; /* numbers of these, by life, and in that by tid */
    struct known_callers known;
};

/* WALKER has walked the stack of THREAD to END.  A stack that leads to its begin is kept.  If the
 * stack is cut, the known outer frames are added to WALKER's.  Returns the end that it has then, or
 * STACK_ENDS without memory. */
enum stack_end stack_stitch(struct stack_stitches *stitches, struct stack_walker *walker,
                            uint64_t thread, enum stack_end end);

void stack_stitches_free(struct stack_stitches *stitches);

#endif
