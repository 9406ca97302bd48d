/* The census of a recording, kept in the file that perfjit inject makes of it: the markers are left
 * out there, and dumps are often removed, so nobody could find the reasons again.
 *
 * It stands at the end of the file, behind all that the header and the feature table name: perf
 * reads nothing there.  A stream has no such place.  Little-endian: 0 u64 magic "PJCENSUS" 8 u32
 * version, 1 12 u32 number of groups 16 u64 samples: all, then outside of user code, incomplete, in
 * files, named, unmapped, unknown 72 the groups, 80 bytes each 0 char[16] the id of the cause
 * (sample_cause.h), then NULs 16 char[32] the process's name, then at least one NUL 48 u32 pid 52
 * u32 0 56 u64 samples 64 u64 address, 72 u64 time      of the first last 16 bytes of the file: u64
 * size of all this, u64 magic It is valid if the file ends with the magic, the size is that of so
 * many groups and fits behind the records, it begins with the magic and version 1, the causes are
 * known, the names end, and the groups' samples are the unknown ones.  If not, it is not there.
 */
#ifndef PERFJIT_KEPT_CENSUS_H
#define PERFJIT_KEPT_CENSUS_H

#include "injector/check/census/sample_census.h"
#include "injector/files/output_file.h"

/* Append CENSUS to OUTPUT.  Returns 0, or -1 with the failure text set. */
int kept_census_write(const struct sample_census *census, struct output_file *output,
                      struct findings *findings);

/* Read that of FILE into CENSUS, which is empty.  Returns 1, 0 if there is none, or -1 without
 * memory. */
int kept_census_read(struct sample_census *census, const struct perf_file *file);

/* What is kept, or sample_census_take if that is nothing, or if files were given for the recording:
 * they may name what had no name. */
int kept_census_or_take(struct sample_census *census, const struct census_question *question,
                        struct findings *findings);

#endif
