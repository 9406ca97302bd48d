/* What the output has that the input had not, and has no more: the maps of all processes, and
 * without the records that they replace. */
#ifndef PERFJIT_RECORDING_MERGE_H
#define PERFJIT_RECORDING_MERGE_H

#include "injector/files/output_file.h"
#include "injector/inject/merge/added_record.h"
#include "injector/inject/merge/perf_rewrite.h"
#include "injector/unwind/stacks/chain_tree.h"

struct recording_merge {
    struct added_record_source source;
    struct added_records added;
    const struct record_change *change; /* what other records become, or NULL: set by the caller */
    const struct chain_tree *chains;    /* what chains some samples become, or NULL: likewise */
    uint64_t *dropped;                  /* offsets of records, ascending */
    size_t dropped_count;
};

/* Work out what is added to PROFILE for PROCESSES, whose TIMELINES have been played and whose
 * images stand in PLAN and will be in DSO_DIR, and what is dropped; with merge->change perf does
 * not unwind, and need not forget; all of them must outlive MERGE. Returns 0, or -1 with the
 * failure text set.  Release with recording_merge_free in either case. */
int recording_merge_plan(struct recording_merge *merge, const struct records *records,
                       const struct jit_processes *processes, struct timeline *timelines,
                       const struct image_plan *plan, const char *dso_dir,
                       struct findings *findings);

/* Write the output; the images have their build-ids.  Returns 0, or -1 with the failure text
 * set. */
int recording_merge_write(struct recording_merge *merge, struct output_file *output,
                        struct findings *findings);

void recording_merge_free(struct recording_merge *merge);

#endif
