/* The processes of a profile that left a jitdump, and everything about each that the timeline needs.
 *
 * A runtime maps the first page of its dump; perf records that mapping, so the profile names the dump.  A
 * dump belongs to the process whose pid is in its name, jit-<pid>.dump.
 */
#ifndef PERFJIT_JIT_PROCESS_H
#define PERFJIT_JIT_PROCESS_H

#include "injector/jit/code_log.h"

struct jit_process {
    uint32_t pid;
    struct perf_record
        witness; /* a map record of this process: what the added records' trailers copy */
    struct jit_dump *dumps;
    char **dump_paths;
    size_t dump_count, dump_capacity, path_capacity;
    size_t given_count; /* the first dumps, given by hand */
    struct code_log log;
    const struct profile_map *maps; /* of this process, by time, in the profile; markers included */
    size_t map_count;
};

struct jit_processes {
    struct jit_process *items;
    size_t count, capacity;
    uint64_t *marker_offsets; /* of the marker records, which are not passed on */
    size_t marker_count, marker_capacity;
};

/* Find the dumps that PROFILE names, and those in EXTRA (EXTRA_COUNT paths given by hand), read them, and
 * collect what PROFILE knows of their processes.  Returns 0, or -1 with the failure text set: there is no
 * dump, or none that can be used.  Release with jit_processes_free in either case. */
int jit_processes_read(struct jit_processes *processes, const struct profile *profile,
                       char *const *extra, size_t extra_count, struct findings *findings);

void jit_processes_free(struct jit_processes *processes);

/* The number in jit-<number>.dump, at the end of PATH.  Returns false if PATH is not named so. */
bool jit_dump_name_pid(const char *path, uint32_t *pid);

#endif
