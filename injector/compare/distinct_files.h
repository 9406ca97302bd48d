/* The files that a comparison reads and writes.  A run that is there twice would count as two.  An
 * output must not overwrite an input. */
#ifndef PERFJIT_DISTINCT_FILES_H
#define PERFJIT_DISTINCT_FILES_H

#include "injector/findings/findings.h"

#include <stdbool.h>
#include <stddef.h>

struct distinct_files {
    const char *const *runs;
    const bool *is_new; /* by run: its side */
    size_t run_count;
    const char *const *lists; /* of benches */
    size_t list_count;
    const char *const *outputs; /* NULL, or "-": no file */
    size_t output_count;
};

/* Returns 0, or -1 with the failure text set: a side has a file twice, or an output is an input.
 * *SHARED is set to whether a file is on both sides.  A file that can't be examined (a pipe, a file
 * that is not there yet) is equal to no other. */
int distinct_files_check(const struct distinct_files *files, bool *shared,
                         struct findings *findings);

/* The name that two of OUTPUTS have in common, "-" too; NULL: there is none. */
const char *distinct_files_common_output(const char *const *outputs, size_t count);

#endif
