/* The programs and libraries in which samples were taken, and which are not the files that ran. */
#ifndef PERFJIT_CHANGED_FILES_H
#define PERFJIT_CHANGED_FILES_H

#include "injector/history/timeline/timeline.h"
#include "injector/recording/records.h"

/* Report them.  ROOT: where the processes' root directory is, or NULL.  Returns 0, or -1 with the
 * failure text set. */
int changed_files_find(const struct records *records, const struct jit_processes *processes,
                       const struct timeline *timelines, const char *root,
                       struct findings *findings);

#endif
