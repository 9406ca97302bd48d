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

/* Each image's first map stays in any case: the profile names all files, and by these names an
 * injected recording is known. */
static int keep_met(struct added_records *added, const struct sampled_addresses *addresses,
                    size_t image_count)
{
    size_t kept = 0;
    bool *named = calloc(image_count + 1, sizeof *named);
    for (size_t i = 0; named && i < added->count; i++) {
        const struct added_record *record = &added->items[i];
        bool first = record->kind == CHANGE_FUNCTION && !named[record->index];
        if (first)
            named[record->index] = true;
        if (!is_map(record) || first ||
            sampled_addresses_meet(addresses, NO_LIFE, record->start, record->end))
            added->items[kept++] = *record;
    }
    added->count = named ? kept : added->count;
    free(named);
    return named ? 0 : -1;
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

/* ---- Where files begin ----
 *
 * Where an image's file would begin in memory, a map of one byte says so.  perf needs no such map.
 * hotspot takes the last map of a file's beginning for the place of that file, and else finds the
 * names of one function only.  One byte is enough for hotspot, and takes the least away from what
 * may be there. */

static bool has_place(const struct jit_image *image)
{
    return image->base && image->body_count > 1 && image_has_header_page(image);
}

static bool has_places(const struct image_plan *plan)
{
    for (size_t i = 0; i < plan->image_count; i++)
        if (has_place(&plan->images[i]))
            return true;
    return false;
}

/* What began last in a process. */
struct last_file {
    const struct jit_image *image;
    size_t map_count; /* the process's own maps up to then */
};

/* Whether a file's beginning was mapped since the last call for PROCESS, up to TIME_NS. */
static bool file_came(struct last_file *last, const struct jit_process *process, uint64_t time_ns)
{
    bool came = false;
    for (; last->map_count < process->map_count; last->map_count++) {
        const struct recorded_map *map = &process->maps[last->map_count];
        if (map->time_ns > time_ns)
            break;
        came = came || (map->map.pgoff == 0 && !perf_map_is_memory(&map->map));
    }
    return came;
}

/* Add such a map in front of the function's map FUNCTION, if another file began since the last. */
static int add_beginning(struct added_records *added, struct last_file *last,
                         const struct jit_process *process, const struct jit_image *image,
                         const struct added_record *function)
{
    if (!has_place(image))
        return 0;
    if (!file_came(last, process, function->time_ns) && last->image == image)
        return 0;
    last->image = image;
    struct added_record beginning = *function;
    beginning.kind = ADDED_BASE;
    beginning.start = image->base;
    beginning.end = image->base + 1;
    beginning.pgoff = 0;
    return added_records_append(added, beginning);
}

/* The maps stand in order, and those that nobody needs are left out. */
static int add_beginnings(struct recording_merge *merge, const struct jit_processes *processes,
                          struct findings *findings)
{
    const struct image_plan *plan = merge->source.plan;
    if (!has_places(plan))
        return 0;
    struct added_records without = merge->added;
    struct last_file *last = calloc(processes->count + 1, sizeof *last);
    int result = last ? 0 : -1;
    merge->added = (struct added_records){0};
    for (size_t i = 0; i < without.count && !result; i++) {
        const struct added_record *record = &without.items[i];
        if (record->kind == CHANGE_FUNCTION)
            result = add_beginning(&merge->added, &last[record->process],
                                   &processes->items[record->process], &plan->images[record->index],
                                   record);
        if (!result)
            result = added_records_append(&merge->added, *record);
    }
    added_records_free(&without);
    free(last);
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
    if (leave_out_unmet(merge, findings) || add_beginnings(merge, processes, findings))
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
