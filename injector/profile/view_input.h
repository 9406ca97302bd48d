/* The common part of perfjit report, export and flamegraph: from the command line to a profile with
 * its functions and totals. */
#ifndef PERFJIT_VIEW_INPUT_H
#define PERFJIT_VIEW_INPUT_H

#include "injector/history/recording.h"
#include "injector/profile/profile_totals.h"
#include "injector/recording/cut_chains.h"
#include "injector/recording/host/recording_host.h"

#include <argp.h>
#include <stdio.h>

struct view_request {
    const char *input; /* NULL: default_file */
    const char *output;
    struct profile_wish wish; /* no event: the first */
    const char *spans;        /* a marker file, besides those that the recording names; or NULL */
    enum profile_weight weight;
    bool lines; /* by line that ran and called, and not by function */
    bool verbose, quiet;
    struct recording_request recording;
};

/* The options that fill it in, for a table of argp's. */
enum view_option_key {
    VIEW_EVENT = 600,
    VIEW_TIME,
    VIEW_THREAD,
    VIEW_PROCESS,
    VIEW_PID,
    VIEW_WEIGHT,
    VIEW_LATENCY,
    VIEW_SPAN,
    VIEW_SPANS,
    VIEW_OFF_CPU
};
#define VIEW_INPUT                                                                                 \
    {                                                                                              \
        "input", 'i', "FILE", 0, "FILE, said as to perf", 0                                        \
    }
#define VIEW_OPTIONS                                                                               \
    {"event",                                                                                      \
     VIEW_EVENT,                                                                                   \
     "EVENT",                                                                                      \
     0,                                                                                            \
     "Which event of the recording, as perf evlist names it (default: the first)",                 \
     0},                                                                                           \
        {"time",                                                                                   \
         VIEW_TIME,                                                                                \
         "FROM-TO",                                                                                \
         0,                                                                                        \
         "This time alone: 1.2-1.5 (seconds from the recording's first sample), 10%-20%, or "      \
         "14:05:09-14:05:12.5 (the clock); FROM or TO may be missing",                             \
         0},                                                                                       \
        {"thread",                                                                                 \
         VIEW_THREAD,                                                                              \
         "NAME|TID",                                                                               \
         0,                                                                                        \
         "Threads of this name (V8*: that begin so), or of this number, alone",                    \
         0},                                                                                       \
        {"process", VIEW_PROCESS, "NAME|PID", 0, "Processes of this name, or this one, alone", 0}, \
        {"pid", VIEW_PID, "PID", 0, "As --process PID", 0},                                        \
        {"span",                                                                                   \
         VIEW_SPAN,                                                                                \
         "NAME",                                                                                   \
         0,                                                                                        \
         "The time in the program's spans of this name (GET*: that begins so) alone",              \
         0},                                                                                       \
        {"spans",                                                                                  \
         VIEW_SPANS,                                                                               \
         "FILE",                                                                                   \
         0,                                                                                        \
         "Read spans from this file too: marker-PID.txt, lines of START_NS END_NS NAME",           \
         0},                                                                                       \
        {"weight",                                                                                 \
         VIEW_WEIGHT,                                                                              \
         "WHAT",                                                                                   \
         0,                                                                                        \
         "What is added up:\nperiod: the event\nsamples: one for each sample\nlatency: the "       \
         "event, "                                                                                 \
         "divided by how many threads ran at that moment",                                         \
         0},                                                                                       \
        {"latency", VIEW_LATENCY, 0, 0, "As --weight latency", 0},                                 \
        {"off-cpu",                                                                                \
         VIEW_OFF_CPU,                                                                             \
         0,                                                                                        \
         0,                                                                                        \
         "Where threads waited, and how long: as --event offcpu-time",                             \
         0},                                                                                       \
        RECORDING_FILE_OPTIONS
#define VIEW_MESSAGES                                                                              \
    OPTION_GROUP("Messages:"), OPTION_VERBOSE,                                                     \
    {                                                                                              \
        "quiet", 'q', 0, 0, "Print no findings", 0                                                 \
    }

#define VIEW_FILE_DOC                                                                              \
    "FILE is a recording, injected or not (default: perfjit.perf.data, perf.jit.data or "          \
    "perf.data)"

/* Begin with what is meant if nothing is said.  WEIGHT is the default. */
void view_request_begin(struct view_request *request, enum profile_weight weight);

/* Take an option, or the input.  Returns as an argp parser. */
error_t view_request_take(struct view_request *request, int key, char *argument,
                          struct argp_state *state);

/* How many rows WORD, the argument of -n, asks for: all for 0.  Ends the program at another word.
 */
size_t view_rows(const char *word, struct argp_state *state);

void view_request_free(struct view_request *request);

struct view_input {
    const char *path;
    struct recording recording;
    struct call_profile profile;
    struct profile_functions functions;
    struct profile_totals totals;
    struct profile_choice choice;
    struct recording_host host; /* not of a kept run */
    struct cut_chains cuts;
    bool shows_waits;
};

/* A sentence about what the numbers lack, number INDEX from 0 on, into TEXT of SIZE bytes: lost
 * samples, chains that are cut, waits without stacks.  Returns false after the last. */
enum { VIEW_LACK_BYTES = LOSSES_TEXT_BYTES };
bool view_input_lack(const struct view_input *input, size_t index, char *text, size_t size);

/* Print them to STREAM, unless the request wants no findings. */
void view_input_put_lacks(const struct view_input *input, const struct view_request *request,
                          FILE *stream);

/* Read the input for REQUEST.  Returns 0, or -1 with the failure text set.  Release with
 * view_input_close in either case. */
int view_input_open(struct view_input *input, const struct view_request *request,
                    struct findings *findings);

/* The same of a run that perfjit bench has kept, which it takes as well; but faster, for sums
 * alone: samples of one stack are one. */
int view_input_open_kept(struct view_input *input, const struct view_request *request,
                         struct findings *findings);

void view_input_close(struct view_input *input);

/* Run WRITE on the file PATH, which appears whole or not at all, or on standard output if PATH is
 * NULL or "-".  WRITE writes to a stream and returns 0, or -1 without memory.  Returns 0, or -1
 * with the failure text set. */
int view_write(const char *path, int (*write)(void *context, FILE *stream), void *context,
               struct findings *findings);

/* The end of each command: prints findings and failure; returns the exit status, as inject's. */
int view_end(int result, struct view_request *request, struct findings *findings);

#endif
