/* perf's own clock, that of a recording without -k, read now.
 *
 * There is no call for it.  But a thread that records itself gets a COMM record, with its time,
 * whenever its name is set.  Here the name is set to the one that it already has.
 */
#ifndef PERFJIT_PERF_CLOCK_H
#define PERFJIT_PERF_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_clock {
    int fd;
    void *ring; /* struct perf_event_mmap_page, then a page of records */
    size_t page_bytes;
    char name[16]; /* the thread's */
};

/* Returns false where perf_event_open is not allowed.  Release with perf_clock_close in either
 * case. */
bool perf_clock_open(struct perf_clock *clock);

bool perf_clock_now(struct perf_clock *clock, uint64_t *now_ns);

void perf_clock_close(struct perf_clock *clock);

#endif
