/* The processes of a profile that have JIT code, and everything about each that the timeline needs.
 *
 * A jit_process is one life of a process (process_life.h).  It has JIT code because it mapped a
 * dump (dump_claim.h says whose a dump is), because it left a perf map (perf_map_source.h), or
 * because it was forked from one that has (child_processes.h).
 */
#ifndef PERFJIT_JIT_PROCESS_H
#define PERFJIT_JIT_PROCESS_H

#include "injector/arrays/address_span.h"
#include "injector/findings/findings.h"
#include "injector/log/code/code_log.h"
#include "injector/log/jitdump/jit_dump.h"
#include "injector/log/source_map/source_maps.h"
#include "injector/recording/process_life.h"

struct jit_process;

/* A process that was forked, for the timeline of its parent: perf gives it the parent's maps of
 * this moment. */
struct jit_fork {
    struct life_moment at;
    const struct jit_process *child; /* that needs to know of the parent's code; or NULL */
};

struct perfmap_table;

/* The number of entries of a perf map, by their use. */
struct perf_map_counts {
    size_t entries;
    size_t functions; /* in the log, made of them */
    size_t in_files;  /* entries in a mapped file that has symbols there */
    size_t outside;   /* entries where nothing executable was mapped */
    size_t clipped;   /* entries that are longer than the memory they are in */
};

struct jit_process {
    uint32_t pid;
    uint32_t life; /* index into the profile's lives */
    struct life_moment begin;
    struct life_moment next;    /* the pid's next life, or UINT64_MAX in both; at time 0, of records
                                   without one, it ends nothing */
    bool execed;                /* this one ended so */
    struct jit_process *parent; /* that it inherited from, directly or through processes without JIT
                                   code; or NULL */
    size_t fork;                /* of its parent's forks, the one that it came from */
    struct life_moment forked;  /* when it left the parent's line */
    struct perf_record trailer_record; /* a record of this process, from which the added records'
                                        * trailers are copied */
    struct jit_dump *dumps;
    char **dump_paths;
    size_t dump_count, dump_capacity, path_capacity;
    size_t borrowed_count; /* the last dumps, another process's: its log has functions from there */
    struct code_log log;
    struct perfmap_table *perf_map; /* the table that names in the log point into, or NULL; it
                                     * stands among the dumps, without data */
    struct perf_map_counts perf_map_counts;
    uint64_t load_slack_ns;          /* how long before its LOAD record a function may have run */
    bool unloads_in_time;            /* no code runs once its unload was logged */
    const struct recorded_map *maps; /* of this life, by time, in the profile; markers included */
    size_t map_count;
    struct jit_fork *forks; /* by time */
    size_t fork_count, fork_capacity;
    struct address_span *touched; /* by address: the parts of its inheritance in which something
                                   * happens */
    size_t touched_count;
};

/* A dump that a process mapped, and that could not be used, or only from a moment on. */
struct refused_dump {
    uint32_t life;
    enum finding_kind why; /* as in dump_claim.h */
    uint64_t anew_ns;      /* if its process wrote it anew: when; it can be used from then on */
};

#define NO_PROCESS UINT32_MAX

struct jit_processes {
    struct jit_process *items; /* by begin: parents before their children */
    size_t count, capacity;
    uint32_t *by_life; /* index into items, or NO_PROCESS; NULL while there are none */
    struct process_lives lives;
    uint64_t *marker_offsets; /* of the marker records, which are not passed on */
    size_t marker_count, marker_capacity;
    struct refused_dump *refused;
    size_t refused_count, refused_capacity;
    struct source_maps source_maps; /* of scripts that functions are of */
    struct line_translation translation;
    char *no_code; /* why there is no item: no dump and no map can be used; NULL: there is one */
};

/* The process of LIFE, made if there is none yet, which may move the others.  All lives must be
 * known.  NULL without memory. */
struct jit_process *jit_process_of_life(struct jit_processes *processes, uint32_t life);

/* The process of LIFE, or NULL: it has no JIT code that is known. */
const struct jit_process *jit_processes_find(const struct jit_processes *processes, uint32_t life);

/* The number of functions in PROCESS's dumps, without inherited, shared and interpreted ones. */
size_t jit_process_own_functions(const struct jit_process *process);

/* Add DUMP to PROCESS, both of which own PATH then.  Returns 0, or -1 without memory. */
int jit_process_add_dump(struct jit_process *process, const struct jit_dump *dump, char *path);

/* Whether dump number STAGE of PROCESS is the stage of its dump BODY, or the other way round: they
 * have one numbering of functions. */
bool jit_process_dumps_are_one(const struct jit_process *process, uint32_t stage, uint32_t body);

/* Forget all processes, but not the lives, nor the refused dumps. */
void jit_processes_clear(struct jit_processes *processes);

void jit_processes_free(struct jit_processes *processes);

#endif
