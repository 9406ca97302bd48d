/* See profile_merge.h. */
#include "injector/merge/profile_merge.h"

#include "injector/arrays/number_sort.h"
#include "injector/files/interruption.h"
#include "injector/merge/added_map.h"

#include <stdlib.h>

/* The records to leave out: the markers, and the mappings that would hide JIT code. */
static int collect_dropped(struct profile_merge *merge, const struct jit_processes *processes,
                           const struct timeline *timelines, struct findings *findings)
{
    size_t count = processes->marker_count;
    for (size_t i = 0; i < processes->count; i++)
        count += timelines[i].dropped_count;
    merge->dropped = malloc((count + 1) * sizeof *merge->dropped);
    if (!merge->dropped)
        return report_failure(findings, "out of memory");
    for (size_t i = 0; i < processes->marker_count; i++)
        merge->dropped[merge->dropped_count++] = processes->marker_offsets[i];
    for (size_t i = 0; i < processes->count; i++)
        for (size_t d = 0; d < timelines[i].dropped_count; d++)
            merge->dropped[merge->dropped_count++] = timelines[i].dropped[d];
    number_sort(merge->dropped, merge->dropped_count, sizeof *merge->dropped);
    return 0;
}

int profile_merge_plan(struct profile_merge *merge, const struct profile *profile,
                       const struct jit_processes *processes, struct timeline *timelines,
                       const struct image_plan *plan, const char *dso_dir,
                       struct findings *findings)
{
    enum reset_policy resets = merge->change ? RESET_NEVER : unwinder_reset_policy(profile->file);
    merge->source =
        (struct added_record_source){profile, processes->items, plan, dso_dir, &profile->threads};
    for (size_t i = 0; i < processes->count; i++)
        if (interruption_check(findings) ||
            added_maps_add(&merge->added, &timelines[i], &processes->items[i], (uint32_t)i, plan,
                           &profile->threads, resets, findings))
            return -1;
    added_records_sort(&merge->added);
    return collect_dropped(merge, processes, timelines, findings);
}

static bool added_time(void *context, size_t index, uint64_t *time_ns)
{
    const struct profile_merge *merge = context;
    if (index >= merge->added.count)
        return false;
    *time_ns = merge->added.items[index].time_ns;
    return true;
}

static int added_put(void *context, size_t index, struct byte_sink *sink)
{
    const struct profile_merge *merge = context;
    return added_map_put(&merge->added.items[index], &merge->source, sink);
}

int profile_merge_write(struct profile_merge *merge, struct output_file *output,
                        struct findings *findings)
{
    struct record_source added = {merge, added_time, added_put};
    return perf_rewrite(output, merge->source.profile->file, merge->dropped, merge->dropped_count,
                        &added, merge->change, findings);
}

void profile_merge_free(struct profile_merge *merge)
{
    free(merge->dropped);
    added_records_free(&merge->added);
}
