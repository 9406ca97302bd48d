/* What recorded processes had logged and not written when the recording ended
 * (log/jitdump/unwritten_records.h).  They may end before it is injected. */
#ifndef PERFJIT_KEPT_RECORDS_H
#define PERFJIT_KEPT_RECORDS_H

#include "injector/log/owner/unwritten_source.h"

struct kept_dump {
    dev_t dev;
    ino_t ino;
    size_t size; /* of the file; if it has another one, this does not follow it */
    struct unwritten_records records;
};

struct kept_records {
    struct kept_dump *items;
    size_t count, capacity;
};

/* Add those of process PID, which goes on.  With FOLDER, its dumps are written there, with them at
 * the end, for whoever injects the recording later.  Returns 0, or -1 with the failure text set. */
int kept_records_take(struct kept_records *kept, uint32_t pid, const char *folder,
                      struct findings *findings);

/* For a recording_request. */
struct unwritten_source kept_records_source(struct kept_records *kept);

void kept_records_free(struct kept_records *kept);

#endif
