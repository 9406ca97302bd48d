/* See record_window.h. */
#include "jitdump/ring/record_window.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int jd_window_begin(struct record_window *window, const struct held_fd *fd, uint64_t file_end,
                    const void *tail, size_t tail_bytes)
{
    *window = (struct record_window){
        .fd = fd, .file_end = file_end, .end = file_end + tail_bytes, .tail = tail};
    return mapped_array_reserve(&window->memory, WINDOW_BYTES) ? -ENOMEM : 0;
}

/* How many bytes from OFFSET up to END it may have, beside those that it has. */
static size_t left_up_to(const struct record_window *window, uint64_t end)
{
    uint64_t at = window->offset + window->bytes, left = end > at ? end - at : 0;
    return left < WINDOW_BYTES - window->bytes ? (size_t)left : WINDOW_BYTES - window->bytes;
}

static void read_from(struct record_window *window, uint64_t offset)
{
    uint8_t *data = window->memory.data;
    size_t wanted;
    window->offset = offset;
    window->bytes = 0;
    while ((wanted = left_up_to(window, window->file_end)) > 0) {
        ssize_t got = pread(window->fd->number, data + window->bytes, wanted,
                            (off_t)(offset + window->bytes));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            window->error = got < 0 ? -errno : -ESTALE;
            return;
        }
        window->bytes += (size_t)got;
    }
    wanted = left_up_to(window, window->end);
    if (wanted)
        memcpy(data + window->bytes, window->tail + (offset + window->bytes - window->file_end),
               wanted);
    window->bytes += wanted;
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
