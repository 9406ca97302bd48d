/* The name of an image's file. */
#ifndef PERFJIT_IMAGE_NAME_H
#define PERFJIT_IMAGE_NAME_H

#include "injector/inject/layout/image_plan.h"

enum { IMAGE_FILE_NAME_BYTES = 64 };

/* The file name of IMAGE, number INDEX, of PROCESSES, once its build-id is known:
 *
 *     jit-<pid>-<index>-<build-id>.so       of one process
 *     <build-id>/jit-<machine>[.<part>].so  of all: perf diff compares the last part
 */
void image_file_name(const struct jit_image *image, const struct jit_process *processes,
                     size_t index, char name[IMAGE_FILE_NAME_BYTES]);

/* The name that was made last: most maps in a row are of one image. */
struct named_image {
    const struct jit_image *image; /* NULL: none was made */
    char name[IMAGE_FILE_NAME_BYTES];
};

/* The same name, which NAMED keeps until the next one is made. */
const char *image_file_name_again(struct named_image *named, const struct jit_image *image,
                                  const struct jit_process *processes, size_t index);

#endif
