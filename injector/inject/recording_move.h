/* perfjit move: an injected recording and its images get another place, and the recording names
 * them there.  perf opens an image by the path in the recording, and by nothing else. */
#ifndef PERFJIT_RECORDING_MOVE_H
#define PERFJIT_RECORDING_MOVE_H

#include "injector/findings/findings.h"

struct recording_move_options {
    const char *from;
    const char *to; /* a file, or a directory; NULL: it stays where it is, and names its images
                     * where they are now */
    bool copies;    /* FROM stays, too */
    bool quiet;
};

/* Move it, and print what was done.  What is at TO already is kept as TO.old.  Returns 0, or -1
 * with the failure text set: then FROM and TO are as they were. */
int recording_move(const struct recording_move_options *options, struct findings *findings);

#endif
