/* A progress line on the terminal: how much is done, how fast, and how long it will take.
 *
 *     perfjit: reading jit-4711.dump: 512000 functions, 210 MB/s, 2 s left
 *
 * It appears after a second, is redrawn ten times a second, and is erased when the stage ends.
 * Nothing is written if standard error is no terminal, or with -q.
 */
#ifndef PERFJIT_PROGRESS_H
#define PERFJIT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *stream;      /* NULL: print nothing */
    uint64_t delay_ns; /* nothing is printed before the run has taken this long */
    uint64_t run_start_ns;
    char what[64]; /* of the stage: "reading FILE"; "" between stages */
    uint64_t start_ns, shown_ns;
    uint64_t functions, bytes, total_bytes; /* of the stage */
    uint32_t unlooked;                      /* steps since the clock was read */
    bool visible;                           /* a line is shown that must be erased */
};

/* Show progress on STREAM if that is a terminal.  All zeros: prints nothing. */
void progress_open(struct progress *progress, FILE *stream);

/* Begin the work WHAT ("reading") on the file PATH, or on all files if it is "", over
 * TOTAL_BYTES. */
void progress_begin(struct progress *progress, const char *what, const char *path,
                    uint64_t total_bytes);

/* So many FUNCTIONS and BYTES more are done. */
void progress_step(struct progress *progress, uint64_t functions, uint64_t bytes);

/* Erase the line, if there is one, before other output. */
void progress_wipe(struct progress *progress);

/* End the stage. */
void progress_end(struct progress *progress);

#endif
