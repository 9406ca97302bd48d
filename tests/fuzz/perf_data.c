/* A perf.data file or stream: read as plain, played into a profile with its processes and threads,
 * and written again with records added and left out.  What was written must be as good as what was
 * read. */
#include "injector/inject/merge/perf_rewrite.h"
#include "injector/log/owner/dump_claim.h"
#include "injector/recording/host/recording_host.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_input.h"
#include "injector/recording/perf_data/perf_pipe.h"
#include "injector/recording/thread_list.h"
#include "tests/fuzz/fuzz_target.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ADDED_TYPE = 1000, ADDED_BYTES = 16, MAX_ADDED = 4, BUFFER_BYTES = 1 << 18 };

struct run {
    struct perf_input input;
    struct records records;
    struct process_lives lives;
    struct dump_claims claims;
    struct thread_list threads;
    struct findings findings;
    uint64_t added_ns[MAX_ADDED];
    size_t added_count;
};

static bool added_time(void *context, size_t index, uint64_t *time_ns)
{
    const struct run *run = context;
    if (index >= run->added_count)
        return false;
    *time_ns = run->added_ns[index];
    return true;
}

static int added_put(void *context, size_t index, struct byte_sink *sink)
{
    (void)context;
    sink_u32(sink, ADDED_TYPE);
    sink_u16(sink, 0);
    sink_u16(sink, ADDED_BYTES);
    sink_u64(sink, index);
    return 0;
}

/* A file in memory, the same one each time. */
static struct output_file begin_output(void)
{
    static uint8_t buffer[BUFFER_BYTES];
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("perf.jit.data", MFD_CLOEXEC);
    promise(fd >= 0 && lseek(fd, 0, SEEK_SET) == 0 && ftruncate(fd, 0) == 0, "there is memory");
    return (struct output_file){.path = "fuzz.out", .in_memory = true, .fd = fd, .buffer = buffer};
}

static int null_device(void)
{
    static int fd = -1;
    if (fd < 0)
        fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return fd;
}

/* The output has the samples of the input, and can be sent on as a stream. */
static void read_again(const struct run *run, const uint8_t *data, size_t size)
{
    struct findings findings = {.quiet = true};
    struct perf_file file;
    struct records records = {0};
    if (perf_file_view(&file, "fuzz.out", data, size, &findings) ||
        records_read(&records, &file, &findings))
        promise(false, findings.failure);
    promise(records.sample_count == run->records.sample_count, "no sample is lost");
    promise(findings.count[FINDING_PROFILE_TRUNCATED] == 0, "the output is whole");
    perf_pipe_write(null_device(), data, size, "fuzz.out", &findings);
    records_free(&records);
    perf_file_close(&file);
    findings_free(&findings);
}

static void rewrite(struct run *run)
{
    const struct records *records = &run->records;
    struct record_source added = {run, added_time, added_put};
    uint64_t dropped = records->map_count ? records->maps[0].record.offset : 0;
    struct output_file output = begin_output();
    for (size_t i = 0; i < MAX_ADDED && i < records->sample_count; i++)
        run->added_ns[run->added_count++] = records->sample_times_ns[i];
    if (perf_rewrite(&output, &run->input.file, &records->marks, &dropped, records->map_count > 0,
                     &added, NULL, &run->findings))
        return;
    const uint8_t *view = output_file_view(&output, &run->findings);
    promise(view != NULL, "the output is in memory");
    read_again(run, view, (size_t)output.size);
    munmap((void *)(uintptr_t)view, (size_t)output.size);
}

/* Chains of samples are whole, but for those that are damaged. */
static void expect_joined(const struct perf_file *file)
{
    struct perf_walk walk = perf_walk_begin(file);
    struct perf_record record;
    while (perf_walk_next(&walk, &record, NULL))
        promise(record.type != PERF_RECORD_CALLCHAIN_DEFERRED, "no chain is deferred");
}

static void ask(const struct run *run)
{
    const struct records *records = &run->records;
    struct perf_record record;
    struct recording_host host;
    size_t count;
    for (size_t i = 0; i < records->map_count && i < 8; i++) {
        uint32_t pid = records->maps[i].map.pid;
        promise(records_maps_of(records, pid, &count) && count > 0, "a map is its process's");
        thread_names_at(&records->names, pid, pid, UINT64_MAX);
        records_namespace_of(records, pid, records->maps[i].time_ns);
        records_has_sample_of(records, pid);
        promise(strlen(records->maps[i].map.filename) < 1 << 16, "a name ends in its record");
    }
    records_any_trailer(records, &record);
    recording_host_read(&host, &run->input.file);
}

/* Of a recording without samples nothing may be left, and nobody comes so far with one. */
static void inject(struct run *run)
{
    if (records_read(&run->records, &run->input.file, &run->findings))
        return;
    ask(run);
    if (process_lives_read(&run->lives, &run->records, &run->findings) ||
        dump_claims_collect(&run->claims, &(struct dump_claim_options){0}, &run->records,
                            &run->lives, &run->findings) ||
        thread_list_read(&run->threads, &run->input.file))
        return;
    if (run->records.sample_count)
        rewrite(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct run run;
    run = (struct run){.findings = {.quiet = true}};
    if (perf_input_view(&run.input, "fuzz.data", bytes, size, &run.findings) == 0) {
        expect_joined(&run.input.file);
        inject(&run);
    }
    thread_list_free(&run.threads);
    dump_claims_free(&run.claims);
    process_lives_free(&run.lives);
    records_free(&run.records);
    perf_input_close(&run.input);
    findings_free(&run.findings);
    return 0;
}
