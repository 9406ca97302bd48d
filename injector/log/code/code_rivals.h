/* Whose an address is in a recording that has no times (perf_file_has_times).
 *
 * A function is at its addresses all the time, unless another one of its process was there, too:
 * then nobody knows whose a sample there is, and neither has a name.  What a process inherits is
 * its own.  What is loaded again with the same name is one function; code that moved was at both
 * places.
 */
#ifndef PERFJIT_CODE_RIVALS_H
#define PERFJIT_CODE_RIVALS_H

#include "injector/log/code/jit_process.h"

/* Let the events of PROCESSES' logs be only those that load the functions without rivals, and mark
 * the others.  The logs are sorted, and the parents known.  Returns 0, or -1 without memory. */
int code_rivals_drop(struct jit_processes *processes);

#endif
