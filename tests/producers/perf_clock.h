/* What perf's own clock, that of recordings without -k, shows at a time of CLOCK_MONOTONIC.
 *
 * A page fault that is counted by an event with period 1 leaves a sample with its time in the event's ring.  The fault is
 * provoked between two readings of CLOCK_MONOTONIC; of many tries the one with the least time between is taken.
 */
#ifndef PERF_CLOCK_H
#define PERF_CLOCK_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PERF_CLOCK_TRIES = 200, PERF_CLOCK_PAGE_BYTES = 4096 };

struct clock_pair {
    uint64_t monotonic_ns, perf_ns, error_ns;
};

static inline uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int open_fault_event(void)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_PAGE_FAULTS;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_TIME;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

/* Fault PAGE in, and look into RING: a control page and one page of samples, each a header of 8 bytes and its time. */
static inline struct clock_pair try_clock_pair(volatile uint8_t *page, uint8_t *ring)
{
    struct perf_event_mmap_page *control = (void *)ring;
    struct clock_pair pair = {0, 0, UINT64_MAX};
    madvise((void *)(uintptr_t)page, PERF_CLOCK_PAGE_BYTES, MADV_DONTNEED);
    control->data_tail = control->data_head;
    uint64_t at = control->data_head % PERF_CLOCK_PAGE_BYTES;
    uint64_t before_ns = monotonic_ns();
    *page = 1;
    uint64_t after_ns = monotonic_ns();
    __sync_synchronize();
    if (control->data_head - control->data_tail != 16)
        return pair;
    memcpy(&pair.perf_ns, ring + PERF_CLOCK_PAGE_BYTES + (at + 8) % PERF_CLOCK_PAGE_BYTES, 8);
    pair.monotonic_ns = before_ns + (after_ns - before_ns) / 2;
    pair.error_ns = (after_ns - before_ns + 1) / 2;
    return pair;
}

/* Returns 0, or -1 if perf events can't be opened here. */
static inline int perf_clock_read(struct clock_pair *best)
{
    int fd = open_fault_event();
    void *ring =
        mmap(NULL, 2 * (size_t)PERF_CLOCK_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *page = mmap(NULL, PERF_CLOCK_PAGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    best->error_ns = UINT64_MAX;
    for (int i = 0; ring != MAP_FAILED && page != MAP_FAILED && i < PERF_CLOCK_TRIES; i++) {
        struct clock_pair pair = try_clock_pair(page, ring);
        if (pair.error_ns < best->error_ns)
            *best = pair;
    }
    if (ring != MAP_FAILED)
        munmap(ring, 2 * (size_t)PERF_CLOCK_PAGE_BYTES);
    if (page != MAP_FAILED)
        munmap(page, PERF_CLOCK_PAGE_BYTES);
    close(fd);
    return best->error_ns == UINT64_MAX ? -1 : 0;
}

#endif
