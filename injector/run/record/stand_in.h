/* Words that a runtime's program takes as arguments alone.
 *
 * If the command is the program itself, they are words of the command.  Whatever else starts it
 * (npm, a shell, a script's first line, another program) finds a stand-in in PATH: perfjit by the
 * program's name, in the run's folder, which becomes the real one with these words.  It stands
 * right in front of the directory that has the real one, so that each other program of that name is
 * found as before.  A program that is started by its path, or with a PATH of its own, does not get
 * them.
 *
 * The real one is the program itself.  A script or a version manager of its name may look for the
 * real one in PATH, and would find the stand-in again: these have none. */
#ifndef PERFJIT_STAND_IN_H
#define PERFJIT_STAND_IN_H

#include "injector/run/record/runtime_environment.h"

/* Give the command of ENVIRONMENT, and what it starts, the words that RUNTIME's program takes
 * alone. Returns 0, or -1 with the failure text set. */
int stand_in_add(struct runtime_environment *environment, const struct runtime *runtime,
                 struct findings *findings);

/* Become the real program with WORDS, up to a NULL, if this process was started as a stand-in.
 * Returns if it was not; else it ends as a shell does that can't start a program. */
void stand_in_become(char **words);

#endif
