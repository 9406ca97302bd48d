/* The code of an image, on its way from the mapped dumps to the file.
 *
 * That is most of the bytes, and copying them is the kernel's work: of a large image a second
 * thread has it done while the symbols are made, or has done it long before (image_draft.h).
 */
#ifndef PERFJIT_IMAGE_TEXT_H
#define PERFJIT_IMAGE_TEXT_H

#include "injector/inject/image/image_draft.h"

struct image_text {
    const struct jit_image *image;
    const struct jit_process *processes; /* of its bodies */
    struct progress *progress;
    struct image_draft *draft; /* it may be the draft's; else NULL */
    int dir_fd, fd;
    char name[IMAGE_TEXT_NAME_BYTES]; /* of the file, for the time being */
    int error;                        /* errno, or 0 */
    XXH128_hash_t digest;
    struct side_thread thread;
};

/* Whether IMAGE's code can be written before the rest of the file, and a thread for it pays. */
bool image_text_is_large(const struct jit_image *image);

/* Have the code of IMAGE, which is large, written by a thread into a new file in the directory
 * DIR_FD; or take it from DRAFT, which may be NULL.  Without a thread it is written in
 * image_text_end.  IMAGE's functions and the dumps must stay as they are, and PROGRESS is the
 * thread's, until image_text_end. */
void image_text_begin(struct image_text *text, const struct jit_image *image,
                      const struct jit_process *processes, int dir_fd, struct image_draft *draft,
                      struct progress *progress);

/* Wait for the end.  Returns the file's descriptor, which is the caller's, or -1 with errno;
 * *DIGEST receives the code's, for the build-id. */
int image_text_end(struct image_text *text, XXH128_hash_t *digest);

/* Write the code into FD, or with -1 nowhere: then it is only about the digest.  DIGEST may be
 * NULL.  Returns 0, or -1 with errno. */
int image_text_write(const struct jit_image *image, int fd, struct progress *progress,
                     XXH128_hash_t *digest);

#endif
