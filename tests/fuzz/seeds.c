/* Write the first inputs of the fuzzers: seeds DIR DUMP...
 *
 *     DIR/jit_dump      the dumps, which producers wrote
 *     DIR/eh_frame      the unwind tables in them, behind a byte of 0
 *     DIR/inline_info   the bodies of their INLINE_INFO records, likewise
 *     DIR/perf_data     small recordings: one event, several, rounds, AUX traces, tasks, a stream, compressed, cut
 *     DIR/injection     such a recording with a dump of its process
 *     DIR/perf_map      texts
 */
#include "injector/jit/jit_dump.h"
#include "injector/perf_data/perf_pipe.h"
#include "jitdump/cfi.h"
#include "jitdump/jitdump.h"
#include "tests/unit/dump_builder.h"
#include "tests/unit/profile_builder.h"

#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <zstd.h>

static const char *directory;
static size_t seed_count;

/* A file of its own for each seed of TARGET, made of two pieces. */
static void put_seed(const char *target, const void *first, size_t first_bytes, const void *second,
                     size_t second_bytes)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, target);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/seed-%04zu", directory, target, seed_count++);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(first, 1, first_bytes, file) != first_bytes ||
        fwrite(second, 1, second_bytes, file) != second_bytes || fclose(file))
        err(EXIT_FAILURE, "%s", path);
}

/* ---- Dumps, and what is in them ---- */

static void put_record(const struct jit_dump *dump, const struct jit_record *record)
{
    const uint8_t order = dump->big_endian;
    if (record->broken)
        return;
    if (record->id == JIT_CODE_UNWINDING_INFO)
        put_seed("eh_frame", &order, 1, record->unwinding_info.data,
                 (size_t)record->unwinding_info.unwinding_size);
    if (record->id == JIT_CODE_INLINE_INFO)
        put_seed("inline_info", &order, 1, dump->data + record->offset + JR_PREFIX_BYTES,
                 record->total_size - JR_PREFIX_BYTES);
}

static void put_dump(const char *path)
{
    struct jit_dump dump;
    struct jit_record record;
    enum jit_dump_end end;
    char cause[256];
    if (jit_dump_open(&dump, path, cause, sizeof cause))
        errx(EXIT_FAILURE, "%s: %s", path, cause);
    put_seed("jit_dump", dump.data, dump.size, "", 0);
    struct jit_dump_walk walk = jit_dump_begin(&dump);
    while ((end = jit_dump_next(&walk, &record)) == JIT_DUMP_MORE || end == JIT_DUMP_TORN)
        if (end == JIT_DUMP_MORE)
            put_record(&dump, &record);
    jit_dump_close(&dump);
}

/* ---- Recordings ---- */

static struct profile_builder built;

static void put_profile(void)
{
    if (built.sink.overflow)
        errx(EXIT_FAILURE, "a recording is too large");
    put_seed("perf_data", built.bytes, built.sink.size, "", 0);
}

/* Records of COUNT events and of a task, a mapped dump among them. */
static void put_records(size_t count)
{
    for (size_t i = 0; i < 6; i++) {
        size_t event = i % count;
        uint64_t time = 1000 + i * 10;
        profile_map(&built, i % 2 ? PERF_RECORD_MMAP2 : PERF_RECORD_MMAP, event,
                    0x40000000 + i * 0x1000, 0x2000, i == 0 ? "/tmp/jit-4711.dump" : "//anon",
                    time);
        profile_comm(&built, event, time + 1);
        profile_sample(&built, event, time + 2);
        if (i % 3 == 2)
            profile_round(&built);
    }
}

/* PERF_RECORD_FORK, EXIT: u32 pid, ppid, tid, ptid, u64 time. */
static void put_task(uint32_t type, uint32_t pid, uint32_t parent, uint64_t time)
{
    size_t start = profile_begin_record(&built, type, 0);
    sink_u32(&built.sink, pid);
    sink_u32(&built.sink, parent);
    sink_u32(&built.sink, pid);
    sink_u32(&built.sink, parent);
    sink_u64(&built.sink, time);
    profile_put_trailer(&built, 0, pid, time);
    profile_end_record(&built, start);
}

static void put_plain_profiles(void)
{
    static const uint64_t types[] = {SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER,
                                     PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU};
    profile_begin_one(&built);
    put_records(1);
    profile_end_records(&built);
    put_profile();
    profile_begin(&built, types, 2);
    put_records(2);
    profile_end_records(&built);
    profile_features(&built, NULL, 0);
    put_profile();
    profile_begin_one(&built);
    put_task(7, 4712, 4711, 900);
    put_records(1);
    put_task(4, 4712, 4711, 2000);
    profile_end_records(&built);
    profile_features(&built, NULL, 0);
    put_profile();
}

static void put_traced_profile(void)
{
    profile_begin_one(&built);
    put_records(1);
    const uint64_t traces[1][2] = {{profile_auxtrace(&built, 24), PERF_AUXTRACE_BYTES}};
    profile_sample(&built, 0, 5000);
    profile_end_records(&built);
    profile_features(&built, traces, 1);
    put_profile();
}

static void put_stream(void)
{
    static uint8_t stream[1 << 16];
    struct findings findings = {0};
    profile_begin_one(&built);
    put_records(1);
    profile_end_records(&built);
    profile_features(&built, NULL, 0);
    FILE *file = tmpfile();
    if (!file || perf_pipe_write(fileno(file), built.bytes, built.sink.size, "seed", &findings))
        errx(EXIT_FAILURE, "no stream: %s", findings.failure);
    ssize_t size = pread(fileno(file), stream, sizeof stream, 0);
    put_seed("perf_data", stream, size > 0 ? (size_t)size : 0, "", 0);
    fclose(file);
}

/* The same records in a COMPRESSED one, which holds a zstd frame. */
static void put_compressed(void)
{
    static uint8_t records[1 << 14], packed[1 << 14];
    profile_begin_one(&built);
    put_records(1);
    size_t bytes = built.sink.size - built.records_start;
    memcpy(records, built.bytes + built.records_start, bytes);
    size_t packed_bytes = ZSTD_compress(packed, sizeof packed, records, bytes, 1);
    profile_begin_one(&built);
    size_t start = profile_begin_record(&built, PERF_RECORD_COMPRESSED, 0);
    sink_bytes(&built.sink, packed, packed_bytes);
    profile_end_record(&built, start);
    profile_end_records(&built);
    put_profile();
}

/* ---- Recordings with dumps ---- */

static struct dump_builder dumped;

static void put_tables(uint64_t time, uint64_t code_size)
{
    static const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    jitdump_cfi_frame(cfi, &frame);
    if (jitdump_cfi_finish(cfi, code_size, &unwind))
        errx(EXIT_FAILURE, "no tables: %s", jitdump_cfi_error(cfi));
    size_t start = dump_begin_record(&dumped, JIT_CODE_UNWINDING_INFO, time);
    sink_u64(&dumped.sink, unwind.unwinding_size);
    sink_u64(&dumped.sink, unwind.eh_frame_hdr_size);
    sink_u64(&dumped.sink, unwind.mapped_size);
    sink_bytes(&dumped.sink, unwind.data, (size_t)unwind.unwinding_size);
    dump_end_record(&dumped, start);
    jitdump_cfi_free(cfi);
}

static void put_dumped(bool with_tables)
{
    dump_begin(&dumped, false, JITHEADER_BYTES);
    if (with_tables)
        put_tables(1001, 12);
    dump_load(&dumped, 1001, 0x40000100, "first", "twelve bytes", 1);
    dump_load(&dumped, 1005, 0x40001100, "second", "bytes too", 2);
    dump_move(&dumped, 1015, 0x40000100, 0x40002100, 12, 1);
    dump_load(&dumped, 1021, 0x40000108, "third", "again", 3);
    dump_unload(&dumped, 1032, 0x40001100, 9, 2);
    dump_load(&dumped, 1041, 0x40001100, "fourth", "at the same", 4);
}

/* STACKS: samples say that a piece of the stack follows, so that perf will unwind. */
static void put_injection(bool with_tables, bool stacks)
{
    uint8_t first[2 + sizeof dumped.bytes];
    uint64_t type = SAMPLE_TYPE | (stacks ? (uint64_t)PERF_SAMPLE_STACK_USER : 0);
    put_dumped(with_tables);
    struct byte_sink sink = byte_sink_over(first, sizeof first);
    sink_u16(&sink, (uint16_t)dumped.sink.size);
    sink_bytes(&sink, dumped.bytes, dumped.sink.size);
    profile_begin(&built, &type, 1);
    put_task(7, 4711, 4710, 900);
    put_records(1);
    put_task(7, 4712, 4711, 1043);
    put_task(4, 4711, 4710, 2000);
    profile_end_records(&built);
    put_seed("injection", first, sink.size, built.bytes, built.sink.size);
}

/* ---- Perf maps ---- */

static void put_perf_maps(void)
{
    static const char *const texts[] = {
        "1000 10 one\n1010 20 two words\n1008 10 over both\n",
        "0x1000 0x0 zero\r\nffffffffffffffff 1 last\nfffffffffffffff0 10 end\n",
        "1000 100 outer\n1010 10 inner\n1018 20 next\n\nbad\n10 z\n2000 8 open",
        "",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        put_seed("perf_map", texts[i], strlen(texts[i]), "", 0);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        errx(2, "usage: seeds DIR DUMP...");
    directory = argv[1];
    for (int i = 2; i < argc; i++)
        put_dump(argv[i]);
    put_plain_profiles();
    put_traced_profile();
    put_stream();
    put_compressed();
    for (int kind = 0; kind < 4; kind++)
        put_injection(kind & 1, kind & 2);
    put_perf_maps();
    return 0;
}
