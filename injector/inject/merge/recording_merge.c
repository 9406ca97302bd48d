/* See recording_merge.h. */
#include "injector/inject/merge/recording_merge.h"

#include "injector/arrays/number_sort.h"
#include "injector/files/interruption.h"
#include "injector/inject/merge/added_map.h"
#include "injector/inject/merge/rooted_maps.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/sampled_addresses.h"

#include <stdlib.h>

/* The records to leave out: the markers, and the mappings that would hide JIT code. */
static int collect_dropped(struct recording_merge *merge, const struct jit_processes *processes,
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

/* ---- Maps that no sample needs ---- */

/* Whether all addresses that are looked up stand in the samples as aligned words.  Raw data is not
 * aligned.  In a copy of the stack perf finds more addresses than those words.  A processor's trace
 * is in no sample.  HAS_CHAINS: stacks become chains. */
static bool are_words(const struct perf_file *file, bool has_chains)
{
    uint64_t others = PERF_SAMPLE_RAW | (has_chains ? 0 : PERF_SAMPLE_STACK_USER);
    for (size_t i = 0; i < file->event_count; i++)
        if (file->events[i].format.sample_type & others)
            return false;
    return !perf_file_has_feature(file, PERF_FEATURE_AUXTRACE);
}

/* The limit is a recording this many times as large as the maps.  In a larger one, reading all
 * samples once more would take longer than the maps take. */
enum { LARGE_FOR_MAPS = 16, MAP_BYTES = 128 };

static bool is_map(const struct added_record *record)
{
    return record->kind < ADDED_COMM;
}

/* The address ranges of the maps.  NULL without memory; the caller frees it. */
static struct address_span *spans_of(const struct added_records *added, size_t *count)
{
    struct address_span *spans = calloc(added->count + 1, sizeof *spans);
    *count = 0;
    for (size_t i = 0; spans && i < added->count; i++)
        if (is_map(&added->items[i]))
            spans[(*count)++] = (struct address_span){added->items[i].start, added->items[i].end};
    if (spans)
        *count = address_spans_join(spans, *count);
    return spans;
}

/* What is kept of an image's maps. */
struct kept_image {
    bool is_named;            /* one of its functions' */
    bool has_base;            /* the next is due when a function's is kept: */
    struct added_record base; /* the last one, which is not kept yet */
};

/* Each image's first map stays in any case: the profile names all files, and by these names an
 * injected recording is known. */
static bool is_kept(const struct added_record *record, const struct kept_image *image,
                    const struct sampled_addresses *addresses)
{
    return !is_map(record) || (record->kind == CHANGE_FUNCTION && !image->is_named) ||
           sampled_addresses_meet(addresses, NO_LIFE, record->start, record->end);
}

/* An image's beginning is kept with the next function of that image.  It goes into the place of a
 * record that was read already: its own, or a later one's that is not kept. */
static int keep_met(struct added_records *added, const struct sampled_addresses *addresses,
                    size_t image_count)
{
    size_t kept = 0;
    struct kept_image *images = calloc(image_count + 1, sizeof *images);
    for (size_t i = 0; images && i < added->count; i++) {
        const struct added_record record = added->items[i];
        const bool of_image = record.kind == CHANGE_FUNCTION || record.kind == ADDED_BASE;
        struct kept_image *image = &images[of_image ? record.index : image_count];
        if (record.kind == ADDED_BASE) {
            image->base = record;
            image->has_base = true;
        } else if (is_kept(&record, image, addresses)) {
            if (record.kind == CHANGE_FUNCTION && image->has_base &&
                image->base.process == record.process) {
                added->items[kept] = image->base;
                added->items[kept++].time_ns = record.time_ns;
                image->has_base = false;
            }
            image->is_named = image->is_named || record.kind == CHANGE_FUNCTION;
            added->items[kept++] = record;
        }
    }
    added->count = images ? kept : added->count;
    free(images);
    return images ? 0 : -1;
}

/* perf finds an address in a map that holds it.  A map without any of the samples' addresses, at
 * any time, is never found. */
static int leave_out_unmet(struct recording_merge *merge, struct findings *findings)
{
    const struct perf_file *file = merge->source.records->file;
    if (!are_words(file, merge->request.change != NULL) ||
        merge->added.count * MAP_BYTES < file->records.size / LARGE_FOR_MAPS)
        return 0;
    size_t count;
    struct sampled_addresses addresses = {0};
    struct address_span *spans = spans_of(&merge->added, &count);
    int result = spans ? sampled_addresses_read(&addresses, file, NULL, spans, count) : -1;
    const struct chain_tree *chains = merge->request.chains;
    for (size_t i = 1; !result && chains && i < chains->count; i++)
        result = sampled_addresses_add(&addresses, chains->nodes[i].ip, spans, count);
    sampled_addresses_sort(&addresses);
    if (!result)
        result = keep_met(&merge->added, &addresses, merge->source.plan->image_count);
    sampled_addresses_free(&addresses);
    free(spans);
    return result ? report_failure(findings, "out of memory") : 0;
}

int recording_merge_plan(struct recording_merge *merge,
                         const struct recording_merge_request *request, struct findings *findings)
{
    const struct records *records = request->records;
    const struct jit_processes *processes = request->processes;
    enum reset_policy resets = request->change ? RESET_NEVER : unwinder_reset_policy(records->file);
    merge->request = *request;
    merge->source = (struct added_record_source){.records = records,
                                                 .processes = processes->items,
                                                 .plan = request->plan,
                                                 .dso_dir = request->dso_dir,
                                                 .threads = &records->threads};
    for (size_t i = 0; i < processes->count; i++)
        if (interruption_check(findings) ||
            added_maps_add(&merge->added, &request->timelines[i], &processes->items[i], (uint32_t)i,
                           request->plan, &records->threads, resets, findings))
            return -1;
    added_records_sort(&merge->added);
    if (leave_out_unmet(merge, findings))
        return -1;
    return collect_dropped(merge, processes, request->timelines, findings);
}

static bool added_time(void *context, size_t index, uint64_t *time_ns)
{
    const struct recording_merge *merge = context;
    if (index >= merge->added.count)
        return false;
    *time_ns = merge->added.items[index].time_ns;
    return true;
}

static int added_put(void *context, size_t index, struct byte_sink *sink)
{
    struct recording_merge *merge = context;
    return added_map_put(&merge->added.items[index], &merge->source, sink);
}

/* A map has no chain. */
static int change_put(void *context, const struct perf_record *record, struct byte_sink *sink)
{
    const struct recording_merge_request *request = context;
    int changed = rooted_maps_put(request->rooted, record, sink);
    return changed || !request->change
               ? changed
               : request->change->put(request->change->context, record, sink);
}

int recording_merge_write(struct recording_merge *merge, struct output_file *output,
                          struct findings *findings)
{
    const struct record_change both = {&merge->request, change_put};
    const bool renames = merge->request.rooted && merge->request.rooted->count;
    struct record_source added = {merge, added_time, added_put};
    const struct records *records = merge->source.records;
    return perf_rewrite(output, records->file, &records->marks, merge->dropped,
                        merge->dropped_count, &added, renames ? &both : merge->request.change,
                        findings);
}

void recording_merge_free(struct recording_merge *merge)
{
    free(merge->dropped);
    added_records_free(&merge->added);
}
