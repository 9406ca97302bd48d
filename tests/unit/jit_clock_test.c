/* From a dump's timestamps to the profile's: the formula, and which one is chosen on what evidence. */
#include "injector/jit/jit_clock.h"

#include "tests/unit/dump_builder.h"
#include "tests/unit/profile_builder.h"

#include <sys/time.h>

#define US  UINT64_C(1000)
#define MS  (1000 * US)
#define SEC (1000 * MS)

/* The process of the profile, on the profile's clock. */
#define MARKER (1000 * SEC)
#define EXIT   (1010 * SEC)

/* A wall clock's, of 2026. */
#define WALL (UINT64_C(1795288832) * SEC)

enum { CODE = 0x401000, CODE_BYTES = 16 }; /* where all samples of profile_sample are */

/* ---- A recording and its dump ---- */

struct world {
    struct profile_builder built;
    struct dump_builder built_dump;
    char dump_path[96];
    struct perf_file file;
    struct profile profile;
    struct jit_dump dump;
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

static void read_machine(struct clock_live *live, bool with_cycles)
{
    assert_true(may_read_machine);
    machine_reads++;
    *live = machine;
    if (!with_cycles) {
        live->known[CLOCK_KIND_CYCLES] = false;
        live->cycles_per_s = 0;
    }
}

static void machine_knows(enum clock_kind kind, uint64_t now)
{
    machine.known[kind] = true;
    machine.now[kind] = now;
}

/* CLOCKID -1: without -k. */
static void begin_profile(int clockid)
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

static void put_map(const char *name, uint64_t time)
{
    profile_map(&world.built, PERF_RECORD_MMAP2, 0, 0x7000000, 0x1000, name, time);
}

static void put_exit(uint64_t time)
{
    struct profile_builder *built = &world.built;
    size_t start = profile_begin_record(built, PERF_RECORD_EXIT, 0);
    sink_u32(&built->sink, 4711);
    sink_u32(&built->sink, 1);
    sink_u32(&built->sink, 4711);
    sink_u32(&built->sink, 1);
    sink_u64(&built->sink, time);
    profile_put_trailer(built, 0, 4711, time);
    profile_end_record(built, start);
}

/* A process that lives from a second before MARKER to EXIT. */
static void profile_of_life(int clockid)
{
    begin_profile(clockid);
    put_map("/usr/bin/runtime", MARKER - SEC);
    put_map("/tmp/jit-4711.dump", MARKER);
    profile_sample(&world.built, 0, MARKER + SEC);
    put_exit(EXIT);
}

static void begin_dump(uint64_t header, bool cycles)
{
    dump_begin(&world.built_dump, false, JITHEADER_BYTES);
    struct byte_sink patch = byte_sink_over(world.built_dump.bytes + JITHEADER_TIMESTAMP, 16);
    sink_u64(&patch, header);
    sink_u64(&patch, cycles ? JITDUMP_FLAG_ARCH_TIMESTAMP : 0);
}

static void say_how_close(uint32_t half)
{
    struct byte_sink patch = byte_sink_over(world.built_dump.bytes + JITHEADER_PAD1, 4);
    sink_u32(&patch, (uint32_t)JITHEADER_PAD1_TAG << 16 | half);
}

static void put_load(uint64_t time, uint64_t addr)
{
    dump_load(&world.built_dump, time, addr, "f", "sixteen bytes ..", 1);
}

/* Two functions at one address. */
static void put_reuse(uint64_t first, uint64_t last)
{
    put_load(first, CODE);
    put_load(last, CODE);
}

static void put_two(uint64_t first, uint64_t last)
{
    put_load(first, CODE);
    put_load(last, CODE + 0x100);
}

static void write_dump(void)
{
    FILE *file = fopen(world.dump_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(world.built_dump.bytes, 1, world.built_dump.sink.size, file),
                     world.built_dump.sink.size);
    assert_int_equal(fclose(file), 0);
}

static void open_world(void)
{
    char cause[256];
    profile_end_records(&world.built);
    open_built_profile(&world.built, &world.file);
    assert_int_equal(profile_read(&world.profile, &world.file, &world.findings), 0);
    write_dump();
    assert_int_equal(jit_dump_open(&world.dump, world.dump_path, cause, sizeof cause), 0);
}

static void choose(void)
{
    const struct jit_clock_question question = {&world.profile, &world.dump, 4711, read_machine};
    world.why = jit_clock_choose(&world.clock, &question, world.text, &world.findings);
}

static void decide(void)
{
    open_world();
    choose();
}

/* The same for a profile with a TIME_CONV record: perf's clock is SHIFT and MULT of the cycles, and ZERO. */
static void decide_with_conv(uint64_t shift, uint64_t mult, uint64_t zero_ns)
{
    open_world();
    world.profile.time_conv =
        (struct time_conv){.known = true, .shift = shift, .mult = mult, .zero_ns = zero_ns};
    choose();
}

static void end_world(void)
{
    jit_dump_close(&world.dump);
    profile_free(&world.profile);
    perf_file_close(&world.file);
    findings_free(&world.findings);
}

/* ---- What came out ---- */

static uint64_t count(enum finding_kind kind)
{
    return world.findings.count[kind];
}

static uint64_t all_findings(void)
{
    uint64_t all = 0;
    for (int kind = 0; kind < FINDING_KINDS; kind++)
        all += world.findings.count[kind];
    return all;
}

static void assert_chosen(void)
{
    if (world.why)
        fail_msg("refused: %s", world.why);
}

static void assert_refused(const char *words)
{
    assert_non_null(world.why);
    if (!strstr(world.why, words))
        fail_msg("'%s' is missing in: %s", words, world.why);
    assert_non_null(strstr(world.why, "record")); /* what to do */
    assert_int_equal(all_findings(), 0);
}

static void assert_says(enum finding_kind kind, const char *words)
{
    assert_int_equal(count(kind), 1);
    if (!strstr(world.findings.first[kind], words))
        fail_msg("'%s' is missing in: %s", words, world.findings.first[kind]);
}

static void assert_silent(void)
{
    assert_chosen();
    assert_int_equal(all_findings(), 0);
}

static void assert_becomes(uint64_t stamp, uint64_t wanted, uint64_t tolerance)
{
    uint64_t got = jit_clock_to_perf(&world.clock, stamp);
    if (got + tolerance < wanted || got > wanted + tolerance)
        fail_msg("%llu becomes %llu, not %llu", (unsigned long long)stamp, (unsigned long long)got,
                 (unsigned long long)wanted);
}

/* ---- One clock ---- */

static void test_one_clock_needs_nothing(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER - 3 * US, false);
    put_reuse(MARKER + 5 * MS, EXIT - SEC);
    may_read_machine = false;
    decide();
    assert_silent();
    assert_becomes(0, 0, 0);
    assert_becomes(UINT64_MAX, UINT64_MAX, 0);
    end_world();
}

static void test_a_dump_without_code_has_no_wrong_times(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(77, false);
    dump_plain(&world.built_dump, JIT_CODE_CLOSE, 5, 0);
    may_read_machine = false;
    decide();
    assert_silent();
    end_world();
}

static void test_wall_clock_in_the_header_alone_is_nothing(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(WALL / 1000, false);
    put_two(MARKER + 11 * MS, EXIT - SEC);
    may_read_machine = false;
    decide();
    assert_silent();
    assert_becomes(MARKER, MARKER, 0);
    end_world();
}

/* Code that was logged with the time it was made, into a dump that was opened later. */
static void test_records_from_before_the_marker_stay(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER, false);
    put_two(MARKER - SEC / 2, EXIT - SEC);
    decide();
    assert_silent();
    assert_becomes(MARKER - SEC / 2, MARKER - SEC / 2, 0);
    end_world();
}

static void test_attached_recording_of_one_clock(void **state)
{
    (void)state;
    begin_profile(CLOCK_MONOTONIC);
    put_map("/tmp/jit-4711.dump", 0); /* perf record -p: from /proc */
    profile_sample(&world.built, 0, MARKER);
    begin_dump(5 * SEC, false);
    put_two(6 * SEC, MARKER + SEC);
    may_read_machine = false;
    decide();
    assert_silent();
    assert_becomes(6 * SEC, 6 * SEC, 0);
    end_world();
}

/* ---- An offset ---- */

#define OFFSET (1400312)

static void test_offset_by_the_marker(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(MARKER - OFFSET, false);
    say_how_close(2345);
    put_two(MARKER + 5 * MS, MARKER + 5 * MS + SEC);
    decide();
    assert_chosen();
    assert_becomes(MARKER, MARKER + OFFSET, 0);
    assert_says(FINDING_CLOCK_CONVERTED, "1 400 312 ns (± 52 345) behind the profile's");
    assert_says(FINDING_CLOCK_CONVERTED, "recorded without -k mono");
    assert_says(FINDING_CLOCK_CONVERTED, "by the marker's mapping");
    assert_int_equal(findings_lost(&world.findings), 0);
    end_world();
}

static void test_foreign_headers_are_not_so_close(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(MARKER + OFFSET, false);
    put_two(MARKER + OFFSET, MARKER + OFFSET);
    decide();
    assert_chosen();
    assert_becomes(MARKER + OFFSET, MARKER, 0);
    assert_says(FINDING_CLOCK_CONVERTED, "1 400 312 ns (± 200 000) ahead of the profile's");
    end_world();
}

static void test_other_clocks_than_mono(void **state)
{
    static const struct {
        int clockid;
        uint64_t offset;
        const char *words;
    } cases[] = {
        {CLOCK_MONOTONIC_RAW, 0 - 61 * MS, "-k raw"},
        {CLOCK_BOOTTIME, 86400 * SEC, "-k boottime"},
        {CLOCK_REALTIME, WALL, "-k realtime"},
        {CLOCK_TAI, WALL + 37 * SEC, "-k tai"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t marker = MARKER + cases[i].offset;
        begin_profile(cases[i].clockid);
        put_map("/tmp/jit-4711.dump", marker);
        put_exit(marker + 10 * SEC);
        begin_dump(MARKER, false);
        put_two(MARKER + MS, MARKER + SEC);
        decide();
        assert_chosen();
        assert_becomes(MARKER + MS, marker + MS, 0);
        assert_says(FINDING_CLOCK_CONVERTED, cases[i].words);
        end_world();
    }
}

static void test_rough_times_matter_where_addresses_are_used_again(void **state)
{
    (void)state;
    for (int reused = 0; reused < 2; reused++) {
        profile_of_life(-1);
        begin_dump(MARKER - OFFSET, false);
        /* 30 s of drift; of the process's end nothing is known. */
        world.built.sink.size = world.built.records_start;
        put_map("/tmp/jit-4711.dump", MARKER);
        profile_sample(&world.built, 0, MARKER + 40 * SEC);
        (reused ? put_reuse : put_two)(MARKER + MS, MARKER + MS + 30 * SEC);
        decide();
        assert_chosen();
        assert_says(reused ? FINDING_CLOCK_UNSURE : FINDING_CLOCK_CONVERTED, "(± 1 700 000)");
        assert_int_equal(findings_lost(&world.findings), reused);
        end_world();
    }
}

static void test_the_mapping_of_the_file_as_it_is(void **state)
{
    (void)state;
    begin_profile(-1);
    put_map("/tmp/jit-4711.dump", MARKER - 5 * SEC); /* before an exec */
    put_map("/tmp/jit-4711.dump", MARKER);
    put_exit(EXIT);
    begin_dump(MARKER - OFFSET, false);
    put_two(MARKER + MS, MARKER + SEC);
    decide();
    assert_chosen();
    assert_becomes(MARKER, MARKER + OFFSET, 0);
    end_world();
}

static void test_a_dump_that_was_deleted_was_mapped_all_the_same(void **state)
{
    (void)state;
    begin_profile(-1);
    put_map("/tmp/jit-4711.dump.old", MARKER + 2 * MS); /* another file */
    put_map("/home/jit-4711.dump (deleted)", MARKER);
    put_exit(EXIT);
    begin_dump(MARKER - OFFSET, false);
    put_two(MARKER + MS, MARKER + SEC);
    decide();
    assert_chosen();
    assert_becomes(MARKER, MARKER + OFFSET, 0);
    end_world();
}

/* ---- The clocks now ---- */

/* 100 s after the exit perf's clock is DRIFTED ns further ahead of CLOCK_MONOTONIC than by the header. */
static void machine_after(uint64_t drifted)
{
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + 100 * SEC);
    machine_knows(CLOCK_KIND_PERF, EXIT + 100 * SEC + OFFSET + drifted);
}

static void test_drift_since_the_recording(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(MARKER - OFFSET, false);
    say_how_close(1000);
    put_two(MARKER + MS, MARKER + MS + 9 * SEC);
    machine_after(1100 * US);
    decide();
    assert_chosen();
    assert_becomes(MARKER - OFFSET, MARKER, 0);
    assert_becomes(MARKER - OFFSET + 5 * SEC, MARKER + 5 * SEC + 50 * US, US);
    assert_says(FINDING_CLOCK_CONVERTED, "marker's mapping, and by this machine's clocks now");
    end_world();
}

static void test_the_clocks_now_are_closer_than_a_foreign_header(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(MARKER - OFFSET - 90 * US, false);
    put_two(EXIT - SEC, EXIT - SEC + MS);
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC / 10);
    machine_knows(CLOCK_KIND_PERF, EXIT + SEC / 10 + OFFSET);
    decide();
    assert_chosen();
    assert_becomes(EXIT - SEC, EXIT - SEC + OFFSET, 0);
    assert_says(FINDING_CLOCK_CONVERTED, "profile's, by this machine's clocks now");
    end_world();
}

static void test_clocks_of_another_boot_are_left_alone(void **state)
{
    (void)state;
    for (int earlier = 0; earlier < 2; earlier++) {
        profile_of_life(-1);
        begin_dump(MARKER - OFFSET, false);
        put_two(MARKER + MS, MARKER + MS + 2 * SEC);
        machine_after(60 * MS);
        if (earlier) { /* the machine runs for 17 s only */
            machine_knows(CLOCK_KIND_MONOTONIC, 17 * SEC);
            machine_knows(CLOCK_KIND_PERF, 17 * SEC + OFFSET);
        }
        decide();
        assert_chosen();
        assert_becomes(MARKER, MARKER + OFFSET, 0);
        assert_says(FINDING_CLOCK_CONVERTED,
                    "(± 300 000) behind the profile's, by the marker's mapping");
        end_world();
    }
}

/* V8, CPython. */
static void test_wall_clock_header_and_the_clocks_now(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump((WALL + MARKER - OFFSET) / 1000, false);
    put_two(MARKER + 11 * MS, MARKER + 11 * MS + SEC);
    machine_after(0);
    machine_knows(CLOCK_KIND_REALTIME, WALL + EXIT + 100 * SEC);
    decide();
    assert_chosen();
    assert_becomes(MARKER + 11 * MS, MARKER + 11 * MS + OFFSET, US);
    assert_says(FINDING_CLOCK_CONVERTED, "marker's mapping, and by this machine's clocks now");
    end_world();
}

static void wall_clock_header(bool reused)
{
    profile_of_life(-1); /* with a sample at MARKER + SEC, in the function at CODE */
    begin_dump(WALL / 1000, false);
    if (reused)
        put_reuse(MARKER + 200 * MS, MARKER + 201 * MS);
    put_load(MARKER + 11 * MS - OFFSET, reused ? CODE + 0x100 : CODE);
    put_load(MARKER + 300 * MS, CODE + 0x200);
}

static void test_bounds_by_marker_and_samples(void **state)
{
    (void)state;
    wall_clock_header(false);
    decide();
    assert_chosen();
    /* No address is used again: as early as the marker allows. */
    assert_becomes(MARKER + 11 * MS - OFFSET, MARKER, 0);
    assert_says(FINDING_CLOCK_CONVERTED, "samples, which are younger");
    assert_says(FINDING_CLOCK_CONVERTED, "(± 1 000 000 000)");
    assert_int_equal(findings_lost(&world.findings), 0);
    end_world();
}

static void test_bounds_by_marker_and_exit(void **state)
{
    (void)state;
    wall_clock_header(true);
    decide();
    assert_chosen();
    /* From the marker to the exit the dump can lie anywhere: in the middle. */
    uint64_t room = EXIT - MARKER - (MARKER + 300 * MS - (MARKER + 11 * MS - OFFSET));
    assert_becomes(MARKER + 11 * MS - OFFSET, MARKER + room / 2, US);
    assert_int_equal(count(FINDING_CLOCK_UNSURE), 1);
    end_world();
}

static void test_no_bounds_no_conversion(void **state)
{
    (void)state;
    begin_profile(-1);
    put_map("/tmp/jit-4711.dump", MARKER);
    begin_dump(WALL / 1000, false);
    put_two(MARKER + MS, MARKER + SEC);
    decide();
    assert_refused("-k mono");
    end_world();
}

/* perf record -p: the marker's record has no time. */
static void attached(void)
{
    begin_profile(-1);
    put_map("/tmp/jit-4711.dump", 0);
    profile_sample(&world.built, 0, MARKER);
    begin_dump(5 * SEC, false);
    put_load(6 * SEC, CODE);
    put_load(MARKER - SEC, CODE + 0x100);
    machine_knows(CLOCK_KIND_MONOTONIC, MARKER + 20 * SEC - OFFSET);
    machine_knows(CLOCK_KIND_PERF, MARKER + 20 * SEC);
    machine_knows(CLOCK_KIND_REALTIME, WALL + 20 * SEC);
}

static void set_written(uint64_t wall_ns)
{
    const struct timeval times[2] = {{.tv_sec = (time_t)(wall_ns / SEC)},
                                     {.tv_sec = (time_t)(wall_ns / SEC)}};
    assert_int_equal(utimes(scratch_file, times), 0);
}

static void test_attached_recording_by_the_clocks_now(void **state)
{
    (void)state;
    attached();
    open_world();
    set_written(WALL + SEC); /* the recording ended at WALL */
    choose();
    assert_chosen();
    assert_becomes(6 * SEC, 6 * SEC + OFFSET, 0);
    assert_says(FINDING_CLOCK_CONVERTED, "profile's, by this machine's clocks now");
    end_world();
}

static void test_attached_recording_of_another_time(void **state)
{
    (void)state;
    attached();
    open_world();
    set_written(WALL - 3600 * SEC);
    choose();
    assert_refused("-k mono");
    end_world();
}

/* ---- Cycles ---- */

/* 2 GHz, and perf's clock 5 s behind: ns = cycles / 2 + 5 s. */
#define CYCLES(NS) (2 * ((NS)-5 * SEC))
#define CONV_2_GHZ 1, 1, 5 * SEC

static void test_cycles_by_time_conv_need_nothing_more(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(CYCLES(MARKER), true);
    put_reuse(CYCLES(MARKER + MS), CYCLES(EXIT - SEC));
    may_read_machine = false;
    decide_with_conv(CONV_2_GHZ);
    assert_silent();
    assert_becomes(CYCLES(MARKER + 7), MARKER + 7, 1);
    end_world();
}

static void test_cycles_and_k_mono_by_time_conv_and_marker(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(CYCLES(MARKER + OFFSET), true); /* perf's clock is ahead of CLOCK_MONOTONIC */
    say_how_close(4000);
    put_two(CYCLES(MARKER + OFFSET + MS), CYCLES(MARKER + OFFSET + SEC + MS));
    decide_with_conv(CONV_2_GHZ);
    assert_chosen();
    assert_becomes(CYCLES(MARKER + OFFSET + SEC), MARKER + SEC, 1);
    assert_says(FINDING_CLOCK_CONVERTED, "CPU cycles: converted by perf's TIME_CONV");
    assert_says(FINDING_CLOCK_CONVERTED, "(± 52 000 ns)"); /* 4000 cycles, and drift */
    end_world();
}

static void cycles_without_conv(int clockid)
{
    profile_of_life(clockid);
    begin_dump(CYCLES(MARKER), true);
    put_two(CYCLES(MARKER + MS), CYCLES(MARKER + SEC + MS));
    machine_knows(clockid < 0 ? CLOCK_KIND_PERF : CLOCK_KIND_MONOTONIC, EXIT + 100 * SEC);
    machine_knows(CLOCK_KIND_CYCLES, CYCLES(EXIT + 100 * SEC));
    machine.cycles_per_s = 2 * SEC + SEC / 5000;
}

static void test_cycles_without_time_conv_by_the_rate_since(void **state)
{
    (void)state;
    for (int clockid = -1; clockid <= CLOCK_MONOTONIC; clockid += 2) {
        cycles_without_conv(clockid);
        decide();
        assert_chosen();
        assert_becomes(CYCLES(MARKER + SEC), MARKER + SEC, 1);
        assert_says(FINDING_CLOCK_CONVERTED,
                    "CPU cycles: converted by the marker's mapping, and by");
        end_world();
    }
}

static void test_a_counter_of_another_boot_has_no_rate(void **state)
{
    (void)state;
    cycles_without_conv(CLOCK_MONOTONIC);
    machine.now[CLOCK_KIND_CYCLES] += 100 * SEC;
    decide();
    assert_refused("CPU cycles");
    end_world();
}

static void test_cycles_without_any_rate(void **state)
{
    (void)state;
    cycles_without_conv(-1);
    memset(&machine, 0, sizeof machine);
    decide();
    assert_refused("TIME_CONV");
    end_world();
}

/* ---- Flags that lie ---- */

/* libxsmm. */
static void test_flagged_cycles_that_are_nanoseconds(void **state)
{
    (void)state;
    for (int clockid = -1; clockid <= CLOCK_MONOTONIC; clockid += 2) {
        profile_of_life(clockid);
        begin_dump(MARKER, true);
        put_two(MARKER + MS, MARKER + SEC);
        decide_with_conv(CONV_2_GHZ);
        assert_chosen();
        assert_becomes(MARKER + MS, MARKER + MS, 0);
        assert_says(FINDING_CLOCK_FLAG, "CPU cycles; they are");
        assert_int_equal(count(FINDING_CLOCK_CONVERTED), clockid < 0);
        assert_int_equal(findings_lost(&world.findings), 0);
        end_world();
    }
}

static void test_unflagged_cycles(void **state)
{
    (void)state;
    profile_of_life(-1);
    begin_dump(CYCLES(MARKER), false);
    put_two(CYCLES(MARKER + MS), CYCLES(MARKER + SEC));
    decide_with_conv(CONV_2_GHZ);
    assert_chosen();
    assert_becomes(CYCLES(MARKER + SEC), MARKER + SEC, 1);
    assert_says(FINDING_CLOCK_FLAG, "CLOCK_MONOTONIC; they are CPU cycles");
    end_world();
}

static void test_unflagged_cycles_with_k_mono(void **state)
{
    (void)state;
    cycles_without_conv(CLOCK_MONOTONIC);
    begin_dump(CYCLES(MARKER), false);
    put_two(CYCLES(MARKER + MS), CYCLES(MARKER + SEC));
    decide();
    assert_chosen();
    assert_becomes(CYCLES(MARKER + SEC), MARKER + SEC, 1);
    assert_says(FINDING_CLOCK_FLAG, "CLOCK_MONOTONIC; they are CPU cycles");
    assert_int_equal(count(FINDING_CLOCK_CONVERTED), 1);
    end_world();
}

static void test_wall_clock_stamps(void **state)
{
    (void)state;
    for (int clockid = -1; clockid <= CLOCK_MONOTONIC; clockid += 2) {
        profile_of_life(clockid);
        begin_dump(WALL + MARKER, false);
        put_two(WALL + MARKER + MS, WALL + MARKER + SEC);
        decide();
        assert_chosen();
        assert_becomes(WALL + MARKER + SEC, MARKER + SEC, 0);
        assert_says(FINDING_CLOCK_FLAG, "they are CLOCK_REALTIME");
        end_world();
    }
}

/* CLOCK_MONOTONIC_RAW runs beside CLOCK_MONOTONIC: so many ms that no process was born so early, or a few only. */
static void test_stamps_of_a_clock_close_by(void **state)
{
    static const uint64_t ahead[] = {61 * MS, 3 * SEC, 0 - 61 * MS, 0 - 3 * SEC};
    (void)state;
    for (size_t i = 0; i < sizeof ahead / sizeof ahead[0]; i++) {
        profile_of_life(CLOCK_MONOTONIC);
        begin_dump(MARKER + ahead[i], false);
        put_two(MARKER + MS + ahead[i], MARKER + SEC + ahead[i]);
        machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC);
        machine_knows(CLOCK_KIND_RAW, EXIT + SEC + ahead[i]);
        machine_knows(CLOCK_KIND_BOOTTIME, EXIT + 500 * SEC);
        decide();
        assert_chosen();
        assert_becomes(MARKER + SEC + ahead[i], MARKER + SEC, 0);
        assert_says(FINDING_CLOCK_FLAG, "they are CLOCK_MONOTONIC_RAW");
        assert_int_equal(count(FINDING_CLOCK_CONVERTED), 1);
        end_world();
    }
}

/* A machine so busy that half a second went by between header and mapping. */
static void test_a_late_marker_alone_is_no_other_clock(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER - SEC / 2, false);
    put_two(MARKER + MS, MARKER + SEC);
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC);
    machine_knows(CLOCK_KIND_RAW, EXIT + SEC - 61 * MS);
    decide();
    assert_silent();
    assert_becomes(MARKER, MARKER, 0);
    end_world();
}

static void test_no_clock_fits(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER + 7000 * SEC, false);
    put_two(MARKER + 7000 * SEC, MARKER + 7001 * SEC);
    decide();
    assert_refused("can't be placed");
    end_world();
}

static void test_two_clocks_fit_and_differ(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(WALL / 1000, false); /* no help */
    put_two(MARKER + 7000 * SEC, MARKER + 7001 * SEC);
    machine_knows(CLOCK_KIND_MONOTONIC, EXIT + SEC);
    machine_knows(CLOCK_KIND_RAW, EXIT + SEC + 6999 * SEC + 900 * MS);
    machine_knows(CLOCK_KIND_BOOTTIME, EXIT + SEC + 6999 * SEC + 500 * MS);
    decide();
    assert_refused("more than one");
    end_world();
}

/* ---- Stamps that are no times ---- */

static void assert_useless(uint64_t stamp, const char *words)
{
    assert_chosen();
    assert_becomes(stamp, MARKER, 0);
    assert_becomes(stamp + 1000, MARKER, 0);
    assert_says(FINDING_CLOCK_USELESS, words);
    assert_int_equal(findings_lost(&world.findings), 1);
}

static void test_stamps_of_zero(void **state)
{
    (void)state;
    for (int clockid = -1; clockid <= CLOCK_MONOTONIC; clockid += 2) {
        profile_of_life(clockid);
        begin_dump(MARKER, false);
        put_two(0, 0);
        decide();
        assert_useless(0, "2 records are all 0");
        end_world();
    }
}

static void test_equal_stamps_of_no_moment_of_the_life(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(4711, false);
    put_two(3 * SEC, 3 * SEC);
    decide();
    assert_useless(3 * SEC, "all equal");
    end_world();
}

static void test_equal_stamps_of_a_moment_are_one_moment(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(MARKER, false);
    put_two(MARKER + SEC, MARKER + SEC);
    may_read_machine = false;
    decide();
    assert_silent();
    end_world();
}

static void test_stamps_that_count_records(void **state)
{
    (void)state;
    profile_of_life(CLOCK_MONOTONIC);
    begin_dump(0, false);
    put_two(1, 2);
    decide();
    assert_useless(1, "first second after the machine's start");
    end_world();
}

/* ---- The formulas ---- */

/* ns = zero + cycles * mult / 2^shift, in 128 bits; a short counter's missing bits come from the base. */
static uint64_t expected_ns(const struct time_conv *conv, uint64_t cycles)
{
    if (conv->short_counter) { /* the first value at or behind the base with these low bits */
        unsigned __int128 period = (unsigned __int128)conv->mask + 1;
        unsigned __int128 full = conv->cycles / period * period + cycles % period;
        if (full < conv->cycles)
            full += period;
        cycles = (uint64_t)full;
    }
    unsigned __int128 ns = (unsigned __int128)cycles * conv->mult >> conv->shift;
    return (uint64_t)(ns + conv->zero_ns);
}

static void assert_converts(const struct time_conv *conv, uint64_t cycles)
{
    const struct jit_clock clock = {.cycles = true, .conv = *conv};
    assert_int_equal(jit_clock_to_perf(&clock, cycles), expected_ns(conv, cycles));
}

static void test_cycles_match_exact_arithmetic(void **state)
{
    uint64_t seed = 99;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct time_conv conv = {.known = true,
                                 .shift = random_below(&seed, 33),
                                 .mult = 1 + random_below(&seed, UINT32_MAX),
                                 .zero_ns = (uint64_t)random_below(&seed, 1u << 30) << 30};
        uint64_t cycles = (uint64_t)random_below(&seed, UINT32_MAX) << random_below(&seed, 20);
        assert_converts(&conv, cycles + random_below(&seed, 1000));
    }
}

static void test_short_counter_is_extended_from_its_base(void **state)
{
    uint64_t seed = 7;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t mask = (UINT64_C(1) << (32 + random_below(&seed, 25))) - 1;
        struct time_conv conv = {.known = true,
                                 .short_counter = true,
                                 .shift = 10,
                                 .mult = 1 + random_below(&seed, 5000),
                                 .zero_ns = random_below(&seed, UINT32_MAX),
                                 .cycles = (uint64_t)random_below(&seed, UINT32_MAX)
                                           << random_below(&seed, 28),
                                 .mask = mask};
        uint64_t low = ((uint64_t)random_below(&seed, UINT32_MAX) << 25) & mask;
        assert_converts(&conv, low);
        assert_converts(&conv, conv.cycles & mask);       /* the base itself */
        assert_converts(&conv, (conv.cycles - 1) & mask); /* just wrapped */
    }
}

static void test_zero_of_perfs_clock_may_lie_ahead(void **state)
{
    const struct time_conv conv = {
        .known = true, .shift = 31, .mult = 0x2aaaaaab, .zero_ns = UINT64_MAX - 999};
    (void)state;
    assert_converts(&conv, UINT64_C(3000000000) * 86400 * 365);
}

static void test_offsets_stop_at_the_ends_of_time(void **state)
{
    const struct jit_clock behind = {.from_ref = 0, .to_ref = 1000};
    const struct jit_clock ahead = {.from_ref = 1000, .to_ref = 0};
    const struct jit_clock slow = {.from_ref = 500, .to_ref = 100, .from_span = 1, .to_span = 3};
    (void)state;
    assert_int_equal(jit_clock_to_perf(&behind, UINT64_MAX - 999), UINT64_MAX);
    assert_int_equal(jit_clock_to_perf(&behind, UINT64_MAX - 1000), UINT64_MAX);
    assert_int_equal(jit_clock_to_perf(&behind, UINT64_MAX - 1001), UINT64_MAX - 1);
    assert_int_equal(jit_clock_to_perf(&ahead, 999), 0);
    assert_int_equal(jit_clock_to_perf(&ahead, 1001), 1);
    assert_int_equal(jit_clock_to_perf(&slow, 510), 130);
    assert_int_equal(jit_clock_to_perf(&slow, 490), 70);
    assert_int_equal(jit_clock_to_perf(&slow, 400), 0);
    assert_int_equal(jit_clock_to_perf(&slow, UINT64_MAX), UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_clock_needs_nothing),
        cmocka_unit_test(test_a_dump_without_code_has_no_wrong_times),
        cmocka_unit_test(test_wall_clock_in_the_header_alone_is_nothing),
        cmocka_unit_test(test_records_from_before_the_marker_stay),
        cmocka_unit_test(test_attached_recording_of_one_clock),
        cmocka_unit_test(test_offset_by_the_marker),
        cmocka_unit_test(test_foreign_headers_are_not_so_close),
        cmocka_unit_test(test_other_clocks_than_mono),
        cmocka_unit_test(test_rough_times_matter_where_addresses_are_used_again),
        cmocka_unit_test(test_the_mapping_of_the_file_as_it_is),
        cmocka_unit_test(test_a_dump_that_was_deleted_was_mapped_all_the_same),
        cmocka_unit_test(test_drift_since_the_recording),
        cmocka_unit_test(test_the_clocks_now_are_closer_than_a_foreign_header),
        cmocka_unit_test(test_clocks_of_another_boot_are_left_alone),
        cmocka_unit_test(test_wall_clock_header_and_the_clocks_now),
        cmocka_unit_test(test_bounds_by_marker_and_samples),
        cmocka_unit_test(test_bounds_by_marker_and_exit),
        cmocka_unit_test(test_no_bounds_no_conversion),
        cmocka_unit_test(test_attached_recording_by_the_clocks_now),
        cmocka_unit_test(test_attached_recording_of_another_time),
        cmocka_unit_test(test_cycles_by_time_conv_need_nothing_more),
        cmocka_unit_test(test_cycles_and_k_mono_by_time_conv_and_marker),
        cmocka_unit_test(test_cycles_without_time_conv_by_the_rate_since),
        cmocka_unit_test(test_a_counter_of_another_boot_has_no_rate),
        cmocka_unit_test(test_cycles_without_any_rate),
        cmocka_unit_test(test_flagged_cycles_that_are_nanoseconds),
        cmocka_unit_test(test_unflagged_cycles),
        cmocka_unit_test(test_unflagged_cycles_with_k_mono),
        cmocka_unit_test(test_wall_clock_stamps),
        cmocka_unit_test(test_stamps_of_a_clock_close_by),
        cmocka_unit_test(test_a_late_marker_alone_is_no_other_clock),
        cmocka_unit_test(test_no_clock_fits),
        cmocka_unit_test(test_two_clocks_fit_and_differ),
        cmocka_unit_test(test_stamps_of_zero),
        cmocka_unit_test(test_equal_stamps_of_no_moment_of_the_life),
        cmocka_unit_test(test_equal_stamps_of_a_moment_are_one_moment),
        cmocka_unit_test(test_stamps_that_count_records),
        cmocka_unit_test(test_cycles_match_exact_arithmetic),
        cmocka_unit_test(test_short_counter_is_extended_from_its_base),
        cmocka_unit_test(test_zero_of_perfs_clock_may_lie_ahead),
        cmocka_unit_test(test_offsets_stop_at_the_ends_of_time),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
