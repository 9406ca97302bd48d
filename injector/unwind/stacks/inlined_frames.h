/* Call chains with the inlined calls of JIT code as frames: each stands in front of the frame that
 * it was inlined in.
 */
#ifndef PERFJIT_INLINED_FRAMES_H
#define PERFJIT_INLINED_FRAMES_H

#include "injector/history/process/inlined_calls.h"
#include "injector/unwind/stacks/stack_walk.h"

/* A record has no room for more frames than this. */
enum { CHAIN_MOST_IPS = 8192 };

struct inlined_code;

struct inlined_frames {
    const struct inlined_calls *calls; /* NULL: none are wanted */
    const struct space_source *source;
    struct inlined_code **codes; /* by function, of those that were met */
    size_t count;
    struct line_table table;
};

/* Begin with the functions of SOURCE; does nothing if no CALLS are wanted.  Returns 0, or -1
 * without memory.  Release with inlined_frames_end in either case. */
int inlined_frames_begin(struct inlined_frames *frames, const struct space_source *source,
                         const struct inlined_calls *calls);

/* Put the stack that WALKER has walked into IPS, of MOST at most, with its inlined calls.  Returns
 * how many frames it has then; 0: none was inlined, or there is no room; SIZE_MAX without memory.
 */
size_t inlined_frames_of_stack(struct inlined_frames *frames, const struct stack_walker *walker,
                               uint64_t *ips, size_t most);

/* The same of the chain in SAMPLE, of an address space that is SPACE, with all that stands in it.
 * Its callers are return addresses, and the calls are in front of these. */
size_t inlined_frames_of_sample(struct inlined_frames *frames, const struct perf_sample *sample,
                                const struct address_space *space, uint64_t *ips, size_t most);

void inlined_frames_end(struct inlined_frames *frames);

#endif
