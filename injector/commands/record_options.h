/* The options of perfjit record that perfjit bench takes as well. */
#ifndef PERFJIT_RECORD_OPTION_KEYS_H
#define PERFJIT_RECORD_OPTION_KEYS_H

#include "injector/run/record/record_options.h"

#include <argp.h>

/* Their keys, beside 'F', 'g' and 'e'. */
enum record_option_key { RECORD_KEY_RUNTIME = 256, RECORD_KEY_PERF };

#define RECORD_OPTIONS                                                                             \
    {"freq", 'F', "HZ", 0, "Samples a second, or max (default: 999)", 0},                          \
        {"call-graph",                                                                             \
         'g',                                                                                      \
         "HOW",                                                                                    \
         0,                                                                                        \
         "Call chains:\nfp: by frame pointers (default)\ndwarf: from a copy of the stack, as "     \
         "code without frame pointers needs (default for Python, also where the command's words "  \
         "name it)\ndwarf,BYTES: from a copy of so many bytes\nnone: no call chains",              \
         0},                                                                                       \
        {"event",                                                                                  \
         'e',                                                                                      \
         "EVENT",                                                                                  \
         0,                                                                                        \
         "The event to sample, as perf list names it (default: cycles, or cpu-clock where there "  \
         "are "                                                                                    \
         "none)",                                                                                  \
         0},                                                                                       \
        {"runtime",                                                                                \
         RECORD_KEY_RUNTIME,                                                                       \
         "NAME",                                                                                   \
         0,                                                                                        \
         "Whose switches are set (default: by what the command is):\nnode, deno, bun, php, java, " \
         "python, erl, ruby, dotnet, mono, lli, julia, qemu, qemu-system, jsc, moarvm, qml, "      \
         "onednn: this runtime's\nnone: nobody's",                                                 \
         0},                                                                                       \
    {                                                                                              \
        "perf", RECORD_KEY_PERF, "FILE", 0, "The perf to run (default: perf)", 0                   \
    }

/* What is recorded if nothing is said. */
void record_options_default(struct record_options *options);

/* Take one of those.  Returns as an argp parser. */
error_t record_options_take(struct record_options *options, int key, char *argument,
                            struct argp_state *state);

#endif
