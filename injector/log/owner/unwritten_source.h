/* Where the records are that a dump's process has logged and not written (unwritten_records.h). */
#ifndef PERFJIT_UNWRITTEN_SOURCE_H
#define PERFJIT_UNWRITTEN_SOURCE_H

#include "injector/log/jitdump/unwritten_records.h"

struct unwritten_source {
    /* Find those of DUMP, of process PID.  Returns 0, or -1 without memory.  NULL: no other place
     * than the process itself, as long as it goes on. */
    int (*find)(void *context, const struct jit_dump *dump, uint32_t pid,
                struct unwritten_records *found);
    void *context;
    bool is_core; /* what goes on now is not that process */
};

/* Append to DUMP, of process PID, what it has not written; that is reported.  Returns 0, or -1 with
 * the failure text set. */
int unwritten_source_append(const struct unwritten_source *source, struct jit_dump *dump,
                            uint32_t pid, struct findings *findings);

/* As unwritten_source.find, in the memory of process PID, which goes on.  It must have opened DUMP,
 * and DUMP->path must still be that file: DUMP is opened anew if the process writes meanwhile. */
int unwritten_records_of_process(struct jit_dump *dump, uint32_t pid,
                                 struct unwritten_records *found);

#endif
