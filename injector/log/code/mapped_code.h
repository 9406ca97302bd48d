/* Shows the functions of logs as in the files that their scripts were made of (source_maps.h). */
#ifndef PERFJIT_MAPPED_CODE_H
#define PERFJIT_MAPPED_CODE_H

#include "injector/log/code/jit_process.h"

/* Let PROCESSES' functions, their lines and inlined calls have the places and names of source maps.
 * Returns 0, or -1 with the failure text set. */
int mapped_code_show(struct jit_processes *processes, const struct source_map_options *options,
                     struct findings *findings);

#endif
