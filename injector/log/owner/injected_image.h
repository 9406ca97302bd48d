/* Images that perfjit or perf inject made, in a recording: it has been injected already. */
#ifndef PERFJIT_INJECTED_IMAGE_H
#define PERFJIT_INJECTED_IMAGE_H

#include "injector/recording/records.h"

/* The path of the first file in PROFILE that is named like such an image
 * (<build-id>/jit-<machine>.so, jit-<pid>-<number>-<build-id>.so, jitted-<pid>-<number>.so); it is
 * PROFILE's.  NULL if there is none. */
const char *injected_image(const struct records *records);

/* The same if it is neither there nor below ROOT (which may be NULL): the names that were written
 * into it are missing, too. */
const char *injected_image_gone(const struct records *records, const char *root);

/* Whether the file at PATH is named like one. */
bool injected_image_is(const char *path);

#endif
