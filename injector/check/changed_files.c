/* See changed_files.h. */
#include "injector/check/changed_files.h"

#include "injector/arrays/array.h"
#include "injector/native/native_file.h"
#include "injector/recording/host/recording_host.h"
#include "injector/recording/perf_data/perf_sample.h"
#include "injector/unwind/addresses/life_walk.h"

#include <stdlib.h>

struct search {
    const struct records *records;
    struct space_source source;
    struct native_files files;
    struct walk_sample *samples;
    size_t count, capacity;
};

static int add_sample(struct search *search, const struct perf_record *record)
{
    struct walk_sample sample = {.offset = record->offset, .number = (uint32_t)search->count};
    uint32_t pid;
    if (!perf_record_time(search->records->file, record, &sample.time_ns) ||
        !perf_record_sample(search->records->file, record, &pid, NULL))
        return 0;
    sample.life = process_life_at(&search->source.processes->lives, pid,
                                  (struct life_moment){sample.time_ns, record->number});
    if (sample.life == NO_LIFE)
        return 0;
    if (array_reserve(search->samples, search->count, search->capacity))
        return -1;
    search->samples[search->count++] = sample;
    return 0;
}

static int add_samples(struct search *search)
{
    struct perf_walk walk = perf_walk_begin(search->records->file);
    struct perf_record record;
    int result = 0;
    while (!result && perf_walk_next(&walk, &record, NULL))
        if (record.type == PERF_RECORD_SAMPLE &&
            perf_record_sample_mode(search->records->file, &record) == PERF_MISC_USER)
            result = add_sample(search, &record);
    return result;
}

/* Read the file that a sample was taken in. */
static int visit(void *context, const struct walk_sample *asked, const struct address_space *space)
{
    struct search *search = context;
    struct perf_record record = perf_record_at(search->records->file, asked->offset);
    uint32_t pid;
    uint64_t ip;
    if (!perf_record_sample(search->records->file, &record, &pid, &ip))
        return 0;
    uint32_t what = address_space_at(space, ip);
    return what == SPACE_NOTHING || what & SPACE_FUNCTION || native_file_of(&search->files, what)
               ? 0
               : -1;
}

int changed_files_find(const struct records *records, const struct jit_processes *processes,
                       const struct timeline *timelines, const char *root,
                       struct findings *findings)
{
    struct search search = {.records = records};
    const struct machine *machine = recording_machine(records->file, machine_here());
    int result =
        space_source_begin(&search.source, records, processes, timelines) ||
        native_files_begin(&search.files, records, root, machine ? machine->elf_mach : 0) ||
        add_samples(&search);
    if (!result) {
        struct life_walk walk = {&search.source, search.samples, search.count, &search, visit};
        result = life_walk_go(&walk);
        search.samples = walk.samples;
        native_files_report(&search.files, findings);
    }
    native_files_free(&search.files);
    space_source_free(&search.source);
    free(search.samples);
    return result ? report_failure(findings, "out of memory") : 0;
}
