/* Maps of images that perfjit or perf inject made, in a recording: it has been injected already. */
#ifndef PERFJIT_INJECTED_MAP_H
#define PERFJIT_INJECTED_MAP_H

#include "injector/recording/records.h"

/* The path of the first file in RECORDS that is named like such an image
 * (<build-id>/jit-<machine>.so, jit-<pid>-<number>-<build-id>.so, jitted-<pid>-<number>.so), and
 * not mapped as data: a perf that shows an injected recording reads its images.  It is RECORDS's.
 * NULL if there is none. */
const char *injected_image(const struct records *records);

/* Whether the file at PATH is named like one. */
bool injected_image_is(const char *path);

/* Whether code in MAP that has no name is a JIT's, not a program's: it is in memory, or in an
 * image, which has gaps between its functions. */
bool injected_image_or_memory(const struct perf_map *map);

#endif
