/* An earlier recording of the same name is kept, as perf record keeps its file: NAME becomes
 * NAME.old, with its ELF files. */
#ifndef PERFJIT_EARLIER_RESULT_H
#define PERFJIT_EARLIER_RESULT_H

#include "injector/findings/findings.h"

/* Put aside the recording at PATH, if there is one, and PATH.dso.  Returns 0, or -1 with the
 * failure text set. */
int earlier_result_keep(const char *path, struct findings *findings);

/* PATH.dso is written anew: let what the earlier recording names there be found where it was put.
 */
void earlier_result_refer(const char *path);

#endif
