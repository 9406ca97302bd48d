/* See image_text.h. */
#include "injector/inject/image/image_text.h"

#include "injector/files/full_write.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 256 << 10, MAX_ZEROS = 4096 };

struct text_stream {
    int fd;               /* if there is no digest */
    XXH3_state_t *digest; /* or NULL: it is written */
    uint8_t *buffer;
    size_t buffered;
    uint64_t end; /* file offset after the written bytes */
};

/* Pass on COUNT bytes that end at the stream's end. */
static int pass_on(struct text_stream *stream, const uint8_t *bytes, size_t count)
{
    if (!stream->digest)
        return full_write(stream->fd, (off_t)(stream->end - count), bytes, count);
    XXH3_128bits_update(stream->digest, bytes, count);
    return 0;
}

static int empty(struct text_stream *stream)
{
    size_t count = stream->buffered;
    stream->buffered = 0;
    return pass_on(stream, stream->buffer, count);
}

/* Go on at OFFSET, after a hole. */
static int skip_to(struct text_stream *stream, uint64_t offset)
{
    if (empty(stream))
        return -1;
    if (stream->digest)
        XXH3_128bits_update(stream->digest, &offset, sizeof offset);
    stream->end = offset;
    return 0;
}

static int append(struct text_stream *stream, const void *bytes, size_t count)
{
    if (count > BUFFER_BYTES - stream->buffered && empty(stream))
        return -1;
    stream->end += count;
    if (count > BUFFER_BYTES)
        return pass_on(stream, bytes, count);
    memcpy(stream->buffer + stream->buffered, bytes, count);
    stream->buffered += count;
    return 0;
}

/* Put COUNT bytes at OFFSET, after all that was put before. */
static int put(struct text_stream *stream, uint64_t offset, const void *bytes, size_t count)
{
    static const uint8_t zeros[MAX_ZEROS];
    uint64_t gap = offset - stream->end;
    bool hole = stream->end == 0 || gap > MAX_ZEROS;
    if (hole ? skip_to(stream, offset) : append(stream, zeros, (size_t)gap))
        return -1;
    return append(stream, bytes, count);
}

static int put_functions(struct text_stream *stream, const struct jit_image *image,
                         struct progress *progress)
{
    stream->buffer = malloc(BUFFER_BYTES);
    int result = stream->buffer ? 0 : -1;
    for (size_t i = 0; i < image->body_count && !result; i++) {
        const struct jit_function *function = image->bodies[i].function;
        progress_step(progress, 1, function->code ? function->size : 0);
        if (function->code)
            result = put(stream, image->bodies[i].offset, function->code, (size_t)function->size);
    }
    result = result || empty(stream) ? -1 : 0;
    free(stream->buffer);
    return result;
}

int image_text_write(const struct jit_image *image, int fd, struct progress *progress)
{
    struct text_stream stream = {.fd = fd};
    return put_functions(&stream, image, progress);
}

int image_text_digest(const struct jit_image *image, XXH128_hash_t *digest)
{
    struct progress silent = {0};
    struct text_stream stream = {.digest = XXH3_createState()};
    if (!stream.digest)
        return -1;
    XXH3_128bits_reset(stream.digest);
    int result = put_functions(&stream, image, &silent);
    *digest = XXH3_128bits_digest(stream.digest);
    XXH3_freeState(stream.digest);
    return result;
}
