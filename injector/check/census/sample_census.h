/* All samples of a profile, by class: which are in JIT code, which of these samples have a name,
 * and why the others have none.
 *
 * Only the address at which a sample was taken counts, not its call chain.
 */
#ifndef PERFJIT_SAMPLE_CENSUS_H
#define PERFJIT_SAMPLE_CENSUS_H

#include "injector/check/census/sample_states.h"
#include "injector/findings/sample_cause.h"
#include "injector/recording/process_life.h"

/* The samples of one process that stay unknown for one reason. */
struct unknown_samples {
    uint32_t life; /* NO_LIFE, of a kept census */
    enum sample_cause cause;
    uint64_t count;
    uint64_t first_ip, first_ns; /* of the earliest */
    uint32_t pid;
    char comm[PROCESS_COMM_BYTES];
};

struct sample_census {
    uint64_t samples;
    uint64_t outside_user; /* in the kernel, a hypervisor, a guest */
    uint64_t incomplete;   /* without pid, address or time */
    uint64_t in_files;
    uint64_t named;                 /* in JIT code, with a name */
    uint64_t unmapped;              /* at an address that no record maps */
    uint64_t unknown;               /* in JIT code, without a name */
    struct unknown_samples *groups; /* by count, the greatest first */
    size_t group_count, group_capacity;
    bool is_kept; /* it was taken when the recording was injected */
};

/* Returns 0, or -1 without memory, with the failure text set.  Release with sample_census_free in
 * either case. */
int sample_census_take(struct sample_census *census, const struct census_question *question,
                       struct findings *findings);

void sample_census_free(struct sample_census *census);

#endif
