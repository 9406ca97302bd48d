/* Dumps whose names don't say so: any executable mapping of a file that begins as a dump does.
 *
 * A recording of a whole machine has thousands of executable mappings, and nearly all are of
 * programs and libraries, which are not worth opening.  A runtime maps the beginning of its dump,
 * and hardly ever more than a page of it.  A program's code is after its headers, or longer.  Each
 * remaining path is opened once.
 */
#ifndef PERFJIT_DUMP_PROBE_H
#define PERFJIT_DUMP_PROBE_H

#include "injector/recording/records.h"

struct dump_probe {
    const char *root; /* as for dump_place_find */
    void *files;      /* a tree of the opened files, by path: tsearch(3) */
};

/* Whether MAP can be a runtime's mapping of its dump, by only the record. */
bool dump_probe_may_be(const struct perf_map *map);

/* Whether the file of MAP, which may be, begins as a dump; *PID is set to that of its header.  A
 * file that is not there is none. *FAILED is set without memory. */
bool dump_probe_file(struct dump_probe *probe, const struct perf_map *map, uint32_t *pid,
                     bool *failed);

/* The same for the file at PATH. */
bool dump_probe_path(const char *path, uint32_t *pid);

void dump_probe_free(struct dump_probe *probe);

#endif
