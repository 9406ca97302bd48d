/* Finds the state of each sample's address when the sample is taken.
 *
 * Every life is played forward in time once: a parent up to a fork, then the child from that state,
 * then the parent from the same state again.  So memory and time grow with the samples and the
 * records, however deep forks are nested.
 */
#ifndef PERFJIT_SAMPLE_STATES_H
#define PERFJIT_SAMPLE_STATES_H

#include "injector/check/census/address_history.h"
#include "injector/log/code/jit_process.h"

struct census_question {
    const struct records *records;
    const struct jit_processes *processes;
    const struct timeline *timelines; /* one a process */
    bool no_perf_map;                 /* none was looked for */
    bool has_given;                   /* dumps or maps were named for the recording */
    const char *root;                 /* the recorded processes' root directory, or NULL */
};

/* The time stands first: sample_order sorts by it. */
struct census_sample {
    uint64_t time_ns, ip;
    uint32_t life;
    union {
        uint32_t at; /* a number of its address, until its facts are known */
        struct address_facts facts;
    };
};

/* Fill in the facts of the COUNT samples, which stand by life, and in a life by time.  Returns
 * 0, or -1 without memory. */
int sample_states_find(struct census_sample *samples, size_t count,
                       const struct census_question *question);

#endif
