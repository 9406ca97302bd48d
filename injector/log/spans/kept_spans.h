/* The files of spans (marker_file.h) that a run's processes wrote, kept beside its recording: the
 * run's own folder ends with the run. */
#ifndef PERFJIT_KEPT_SPANS_H
#define PERFJIT_KEPT_SPANS_H

#include "injector/findings/findings.h"

/* Keep those of the folder DUMPS for the recording PATH.  Returns 0, or -1 with the failure text
 * set. */
int kept_spans_take(const char *dumps, const char *path, struct findings *findings);

/* The recording PATH is OLD from now on, and its spans replace those that were OLD's. */
void kept_spans_put_aside(const char *path, const char *old);

#endif
