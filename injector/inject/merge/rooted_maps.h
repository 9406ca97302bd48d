/* Maps of files below another root directory, as those of a program that chroot(1) started:
 *
 *     recorded            written
 *     /usr/lib/libc.so.6  /srv/trixie/usr/lib/libc.so.6
 *
 * Processes of both roots are in one recording, and perf opens files by the names that stand in it.
 * So the maps get the names that the files have here. */
#ifndef PERFJIT_ROOTED_MAPS_H
#define PERFJIT_ROOTED_MAPS_H

#include "injector/findings/findings.h"
#include "injector/inject/merge/perf_rewrite.h"
#include "injector/recording/records.h"

struct rooted_file {
    const struct perf_map *map; /* one of those that name it: */
    uint32_t index;             /* number INDEX of the records' */
    char *target;
};

struct rooted_maps {
    const struct perf_file *file;
    struct rooted_file *items; /* as perf_map_compare_files orders them */
    size_t count, capacity;
};

/* Find the files that maps of RECORDS name and that are below ROOT, by inode or build-id, and not
 * at their name here.  Returns 0, or -1 with the failure text set.  Release with rooted_maps_free
 * in either case. */
int rooted_maps_find(struct rooted_maps *maps, const struct records *records, const char *root,
                     struct findings *findings);

/* Put RECORD, if it is such a map, into SINK with the new name.  Returns as record_change's. */
int rooted_maps_put(const struct rooted_maps *maps, const struct perf_record *record,
                    struct byte_sink *sink);

void rooted_maps_free(struct rooted_maps *maps);

#endif
