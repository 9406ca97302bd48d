/* See core_map.h. */
#include "injector/debug/snapshot/core_map.h"

#include "injector/recording/host/trusted_owner.h"
#include "injector/text/plural.h"
#include "perfmap/perfmap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { CAUSE_BYTES = 256 };

/* File systems tell times in steps of up to so many seconds. */
enum { STEP_S = 2 };

/* Whether the file of MAP can't be the process's; then CAUSE is set. */
static bool is_foreign(const struct stat *map, const struct stat *core, char *cause)
{
    if (!S_ISREG(map->st_mode))
        snprintf(cause, CAUSE_BYTES, "is not a regular file");
    else if (!owner_is_trusted(map->st_uid, core->st_uid))
        snprintf(cause, CAUSE_BYTES, "belongs to user %u, who may not be the process's",
                 map->st_uid);
    else if (map->st_mtim.tv_sec > core->st_mtim.tv_sec + STEP_S)
        snprintf(cause, CAUSE_BYTES,
                 "is younger, by %jd s, than the core: it is a later process's with the same pid",
                 (intmax_t)(map->st_mtim.tv_sec - core->st_mtim.tv_sec));
    else
        return false;
    return true;
}

/* Whether most of TABLE's functions lie elsewhere; then CAUSE and KIND are set.  If all do, an
 * earlier process had the pid, and nothing is lost. */
static bool is_elsewhere(const struct snapshot *snapshot, const struct perfmap_table *table,
                         char *cause, enum finding_kind *kind)
{
    size_t count, inside = 0;
    const struct perfmap_entry *entries = perfmap_entries(table, &count);
    for (size_t i = 0; i < count; i++) {
        const struct snapshot_map *map = snapshot_map_at(snapshot, entries[i].addr);
        inside += map && map->executable;
    }
    snprintf(cause, CAUSE_BYTES,
             "of its %zu function%s only %zu lie%s in executable memory of the core", count,
             plural(count), inside, verb_ending(inside));
    *kind = inside ? FINDING_MAP_NOT_OURS : FINDING_MAP_STALE;
    return 2 * inside < count;
}

/* Report why the file PATH with STATUS is not used.  Returns false if it can be. */
static bool is_refused(const char *path, const struct stat *status, const struct snapshot *snapshot,
                       struct findings *findings)
{
    char cause[CAUSE_BYTES];
    struct stat core;
    struct perfmap_table *table = NULL;
    enum finding_kind kind;
    bool refused = true;
    if (stat(snapshot->path, &core))
        report_finding(findings, FINDING_MAP_NOT_OURS, "%s: the core can't be looked at", path);
    else if (is_foreign(status, &core, cause))
        report_finding(findings, FINDING_MAP_NOT_OURS, "%s: %s", path, cause);
    else if (perfmap_read(&table, path, cause, sizeof cause))
        report_finding(findings, FINDING_MAP_UNUSABLE, "%s", cause);
    else if (is_elsewhere(snapshot, table, cause, &kind))
        report_finding(findings, kind, "%s: %s", path, cause);
    else
        refused = false;
    perfmap_free(table);
    return refused;
}

int core_map_find(char **path, const struct snapshot *snapshot, const char *root,
                  struct findings *findings)
{
    struct stat status;
    if (asprintf(path, "%s/tmp/perf-%" PRIu32 ".map", root ? root : "", snapshot->pid) < 0) {
        *path = NULL;
        return report_failure(findings, "out of memory");
    }
    if (lstat(*path, &status) || is_refused(*path, &status, snapshot, findings)) {
        free(*path);
        *path = NULL;
    }
    return 0;
}
