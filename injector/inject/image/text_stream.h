/* The code of an image on its way from mapped dumps into the file, and what the build-id takes of
 * it.
 *
 * Functions are small: they are put together in a buffer that fits into a core's cache, and from
 * there taken to the digest and written with large system calls.  (100 000 functions with one
 * pwritev for each 1024 of them: 1.4 times the time.) Between neighbours a few zeros go along;
 * larger gaps stay holes.
 */
#ifndef PERFJIT_TEXT_STREAM_H
#define PERFJIT_TEXT_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

struct text_stream {
    int fd; /* -1: only the digest is wanted */
    uint8_t *buffer;
    size_t buffered;
    uint64_t end; /* file offset after what was put */
    XXH3_state_t *digest;
};

/* Begin to write into FD, or with -1 into nothing.  Returns 0, or -1 with errno. */
int text_stream_begin(struct text_stream *stream, int fd);

/* Put COUNT bytes at OFFSET, after all that was put before.  Returns 0, or -1 with errno. */
int text_stream_put(struct text_stream *stream, uint64_t offset, const void *bytes, size_t count);

/* Have all of it in the file, and its digest in *DIGEST, unless that is NULL: equal for equal bytes
 * at equal offsets.  Releases the stream, also when it fails.  FAILED: only that.  Returns 0, or -1
 * with errno. */
int text_stream_end(struct text_stream *stream, int failed, XXH128_hash_t *digest);

#endif
