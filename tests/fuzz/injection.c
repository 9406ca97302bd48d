/* A recording and a dump that is given by hand, through everything that perfjit inject does but
 * writing ELF files.
 *
 * The input: u16 size of the dump, the dump, the perf.data; or u16 0 and a script that both are
 * made from. */
#include "injector/census/sample_census.h"
#include "injector/clock/clock_live.h"
#include "injector/image/unwind_table.h"
#include "injector/merge/added_map.h"
#include "injector/merge/perf_rewrite.h"
#include "injector/merge/profile_merge.h"
#include "injector/perf_data/perf_input.h"
#include "injector/process/process_reading.h"
#include "injector/timeline/timeline.h"
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
    struct image_plan plan;
    struct profile_merge merge;
    struct findings findings;
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

static int plan(struct run *run)
{
    bool stacks = perf_file_has_stacks(&run->input.file);
    for (size_t i = 0; i < run->processes.count; i++)
        if (image_plan_add(&run->plan, &run->processes.items[i], &run->timelines[i],
                           stacks ? LAYOUT_APART : LAYOUT_IMAGE, &run->findings) ||
            unwind_tables_place(&run->plan, run->processes.items, (uint32_t)i, &run->findings))
            return -1;
    return profile_merge_plan(&run->merge, &run->profile, &run->processes, run->timelines,
                              &run->plan, "/tmp/fuzz.dso", &run->findings);
}

static void put_added(const struct run *run)
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

static void take_census(struct run *run)
{
    const struct census_question question = {&run->profile, &run->processes, run->timelines,
                                             .counts_only = true};
    struct sample_census census;
    promise(sample_census_take(&census, &question, &run->findings) == 0, "samples are counted");
    promise(census.samples == census.outside_user + census.incomplete + census.in_files +
                                  census.named + census.unmapped + census.unknown,
            "each sample is one thing");
    sample_census_free(&census);
}

static const struct timeline *parent_timeline(const struct run *run,
                                              const struct jit_process *process)
{
    return process->parent ? &run->timelines[process->parent - run->processes.items] : NULL;
}

static void inject(struct run *run, char *path)
{
    const struct perf_map_options no_maps = {.only_given = true};
    struct findings *findings = &run->findings;
    size_t inherited = 0;
    if (profile_read(&run->profile, &run->input.file, findings) ||
        jit_processes_read(&run->processes, &run->profile, &path, 1, &no_maps, NULL, true,
                           findings) ||
        run->processes.count > MAX_PROCESSES)
        return;
    for (size_t i = 0; i < run->processes.count; i++)
        if (timeline_play(&run->timelines[i], &run->processes.items[i],
                          parent_timeline(run, &run->processes.items[i]), &inherited,
                          run->profile.sample_times_ns, run->profile.sample_count, findings))
            return;
    if (plan(run) == 0) {
        put_added(run);
        take_census(run);
    }
}

static void release(struct run *run)
{
    profile_merge_free(&run->merge);
    image_plan_free(&run->plan);
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
    run = (struct run){.findings = {.quiet = true}};
    if (perf_input_view(&run.input, "fuzz.data", recording, size, &run.findings) == 0)
        inject(&run, dump_path(dump, dump_bytes));
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
