/* A jitdump file: header, records, code log with unwind tables, timeline, image plan, tables, map
 * records and, for one input in 64, the ELF files. */
#include "injector/history/timeline/timeline.h"
#include "injector/inject/image/elf_image.h"
#include "injector/inject/image/unwind_table.h"
#include "injector/inject/merge/added_map.h"
#include "injector/log/code/log_reader.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/scratch_dir.h"

#include <string.h>

enum { MAX_SAMPLES = 256, MAX_TABLE_BYTES = 1 << 20, MAX_ELF_BYTES = 1 << 20 };

struct run {
    struct jit_dump dump;
    struct jit_process process;
    struct recorded_map maps[2];
    uint64_t samples_ns[MAX_SAMPLES];
    size_t sample_count;
    struct timeline timeline;
    struct image_plan plan;
    struct added_records added;
    struct findings findings;
};

/* ---- Records ---- */

static void read_lines(const struct jit_debug_info *info)
{
    struct jit_debug_entry entry;
    size_t at = 0;
    for (uint64_t i = 0; i < info->nr_entry && jit_debug_entry_next(info, &at, &entry); i++)
        promise(at <= info->entries_bytes && strlen(entry.name) < info->entries_bytes,
                "an entry lies in its record");
}

static void read_inlines(const struct jit_inline_info *info)
{
    struct jit_inline call;
    struct jit_inline_span span;
    for (uint32_t i = 0; i < info->nr_inline; i++) {
        jit_inline_at(info, i, &call);
        promise(strlen(call.name) < info->strings_bytes, "a name lies in the strings");
        promise(call.parent == JIT_INLINE_NONE || call.parent < i, "parents stand first");
    }
    for (uint32_t i = 0; i < info->nr_span; i++)
        jit_inline_span_at(info, i, &span);
}

static void read_records(const struct jit_dump *dump)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    uint64_t before = walk.offset;
    for (;;) {
        enum jit_dump_end end = jit_dump_next(&walk, &record);
        if (end == JIT_DUMP_WHOLE || end == JIT_DUMP_CUT)
            return;
        promise(record.offset == before && walk.offset > before && walk.offset <= dump->size,
                "the walk goes on");
        before = walk.offset;
        if (end == JIT_DUMP_MORE && !record.broken && record.id == JIT_CODE_DEBUG_INFO)
            read_lines(&record.debug_info);
        if (end == JIT_DUMP_MORE && !record.broken && record.id == JIT_CODE_INLINE_INFO)
            read_inlines(&record.inline_info);
    }
}

/* ---- The process ---- */

static void put_map(struct run *run, uint64_t time_ns, uint64_t start, uint64_t len,
                    const char *filename)
{
    size_t index = run->process.map_count++;
    run->maps[index] = (struct recorded_map){
        .map = {.pid = 1, .tid = 1, .start = start, .len = len, .filename = filename},
        .time_ns = time_ns,
        .record = {.offset = 100 + index, .number = index}};
}

/* The profile looks at each of the first events; and in the middle of all of them the memory of a
 * function is mapped again. */
static void make_profile(struct run *run)
{
    const struct code_log *log = &run->process.log;
    for (size_t i = 0; i < log->event_count && i < MAX_SAMPLES; i++)
        run->samples_ns[run->sample_count++] = log->events[i].time_ns;
    run->process.maps = run->maps;
    run->process.next = (struct life_moment){UINT64_MAX, UINT64_MAX};
    if (log->function_count == 0)
        return;
    const struct jit_function *function = &log->functions[log->function_count / 2];
    put_map(run, log->events[0].time_ns, log->functions[0].addr & ~UINT64_C(4095), 1 << 16,
            "/lib/one.so");
    put_map(run, log->events[log->event_count / 2].time_ns, function->addr & ~UINT64_C(4095),
            1 << 14, "//anon");
}

static void check_changes(const struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->change_count; i++) {
        const struct change *change = &timeline->changes[i];
        promise(change->start < change->end, "a change has addresses");
        promise(i == 0 || change[-1].time_ns <= change->time_ns, "changes ascend");
    }
}

static void check_images(const struct run *run)
{
    for (size_t i = 0; i < run->plan.image_count; i++) {
        const struct jit_image *image = &run->plan.images[i];
        for (size_t f = 0; f < image->body_count; f++) {
            const struct jit_function *function = image->bodies[f].function;
            promise(function->addr >= image->base + image->text_start &&
                        function->size <= image->base + image->text_end - function->addr,
                    "a function lies in its image");
        }
    }
}

static void fill_tables(const struct run *run, const struct jit_image *image)
{
    uint64_t bytes = image->hdr_bytes + image->eh_frame_bytes;
    if (!image->tables_start || bytes > MAX_TABLE_BYTES)
        return;
    uint8_t *tables = malloc((size_t)bytes);
    promise(tables && unwind_table_fill(image, &run->process, tables) == 0, "tables are made");
    free(tables);
}

static void make_tables(struct run *run)
{
    promise(unwind_tables_place(&run->plan, &run->process, 0, &run->findings) == 0,
            "there is memory");
    for (size_t i = 0; i < run->plan.image_count; i++)
        fill_tables(run, &run->plan.images[i]);
}

static void write_images(struct run *run)
{
    for (size_t i = 0; i < run->plan.image_count && i < 8; i++)
        if (run->plan.images[i].text_end < MAX_ELF_BYTES)
            elf_image_write(&run->plan.images[i], &run->process, i, scratch_dir(), &run->findings);
    empty_scratch_dir();
}

/* ---- The target ---- */

static uint32_t hash_of(const uint8_t *bytes, size_t size)
{
    uint32_t hash = 2166136261;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 16777619;
    return hash;
}

static void inject(struct run *run, uint32_t hash)
{
    const struct thread_list no_threads = {0};
    static char name[] = "fuzz.dump", *path = name;
    const struct jit_clock same = {0};
    struct findings *findings = &run->findings;
    run->process.pid = run->dump.pid;
    run->process.dumps = &run->dump;
    run->process.dump_paths = &path;
    run->process.dump_count = 1;
    if (code_log_read(&run->process.log, &run->dump, 0, &same, true, findings) ||
        code_log_sort(&run->process.log, findings))
        return;
    make_profile(run);
    if (timeline_play(&run->timeline, &run->process, NULL, NULL, run->samples_ns, run->sample_count,
                      findings))
        return;
    check_changes(&run->timeline);
    if (image_plan_add(&run->plan, &run->process, &run->timeline, (enum image_layout)(hash % 3),
                       findings))
        return;
    check_images(run);
    make_tables(run);
    if (hash / 3 % 64 == 0)
        write_images(run);
    added_maps_add(&run->added, &run->timeline, &run->process, 0, &run->plan, &no_threads,
                   RESET_NEVER, findings);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct run run;
    char cause[256];
    run = (struct run){.findings = {.quiet = true}};
    if (jit_dump_view(&run.dump, "fuzz.dump", bytes, size, cause, sizeof cause) == 0) {
        read_records(&run.dump);
        inject(&run, hash_of(bytes, size));
    }
    added_records_free(&run.added);
    image_plan_free(&run.plan);
    timeline_free(&run.timeline);
    code_log_free(&run.process.log);
    jit_dump_close(&run.dump);
    findings_free(&run.findings);
    return 0;
}
