/* /tmp/perf-<pid>.map of the process that left a core.
 *
 * A core tells neither when its process began nor on which machine it ran.  So nothing proves that
 * the map is this process's.  It is taken if
 *  - it is a regular file, no symbolic link, of root, this user, or the owner of the core,
 *  - it was not written to after the core was: by a later process with the same pid,
 *  - half of its functions lie in executable memory that the process had: address space layouts are
 *    random, and another process's code lies elsewhere.
 */
#ifndef PERFJIT_CORE_MAP_H
#define PERFJIT_CORE_MAP_H

#include "injector/debug/snapshot/snapshot.h"

/* Look for the map of SNAPSHOT, a core, below ROOT (NULL: /).  A map that fails one of these tests
 * is a finding.  Returns 0, with *PATH, which the caller frees, or NULL: there is none, or none
 * that can be used; or -1 with the failure text set. */
int core_map_find(char **path, const struct snapshot *snapshot, const char *root,
                  struct findings *findings);

#endif
