/* Plans the differences between input and output.  The maps of all processes are added, and the
 * records that they replace are dropped. */
#ifndef PERFJIT_RECORDING_MERGE_H
#define PERFJIT_RECORDING_MERGE_H

#include "injector/files/output_file.h"
#include "injector/inject/merge/added_record.h"
#include "injector/inject/merge/perf_rewrite.h"
#include "injector/unwind/stacks/chain_tree.h"

/* The inputs of a merge; all must outlive it. */
struct recording_merge_request {
    const struct records *records;
    const struct jit_processes *processes;
    struct timeline *timelines;         /* which have been played */
    const struct image_plan *plan;      /* where the images stand */
    const char *dso_dir;                /* where they will be */
    const struct record_change *change; /* changes to other records, or NULL; perf does not unwind
                                         * then, and need not forget */
    const struct chain_tree *chains;    /* the chains for some samples, or NULL */
    const struct rooted_maps *rooted;   /* maps that get another name, or NULL */
};

struct recording_merge {
    struct recording_merge_request request;
    struct added_record_source source;
    struct added_records added;
    uint64_t *dropped; /* offsets of records, ascending */
    size_t dropped_count;
};

/* Work out the added and the dropped records.  MERGE is zeros.  Returns 0, or -1 with the failure
 * text set.  Release with recording_merge_free in either case. */
int recording_merge_plan(struct recording_merge *merge,
                         const struct recording_merge_request *request, struct findings *findings);

/* Write the output; the images have their build-ids.  Returns 0, or -1 with the failure text
 * set. */
int recording_merge_write(struct recording_merge *merge, struct output_file *output,
                          struct findings *findings);

void recording_merge_free(struct recording_merge *merge);

#endif
