/* Stacks of a snapshot's threads, for a person or as JSON, on standard output. */
#ifndef PERFJIT_STACK_REPORT_H
#define PERFJIT_STACK_REPORT_H

#include "injector/debug/thread_stack.h"

/* Put the stack of THREAD, which STACKS has walked last. */
void stack_report_text(const struct thread_stacks *stacks, const struct snapshot_thread *thread);
void stack_report_json(const struct thread_stacks *stacks, const struct snapshot_thread *thread);

#endif
