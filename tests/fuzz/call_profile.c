/* A recording and a dump, as perfjit report, export and flamegraph read them, in every format and
 * table. */
#include "injector/native/symbols/kernel_symbols.h"
#include "injector/profile/export/export_format.h"
#include "injector/profile/flamegraph/flamegraph_page.h"
#include "injector/profile/flamegraph/flamegraph_svg.h"
#include "injector/profile/profile_reading.h"
#include "injector/profile/report/function_table.h"
#include "injector/profile/report/gprof_text.h"
#include "injector/profile/report/group_table.h"
#include "tests/fuzz/recorded_processes.h"

struct run {
    struct recorded_processes recorded;
    struct call_profile calls;
    struct profile_functions functions;
    struct profile_totals totals;
    struct profile_choice choice;
    FILE *nowhere;
};

/* In the place of kernel_symbols_read (the Makefile says so): no 100 000 lines for each input. */
int __wrap_kernel_symbols_read(struct kernel_symbols *symbols, const char *path);
int __wrap_kernel_symbols_read(struct kernel_symbols *symbols, const char *path)
{
    (void)path;
    *symbols = (struct kernel_symbols){0};
    return 0;
}

static ssize_t take_bytes(void *cookie, const char *bytes, size_t count)
{
    (void)cookie;
    (void)bytes;
    return (ssize_t)count;
}

/* ---- What is written ---- */

static void check_sums(const struct run *run)
{
    uint64_t self = run->totals.of_node[0], all = 0;
    for (size_t i = 0; i < run->functions.count; i++)
        self += run->totals.function_self[i];
    for (size_t i = 0; i < run->calls.sample_count; i++)
        if (profile_choice_has(&run->choice, &run->calls.samples[i]))
            all += profile_choice_weight(&run->choice, &run->calls.samples[i]);
    promise(self == run->totals.all && all == run->totals.all, "self times add up to all");
    for (uint32_t i = 1; i < run->calls.node_count; i++)
        promise(run->calls.nodes[i].parent < i &&
                    run->calls.nodes[i].frame < run->calls.frame_count,
                "callers stand before what they call");
}

static void write_all(const struct run *run)
{
    const struct export_request request = {&run->calls, &run->functions, &run->totals, run->choice,
                                           "fuzz.data"};
    const struct flamegraph_request graph = {.profile = &run->calls,
                                             .width = 1200,
                                             .totals = &run->totals,
                                             .choice = run->choice,
                                             .title = "fuzz.data"};
    const struct report_view view = {.profile = &run->calls,
                                     .functions = &run->functions,
                                     .totals = &run->totals,
                                     .choice = run->choice,
                                     .most_rows = SIZE_MAX,
                                     .stream = run->nowhere};
    for (const struct export_format *format = export_formats; format->name; format++)
        promise(format->write(&request, run->nowhere) == 0, "there is memory");
    promise(flamegraph_page_write(&graph, run->nowhere) == 0, "there is memory");
    promise(flamegraph_svg_write(&graph, run->nowhere) == 0, "there is memory");
    promise(function_table_put(&view) == 0 && gprof_text_put(&view) == 0, "there is memory");
    promise(function_table_put_calls(&view, "", true) >= 0, "there is memory");
    promise(function_table_put_calls(&view, "", false) >= 0, "there is memory");
    for (int group = 0; group < REPORT_GROUPS; group++)
        promise(group_table_put(&view, (enum report_group)group, NULL) == 0, "there is memory");
}

/* One choice of those that there are, by how long the input is. */
static void answer(struct run *run, size_t size)
{
    run->choice = (struct profile_choice){.event = run->calls.event_count > 1 && (size & 2) ? 1 : 0,
                                          .weight = size & 1 ? WEIGHT_PERIOD : WEIGHT_SAMPLES};
    promise(profile_totals_count(&run->totals, &run->calls, &run->functions, &run->choice) == 0,
            "there is memory");
    check_sums(run);
    if (run->totals.all)
        write_all(run);
}

/* ---- A recording ---- */

/* No file is named: what a recording says of where files are is any text. */
static void read_calls(struct run *run, size_t size)
{
    const struct profile_source source = {.records = &run->recorded.records,
                                          .processes = &run->recorded.processes,
                                          .timelines = run->recorded.timelines,
                                          .root = "/nonexistent"};
    if (profile_reading_go(&run->calls, &source, &run->recorded.findings) == 0 &&
        profile_functions_find(&run->functions, &run->calls) == 0)
        answer(run, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct run run;
    static FILE *nowhere;
    struct recorded_input input;
    if (!split_input(&input, bytes, size))
        return 0;
    if (!nowhere)
        nowhere = fopencookie(NULL, "w", (cookie_io_functions_t){.write = take_bytes});
    run = (struct run){.recorded.findings = {.quiet = true}, .nowhere = nowhere};
    if (nowhere && read_processes(&run.recorded, &input) == 0)
        read_calls(&run, input.recording_bytes);
    profile_totals_free(&run.totals);
    profile_functions_free(&run.functions);
    call_profile_free(&run.calls);
    free_processes(&run.recorded);
    return 0;
}
