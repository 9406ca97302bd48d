/* See dump_window.h. */
#include "jitdump/dump_window.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels say EINVAL */
#endif

struct dump_window *jd_window_map(int fd, uint64_t offset, uint64_t end)
{
    uint64_t start = offset - offset % (uint64_t)sysconf(_SC_PAGESIZE);
    struct dump_window *window = malloc(sizeof *window);
    if (!window) {
        errno = ENOMEM;
        return NULL;
    }
    window->data =
        mmap(NULL, (size_t)(end - start), PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)start);
    if (window->data == MAP_FAILED) {
        free(window);
        return NULL;
    }
    /* A child has no business in its parent's file; and what was never there need not be found and
     * unmapped when a fork comes upon another thread that is just changing windows. */
    madvise(window->data, (size_t)(end - start), MADV_DONTFORK);
    window->start = start;
    window->end = end;
    window->populated = start;
    atomic_init(&window->users, 1);
    return window;
}

void jd_window_release(struct dump_window *window)
{
    if (atomic_fetch_sub_explicit(&window->users, 1, memory_order_acq_rel) != 1)
        return;
    munmap(window->data, (size_t)(window->end - window->start));
    free(window);
}

void jd_window_populate(struct dump_window *window, uint64_t from, uint64_t to)
{
    madvise(jd_window_at(window, from), (size_t)(to - from), MADV_POPULATE_WRITE);
}
