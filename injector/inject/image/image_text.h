/* The code of an image, from the mapped dumps into the file, and the part of it that the build-id
 * covers.
 *
 * Functions are small: they are put together in a buffer that fits into a core's cache, and from
 * there taken to the digest or written with large system calls.  (One pwritev for each 1024 of 100
 * 000 functions takes 1.4 times as long.)  Small gaps of zeros between neighbours are written, too;
 * larger gaps stay holes.
 */
#ifndef PERFJIT_IMAGE_TEXT_H
#define PERFJIT_IMAGE_TEXT_H

#include "injector/arrays/hash.h"
#include "injector/inject/layout/jit_image.h"

/* Write the code of IMAGE into FD.  Returns 0, or -1 with errno. */
int image_text_write(const struct jit_image *image, int fd, struct progress *progress);

/* The digest of the same code: equal for equal bytes at equal offsets.  Returns 0, or -1 without
 * memory. */
int image_text_digest(const struct jit_image *image, XXH128_hash_t *digest);

#endif
