/* The runtime: decides what is compiled when, and what happens to code that is not needed any more.
 *
 *                 first call           N calls or 32 N loop rounds
 *     function ──▶ stub ──▶ tier 1 ─────────────────────────────────▶ tier 2
 *                   ▲         │ retired                                 │ retired by forget()
 *                   │         ▼                                         ▼
 *                   │       waits until no activation is left on the stack, then
 *                   └────── unloaded: poisoned, its memory given back, soon used for other code
 *
 * Compiled code calls into the runtime when it meets a stub, when it gets hot, and to forget a function.  Each of
 * these is a safe point: the runtime walks the stack, frees retired code that is not on it, and may move code that
 * is not on it together (compaction). */
#ifndef TINYJIT_RUNTIME_H
#define TINYJIT_RUNTIME_H

#include "examples/tinyjit/code_arena.h"
#include "examples/tinyjit/code_log.h"
#include "examples/tinyjit/context.h"
#include "examples/tinyjit/output.h"

struct runtime_options {
    bool no_tier2;
    bool no_inline;
    uint32_t tier2_after;   /* calls; 0: compile with tier 2 at once */
    uint32_t compact_every; /* compilations; 0: only when there are many holes */
    bool no_frame_pointer;
    bool flip_protection, grow_arena;
    bool own_frames; /* tell libjitunwind, so that the process can unwind its own stacks */
    bool crash;      /* in the first native_mix() */
    bool stops;      /* in native_mix(stop_at) */
    int64_t stop_at;
    bool exceptions;      /* own_frames, also for C++ exceptions */
    uint32_t throw_every; /* in each so many native_mix(); 0: never */
    bool verify; /* unwind each stack by the frame events too, and compare */
    struct code_log_paths paths;
};

struct runtime {
    const struct program *program;
    struct runtime_options options;
    struct output *output;
    struct code_arena arena;
    struct code_log log;
    struct code_table codes;
    struct code **current; /* of each function: the code that calls go to; NULL: its stub */
    struct code **stubs;   /* of each function */
    struct code *entry;
    struct jit_context *context;
    uint32_t mixed; /* native_mix(), where throw_every counts them */
    uint64_t compilations, compactions, walks, frames_walked;
};

/* Make everything ready to run PROGRAM.  Returns -1 after a message on stderr.  Code stops, and the program ends,
 * when the stack comes below STACK_LIMIT. */
int runtime_open(struct runtime *runtime, const struct program *program,
                 const struct runtime_options *options, struct output *output,
                 uintptr_t stack_limit);

/* Run main() once, and return its result. */
int64_t runtime_run(struct runtime *runtime);

void runtime_print_statistics(const struct runtime *runtime, FILE *stream);

void runtime_close(struct runtime *runtime);

#endif
