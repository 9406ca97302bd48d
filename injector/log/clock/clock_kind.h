/* The clocks that a dump or a profile may count. */
#ifndef PERFJIT_CLOCK_KIND_H
#define PERFJIT_CLOCK_KIND_H

#include "injector/recording/perf_data/perf_file.h"

#include <stdint.h>

enum clock_kind {
    CLOCK_KIND_MONOTONIC,
    CLOCK_KIND_RAW,
    CLOCK_KIND_BOOTTIME,
    CLOCK_KIND_REALTIME,
    CLOCK_KIND_TAI,
    CLOCK_KIND_PERF,   /* perf's clock without -k */
    CLOCK_KIND_CYCLES, /* the CPU's counter: x86-64 TSC, aarch64 CNTVCT */
    CLOCK_KINDS,
    CLOCK_KIND_UNKNOWN = CLOCK_KINDS,
    CLOCK_KIND_MIXED /* of a profile: its events differ */
};

/* The clock that FILE was recorded with. */
enum clock_kind clock_kind_of_profile(const struct perf_file *file);

/* "CLOCK_MONOTONIC", "CPU cycles", ... */
const char *clock_kind_name(enum clock_kind kind);

/* As clock_gettime(2) takes it; -1: KIND is none of its clocks. */
int32_t clock_kind_id(enum clock_kind kind);

#endif
