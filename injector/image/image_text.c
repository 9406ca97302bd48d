/* See image_text.h. */
#include "injector/image/image_text.h"

#include "injector/interruption.h"

#include <errno.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

/* To make a thread takes as long as to copy some 100 KiB. */
enum { LARGE_BYTES = 2 << 20 };

/* Pieces of code that are written with one system call. */
struct code_batch {
    struct iovec pieces[IOV_MAX];
    int count;
    uint64_t start, end; /* file offsets */
};

static int write_batch(int fd, struct code_batch *batch)
{
    struct iovec *piece = batch->pieces;
    while (batch->count) {
        ssize_t written = pwritev(fd, piece, batch->count, (off_t)batch->start);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        batch->start += (uint64_t)written;
        size_t left = (size_t)written;
        for (; batch->count && left >= piece->iov_len; batch->count--)
            left -= piece++->iov_len;
        if (batch->count) { /* the kernel took a part of a piece */
            piece->iov_base = (char *)piece->iov_base + left;
            piece->iov_len -= left;
        }
    }
    return 0;
}

static void add_piece(struct code_batch *batch, const void *bytes, size_t count)
{
    batch->pieces[batch->count++] = (struct iovec){(void *)(uintptr_t)bytes, count};
    batch->end += count;
}

/* The functions' bytes, from the mapped dump to the file; between neighbours a few zeros go along, larger gaps
 * stay holes. */
int image_text_write(const struct jit_image *image, const struct jit_process *process, int fd,
                     struct progress *progress)
{
    static const uint8_t zeros[PAGE_BYTES];
    struct code_batch batch = {.start = image->text_start, .end = image->text_start};
    size_t told = 0;
    for (size_t i = 0; i < image->function_count; i++) {
        const struct jit_function *function = &process->log.functions[image->functions[i]];
        uint64_t offset = function->addr - image->base;
        if (!function->code)
            continue;
        if (batch.count > IOV_MAX - 2 || offset - batch.end > sizeof zeros) {
            uint64_t bytes = batch.end - batch.start;
            if (write_batch(fd, &batch))
                return -1;
            progress_step(progress, i - told, bytes);
            told = i;
            batch.start = batch.end = offset;
        }
        if (offset > batch.end)
            add_piece(&batch, zeros, (size_t)(offset - batch.end));
        add_piece(&batch, function->code, (size_t)function->size);
    }
    uint64_t bytes = batch.end - batch.start;
    if (write_batch(fd, &batch))
        return -1;
    progress_step(progress, image->function_count - told, bytes);
    return 0;
}

int image_piece_write(int fd, uint64_t offset, const void *bytes, size_t count)
{
    struct code_batch batch = {.start = offset, .end = offset};
    add_piece(&batch, bytes, count);
    return write_batch(fd, &batch);
}

bool image_text_is_large(const struct jit_image *image)
{
    return image->text_end - image->text_start >= LARGE_BYTES;
}

static void *write_in_thread(void *context)
{
    struct image_text *text = context;
    errno = 0;
    if (image_text_write(text->image, text->process, text->fd, text->progress))
        text->error = errno ? errno : EIO;
    return NULL;
}

void image_text_begin(struct image_text *text, const struct jit_image *image,
                      const struct jit_process *process, int fd, struct progress *progress)
{
    *text = (struct image_text){.image = image, .process = process, .fd = fd, .progress = progress};
    text->threaded = interruption_thread(&text->thread, write_in_thread, text) == 0;
    if (!text->threaded)
        write_in_thread(text);
}

int image_text_end(struct image_text *text)
{
    if (text->threaded)
        pthread_join(text->thread, NULL);
    errno = text->error;
    return text->error ? -1 : 0;
}
