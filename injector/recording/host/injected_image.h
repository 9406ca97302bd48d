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

/* Where the first image is that was moved with its recording: perf looks for it where it was. NULL:
 * it was not; the caller frees it. */
char *injected_image_moved(const struct records *records, const char *root);

/* Where the image NAME of the recording at PROFILE is if both were moved together: X.dso/ID/NAME
 * beside PROFILE.  NULL if NAME is no such path, or without memory; the caller frees it. */
char *injected_image_beside(const char *profile, const char *name);

/* Whether the file at PATH is named like one. */
bool injected_image_is(const char *path);

/* Whether code in MAP that has no name is a JIT's, not a program's: it is in memory, or in an
 * image, which has gaps between its functions. */
bool injected_image_or_memory(const struct perf_map *map);

#endif
