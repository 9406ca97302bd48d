/* All user stacks of a recording, unwound: each sample's call chain in the place of its registers
 * and its copy of the stack.
 *
 * The recording becomes one that looks as if it had been made with frame pointers: of the events
 * that had stacks sample_type has CALLCHAIN and neither REGS_USER nor STACK_USER, and each of their
 * samples the chain
 *     what the kernel wrote of itself, PERF_CONTEXT_USER, the address, its callers'
 * All else is as it was.  A caller's address is one less than the return address, inside the call,
 * as perf has it of stacks that it unwinds: so its lines are the call's.
 *
 * With inlined calls, each stands in the chain as a frame, in front of the one that it was inlined
 * in.  This also holds for chains that were recorded.
 */
#ifndef PERFJIT_USER_STACKS_H
#define PERFJIT_USER_STACKS_H

#include "injector/unwind/stacks/chain_tree.h"
#include "injector/unwind/stacks/inlined_frames.h"
#include "injector/unwind/stacks/stack_counts.h"
#include "injector/unwind/stacks/stack_stitch.h"

struct user_stacks_options {
    const char *root;                  /* where the processes' root directory is, or NULL */
    bool stitch;                       /* the part that the copy cuts off is inferred, if
                                        * possible */
    const struct inlined_calls *calls; /* they are to be frames; NULL: they are not */
    /* Or NULL: called with each chain that has been walked.  Returns 0, or -1 without memory. */
    int (*walked)(void *context, const struct stack_walker *walker);
    void *context;
};

struct user_stacks {
    struct user_stacks_options options;
    struct space_source source;
    struct stack_walker walker;
    struct chain_tree tree;
    struct inlined_frames inlined;
    uint64_t *ips;      /* of the sample at hand, with inlined calls */
    uint64_t *firsts;   /* of the same samples: where each was taken, or 0: where it says */
    uint32_t *chains;   /* of the samples with stacks, or with chains and inlined calls in them, in
                           file order: numbers in the tree */
    size_t count, next; /* the next one to be written */
    struct stack_counts counts;
    struct stack_stitches stitches;
};

/* Whether samples of FORMAT may get another chain. */
bool user_stacks_want(const struct user_stacks *stacks, const struct sample_format *format);

/* How many frames a record can have room for in the place of SAMPLE's chain, registers and stack.
 */
size_t user_stacks_most_frames(const struct perf_sample *sample);

/* Whether FILE is of a machine whose stacks can be unwound. */
bool user_stacks_possible(const struct perf_file *file);

/* Unwind all stacks of PROFILE.  Returns 0, or -1 with the failure text set.  Release with
 * user_stacks_free in either case. */
int user_stacks_unwind(struct user_stacks *stacks, const struct user_stacks_options *options,
                       const struct records *records, const struct jit_processes *processes,
                       const struct timeline *timelines, struct findings *findings);

void user_stacks_free(struct user_stacks *stacks);

#endif
