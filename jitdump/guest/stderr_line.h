/* Lines on standard error, in a program that is not ours: for what a user asked to be told by the
 * environment.  No write raises a signal, and nothing is written to a file that took the place of
 * standard error after the program had closed it. */
#ifndef JITDUMP_STDERR_LINE_H
#define JITDUMP_STDERR_LINE_H

#include "jitdump/guest/held_fd.h"

/* Remember what standard error is now. */
void jd_stderr_hold(struct held_fd *held);

/* Write "libjitdump: ", the text and a newline, at once, if HELD is still standard error.  Keeps
 * errno. */
__attribute__((format(printf, 2, 3))) void jd_stderr_say(const struct held_fd *held,
                                                         const char *format, ...);

#endif
