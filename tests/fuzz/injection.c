/* A recording and a dump that is given by hand, through everything that perfjit inject does but
 * writing ELF files. */
#include "injector/check/census/sample_census.h"
#include "injector/inject/image/unwind_table.h"
#include "injector/inject/merge/added_map.h"
#include "injector/inject/merge/perf_rewrite.h"
#include "injector/inject/merge/recording_merge.h"
#include "tests/fuzz/recorded_processes.h"

struct run {
    struct recorded_processes recorded;
    struct image_plan plan;
    struct recording_merge merge;
};

static int plan(struct run *run)
{
    struct recorded_processes *recorded = &run->recorded;
    bool stacks = perf_file_has_stacks(&recorded->input.file);
    for (size_t i = 0; i < recorded->processes.count; i++)
        if (image_plan_add(&run->plan, &recorded->processes.items[i], &recorded->timelines[i],
                           stacks ? LAYOUT_APART : LAYOUT_IMAGE, &recorded->findings) ||
            unwind_tables_place(&run->plan, recorded->processes.items, (uint32_t)i,
                                &recorded->findings))
            return -1;
    const struct recording_merge_request request = {.records = &recorded->records,
                                                    .processes = &recorded->processes,
                                                    .timelines = recorded->timelines,
                                                    .plan = &run->plan,
                                                    .dso_dir = "/tmp/fuzz.dso"};
    return recording_merge_plan(&run->merge, &request, &recorded->findings);
}

static void put_added(struct run *run)
{
    static uint8_t record[RECORD_MAX_BYTES];
    const struct added_records *added = &run->merge.added;
    for (size_t i = 0; i < added->count; i++) {
        struct byte_sink sink = byte_sink_over(record, sizeof record);
        promise(added_map_put(&added->items[i], &run->merge.source, &sink) == 0 && !sink.overflow,
                "a record fits");
        promise(sink.size == 0 || /* a name that nobody has told */
                    (record[6] | (size_t)record[7] << 8) == sink.size,
                "a record says its size");
        promise(i == 0 || added->items[i - 1].time_ns <= added->items[i].time_ns, "records ascend");
    }
}

static void take_census(struct recorded_processes *run)
{
    const struct census_question question = {
        .records = &run->records, .processes = &run->processes, .timelines = run->timelines};
    struct sample_census census;
    promise(sample_census_take(&census, &question, &run->findings) == 0, "samples are counted");
    promise(census.samples == census.outside_user + census.incomplete + census.in_files +
                                  census.named + census.unmapped + census.unknown,
            "each sample is one thing");
    sample_census_free(&census);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct run run;
    struct recorded_input input;
    if (!split_input(&input, bytes, size))
        return 0;
    run = (struct run){.recorded.findings = {.quiet = true}};
    if (read_processes(&run.recorded, &input) == 0 && !run.recorded.processes.no_code &&
        plan(&run) == 0) {
        put_added(&run);
        take_census(&run.recorded);
    }
    recording_merge_free(&run.merge);
    image_plan_free(&run.plan);
    free_processes(&run.recorded);
    return 0;
}
