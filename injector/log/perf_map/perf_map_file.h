/* /tmp/perf-<pid>.map of one process: its place, its contents, and whether it is the process's own.
 *
 * Places, the first that holds a file counts:
 *     <root>/tmp/perf-<pid>.map                       only if --root is given
 *     /proc/<pid>/root/tmp/perf-<its own pid>.map     while a process with another root directory,
 *                                                     or another /tmp, lives
 *     /tmp/perf-<pid>.map
 *
 * /tmp is writable by everybody, pids are reused and maps are never removed.  So a map that was
 * found counts as the process's own only if
 *  - it is a regular file, not reached through a symbolic link,
 *  - it belongs to root, to the owner of the recording, to the user who runs this program (also
 *    through sudo), or to the user as whom the process runs, if it still does,
 *  - it was written to after the process began, if the recording (by its clock data) or /proc
 *    shows when that was,
 *  - the recording was made on this machine, by its name.
 * One that is given with --perf-map need only be a regular file.
 */
#ifndef PERFJIT_PERF_MAP_FILE_H
#define PERFJIT_PERF_MAP_FILE_H

#include "injector/recording/host/recording_host.h"
#include "injector/recording/records.h"
#include "perfmap/perfmap.h"

#include <sys/stat.h>

/* Known facts before any map is looked for. */
struct perf_map_search {
    const struct records *records;
    struct recording_host host;
    const char *root;                  /* NULL: none was given */
    uint64_t recorded_wall_ns;         /* when the recording ended, at the latest */
    int64_t owner;                     /* of the recording; -1: unknown */
    struct mapped_files *mapped_files; /* that processes mapped, as far as they were looked up */
};

void perf_map_search_begin(struct perf_map_search *search, const struct records *records,
                           const char *root);

/* Look for the map of process PID, which began at BEGAN_NS on perf's clock (0: unknown).  Anything
 * wrong with it is a finding. Returns 0, with *TABLE and *PATH, which the caller frees, or both
 * NULL if there is none that can be used; or -1 with the failure text set. */
int perf_map_file_find(struct perfmap_table **table, char **path,
                       const struct perf_map_search *search, uint32_t pid, uint64_t began_ns,
                       struct findings *findings);

/* Whether there is a file where that map may be, but for one that an earlier process left; it may
 * be one that can't be used. */
bool perf_map_file_is_there(const struct perf_map_search *search, uint32_t pid, uint64_t began_ns);

/* Whether the map with STATUS was written last before its process began, at BEGAN_WALL_NS on the
 * wall clock: an earlier process with the same pid left it. */
bool perf_map_file_is_older(const struct stat *status, uint64_t began_wall_ns);

/* Read the map PATH, which was given with --perf-map.  Returns 0, or -1 with the failure text set.
 */
int perf_map_file_read(struct perfmap_table **table, const char *path, struct findings *findings);

/* The number in perf-<number>.map, at the end of PATH.  Returns false if PATH is not named so. */
bool perf_map_name_pid(const char *path, uint32_t *pid);

#endif
