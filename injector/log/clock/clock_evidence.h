/* Evidence in a dump and a profile about each other's clocks.
 *
 *     dump      header        first record ........................ last record
 *                  |               |                                     |
 *     profile   marker  ........................ samples ............. exit
 *
 * Header and marker are from about the same moment: a runtime opens its dump and maps it.  No
 * record is older than the marker, none is newer than the process, and no sample hits code before
 * it was loaded.  The last is the weakest evidence.  Other code may have run at the function's
 * addresses before, from no dump or from another one.
 */
#ifndef PERFJIT_CLOCK_EVIDENCE_H
#define PERFJIT_CLOCK_EVIDENCE_H

#include "injector/log/clock/stamp_range.h"
#include "injector/log/jitdump/jit_dump.h"
#include "injector/recording/records.h"

/* A runtime may log code a little after it first ran. */
#define LATE_LOG_NS UINT64_C(2000000)

struct clock_evidence {
    /* Times of the dump, on its own clock. */
    uint64_t header;
    uint64_t header_half; /* libjitdump: header is at most this far from the mapping; 0: unknown */
    struct stamp_range stamps;
    bool reused; /* an address belonged to more than one function */
    /* Times of the profile, on its clock. */
    uint64_t marker_ns; /* when the dump was mapped; 0: unknown (perf record -p, or the dump was
                           given by hand) */
    uint64_t start_ns;  /* when the process was first seen */
    uint64_t end_ns;    /* when it ended, or else when the recording did */
    bool ended;         /* its end is in the recording */
    bool end_known;     /* so it is known whether it has ended */
    /* A sample in a function whose addresses neither another one nor a file's code had: the
     * function's stamp and the sample's time. The closest such pair, if the dump counts ns; those
     * that the marker disproves are left out if they are few. */
    bool sampled;
    uint64_t sampled_stamp, sampled_ns;
};

/* The part of the profile in which a pid was the dump's process; zeros: not known. */
struct clock_life {
    uint64_t begin_ns;
    uint64_t end_ns; /* UINT64_MAX: it did not end there */
};

/* Fill in all but the members that the next function reads. STAMPS, if not NULL, are DUMP's, and
 * are not read again. */
void clock_evidence_read(struct clock_evidence *evidence, const struct records *records,
                         const struct jit_dump *dump, const struct stamp_range *stamps,
                         uint32_t pid, struct clock_life life);

/* Fill in reuse, and the end and the samples of process PID, by a pass over the profile.  This
 * takes time, and is only needed if dump and profile are not on one clock.  Returns 0, or -1
 * without memory. */
int clock_evidence_read_samples(struct clock_evidence *evidence, const struct records *records,
                                const struct jit_dump *dump, uint32_t pid, struct clock_life life);

#endif
