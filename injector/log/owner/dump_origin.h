/* Whether a file is the dump that a process mapped.  The evidence is the recording's data about the
 * file, or else the file's contents.
 *
 *   which file     The MMAP2 of a mapping has the file's device, inode and generation.  On that
 *                  device another inode is another file, and so is the same inode with another
 *                  generation.  On another device nothing can be said: overlayfs and btrfs show the
 *                  kernel one device and stat(2) another, and the file may have been copied.  If
 *                  perf made the record from /proc, or the file system has no generations, the file
 *                  must not be younger than the recording, because inode numbers are reused.
 *   what is in it  A runtime writes the header, with its pid and the time, when it maps the file.
 *                  The records are of the process's life.  Both are true of a copy of the mapped
 *                  file, and not of a later process's dump.
 */
#ifndef PERFJIT_DUMP_ORIGIN_H
#define PERFJIT_DUMP_ORIGIN_H

#include "injector/log/clock/jit_clock.h"
#include "injector/log/jitdump/jit_dump.h"
#include "injector/recording/host/recording_host.h"
#include "injector/recording/process_life.h"

enum file_identity { FILE_SAME, FILE_OTHER, FILE_UNKNOWN };

/* A header that can't be compared with a mapping. */
#define DISTANCE_UNKNOWN UINT64_MAX

/* A runtime writes the header of its dump, and maps it, within this time. */
#define HEADER_SLACK_NS UINT64_C(1000000000)

/* A dump's first records and its process's FORK or EXIT can be stamped by clocks that are this far
 * apart. */
#define FIT_SLACK_NS UINT64_C(100000000)

/* A header that needs another clock than its flags name counts as this much further away.  If two
 * mappings are each as near as this, the mapping that is near by the header's own clock gets the
 * dump. */
#define UNFLAGGED_NS UINT64_C(10000000)

/* Known facts about the recording. */
struct dump_origin {
    const struct records *records;
    struct recording_host host;
    uint64_t recorded_wall_ns; /* when it was over; UINT64_MAX: it does not tell */
    int64_t recording_owner;   /* of its file; -1: not known */
    uint64_t written_wall_ns;  /* when its file was written, which copying changes; UINT64_MAX: not
                                  known */
};

void dump_origin_begin(struct dump_origin *origin, const struct records *records);

/* Whether DUMP, as it was opened, is the file that MAP maps. */
enum file_identity dump_origin_compare(const struct dump_origin *origin, const struct perf_map *map,
                                       const struct jit_dump *dump);

/* Whether DUMP is that file beyond doubt: no other user can have put it there. */
bool dump_origin_is_proven(const struct dump_origin *origin, const struct perf_map *map,
                           const struct jit_dump *dump);

/* The time between MARKER's mapping and the writing of DUMP's header.  DISTANCE_UNKNOWN if the
 * times are not of one clock, or CLOCK was made from them. */
uint64_t dump_origin_distance(const struct dump_origin *origin, const struct recorded_map *marker,
                              const struct jit_dump *dump, const struct jit_clock *clock);

/* How many of DUMP's functions were loaded in LIFE, give or take SLACK_NS; counts no further than
 * LIMIT.  *TOTAL, if not NULL, is set to the number of all that were looked at. */
size_t dump_origin_fit(const struct process_life *life, const struct jit_dump *dump,
                       const struct jit_clock *clock, uint64_t slack_ns, size_t limit,
                       size_t *total);

#endif
