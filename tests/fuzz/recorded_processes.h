/* The input of a target that reads a recording and a dump that is given by hand: u16 size of the
 * dump, the dump, the perf.data; or u16 0 and a script that both are made from.  From it, the
 * processes and what happened to their code. */
#ifndef PERFJIT_FUZZ_RECORDED_PROCESSES_H
#define PERFJIT_FUZZ_RECORDED_PROCESSES_H

#include "injector/history/process/process_reading.h"
#include "injector/history/timeline/timeline.h"
#include "injector/log/clock/clock_live.h"
#include "injector/recording/perf_data/perf_input.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/process_script.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MAX_PROCESSES = 64 };

struct recorded_processes {
    struct perf_input input;
    struct records records;
    struct jit_processes processes;
    struct timeline timelines[MAX_PROCESSES];
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

/* The two files of an input. */
struct recorded_input {
    const uint8_t *dump, *recording;
    size_t dump_bytes, recording_bytes;
};

/* Returns false if the SIZE bytes at BYTES are no input. */
static bool split_input(struct recorded_input *input, const uint8_t *bytes, size_t size)
{
    static struct process_script script;
    size_t dump_bytes = size < 2 ? 0 : bytes[0] | (size_t)bytes[1] << 8;
    if (size < 2 || dump_bytes > size - 2)
        return false;
    *input = (struct recorded_input){bytes + 2, bytes + 2 + dump_bytes, dump_bytes,
                                     size - 2 - dump_bytes};
    if (dump_bytes)
        return true;
    process_script_play(&script, bytes + 2, size - 2);
    *input = (struct recorded_input){script.dump.bytes, script.records.bytes, script.dump.sink.size,
                                     script.records.sink.size};
    return true;
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

static const struct timeline *parent_timeline(const struct recorded_processes *run,
                                              const struct jit_process *process)
{
    return process->parent ? &run->timelines[process->parent - run->processes.items] : NULL;
}

/* Returns 0 if INPUT could be read; RUN->processes.no_code if no dump is of a process of it. */
static int read_processes(struct recorded_processes *run, const struct recorded_input *input)
{
    const struct given_file dump = given_file_of(dump_path(input->dump, input->dump_bytes));
    const struct jit_processes_request request = {.dumps = &dump,
                                                  .dump_count = 1,
                                                  .claims = {.any_owner = true},
                                                  .perf_maps = {.only_given = true}};
    struct findings *findings = &run->findings;
    size_t inherited = 0;
    if (perf_input_view(&run->input, "fuzz.data", input->recording, input->recording_bytes,
                        findings) ||
        records_read(&run->records, &run->input.file, findings))
        return -1;
    if (jit_processes_read(&run->processes, &run->records, &request, findings) == RECORDING_FAILED)
        return -1;
    if (run->processes.count > MAX_PROCESSES)
        return -1;
    for (size_t i = 0; i < run->processes.count; i++)
        if (timeline_play(&run->timelines[i], &run->processes.items[i],
                          parent_timeline(run, &run->processes.items[i]), &inherited,
                          run->records.sample_times_ns, run->records.sample_count, findings))
            return -1;
    return 0;
}

static void free_processes(struct recorded_processes *run)
{
    for (size_t i = 0; i < MAX_PROCESSES && i < run->processes.count; i++)
        timeline_free(&run->timelines[i]);
    jit_processes_free(&run->processes);
    records_free(&run->records);
    perf_input_close(&run->input);
    findings_free(&run->findings);
}

#endif
