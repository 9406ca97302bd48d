/* Words that a runtime's program takes as arguments alone.
 *
 * If the command is the program itself, they are words of the command.  Whatever else starts it
 * (npm, a shell, a script's first line, another program) finds a stand-in in PATH: a script in the
 * run's folder that calls the real one with these words.  A program that is started by its path, or
 * with a PATH of its own, does not get them. */
#ifndef PERFJIT_STAND_IN_H
#define PERFJIT_STAND_IN_H

#include "injector/run/record/runtime_environment.h"

/* Give the command of ENVIRONMENT, and what it starts, the words that RUNTIME's program takes
 * alone. Returns 0, or -1 with the failure text set. */
int stand_in_add(struct runtime_environment *environment, const struct runtime *runtime,
                 struct findings *findings);

#endif
