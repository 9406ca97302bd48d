/* The directory NAME.bench while it is written: under another name beside its own, so that it is
 * there whole or not at all. */
#ifndef PERFJIT_BENCH_FOLDER_H
#define PERFJIT_BENCH_FOLDER_H

#include "injector/findings/findings.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_folder {
    const char *name; /* its own */
    char *path;       /* where it is written */
    uint64_t undo;    /* undo_list.h */
};

/* Make it.  A directory with the name NAME may be replaced by it only if it is empty, or a bench
 * and nothing else.  Returns 0, or -1 with the failure text set.  Release with bench_folder_release
 * in either case. */
int bench_folder_make(struct bench_folder *folder, const char *name, struct findings *findings);

/* "DIRECTORY/FILE", to be freed; NULL, with the failure text set, without memory. */
char *bench_folder_file(const char *directory, const char *file, struct findings *findings);

/* Give it its name.  Returns 0, or -1 with the failure text set. */
int bench_folder_commit(struct bench_folder *folder, struct findings *findings);

/* Remove all files that were not committed. */
void bench_folder_release(struct bench_folder *folder);

#endif
