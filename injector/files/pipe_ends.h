/* The two ends of a pipe, each closed by itself. */
#ifndef PERFJIT_PIPE_ENDS_H
#define PERFJIT_PIPE_ENDS_H

#include "injector/findings/findings.h"

enum pipe_end { READ_END, WRITE_END };

struct pipe_ends {
    int fd[2]; /* by end; -1: closed */
};

#define PIPE_ENDS_CLOSED                                                                           \
    {                                                                                              \
        {                                                                                          \
            -1, -1                                                                                 \
        }                                                                                          \
    }

/* Open both, which an exec closes.  Returns 0, or -1 with the failure text set. */
int pipe_ends_open(struct pipe_ends *ends, struct findings *findings);

/* Close one end, if it is open. */
void pipe_ends_close_one(struct pipe_ends *ends, enum pipe_end which);

void pipe_ends_close(struct pipe_ends *ends);

/* Say by a byte to READY that this process has come so far, and wait for one from GO, or for its
 * end.  READY -1: no other process waits for that. */
void pipe_ends_meet(int ready, int go);

#endif
