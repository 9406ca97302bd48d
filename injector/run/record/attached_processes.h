/* The processes that run already when a recording begins (-p).  Those that have libjitdump and were
 * started with it enabled log while the recording lasts. */
#ifndef PERFJIT_ATTACHED_PROCESSES_H
#define PERFJIT_ATTACHED_PROCESSES_H

#include "injector/run/attach/attachment.h"
#include "injector/run/record/record_options.h"

struct attached_processes {
    struct attachment *items; /* owned: one for each that OPTIONS name */
    size_t count;
    const struct record_options *options;
};

/* Say which children run already, that perf does not record with their parents. */
void attached_processes_tell_children(const struct record_options *options);

/* Have those of OPTIONS, which outlive PROCESSES, log their code: before perf begins, then each
 * sample has a name.  Returns 0, also where they can't; or -1 with the failure text set:
 * interrupted, or no memory.  Release with attached_processes_free in either case. */
int attached_processes_begin(struct attached_processes *processes,
                             const struct record_options *options, struct findings *findings);

/* End the requests of this run: logging that was on before stays on. */
void attached_processes_end(const struct attached_processes *processes);

void attached_processes_remove_dumps(const struct attached_processes *processes);

void attached_processes_free(struct attached_processes *processes);

#endif
