/* A recording that is a directory: perf record --threads and --kcore.
 *
 *      data            a perf.data file: header, attributes, what perf itself wrote, features
 *      data.0 ...      --threads: the records that each of perf's threads read from the kernel, and
 *                      nothing else; each a zstd stream of its own with -z
 *      kcore_dir       --kcore: a copy of the kernel's code, and its names
 *
 * All become one plain file. perf sorts what it reads only between FINISHED_ROUND marks.  The marks
 * of `data` say nothing about the other files.  The plain file therefore has none, and perf sorts
 * the whole.
 */
#ifndef PERFJIT_PERF_DIRECTORY_H
#define PERFJIT_PERF_DIRECTORY_H

#include "injector/recording/perf_data/perf_plain.h"

/* Whether PATH is a directory. */
bool perf_directory_is(const char *path);

/* The path of `data` in PATH, to be freed; NULL without memory. */
char *perf_directory_data(const char *path);

/* Append the records of data.0, data.1 ... in PATH to PLAIN.  Returns 0, or -1 with the failure
 * text set. */
int perf_directory_add(struct perf_plain *plain, const char *path, struct findings *findings);

#endif
