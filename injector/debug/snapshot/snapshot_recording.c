/* See snapshot_recording.h; the format stands in perf_format.h. */
#include "injector/debug/snapshot/snapshot_recording.h"

#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_plain.h"
#include "injector/recording/perf_data/perf_sample.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>

enum {
    ATTR_BYTES = 112, /* perf_event_attr, version 5: with clockid */
    MOST_RECORD_BYTES = 8192,
};

static struct sample_format format_of_samples(void)
{
    struct sample_format format = {
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME, .sample_id_all = true};
    sample_format_lay_out(&format);
    return format;
}

static void put_attr(struct byte_sink *sink)
{
    enum { SOFTWARE = 1, CPU_CLOCK = 0 };
    sink_u32(sink, SOFTWARE);
    sink_u32(sink, ATTR_BYTES);
    sink_u64(sink, CPU_CLOCK);
    sink_u64(sink, 1); /* period */
    sink_u64(sink, format_of_samples().sample_type);
    sink_u64(sink, 0); /* read_format */
    sink_u64(sink, PERF_ATTR_SAMPLE_ID_ALL | PERF_ATTR_USE_CLOCKID);
    sink_zeros(sink, PERF_ATTR_CLOCKID - sink->size);
    sink_u32(sink, CLOCK_MONOTONIC);
    sink_zeros(sink, ATTR_BYTES - sink->size);
}

/* ---- Records ---- */

static void begin_record(struct byte_sink *sink, uint32_t type, uint16_t misc)
{
    sink->size = 0;
    sink_u32(sink, type);
    sink_u16(sink, misc);
    sink_u16(sink, 0);
}

static int add_record(struct perf_plain *plain, struct byte_sink *sink)
{
    struct byte_sink size = byte_sink_over(sink->data + 6, 2);
    if (sink->overflow)
        return -1;
    sink_u16(&size, (uint16_t)sink->size);
    return perf_plain_add(plain, sink->data, sink->size);
}

static void put_sample_id(struct byte_sink *sink, uint32_t pid, uint64_t time_ns)
{
    const struct sample_format format = format_of_samples();
    const struct perf_sample id = {.pid = pid, .tid = pid, .time_ns = time_ns};
    perf_sample_put_id(&id, &format, sink);
}

static int add_comm(struct perf_plain *plain, const struct snapshot *snapshot,
                    struct byte_sink *sink)
{
    begin_record(sink, PERF_RECORD_COMM, 0);
    sink_u32(sink, snapshot->pid);
    sink_u32(sink, snapshot->pid);
    sink_cstr(sink, snapshot->name);
    sink_align(sink, 8);
    put_sample_id(sink, snapshot->pid, 0);
    return add_record(plain, sink);
}

static void put_identity(struct byte_sink *sink, const struct snapshot_map *map)
{
    if (map->build_id.size) {
        sink_u32(sink, (uint32_t)map->build_id.size);
        sink_bytes(sink, map->build_id.bytes, map->build_id.size);
        sink_zeros(sink, PERF_BUILD_ID_BYTES - map->build_id.size);
        return;
    }
    sink_u32(sink, map->maj);
    sink_u32(sink, map->min);
    sink_u64(sink, map->ino);
    sink_u64(sink, 0); /* the inode's generation */
}

static int add_map(struct perf_plain *plain, const struct snapshot *snapshot,
                   const struct snapshot_map *map, struct byte_sink *sink)
{
    const char *path = map->path ? map->path : "//anon";
    if (strlen(path) > MOST_RECORD_BYTES / 2)
        return 0;
    begin_record(sink, PERF_RECORD_MMAP2,
                 map->build_id.size ? PERF_MISC_USER | PERF_MISC_MMAP_BUILD_ID : PERF_MISC_USER);
    sink_u32(sink, snapshot->pid);
    sink_u32(sink, snapshot->pid);
    sink_u64(sink, map->start);
    sink_u64(sink, map->end - map->start);
    sink_u64(sink, map->offset);
    put_identity(sink, map);
    sink_u32(sink, PROT_READ | PROT_EXEC);
    sink_u32(sink, MAP_PRIVATE);
    sink_cstr(sink, path);
    sink_align(sink, 8);
    put_sample_id(sink, snapshot->pid, 0);
    return add_record(plain, sink);
}

static int add_sample(struct perf_plain *plain, const struct snapshot *snapshot,
                      const struct snapshot_thread *thread, uint64_t time_ns,
                      struct byte_sink *sink)
{
    const struct sample_format format = format_of_samples();
    const struct perf_sample sample = {
        .ip = thread->has_registers ? thread->registers[snapshot->machine->perf_pc] : 0,
        .pid = snapshot->pid,
        .tid = thread->tid,
        .time_ns = time_ns};
    begin_record(sink, PERF_RECORD_SAMPLE, PERF_MISC_USER);
    perf_sample_put_front(&sample, &format, sink);
    return add_record(plain, sink);
}

static int add_records(struct perf_plain *plain, const struct snapshot *snapshot, uint64_t time_ns)
{
    uint8_t *record = malloc(MOST_RECORD_BYTES);
    struct byte_sink sink = byte_sink_over(record, record ? MOST_RECORD_BYTES : 0);
    sink.big_endian = false;
    int result = record ? add_comm(plain, snapshot, &sink) : -1;
    for (size_t i = 0; !result && i < snapshot->map_count; i++)
        if (snapshot->maps[i].executable)
            result = add_map(plain, snapshot, &snapshot->maps[i], &sink);
    for (size_t i = 0; !result && i < snapshot->thread_count; i++)
        result = add_sample(plain, snapshot, &snapshot->threads[i], time_ns, &sink);
    free(record);
    return result;
}

/* ---- Features ---- */

enum { TEXT_FEATURE_BYTES = 4 + sizeof((struct utsname *)0)->nodename };

static void set_text(struct perf_features *features, unsigned bit, uint8_t *bytes, const char *text)
{
    struct byte_sink sink = byte_sink_over(bytes, TEXT_FEATURE_BYTES);
    sink_u32(&sink, (uint32_t)strlen(text) + 1);
    sink_cstr(&sink, text);
    perf_features_set(features, bit, bytes, sink.size);
}

/* A core does not name its machine.  A name that no machine has keeps the facts of this machine
 * out. */
static int end(struct perf_plain *plain, const struct snapshot *snapshot)
{
    uint8_t texts[3][TEXT_FEATURE_BYTES];
    struct perf_features features = {.count = 0};
    struct utsname here;
    if (uname(&here))
        here.nodename[0] = here.release[0] = '\0';
    set_text(&features, PERF_FEATURE_HOSTNAME, texts[0],
             snapshot->live ? here.nodename : "(a core)");
    if (snapshot->live)
        set_text(&features, PERF_FEATURE_OSRELEASE, texts[1], here.release);
    set_text(&features, PERF_FEATURE_ARCH, texts[2], snapshot->machine->names[0]);
    return perf_plain_end(plain, &features);
}

int snapshot_recording_write(const struct snapshot *snapshot, uint64_t time_ns,
                             struct memory_file *file, struct findings *findings)
{
    uint8_t bytes[ATTR_BYTES];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    struct perf_plain plain = {0};
    put_attr(&sink);
    const struct perf_attr attr = {.bytes = bytes, .size = ATTR_BYTES};
    if (perf_plain_begin(&plain, &attr, 1) || add_records(&plain, snapshot, time_ns) ||
        end(&plain, snapshot)) {
        perf_plain_free(&plain);
        return report_failure(findings, "out of memory");
    }
    *file = plain.file;
    plain.file = (struct memory_file){0};
    perf_plain_free(&plain);
    return 0;
}
