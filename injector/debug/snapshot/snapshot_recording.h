/* A snapshot as a recording in perf's format, of one moment: the mappings, and a sample in each
 * thread.  Code that reads recordings can then read cores and live processes, too.  It finds which
 * dump belongs to which process, whether the dump is trusted, and the code at an address.
 *
 *     COMM                    of the process
 *     MMAP2                   of each executable mapping, at time 0: perf record -p writes such
 *                             records for mappings that exist already
 *     SAMPLE                  of each thread: its pc, pid, tid, and the moment
 *     features                ARCH, OSRELEASE, HOSTNAME
 *
 * A stack is larger than a record can be, and stays in the snapshot.
 */
#ifndef PERFJIT_SNAPSHOT_RECORDING_H
#define PERFJIT_SNAPSHOT_RECORDING_H

#include "injector/debug/snapshot/snapshot.h"
#include "injector/files/memory_file.h"

/* After all that is logged. */
#define SNAPSHOT_LAST_NS ((uint64_t)INT64_MAX)

/* Write the recording of SNAPSHOT at TIME_NS into FILE.  Returns 0, or -1 with the failure text
 * set. */
int snapshot_recording_write(const struct snapshot *snapshot, uint64_t time_ns,
                             struct memory_file *file, struct findings *findings);

#endif
