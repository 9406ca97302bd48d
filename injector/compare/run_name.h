/* The name that a function has in all runs.  Runtimes put numbers into names that are others in
 * each run: the address of a class, a counter of what was compiled before, a hash, a process. These
 * are cut, and "*" stands for each:
 *
 *     App$$Lambda$14/0x00007f44e8001800.apply     App$$Lambda$* / 0x*.apply (without the spaces)
 *     julia_solve_1234                            julia_solve_*
 *
 * The table in run_name.c has the rules, each with its runtime.  A number that no rule knows is the
 * program's own, and stays: fib_10, $anonfun$main$3, foo$1. */
#ifndef PERFJIT_RUN_NAME_H
#define PERFJIT_RUN_NAME_H

#include <stddef.h>

/* TO, which has room for as many bytes as NAME has with its NUL, becomes the name in all runs.
 * Returns its length. */
size_t run_name_put(char *to, const char *name);

#endif
