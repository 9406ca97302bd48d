/* See perf_clock.h. */
#include "injector/log/clock/perf_clock.h"

#include "jitdump/format/byte_cursor.h"

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A record consists of its header and the sample_id after it, which is only the time. */
enum { RECORD_HEADER_BYTES = 8, TIME_BYTES = 8, RING_PAGES = 2 };

bool perf_clock_open(struct perf_clock *clock)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .sample_type = PERF_SAMPLE_TIME,
                                   .sample_id_all = 1,
                                   .comm = 1,
                                   .exclude_kernel = 1};
    *clock = (struct perf_clock){.page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
    clock->fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (clock->fd < 0)
        return false;
    void *ring = mmap(NULL, RING_PAGES * clock->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      clock->fd, 0);
    if (ring == MAP_FAILED)
        return false;
    clock->ring = ring;
    return prctl(PR_GET_NAME, clock->name, 0, 0, 0) == 0;
}

/* The kernel's side of the ring moves under our eyes. */
static uint64_t ring_head(const volatile struct perf_event_mmap_page *page)
{
    uint64_t head = page->data_head;
    atomic_thread_fence(memory_order_acquire);
    return head;
}

bool perf_clock_now(struct perf_clock *clock, uint64_t *now_ns)
{
    struct perf_event_mmap_page *page = clock->ring;
    uint64_t before = ring_head(page);
    prctl(PR_SET_NAME, clock->name, 0, 0, 0);
    uint64_t head = ring_head(page);
    if (head < before + RECORD_HEADER_BYTES + TIME_BYTES)
        return false;
    /* Records are multiples of 8 bytes: the ring's end cuts no field. */
    const uint8_t *data = (const uint8_t *)clock->ring + clock->page_bytes;
    struct byte_cursor time =
        byte_cursor_over(data + (head - TIME_BYTES) % clock->page_bytes, TIME_BYTES, false);
    *now_ns = cursor_u64(&time);
    atomic_thread_fence(memory_order_release);
    page->data_tail = head;
    return true;
}

void perf_clock_close(struct perf_clock *clock)
{
    if (clock->ring)
        munmap(clock->ring, RING_PAGES * clock->page_bytes);
    if (clock->fd >= 0)
        close(clock->fd);
}
