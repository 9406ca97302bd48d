/* See record_window.h. */
#include "jitdump/ring/record_window.h"

#include <errno.h>
#include <unistd.h>

int jd_window_begin(struct record_window *window, const struct held_fd *fd, uint64_t end)
{
    *window = (struct record_window){.fd = fd, .end = end};
    return mapped_array_reserve(&window->memory, WINDOW_BYTES) ? -ENOMEM : 0;
}

static void read_from(struct record_window *window, uint64_t offset)
{
    uint8_t *data = window->memory.data;
    size_t wanted = WINDOW_BYTES;
    if (wanted > window->end - offset)
        wanted = (size_t)(window->end - offset);
    window->offset = offset;
    window->bytes = 0;
    while (window->bytes < wanted) {
        ssize_t got = pread(window->fd->number, data + window->bytes, wanted - window->bytes,
                            (off_t)(offset + window->bytes));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            window->error = got < 0 ? -errno : -ESTALE;
            return;
        }
        window->bytes += (size_t)got;
    }
}

const uint8_t *jd_window_at(struct record_window *window, uint64_t offset, size_t bytes)
{
    const uint8_t *data = window->memory.data;
    if (offset > window->end || bytes > window->end - offset || bytes > WINDOW_BYTES)
        window->error = -ESTALE;
    else if (offset < window->offset || offset + bytes > window->offset + window->bytes)
        read_from(window, offset);
    return window->error ? NULL : data + (offset - window->offset);
}

void jd_window_end(struct record_window *window)
{
    mapped_array_free(&window->memory);
}
