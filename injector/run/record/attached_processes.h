/* The processes that run already when a recording begins (-p): asked for their dumps while it
 * lasts, those that have libjitdump and were started so; and JVMs for their perf maps. */
#ifndef PERFJIT_ATTACHED_PROCESSES_H
#define PERFJIT_ATTACHED_PROCESSES_H

#include "injector/run/attach/attachment.h"
#include "injector/run/record/record_options.h"

/* A JVM's perf map. */
enum attached_map { MAP_NOT_ASKED, MAP_WAS_THERE, MAP_WRITTEN };

struct attached_process {
    struct attachment attachment;
    enum attached_map map;
    uint64_t undo, map_undo; /* undo_list.h */
};

struct attached_processes {
    struct attached_process *items; /* owned: one for each that OPTIONS name */
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

/* Remove what was written for this recording. */
void attached_processes_remove_dumps(const struct attached_processes *processes, const char *but);

/* Have undo_list.h end the requests of a recorder that was ended. */
void attached_processes_learn_undo(void);

void attached_processes_free(struct attached_processes *processes);

#endif
