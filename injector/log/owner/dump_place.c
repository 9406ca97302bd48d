/* See dump_place.h. */
#include "injector/log/owner/dump_place.h"

#include "injector/recording/host/live_process.h"
#include "injector/recording/host/mapped_path.h"
#include "injector/recording/host/recording_host.h"
#include "injector/recording/perf_data/perf_time.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Is the process still there? ---- */

/* The process that has LIFE's pid here and now is the recorded one.  It did not end in the
 * recording, and it was started before its first record.  A process that took over its pid was
 * started later; on another machine, or after a reboot, it may not have been, but then the files
 * differ. */
bool dump_place_lives(const struct records *records, const struct process_life *life,
                      struct live_process *live)
{
    enum { TICK_NS = 20000000 };
    if (!perf_file_uses_clock(records->file, CLOCK_MONOTONIC) ||
        (life->end_ns != UINT64_MAX && !life->execed) ||
        !live_process_read(live, life->pid, UINT64_MAX))
        return false;
    size_t count;
    const struct recorded_map *maps = records_maps_of(records, life->pid, &count);
    uint64_t seen_ns = life->begin.time_ns;
    for (size_t i = 0; i < count && seen_ns == 0; i++)
        seen_ns = maps[i].time_ns;
    if (seen_ns == 0)
        seen_ns = records_last_sample_ns(records);
    return live->started_mono_ns < 0 ||
           (uint64_t)live->started_mono_ns <= perf_time_after(seen_ns, TICK_NS);
}

/* ---- Where it may be ---- */

/* Whether the process that mapped MAP had other mounts than this one has, as far as perf record
 * --namespaces tells. */
static bool has_other_mounts(const struct records *records, const struct recorded_map *map)
{
    uint64_t its = records_mount_namespace_of(records, map->map.pid, map->time_ns);
    uint64_t own = live_process_own_mounts();
    return its && own && its != own;
}

/* The last PARTS parts of the path of MAP, below the directory of RECORDING, if there is such a
 * file; NULL if not. */
static char *path_beside(const char *recording, const struct perf_map *map, unsigned parts)
{
    const char *slash = strrchr(recording, '/');
    size_t start = perf_map_name_length(map->filename), end = start;
    while (start && (map->filename[start - 1] != '/' || --parts))
        start--;
    char *path;
    if (asprintf(&path, "%.*s%.*s", slash ? (int)(slash + 1 - recording) : 0, recording,
                 (int)(end - start), map->filename + start) < 0)
        return NULL;
    struct stat status;
    if (start && stat(path, &status) == 0 && S_ISREG(status.st_mode))
        return path;
    free(path);
    return NULL;
}

/* The place of a dump that was moved, or copied, together with the recording: beside the recording,
 * with or without the directory that libjitdump makes for each process.  NULL: not there. */
static char *moved_along(const struct dump_place_question *question)
{
    const char *recording = question->origin->records->file->path;
    char *path = path_beside(recording, &question->map->map, 2);
    return path ? path : path_beside(recording, &question->map->map, 1);
}

void dump_place_missing(char text[DUMP_PLACE_TEXT_BYTES],
                        const struct dump_place_question *question)
{
    struct recording_host host;
    const struct records *records = question->origin->records;
    recording_host_read(&host, records->file);
    const char *what = "No such file or directory";
    char *moved = moved_along(question);
    if (moved)
        snprintf(text, DUMP_PLACE_TEXT_BYTES,
                 "%s; a file of that name lies beside the recording: --jitdump %s", what, moved);
    else if (question->root)
        snprintf(text, DUMP_PLACE_TEXT_BYTES, "%s, nor below --root %s", what, question->root);
    else if (!recording_host_is_here(&host))
        snprintf(text, DUMP_PLACE_TEXT_BYTES,
                 "%s: it was recorded on %s; --root DIR says where that machine's files are", what,
                 host.name);
    else if (question->foreign || has_other_mounts(records, question->map))
        snprintf(
            text, DUMP_PLACE_TEXT_BYTES,
            "%s: if the process was in a container, --root DIR says where its root file system is",
            what);
    else
        snprintf(text, DUMP_PLACE_TEXT_BYTES, "%s", what);
    free(moved);
}

struct search {
    const struct dump_place_question *question;
    struct dump_place *place; /* the best so far */
    enum dump_place_result result;
};

static bool is_found(const struct search *search)
{
    return search->result == DUMP_PLACE_FOUND && search->place->identity == FILE_SAME;
}

/* TRUSTED: a file that can't be compared may be the right one.  Another file may be a copy if its
 * header has the pid. */
static enum dump_place_result result_of(const struct dump_place_question *question,
                                        const struct dump_place *place, bool trusted)
{
    if (place->cause[0])
        return trusted ? DUMP_PLACE_UNUSABLE : DUMP_PLACE_MISSING;
    if (place->identity == FILE_SAME)
        return DUMP_PLACE_FOUND;
    if (place->identity == FILE_UNKNOWN)
        return trusted ? DUMP_PLACE_FOUND : DUMP_PLACE_MISSING;
    return trusted && place->dump.pid == question->number ? DUMP_PLACE_FOUND : DUMP_PLACE_REPLACED;
}

/* Whether the candidate is better than the best so far. */
static bool is_better(const struct search *search, enum dump_place_result result,
                      enum file_identity identity)
{
    if (search->result == DUMP_PLACE_FOUND)
        return result == DUMP_PLACE_FOUND && identity == FILE_SAME;
    return result == DUMP_PLACE_FOUND || search->result == DUMP_PLACE_MISSING ||
           (search->result == DUMP_PLACE_REPLACED && result == DUMP_PLACE_UNUSABLE);
}

static void release(struct dump_place *place)
{
    jit_dump_close(&place->dump);
    free(place->path);
}

/* Look at the map's path below ROOT. */
static int look(struct search *search, const char *root, bool trusted)
{
    struct stat status;
    struct dump_place place = {.identity = FILE_UNKNOWN};
    const struct dump_place_question *question = search->question;
    if (is_found(search))
        return 0;
    place.path = mapped_path(root, question->map->map.filename);
    if (!place.path)
        return -1;
    if (stat(place.path, &status)) {
        free(place.path);
        return 0;
    }
    if (jit_dump_open(&place.dump, place.path, place.cause, sizeof place.cause) == 0)
        place.identity = dump_origin_compare(question->origin, &question->map->map, &place.dump);
    enum dump_place_result result = result_of(question, &place, trusted);
    if (is_better(search, result, place.identity)) {
        release(search->place);
        *search->place = place;
        search->result = result;
    } else {
        release(&place);
    }
    return 0;
}

int dump_place_find(struct dump_place *place, const struct dump_place_question *question,
                    enum dump_place_result *result)
{
    struct search search = {question, place, DUMP_PLACE_MISSING};
    char own_root[LIVE_ROOT_BYTES];
    struct live_process live;
    *place = (struct dump_place){.identity = FILE_UNKNOWN};
    live_process_root(own_root, question->life->pid);
    if ((question->root && look(&search, question->root, true)) ||
        look(&search, "", !question->foreign || !question->map->map.has_inode) ||
        (!is_found(&search) &&
         look(&search, own_root,
              dump_place_lives(question->origin->records, question->life, &live))))
        return -1;
    *result = search.result;
    return 0;
}
