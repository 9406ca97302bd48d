/* The profile of one run, as small as it can be kept: BENCH.bench/NAME.run.  Little-endian:
 *
 *     offset  size  what
 *          0     8  "pjrun\r\n\x1a"
 *          8     4  version: 3; version 2, which is read too, has no columns
 *         12     4  bytes of the body, at most 64 MiB
 *         16     -  the body, as one zstd frame with a checksum, up to the end of the file
 *
 * The body, each number in LEB128, each list behind its length, and nothing behind the last:
 *
 *     strings   bytes, then as many; string 0 is "", and not in the list
 *     frames    strings: name, module, file; line; column; string: tier; kind; inlined
 *     nodes     parent, frame; the root, node 0, is not in the list
 *     places    offset in the code, line, string: file; place 0, not known, is not in the list
 *     threads   strings: name, its process's name
 *     events    string: name; whether its periods are ns
 *     samples   node, thread, event, place; how many; their periods, added up
 *
 * An index in an entry is less than the number of entries that it refers to.  A parent's index is
 * less than the node's own.  The kind is an enum frame_kind.  The values of inlined and ns are 0 or
 * 1.  Strings can be shown as they are (code_name.h).  Anything else is broken: the writer never
 * wrote it.
 *
 * Times, pids and addresses are left out: they are other ones in each run, and most of the size. */
#ifndef PERFJIT_RUN_FILE_H
#define PERFJIT_RUN_FILE_H

#include "injector/findings/findings.h"
#include "injector/profile/call_profile.h"

/* The list of the runs in a folder, by which a folder is known as a bench
 * (compare/kept_runs/bench_list.h). */
#define BENCH_LIST_NAME "bench.txt"

enum {
    RUN_FILE_VERSION = 3,
    RUN_FILE_OLDEST = 2,
    RUN_FILE_MOST_BYTES = 64 << 20,
    RUN_FILE_MOST_SAMPLES = 1 << 22
};

/* Write PROFILE to PATH, which appears whole or not at all.  Returns 0, or -1 with the failure text
 * set. */
int run_file_write(const char *path, const struct call_profile *profile, struct findings *findings);

/* How samples that were counted together become a profile's samples.  PERIODS: one sample with the
 * sum of their periods.  COUNTS: one sample with their number.  EACH: all of them, with equal
 * periods, at most 4 194 304 in a file. */
enum run_samples { RUN_PERIODS, RUN_COUNTS, RUN_EACH };

/* Whether the file PATH is one of these, by its first bytes. */
bool run_file_is(const char *path);

/* Read PATH.  Returns 0, or -1 with the failure text set.  Release PROFILE with call_profile_free
 * in either case. */
int run_file_read(struct call_profile *profile, const char *path, enum run_samples samples,
                  struct findings *findings);

/* The same of the SIZE bytes of a file that is in memory; PATH is for messages. */
int run_file_parse(struct call_profile *profile, const char *path, const uint8_t *bytes,
                   size_t size, enum run_samples samples, struct findings *findings);

/* The same of its body, of one of the VERSIONs; PROFILE has begun. */
int run_file_parse_body(struct call_profile *profile, const char *path, uint32_t version,
                        const uint8_t *body, size_t size, enum run_samples samples,
                        struct findings *findings);

#endif
