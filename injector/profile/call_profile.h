/* A recording as a model for all views: which function called which, how often, in which thread,
 * when.
 *
 *     strings ◀── frames ◀── nodes (a tree: stacks that begin alike share that) ◀── samples
 *                                                     threads, events ◀───┘
 *
 * Every view and every format is made of this alone, so that all of them agree.
 */
#ifndef PERFJIT_CALL_PROFILE_H
#define PERFJIT_CALL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_kind {
    FRAME_JIT,
    FRAME_INTERPRETER,
    FRAME_NATIVE,
    FRAME_KERNEL,
    FRAME_UNKNOWN, /* nothing names it */
    FRAME_KINDS
};

/* A function.  Equal ones are one frame, also at different addresses. */
struct call_frame {
    uint32_t name;    /* strings: call_profile_string */
    uint32_t module;  /* the file that it is in, without directories; "" if none is known */
    uint32_t file;    /* of its source; "" if it is not known */
    uint32_t line;    /* where it begins there; 0: not known */
    uint32_t column;  /* in that line, where its name says it; 0: not known */
    uint32_t tier;    /* which of the JIT's compilers made it; "" if its name doesn't say */
    uint32_t kind;    /* enum frame_kind */
    uint32_t inlined; /* 1: it has no frame of its own */
};

/* Node 0 is the root, and no frame. */
struct call_node {
    uint32_t parent; /* less than its own number */
    uint32_t frame;
    uint32_t line; /* of the frame's file: the line that ran, or called; 0: not known, or not
                    * wanted */
};

struct call_sample {
    uint64_t time_ns; /* 0: not known */
    uint64_t period;
    uint32_t node; /* of the innermost frame */
    uint32_t thread;
    uint32_t event;
    uint32_t place;
    uint32_t running; /* so many threads did, as perf report --latency counts; 0: not known */
    bool waits;       /* for the period, from time_ns on */
};

/* The place of a sample in its innermost frame.  Place 0 is not known. */
struct call_place {
    uint32_t offset; /* in the code, of which an inlined frame is a part */
    uint32_t line;   /* 0: not known */
    uint32_t file;   /* of that line: a string */
    uint32_t known;  /* 1, but of place 0 */
};

struct profile_thread {
    uint32_t pid, tid;
    uint32_t name;    /* its comm at the time: another name is another entry */
    uint32_t process; /* the last that its main thread had in this life (thread_names.h) */
};

/* What the program said that it did (marker_file.h). */
struct profile_span {
    uint64_t from_ns, to_ns;
    uint32_t name;
    uint32_t pid, tid; /* 0: any; all of the process */
};

/* That the runtime gave code up, by its own log. */
struct profile_deopt {
    uint64_t time_ns;
    uint32_t pid;
    uint32_t frame;               /* the function as that code */
    uint32_t kind, place, reason; /* strings: the runtime's words (v8_log.h) */
};

struct profile_event {
    uint32_t name;
    bool counts_ns; /* its period is a time, in ns: cpu-clock and task-clock */
    bool off_cpu;   /* that time is what a thread waited; not known of a kept run */
};

/* What is known of waits that switches tell of, and of the stacks at which threads waited. */
struct profile_waits {
    size_t count;
    size_t by_last_sample; /* have the stack of the thread's last sample before */
    size_t without_stack;
    size_t open;    /* threads that still waited at the end: that is not counted */
    size_t endless; /* further ones, whose ends nothing tells: they are not counted */
    bool not_all;   /* of the switches a part was recorded, which tells no times */
    bool of_processors;
};

/* An index of entries by the hash of their bytes. */
struct entry_place {
    uint32_t number; /* + 1; 0: the place is free */
    uint32_t hash;
};

struct entry_index {
    struct entry_place *places;
    size_t count, size; /* the size is a power of 2 */
};

struct call_profile {
    char *text; /* of all strings, each with a NUL */
    size_t text_bytes, text_capacity;
    size_t *strings; /* where each begins */
    size_t string_count, string_capacity;
    struct call_frame *frames;
    size_t frame_count, frame_capacity;
    struct call_node *nodes;
    size_t node_count, node_capacity;
    struct call_place *places;
    size_t place_count, place_capacity;
    struct call_sample *samples; /* in file order */
    size_t sample_count, sample_capacity;
    struct profile_thread *threads;
    size_t thread_count, thread_capacity;
    struct profile_event *events;
    size_t event_count, event_capacity;
    struct profile_span *spans; /* by time */
    size_t span_count, span_capacity;
    struct profile_deopt *deopts; /* by time */
    size_t deopt_count, deopt_capacity;
    bool timeless;            /* the recording has no times */
    bool has_spans_elsewhere; /* the recording's clock is not that of programs, CLOCK_MONOTONIC */
    uint32_t *changed; /* strings: modules of which another file ran than the one that is there */
    size_t changed_count, changed_capacity;
    bool has_long_chains; /* some may be cut: cut_chains_count tells */
    bool has_running;     /* samples tell how many threads ran */
    struct profile_waits waits;
    struct entry_index string_index, frame_index, node_index, place_index, thread_index;
};

#define PROFILE_NOTHING UINT32_MAX

/* Begin, with the root, the empty string and the place that is not known, which have number 0.
 * Returns 0, or -1 without memory. Release with call_profile_free in either case. */
int call_profile_begin(struct call_profile *profile);

/* The number of the entry that equals the argument, which is added if it is new; PROFILE_NOTHING
 * without memory. */
uint32_t call_profile_add_string(struct call_profile *profile, const char *text, size_t bytes);
uint32_t call_profile_add_frame(struct call_profile *profile, const struct call_frame *frame);
uint32_t call_profile_add_node(struct call_profile *profile, uint32_t parent, uint32_t frame);
uint32_t call_profile_add_line(struct call_profile *profile, uint32_t parent, uint32_t frame,
                               uint32_t line); /* a node of a line */
uint32_t call_profile_add_place(struct call_profile *profile, const struct call_place *place);
uint32_t call_profile_add_thread(struct call_profile *profile, const struct profile_thread *thread);

/* The string as which a name or a path is shown (code_name.h). */
uint32_t call_profile_add_text(struct call_profile *profile, const char *text, size_t bytes);

/* Add one more.  Returns 0, or -1 without memory. */
int call_profile_add_sample(struct call_profile *profile, const struct call_sample *sample);
int call_profile_add_event(struct call_profile *profile, const struct profile_event *event);

/* String number NUMBER; NUL-terminated, UTF-8 without control characters. */
const char *call_profile_string(const struct call_profile *profile, uint32_t number);

/* The name of a KIND: "jit", "interpreter", "native", "kernel", "unknown". */
const char *frame_kind_name(uint32_t kind);

void call_profile_free(struct call_profile *profile);

#endif
