/* Where the images of an injected recording (injected_map.h) are. */
#ifndef PERFJIT_INJECTED_IMAGE_H
#define PERFJIT_INJECTED_IMAGE_H

#include "injector/recording/records.h"

/* The injected image of RECORDS if it is neither there nor below ROOT (which may be NULL): the
 * names that were written into it are missing, too. */
const char *injected_image_gone(const struct records *records, const char *root);

/* Where the first image is that was moved with its recording: perf looks for it where it was. NULL:
 * it was not; the caller frees it. */
char *injected_image_moved(const struct records *records, const char *root);

/* Where the image NAME of the recording at PROFILE is if both were moved together: X.dso/ID/NAME
 * beside PROFILE.  NULL if NAME is no such path, or without memory; the caller frees it. */
char *injected_image_beside(const char *profile, const char *name);

#endif
