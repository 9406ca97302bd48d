/* From a profile to its processes that have JIT code:
 *
 *     lives -> dumps claimed -> logs -> perf maps -> children that inherit
 */
#ifndef PERFJIT_PROCESS_READING_H
#define PERFJIT_PROCESS_READING_H

#include "injector/log/code/jit_process.h"
#include "injector/log/owner/dump_claim.h"
#include "injector/log/perf_map/perf_map_source.h"
#include "injector/log/v8/v8_log_source.h"

struct jit_processes_request {
    const struct given_file *dumps; /* beside those that the recording names */
    size_t dump_count;
    struct dump_claim_options claims;
    struct perf_map_options perf_maps;
    struct v8_log_options v8_logs;
    struct source_map_options source_maps;
};

enum recording_result {
    RECORDING_OPEN,
    RECORDING_WITHOUT_CODE, /* there is no dump and no map, or none that can be used; no_code of the
                               processes says why */
    RECORDING_FAILED        /* with the failure text set */
};

/* Find the dumps that PROFILE names and the processes' perf maps.  Read them and the given files.
 * Collect PROFILE's data about their processes.  Release with jit_processes_free in any case. */
enum recording_result jit_processes_read(struct jit_processes *processes,
                                         const struct records *records,
                                         const struct jit_processes_request *request,
                                         struct findings *findings);

#endif
