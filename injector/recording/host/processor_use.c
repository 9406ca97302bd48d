/* See processor_use.h. */
#include "injector/recording/host/processor_use.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct processor_use processor_use_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct processor_use use = {.time_ns =
                                    (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec};
    unsigned long long times[8] = {0};
    uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    FILE *file = fopen("/proc/stat", "re");
    /* user, nice, system, idle, iowait, irq, softirq, steal */
    if (file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &times[0], &times[1],
                       &times[2], &times[3], &times[4], &times[5], &times[6], &times[7]) == 8) {
        use.busy_ns = (times[0] + times[1] + times[2] + times[5] + times[6]) * tick_ns;
        use.stolen_ns = times[7] * tick_ns;
    }
    if (file)
        fclose(file);
    return use;
}
