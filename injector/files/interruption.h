/* Handles events from outside: signals that end a run, and files that become shorter while they are
 * mapped.
 *
 * SIGINT, SIGTERM and SIGHUP end a run that has begun to write as a failure does, so that no
 * partial output remains; then the process ends by the signal.  Before, they end it at once.
 * SIGPIPE and SIGXFSZ become errors of write(2). A page of a mapped file that no longer exists
 * (SIGBUS) reads as zeros, and the run fails in the end.
 *
 * A run of many processes can do without one of their files.  If such a spare file becomes shorter,
 * a run may begin anew: then that file is refused.
 */
#ifndef PERFJIT_INTERRUPTION_H
#define PERFJIT_INTERRUPTION_H

#include "injector/findings/findings.h"

#include <sys/stat.h>

/* End by SIGPIPE if standard error is a pipe that nobody reads any more.  For the start of a run
 * that speaks at its end: what it did there would be told to nobody.  A SIGPIPE that is ignored, or
 * blocked, ends nothing. */
void interruption_end_unread(void);

/* From now on no signal that a file causes ends the process. */
void interruption_watch_files(void);

/* From now on SIGINT, SIGTERM and SIGHUP wait for interruption_check.  One that was ignored stays
 * ignored. */
void interruption_hold_signals(void);

/* The signal NUMBER came, and a caller that had blocked it has taken it. */
void interruption_note(int number);

/* Returns 0, or -1 with the failure text set if a signal came, or a file became shorter. */
int interruption_check(struct findings *findings);

/* Whether it would be -1. */
bool interruption_came(void);

/* The SIZE bytes at BYTES are those of the mapped FILE, which is spare. */
void interruption_spare(const void *bytes, size_t size, const struct stat *file);

/* PATH, whose bytes are mapped at BYTES, keeps LASTING of them unless somebody cuts it.  A file
 * that was cut within a page reads as zeros, without a signal: interruption_look compares the
 * sizes. */
void interruption_spare_lasts(const void *bytes, const char *path, size_t lasting);
void interruption_look(void);

/* BYTES are about to be unmapped. */
void interruption_spare_end(const void *bytes);

/* Whether FILE was spare and became shorter while it was mapped.  It is no more. */
bool interruption_has_cut(const struct stat *file);

/* After a run that failed, with all of its files unmapped: whether it may begin anew, since nothing
 * happened but that spare files became shorter. */
bool interruption_begin_anew(void);

/* Whether a signal came. */
bool interruption_by_signal(void);

/* After the clean-up: end by the signal that came, if one did. */
void interruption_pass_on(void);

#endif
