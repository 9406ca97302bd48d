/* Whose perf map it is: which process's by its name, and whether this process made it.
 *
 * /tmp/perf-<pid>.map is one file for all JITs of a process.  One that an earlier process with the
 * same pid left must go, or perf takes its names; one that another JIT of this process is writing
 * must stay.
 */
#ifndef PERFMAP_MAP_OWNER_H
#define PERFMAP_MAP_OWNER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The pid under which this process is known where its /proc comes from: that is where perf looks
 * for it, too.  As a rule it is getpid().  In a pid namespace that has the /proc (and the /tmp) of
 * the outer one, it is the outer pid (tried with perf 6.1). */
pid_t pm_name_pid(void);

/* Whether this process has the file with STATUS open to write to it. */
bool pm_is_written_here(const struct stat *status);

/* Whether the file with STATUS was written since this process was started: then another JIT of it
 * may have done that, and have closed the file, as Java does.  False where there is no /proc.  An
 * exec is no start. */
bool pm_is_of_this_life(const struct stat *status);

/* Have the other descriptors for the file FD in this process, if they write, write at its end: node
 * --perf-basic-prof writes each line behind its own last one, whatever stands there.  Returns
 * whether there are any that write. */
bool pm_let_others_append(int fd);

/* Whether this process, forked from PARENT, may close what it inherited: not if the two have one
 * table of descriptors (clone(CLONE_FILES)), or nobody knows. */
bool pm_has_own_descriptors(pid_t parent);

#endif
