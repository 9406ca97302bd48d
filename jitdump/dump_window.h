/* A part of the dump in memory, MAP_SHARED: what is stored there is in the file, also when the process is
 * killed the next moment.
 *
 * A window is unmapped when nobody uses it: neither the tail, which takes room from the newest, nor a
 * thread that still fills in a group in it.  It is not there in a forked child.
 */
#ifndef JITDUMP_DUMP_WINDOW_H
#define JITDUMP_DUMP_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct dump_window {
    uint8_t *data;
    uint64_t start; /* in the file, in bytes; a multiple of the page */
    uint64_t end;
    uint64_t populated; /* pages before this have been asked for; guarded by the tail's mutex */
    char apart[64];     /* what all threads write stays off the line of what they read */
    atomic_size_t users;
};

/* Map FD's bytes from the page of OFFSET up to END, for one user.  Returns NULL with errno. */
struct dump_window *jd_window_map(int fd, uint64_t offset, uint64_t end);

static inline bool jd_window_holds(const struct dump_window *window, uint64_t offset,
                                   uint64_t bytes)
{
    return bytes <= window->end - offset;
}

static inline uint8_t *jd_window_at(const struct dump_window *window, uint64_t offset)
{
    return window->data + (offset - window->start);
}

static inline void jd_window_use(struct dump_window *window)
{
    atomic_fetch_add_explicit(&window->users, 1, memory_order_relaxed);
}

/* The last user's release unmaps and frees it. */
void jd_window_release(struct dump_window *window);

/* Have the kernel make the pages of [from, to) ready for writing in one go, which is cheaper than a fault
 * for each.  A matter of speed: failure is nothing. */
void jd_window_populate(struct dump_window *window, uint64_t from, uint64_t to);

#endif
