/* The lives of the processes of a profile: one for each address space that a pid had.
 *
 *     pid 7   |-- life: fork ... exec --|-- life: exec ... exit --|   |-- life: fork (pid reused)
 * --
 *
 * A life begins with the FORK of the process, with an exec, or with the first record of the pid. It
 * ends with the exec, with the EXIT of its last thread, or when the pid is reused. A forked life
 * begins as a copy of its parent's address space, and perf copies the parent's maps at the FORK
 * record in the same way.
 */
#ifndef PERFJIT_PROCESS_LIFE_H
#define PERFJIT_PROCESS_LIFE_H

#include "injector/recording/records.h"

#define NO_LIFE UINT32_MAX

struct process_life {
    uint32_t pid;
    uint32_t parent; /* the life that it was forked from, or NO_LIFE */
    struct life_moment begin;
    struct life_moment next; /* where the pid's next life begins: the end of this one's records */
    uint64_t end_ns;         /* when it ended; UINT64_MAX: not within the recording */
    bool execed;             /* that was by exec */
};

struct process_lives {
    struct process_life *items; /* by pid, then by begin */
    size_t count, capacity;
};

/* Find the lives of all processes of which PROFILE has more than samples.  Returns 0, or -1 without
 * memory, with the failure text set.  Release with process_lives_free in either case. */
int process_lives_read(struct process_lives *lives, const struct records *records,
                       struct findings *findings);

/* Add one life for PID, of which nothing else is known.  Returns 0 or -1 as above. */
int process_lives_add(struct process_lives *lives, uint32_t pid, struct findings *findings);

/* The life of PID at MOMENT; its first life if MOMENT is earlier. NO_LIFE if the pid is unknown. */
uint32_t process_life_at(const struct process_lives *lives, uint32_t pid,
                         struct life_moment moment);

/* The first life of PID, or NO_LIFE; *COUNT is set to their number, and they are consecutive. */
uint32_t process_lives_of(const struct process_lives *lives, uint32_t pid, size_t *count);

/* The maps in PROFILE of process PID from BEGIN on and before NEXT, by time; *COUNT is set to their
 * number. */
const struct recorded_map *process_life_maps(const struct records *records, uint32_t pid,
                                             struct life_moment begin, struct life_moment next,
                                             size_t *count);

enum { PROCESS_COMM_BYTES = 32 };

/* The name of LIFE (thread_names.h) into TEXT; "?" if none is known. */
void process_life_comm(const struct process_lives *lives, const struct records *records,
                       uint32_t life, char text[PROCESS_COMM_BYTES]);

/* Whether LIFE was forked from ANCESTOR, or from a life that was. */
bool process_life_descends(const struct process_lives *lives, uint32_t life, uint32_t ancestor);

/* The numbers of all lives by begin, so that parents come before their children.  NULL without
 * memory; the caller frees it. */
uint32_t *process_lives_order(const struct process_lives *lives);

void process_lives_free(struct process_lives *lives);

#endif
