/* See text_stream.h. */
#include "injector/inject/image/text_stream.h"

#include "injector/files/full_write.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 256 << 10, MAX_ZEROS = 4096 };

int text_stream_begin(struct text_stream *stream, int fd)
{
    *stream = (struct text_stream){
        .fd = fd, .buffer = malloc(BUFFER_BYTES), .digest = XXH3_createState()};
    if (stream->buffer && stream->digest) {
        XXH3_128bits_reset(stream->digest);
        return 0;
    }
    text_stream_end(stream, -1, NULL);
    errno = ENOMEM;
    return -1;
}

/* Pass on COUNT bytes that end at the stream's end. */
static int pass_on(struct text_stream *stream, const uint8_t *bytes, size_t count)
{
    XXH3_128bits_update(stream->digest, bytes, count);
    return stream->fd < 0 ? 0 : full_write(stream->fd, (off_t)(stream->end - count), bytes, count);
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

int text_stream_put(struct text_stream *stream, uint64_t offset, const void *bytes, size_t count)
{
    static const uint8_t zeros[MAX_ZEROS];
    uint64_t gap = offset - stream->end;
    bool hole = stream->end == 0 || gap > MAX_ZEROS;
    if (hole ? skip_to(stream, offset) : append(stream, zeros, (size_t)gap))
        return -1;
    return append(stream, bytes, count);
}

int text_stream_end(struct text_stream *stream, int failed, XXH128_hash_t *digest)
{
    int result = failed || empty(stream) ? -1 : 0, error = errno;
    if (!result && digest)
        *digest = XXH3_128bits_digest(stream->digest);
    XXH3_freeState(stream->digest);
    free(stream->buffer);
    errno = error;
    return result;
}
