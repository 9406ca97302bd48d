/* The process that a perf map belongs to: the pid in its name, and whether this process wrote it.
 *
 * /tmp/perf-<pid>.map is one file for all JITs of a process.  A map of an earlier process with the
 * same pid must be removed, or perf uses its names.  A map that another JIT of this process writes
 * must be kept.
 */
#ifndef PERFMAP_MAP_OWNER_H
#define PERFMAP_MAP_OWNER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* This process's pid in the namespace of its /proc, by which perf looks for the map, too.  Usually
 * it is getpid().  In a pid namespace with the /proc (and /tmp) of the outer one, it is the outer
 * pid (tried with perf 6.1). */
pid_t pm_name_pid(void);

/* Whether this process has the file with STATUS open for writing. */
bool pm_is_written_here(const struct stat *status);

/* Whether the file with STATUS was written since this process started.  If so, another JIT of it
 * may have written and closed the file, as Java does.  False if there is no /proc.  Exec does not
 * restart a process. */
bool pm_is_of_this_life(const struct stat *status);

/* Set O_APPEND on this process's other descriptors that write the file FD.  Otherwise node
 * --perf-basic-prof writes each line after its own last one, over anything that is there.  Returns
 * whether there are any.
 */
bool pm_let_others_append(int fd);

/* Whether this process, forked from PARENT, may close inherited descriptors.  It may not if the two
 * share a descriptor table (clone(CLONE_FILES)), or if that can't be determined. */
bool pm_has_own_descriptors(pid_t parent);

#endif
