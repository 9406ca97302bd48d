/* A line on the terminal for whoever waits: how much is done, how fast it goes, how long it will
 * take.
 *
 *     perfjit: reading jit-4711.dump: 512000 functions, 210 MB/s, 2 s left
 *
 * It appears after a second, is drawn anew ten times a second, and is wiped when the stage ends.
 * Where standard error is no terminal, or with -q, nothing is written at all.
 */
#ifndef PERFJIT_PROGRESS_H
#define PERFJIT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *stream;      /* NULL: say nothing */
    uint64_t delay_ns; /* nothing is said before the run has taken so long */
    uint64_t run_start_ns;
    char what[64]; /* of the stage: "reading FILE"; "" between stages */
    uint64_t start_ns, shown_ns;
    uint64_t functions, bytes, total_bytes; /* of the stage */
    uint32_t unlooked;                      /* steps since the clock was looked at */
    bool visible;                           /* there is a line that must be wiped */
};

/* Show progress on STREAM if that is a terminal.  All zeros is a progress that says nothing. */
void progress_open(struct progress *progress, FILE *stream);

/* Begin to do WHAT ("reading") with the file PATH, or with all files if it is "", over
 * TOTAL_BYTES. */
void progress_begin(struct progress *progress, const char *what, const char *path,
                    uint64_t total_bytes);

/* So many FUNCTIONS and BYTES more are done. */
void progress_step(struct progress *progress, uint64_t functions, uint64_t bytes);

/* Wipe the line, if there is one: something else will be written. */
void progress_wipe(struct progress *progress);

/* End the stage. */
void progress_end(struct progress *progress);

#endif
