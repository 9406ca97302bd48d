/* The file here that a mapping of a recording names. */
#ifndef PERFJIT_MAPPED_PATH_H
#define PERFJIT_MAPPED_PATH_H

#include "injector/recording/perf_data/perf_record.h"

#include <stdbool.h>
#include <sys/types.h>

/* The path below ROOT of the file NAME of a mapping.  NAME may end with " (deleted)".  ROOT "" is
 * this machine's root.  The caller frees it.  NULL without memory. */
char *mapped_path(const char *root, const char *name);

/* Whether an inode on DEVICE can be compared with that of MAP. */
bool mapped_inode_is_on(const struct perf_map *map, dev_t device);

#endif
