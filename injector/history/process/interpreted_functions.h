/* Functions that an interpreter ran, as the copied stacks of a recording show them.
 *
 * A dump may have a hundred thousand of them, and a recording a few hundred.  So the stacks are
 * looked through for the words that stand for functions.  Those that are there somewhere become
 * functions of their process's log, at addresses that are otherwise unused. */
#ifndef PERFJIT_INTERPRETED_FUNCTIONS_H
#define PERFJIT_INTERPRETED_FUNCTIONS_H

#include "injector/log/code/jit_process.h"
#include "injector/recording/records.h"

/* Add them to the logs of PROCESSES, of RECORDS.  Returns 0, or -1 with the failure text set. */
int interpreted_functions_add(struct jit_processes *processes, const struct records *records,
                              struct findings *findings);

/* The same of one stack: the BYTES at STACK, as they were at START in the process of LOG at
 * TIME_NS; for all stacks, and then the second one.  Return 0, or -1 without memory. */
int interpreted_functions_note(struct code_log *log, const uint8_t *stack, uint64_t start,
                               size_t bytes, uint64_t time_ns);
int interpreted_functions_place(struct jit_processes *processes, const struct records *records,
                                struct findings *findings);

#endif
