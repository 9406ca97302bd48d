/* A recording and a dump, as perfjit report, export and flamegraph read them, in every format and
 * table.
 *
 * The input is as injection.c's: u16 size of the dump, the dump, the perf.data; or u16 0 and a
 * script that both are made from. */
#include "injector/backtrace/kernel_symbols.h"
#include "injector/clock/clock_live.h"
#include "injector/export/export_format.h"
#include "injector/flamegraph/flamegraph_page.h"
#include "injector/flamegraph/flamegraph_svg.h"
#include "injector/perf_data/perf_input.h"
#include "injector/profile/profile_reading.h"
#include "injector/report/function_table.h"
#include "injector/report/gprof_text.h"
#include "injector/report/group_table.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/process_script.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_PROCESSES = 64 };

struct run {
    struct perf_input input;
    struct profile profile;
    struct jit_processes processes;
    struct timeline timelines[MAX_PROCESSES];
    struct call_profile calls;
    struct profile_functions functions;
    struct profile_totals totals;
    struct profile_choice choice;
    struct findings findings;
    FILE *nowhere;
};

/* In the place of clock_live_read (the Makefile says so): clocks of a machine that stands still. */
void __wrap_clock_live_read(struct clock_live *live, bool with_cycles);
void __wrap_clock_live_read(struct clock_live *live, bool with_cycles)
{
    *live = (struct clock_live){.width_ns = 100, .cycles_per_s = UINT64_C(2000000000)};
    for (int kind = 0; kind < CLOCK_KINDS; kind++) {
        live->known[kind] = kind != CLOCK_KIND_CYCLES || with_cycles;
        live->now[kind] = 1000000 + (uint64_t)kind * 1000;
    }
}

/* In the place of kernel_symbols_read, as well: no 100 000 lines for each input. */
int __wrap_kernel_symbols_read(struct kernel_symbols *symbols, const char *path);
int __wrap_kernel_symbols_read(struct kernel_symbols *symbols, const char *path)
{
    (void)path;
    *symbols = (struct kernel_symbols){0};
    return 0;
}

/* The path of a file in memory, the same one each time, with BYTES in it. */
static char *dump_path(const uint8_t *bytes, size_t size)
{
    static char path[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("jit-4711.dump", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    promise(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size,
            "there is memory");
    return path;
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
        if (profile_choice_has(&run->choice, &run->calls, &run->calls.samples[i]))
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
    flamegraph_page_write(&graph, run->nowhere);
    promise(flamegraph_svg_write(&graph, run->nowhere) == 0, "there is memory");
    promise(function_table_put(&view) == 0 && gprof_text_put(&view) == 0, "there is memory");
    promise(function_table_put_calls(&view, "", true) >= 0, "there is memory");
    promise(function_table_put_calls(&view, "", false) >= 0, "there is memory");
    for (int group = 0; group < REPORT_GROUPS; group++)
        promise(group_table_put(&view, (enum report_group)group, false) == 0, "there is memory");
}

/* One choice of those that there are, by how long the input is. */
static void answer(struct run *run, size_t size)
{
    run->choice = (struct profile_choice){run->calls.event_count > 1 && (size & 2) ? 1 : 0,
                                          PROFILE_ALL, size & 1 ? WEIGHT_PERIOD : WEIGHT_SAMPLES};
    promise(profile_totals_count(&run->totals, &run->calls, &run->functions, &run->choice) == 0,
            "there is memory");
    check_sums(run);
    if (run->totals.all)
        write_all(run);
}

/* ---- A recording ---- */

static const struct timeline *parent_timeline(const struct run *run,
                                              const struct jit_process *process)
{
    return process->parent ? &run->timelines[process->parent - run->processes.items] : NULL;
}

/* No file is named: what a recording says of where files are is any text. */
static void read_calls(struct run *run, char *path, size_t size)
{
    const struct perf_map_options no_maps = {.only_given = true};
    const struct profile_source source = {.profile = &run->profile,
                                          .processes = &run->processes,
                                          .timelines = run->timelines,
                                          .root = "/nonexistent"};
    struct findings *findings = &run->findings;
    size_t inherited = 0;
    if (profile_read(&run->profile, &run->input.file, findings))
        return;
    if (jit_processes_read(&run->processes, &run->profile, &path, 1, &no_maps, NULL, true,
                           findings) &&
        !run->processes.none)
        return;
    if (run->processes.count > MAX_PROCESSES)
        return;
    for (size_t i = 0; i < run->processes.count; i++)
        if (timeline_play(&run->timelines[i], &run->processes.items[i],
                          parent_timeline(run, &run->processes.items[i]), &inherited,
                          run->profile.sample_times_ns, run->profile.sample_count, findings))
            return;
    if (profile_reading_go(&run->calls, &source, findings) == 0 &&
        profile_functions_find(&run->functions, &run->calls) == 0)
        answer(run, size);
}

static void release(struct run *run)
{
    profile_totals_free(&run->totals);
    profile_functions_free(&run->functions);
    call_profile_free(&run->calls);
    for (size_t i = 0; i < MAX_PROCESSES && i < run->processes.count; i++)
        timeline_free(&run->timelines[i]);
    jit_processes_free(&run->processes);
    profile_free(&run->profile);
    perf_input_close(&run->input);
    findings_free(&run->findings);
}

static void run_all(const uint8_t *dump, size_t dump_bytes, const uint8_t *recording, size_t size)
{
    static struct run run;
    static FILE *nowhere;
    if (!nowhere)
        nowhere = fopencookie(NULL, "w", (cookie_io_functions_t){.write = take_bytes});
    run = (struct run){.findings = {.quiet = true}, .nowhere = nowhere};
    if (nowhere && perf_input_view(&run.input, "fuzz.data", recording, size, &run.findings) == 0)
        read_calls(&run, dump_path(dump, dump_bytes), size);
    release(&run);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct process_script script;
    size_t dump_bytes = size < 2 ? 0 : bytes[0] | (size_t)bytes[1] << 8;
    if (size < 2 || dump_bytes > size - 2)
        return 0;
    if (dump_bytes) {
        run_all(bytes + 2, dump_bytes, bytes + 2 + dump_bytes, size - 2 - dump_bytes);
    } else {
        process_script_play(&script, bytes + 2, size - 2);
        run_all(script.dump.bytes, script.dump.sink.size, script.profile.bytes,
                script.profile.sink.size);
    }
    return 0;
}
