/* The file here that a mapping of a recording names. */
#ifndef PERFJIT_MAPPED_PATH_H
#define PERFJIT_MAPPED_PATH_H

#include "injector/recording/perf_data/perf_record.h"

#include <stdbool.h>
#include <sys/stat.h>

/* The path below ROOT of the file NAME of a mapping.  NAME may end with " (deleted)".  ROOT "" is
 * this machine's root.  The caller frees it.  NULL without memory. */
char *mapped_path(const char *root, const char *name);

/* Whether an inode on DEVICE can be compared with that of MAP. */
bool mapped_inode_is_on(const struct perf_map *map, dev_t device);

/* Whether the file at PATH, which has STATUS, is another one than MAP is of: by its inode, or by
 * its device.  KEPT_NUMBERS: devices have the numbers that they had when MAP was recorded. */
bool mapped_file_is_another(const struct perf_map *map, const char *path, const struct stat *status,
                            bool kept_numbers);

#endif
