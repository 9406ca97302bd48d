/* The stack of a thread of a snapshot: its frames from the innermost on, and how it ends.  Each
 * frame has its known facts.  Inlined calls are frames, too.
 *
 * A frame is named by the dump or perf map whose code is there, else by the file's own symbols.
 */
#ifndef PERFJIT_THREAD_STACK_H
#define PERFJIT_THREAD_STACK_H

#include "injector/debug/snapshot/snapshot.h"
#include "injector/log/lines/line_table.h"
#include "injector/native/symbols/native_symbols.h"
#include "injector/unwind/stacks/stack_walk.h"

struct stack_frame {
    uint64_t pc;           /* where it goes on */
    bool inlined;          /* a call that was inlined in the next frame's function */
    bool jit;              /* of a function that a dump or a perf map tells */
    struct line_text name; /* or none */
    uint64_t offset;       /* of the pc in the function; not of an inlined call */
    struct line_text file; /* of the source; or none */
    uint32_t line;
    const char *module; /* the file that is mapped there; NULL: none */
    bool in_memory;     /* nothing names it, and no program or library has it */
};

struct thread_stacks {
    const struct snapshot *snapshot;
    const struct records *records;
    uint64_t time_ns; /* of the snapshot, on the dump's clock */
    struct space_source source;
    struct address_space space;
    struct stack_walker walker;
    struct native_symbols symbols;
    struct line_table lines;
    uint8_t *code; /* of the function that was looked at last, from the process; or NULL */
    /* The stack of the current thread: */
    struct stack_frame *frames;
    size_t count, capacity;
    size_t jit_count; /* frames of JIT code, without inlined calls */
    enum chain_end end;
};

/* Begin with the process of SNAPSHOT at TIME_NS, which PROFILE, PROCESSES and TIMELINES are of.
 * Returns 0, or -1 with the failure text set.  Release with thread_stacks_end in either case. */
int thread_stacks_begin(struct thread_stacks *stacks, const struct snapshot *snapshot,
                        const struct records *records, const struct jit_processes *processes,
                        const struct timeline *timelines, const char *root, uint64_t time_ns,
                        struct findings *findings);

/* Find the frames of THREAD.  Returns 0, or -1 without memory. */
int thread_stack_walk(struct thread_stacks *stacks, const struct snapshot_thread *thread);

void thread_stacks_end(struct thread_stacks *stacks);

#endif
