/* perf's cache of files by build-id, for ELF files that perf would not find where they are.
 *
 * perf opens a file in the mount namespace of a process that has mapped it, if that process still
 * lives and the namespace is not perf's own: a container's.  It finds no ELF file of perfjit's
 * there, and then no process that shares the file has names.  In the cache it looks in any case.
 */
#ifndef PERFJIT_BUILD_ID_CACHE_H
#define PERFJIT_BUILD_ID_CACHE_H

#include "injector/inject/layout/jit_image.h"

/* Add the files of PLAN's images, which are in directory DSO_DIR (absolute), to the cache of the
 * user whose home is HOME (NULL: unknown).  This is done if a process that maps them runs where
 * these files are missing.  Reports that as a finding, also if they can't be added. */
void build_id_cache_fill(const struct image_plan *plan, const struct jit_processes *processes,
                         const char *dso_dir, const char *home, struct findings *findings);

#endif
