/* Code in memory that several processes share (shared_memory.h).  One of them logs the code.  From
 * its load on, it is code of all processes that have the memory.
 *
 * A child that is forked later has it as it has all code of its parent.  Each of the others gets a
 * copy of only the code that its samples could hit.  With copies of all code, fifty workers with
 * twenty thousand functions would take fifty times the memory, and perf never looks up the rest. */
#ifndef PERFJIT_SHARED_CODE_H
#define PERFJIT_SHARED_CODE_H

#include "injector/log/code/jit_process.h"
#include "injector/recording/sampled_addresses.h"
#include "injector/recording/shared_memory.h"

struct shared_code {
    struct shared_memory memory;
    struct sampled_addresses sampled;
    bool all_sampled;      /* the samples do not show all sampled addresses: all code counts as
                            * sampled */
    const bool *has_child; /* by life; the caller's */
    size_t copies;         /* made so far */
    size_t left_out;       /* because there were too many */
};

/* Find which memory PROCESSES, whose lives stand in ORDER, share.  CODE is zeros.  HAS_CHILD says
 * of each life whether it has one, and must outlive CODE.  Returns 0, or -1 without memory. Release
 * with shared_code_free in either case. */
int shared_code_begin(struct shared_code *code, const struct jit_processes *processes,
                      const uint32_t *order, const bool *has_child, const struct records *records);

/* The hold of LIFE, which logged it, on the memory that EVENT of PROCESS is about.  NULL: it is not
 * shared. */
const struct shared_hold *shared_code_hold(const struct shared_code *code,
                                           const struct jit_process *process,
                                           const struct code_event *event, uint32_t life);

/* Whether EVENT is also an event of MEMBER, which has the same object.  An event from before MEMBER
 * had the object gets the time at which MEMBER got it. */
bool shared_code_is_of(const struct shared_hold *member, const struct code_log *log,
                       struct code_event *event);

/* Whether a sample of LIFE, or of a child that has it from LIFE, could hit the code that EVENT is
 * about. */
bool shared_code_is_sampled(const struct shared_code *code, uint32_t life,
                            const struct code_log *log, const struct code_event *event);

/* Note that EVENT of LOG is not its process's own; whether that is noted. */
void shared_code_mark(struct code_log *log, const struct code_event *event);
bool shared_code_is_marked(const struct code_log *log, const struct code_event *event);

void shared_code_free(struct shared_code *code);

#endif
