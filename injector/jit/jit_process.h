/* The processes of a profile that left a jitdump or a perf map, and everything about each that the timeline needs.
 *
 * A runtime maps the first page of its dump; perf records that mapping, so the profile names the dump.  A
 * dump belongs to the process whose pid is in its name, jit-<pid>.dump.  What is in no dump may be in a perf map:
 * perf_map_source.h.
 */
#ifndef PERFJIT_JIT_PROCESS_H
#define PERFJIT_JIT_PROCESS_H

#include "injector/jit/code_log.h"

struct perfmap_table;
struct perf_map_options;

/* What became of the entries of a perf map. */
struct perf_map_counts {
    size_t entries;
    size_t functions; /* in the log, made of them */
    size_t in_files;  /* entries in a mapped file, which has symbols of its own */
    size_t outside;   /* entries where nothing executable was mapped */
    size_t clipped;   /* entries that are longer than the memory they are in */
};

struct jit_process {
    uint32_t pid;
    struct perf_record
        witness; /* a map record of this process: what the added records' trailers copy */
    struct jit_dump *dumps;
    char **dump_paths;
    size_t dump_count, dump_capacity, path_capacity;
    size_t given_count; /* the first dumps, given by hand */
    struct code_log log;
    struct perfmap_table *
        perf_map; /* what names in the log point into, or NULL; it stands among the dumps, without data */
    struct perf_map_counts perf_map_counts;
    const struct profile_map *maps; /* of this process, by time, in the profile; markers included */
    size_t map_count;
};

struct jit_processes {
    struct jit_process *items;
    size_t count, capacity;
    uint64_t *marker_offsets; /* of the marker records, which are not passed on */
    size_t marker_count, marker_capacity;
};

/* Find the dumps that PROFILE names, and those in EXTRA (EXTRA_COUNT paths given by hand), and the processes' perf maps as
 * PERF_MAPS says, read them, and collect what PROFILE knows of their processes.  Returns 0, or -1 with the failure text
 * set: there is no dump and no map, or none that can be used.  Release with jit_processes_free in either case. */
int jit_processes_read(struct jit_processes *processes, const struct profile *profile,
                       char *const *extra, size_t extra_count,
                       const struct perf_map_options *perf_maps, struct findings *findings);

void jit_processes_free(struct jit_processes *processes);

/* The process PID, added if it is not there yet, or NULL without memory. */
struct jit_process *jit_process_of(struct jit_processes *processes, uint32_t pid);

/* Add DUMP, read from PATH, which PROCESS owns from then on.  Returns 0, or -1 without memory. */
int jit_process_add_dump(struct jit_process *process, const struct jit_dump *dump, char *path);

/* The number in jit-<number>.dump, at the end of PATH.  Returns false if PATH is not named so. */
bool jit_dump_name_pid(const char *path, uint32_t *pid);

#endif
