/* The ELF files of the JIT code that is alive in a snapshot, and the table of them. */
#ifndef PERFJIT_SNAPSHOT_IMAGES_H
#define PERFJIT_SNAPSHOT_IMAGES_H

#include "injector/debug/code_table.h"
#include "injector/debug/snapshot_code.h"
#include "injector/inject/image/dso_dir.h"

struct snapshot_images {
    struct image_plan plan;
    struct dso_dir dsos;
    struct code_table table;
};

/* Write the files of CODE into the directory PATH, which need not exist.  Returns 0, or -1 with the
 * failure text set.  Release with snapshot_images_free in either case. */
int snapshot_images_write(struct snapshot_images *images, const struct snapshot_code *code,
                          const char *path, struct findings *findings);

void snapshot_images_free(struct snapshot_images *images);

#endif
