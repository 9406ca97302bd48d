/* See image_text.h. */
#include "injector/inject/image/image_text.h"

#include "injector/inject/image/dso_dir.h"
#include "injector/inject/image/text_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static int put_functions(struct text_stream *stream, const struct jit_image *image,
                         struct progress *progress)
{
    for (size_t i = 0; i < image->body_count; i++) {
        const struct jit_function *function = image->bodies[i].function;
        progress_step(progress, 1, function->code ? function->size : 0);
        if (function->code && text_stream_put(stream, image->bodies[i].offset, function->code,
                                              (size_t)function->size))
            return -1;
    }
    return 0;
}

int image_text_write(const struct jit_image *image, int fd, struct progress *progress,
                     XXH128_hash_t *digest)
{
    struct text_stream stream;
    if (text_stream_begin(&stream, fd))
        return -1;
    return text_stream_end(&stream, put_functions(&stream, image, progress), digest);
}

bool image_text_is_large(const struct jit_image *image)
{
    /* In front of headers that stand after the text libelf writes zeros: there the text must come
     * last. */
    return image_has_header_page(image) && image->text_end - image->text_start >= IMAGE_LARGE_BYTES;
}

/* ---- In a file of its own ---- */

static int open_file(struct image_text *text)
{
    snprintf(text->name, sizeof text->name, "jit-%" PRIu32 "-0-part.so",
             text->processes[text->image->bodies[0].process].pid);
    return dso_dir_create(text->dir_fd, text->name);
}

static void *write_file(void *context)
{
    struct image_text *text = context;
    errno = 0;
    text->fd = open_file(text);
    if (text->fd < 0 || image_text_write(text->image, text->fd, text->progress, &text->digest))
        text->error = errno ? errno : EIO;
    return NULL;
}

void image_text_begin(struct image_text *text, const struct jit_image *image,
                      const struct jit_process *processes, int dir_fd, struct image_draft *draft,
                      struct progress *progress)
{
    *text = (struct image_text){
        .image = image, .processes = processes, .progress = progress, .dir_fd = dir_fd, .fd = -1};
    if (draft && image_draft_is_of(draft, &processes[image->bodies[0].process]))
        text->draft = draft;
    else
        side_thread_begin(&text->thread, write_file, text);
}

int image_text_end(struct image_text *text, XXH128_hash_t *digest)
{
    if (text->draft)
        text->fd =
            image_draft_take(text->draft, text->image, text->name, text->progress, &text->digest);
    if (!side_thread_join(&text->thread) && text->fd < 0)
        write_file(text);
    *digest = text->digest;
    if (text->error && text->fd >= 0)
        close(text->fd);
    errno = text->error;
    return text->error ? -1 : text->fd;
}
