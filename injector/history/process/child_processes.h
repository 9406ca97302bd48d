/* Finds the processes that inherited JIT code, and the process that each inherited from.
 *
 * A forked child has its parent's code, and perf gives it its parent's maps at the FORK record, the
 * added ones too.  Most children need nothing more.  Only a child that does something to that code
 * needs to know of it.  That is a child with map records of its own at these addresses (they would
 * hide the code), with a dump of its own, or with records in its parent's dump.  (In PHP, parent
 * and children share the dump's descriptor, and LOAD.pid names the process of a record.)  Such a
 * child is a jit_process with a parent.  It gets only the code that it can need: the code at the
 * addresses at which something happens in it.
 *
 *     A (dump) --fork--> B (nothing happens) --fork--> C (flips protection)
 *
 * C inherits from A the code that A had when B was forked.
 */
#ifndef PERFJIT_CHILD_PROCESSES_H
#define PERFJIT_CHILD_PROCESSES_H

#include "injector/log/code/jit_process.h"

/* Find the children that PROCESSES, whose dumps have been read, must have besides, give them their
 * records in shared dumps, bring all into order and link them.  Returns 0, or -1 with the failure
 * text set. */
int child_processes_find(struct jit_processes *processes, const struct records *records,
                         struct findings *findings);

/* Once the maps of all are known: find out at which addresses something happens in each child. */
int child_processes_find_touched(struct jit_processes *processes, struct findings *findings);

#endif
