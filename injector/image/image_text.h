/* The code of an image, on its way from the mapped dumps to the file.
 *
 * That is most of the bytes, and copying them is the kernel's work: of a large image a second thread has it done while the
 * symbols and the build-id are made.
 */
#ifndef PERFJIT_IMAGE_TEXT_H
#define PERFJIT_IMAGE_TEXT_H

#include "injector/image/image_plan.h"

#include <pthread.h>

struct image_text {
    const struct jit_image *image;
    const struct jit_process *process;
    struct progress *progress;
    int fd;
    int error; /* errno, or 0 */
    bool threaded;
    pthread_t thread;
};

/* Whether a thread for IMAGE's code pays. */
bool image_text_is_large(const struct jit_image *image);

/* Have the code written into FD by a thread, or if there can be none write it now.  IMAGE's functions and the dumps must stay
 * as they are, and PROGRESS is the thread's, until image_text_end. */
void image_text_begin(struct image_text *text, const struct jit_image *image,
                      const struct jit_process *process, int fd, struct progress *progress);

/* Wait for the end.  Returns 0, or -1 with errno. */
int image_text_end(struct image_text *text);

/* The same without a thread. */
int image_text_write(const struct jit_image *image, const struct jit_process *process, int fd,
                     struct progress *progress);

/* Put COUNT bytes at OFFSET of FD.  Returns 0, or -1 with errno. */
int image_piece_write(int fd, uint64_t offset, const void *bytes, size_t count);

#endif
