/* A recording and its dump, from which a conversion of times is chosen: what the tests of that
 * choice share. */
#ifndef PERFJIT_TEST_CLOCK_WORLD_H
#define PERFJIT_TEST_CLOCK_WORLD_H

#include "injector/log/clock/clock_choice.h"

#include "tests/unit/dump_builder.h"
#include "tests/unit/profile_builder.h"

#define US  UINT64_C(1000)
#define MS  (1000 * US)
#define SEC (1000 * MS)

/* The process of the profile, on the profile's clock. */
#define MARKER (1000 * SEC)
#define EXIT   (1010 * SEC)

/* How far the dump's clock is behind, where it is another. */
#define OFFSET (1400312)

/* A wall clock's, of 2026. */
#define WALL (UINT64_C(1795288832) * SEC)

enum { CODE = 0x401000, CODE_BYTES = 16 }; /* where all samples of profile_sample are */

/* ---- A recording and its dump ---- */

struct world {
    struct profile_builder built;
    struct dump_builder built_dump;
    char dump_path[96];
    const char *host; /* where it was recorded; NULL: the recording does not say */
    struct perf_file file;
    struct records records;
    struct jit_dump dump;
    struct shared_clocks shared; /* what other dumps show */
    struct jit_clock clock;
    struct findings findings;
    char text[512];
    const char *why;
};

static struct world world;

/* The machine's clocks, as clock_live_read would read them. */
static struct clock_live machine;
static bool may_read_machine;
static int machine_reads;

static inline void read_machine(struct clock_live *live, bool with_cycles)
{
    assert_true(may_read_machine);
    machine_reads++;
    *live = machine;
    if (!with_cycles) {
        live->known[CLOCK_KIND_CYCLES] = false;
        live->cycles_per_s = 0;
    }
}

static inline void machine_knows(enum clock_kind kind, uint64_t now)
{
    machine.known[kind] = true;
    machine.now[kind] = now;
}

/* CLOCKID -1: without -k. */
static inline void begin_profile(int clockid)
{
    struct profile_builder *built = &world.built;
    memset(&machine, 0, sizeof machine);
    machine.width_ns = 100;
    may_read_machine = true;
    machine_reads = 0;
    memset(&world, 0, sizeof world);
    snprintf(world.dump_path, sizeof world.dump_path, "%s/jit-4711.dump", scratch);
    profile_begin_one(built);
    size_t attr = PERF_FILE_HEADER_BYTES + BUILT_IDS * 8;
    profile_set_u64(built, attr + PERF_ATTR_FLAGS,
                    PERF_ATTR_SAMPLE_ID_ALL | (clockid < 0 ? 0 : PERF_ATTR_USE_CLOCKID));
    struct byte_sink patch = byte_sink_over(built->bytes + attr + PERF_ATTR_CLOCKID, 4);
    sink_u32(&patch, clockid < 0 ? 0 : (uint32_t)clockid);
}

static inline void put_map(const char *name, uint64_t time)
{
    profile_map(&world.built, PERF_RECORD_MMAP2, 0, 0x7000000, 0x1000, name, time);
}

static inline void put_exit_of(uint32_t pid, uint32_t tid, uint64_t time)
{
    struct profile_builder *built = &world.built;
    size_t start = profile_begin_record(built, PERF_RECORD_EXIT, 0);
    sink_u32(&built->sink, pid);
    sink_u32(&built->sink, 1);
    sink_u32(&built->sink, tid);
    sink_u32(&built->sink, 1);
    sink_u64(&built->sink, time);
    profile_put_trailer(built, 0, 4711, time);
    profile_end_record(built, start);
}

static inline void put_exit(uint64_t time)
{
    put_exit_of(4711, 4711, time);
}

/* A process that lives from a second before MARKER to EXIT. */
static inline void profile_of_life(int clockid)
{
    begin_profile(clockid);
    put_map("/usr/bin/runtime", MARKER - SEC);
    put_map("/tmp/jit-4711.dump", MARKER);
    profile_sample(&world.built, 0, MARKER + SEC);
    put_exit(EXIT);
}

static inline void begin_dump(uint64_t header, bool cycles)
{
    dump_begin(&world.built_dump, false, JITHEADER_BYTES);
    struct byte_sink patch = byte_sink_over(world.built_dump.bytes + JITHEADER_TIMESTAMP, 16);
    sink_u64(&patch, header);
    sink_u64(&patch, cycles ? JITDUMP_FLAG_ARCH_TIMESTAMP : 0);
}

static inline void say_how_close(uint32_t half)
{
    struct byte_sink patch = byte_sink_over(world.built_dump.bytes + JITHEADER_PAD1, 4);
    sink_u32(&patch, (uint32_t)JITHEADER_PAD1_TAG << 16 | half);
}

static inline void put_load(uint64_t time, uint64_t addr)
{
    dump_load(&world.built_dump, time, addr, "f", "sixteen bytes ..", 1);
}

/* Two functions at one address. */
static inline void put_reuse(uint64_t first, uint64_t last)
{
    put_load(first, CODE);
    put_load(last, CODE);
}

static inline void put_two(uint64_t first, uint64_t last)
{
    put_load(first, CODE);
    put_load(last, CODE + 0x100);
}

static inline void write_dump(void)
{
    FILE *file = fopen(world.dump_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(world.built_dump.bytes, 1, world.built_dump.sink.size, file),
                     world.built_dump.sink.size);
    assert_int_equal(fclose(file), 0);
}

static inline void open_world(void)
{
    char cause[256];
    profile_end_records(&world.built);
    if (world.host)
        profile_host(&world.built, world.host, "x86_64", 0, (const uint64_t[]){0, 0});
    open_built_profile(&world.built, &world.file);
    assert_int_equal(records_read(&world.records, &world.file, &world.findings), 0);
    write_dump();
    assert_int_equal(jit_dump_open(&world.dump, world.dump_path, cause, sizeof cause), 0);
    world.dump.born_ns = 0; /* not told, until set_born */
}

static inline void choose(void)
{
    const struct clock_question question = {.records = &world.records,
                                            .dump = &world.dump,
                                            .pid = 4711,
                                            .read_live = read_machine,
                                            .shared = &world.shared};
    world.why = clock_choose(&world.clock, &question, world.text, &world.findings);
}

static inline void decide(void)
{
    open_world();
    choose();
}

/* The same for a profile with a TIME_CONV record: perf's clock is SHIFT and MULT of the cycles, and
 * ZERO. */
static inline void decide_with_conv(uint64_t shift, uint64_t mult, uint64_t zero_ns)
{
    open_world();
    world.records.time_conv =
        (struct time_conv){.known = true, .shift = shift, .mult = mult, .zero_ns = zero_ns};
    choose();
}

/* When the recording's file was written, by the wall clock. */
static inline void set_written(uint64_t wall_ns)
{
    world.file.written_ns = wall_ns;
}

/* When the dump's file was made. */
static inline void set_born(uint64_t wall_ns)
{
    world.dump.born_ns = wall_ns;
}

static inline void end_world(void)
{
    jit_dump_close(&world.dump);
    records_free(&world.records);
    perf_file_close(&world.file);
    findings_free(&world.findings);
}

/* ---- What came out ---- */

static inline uint64_t count(enum finding_kind kind)
{
    return world.findings.count[kind];
}

static inline uint64_t all_findings(void)
{
    uint64_t all = 0;
    for (int kind = 0; kind < FINDING_KINDS; kind++)
        all += world.findings.count[kind];
    return all;
}

static inline void assert_chosen(void)
{
    if (world.why)
        fail_msg("refused: %s", world.why);
}

static inline void assert_refused(const char *words)
{
    assert_non_null(world.why);
    if (!strstr(world.why, words))
        fail_msg("'%s' is missing in: %s", words, world.why);
    assert_non_null(strstr(world.why, "record")); /* what to do */
    assert_int_equal(all_findings(), 0);
}

static inline void assert_says(enum finding_kind kind, const char *words)
{
    assert_int_equal(count(kind), 1);
    if (!strstr(world.findings.first[kind], words))
        fail_msg("'%s' is missing in: %s", words, world.findings.first[kind]);
}

static inline void assert_silent(void)
{
    assert_chosen();
    assert_int_equal(all_findings(), 0);
}

static inline void assert_becomes(uint64_t stamp, uint64_t wanted, uint64_t tolerance)
{
    uint64_t got = jit_clock_to_perf(&world.clock, stamp);
    if (got + tolerance < wanted || got > wanted + tolerance)
        fail_msg("%llu becomes %llu, not %llu", (unsigned long long)stamp, (unsigned long long)got,
                 (unsigned long long)wanted);
}

/* ---- Cycles ---- */

/* 2 GHz, and perf's clock 5 s behind: ns = cycles / 2 + 5 s. */
#define CYCLES(NS) (2 * ((NS)-5 * SEC))
#define CONV_2_GHZ 1, 1, 5 * SEC

static inline void cycles_without_conv(int clockid)
{
    profile_of_life(clockid);
    begin_dump(CYCLES(MARKER), true);
    put_two(CYCLES(MARKER + MS), CYCLES(MARKER + SEC + MS));
    machine_knows(clockid < 0 ? CLOCK_KIND_PERF : CLOCK_KIND_MONOTONIC, EXIT + 100 * SEC);
    machine_knows(CLOCK_KIND_CYCLES, CYCLES(EXIT + 100 * SEC));
    machine.cycles_per_s = 2 * SEC + SEC / 5000;
}

#endif
