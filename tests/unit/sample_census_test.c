/* The judgement of samples: all are at 0x401000 in process 4711, and what is there when is told by
 * each test. */
#include "injector/check/census/sample_census.h"

#include "tests/unit/process_builder.h"
#include "tests/unit/profile_builder.h"

enum { IP = 0x401000, PARENT = 4700 };

static struct profile_builder recording;
static struct process_builder built;
static struct sample_census census;

/* Memory from time 10 on; samples at 20, 30, 40, 50. */
static int begin(void **state)
{
    (void)state;
    process_begin(&built);
    profile_begin_one(&recording);
    profile_map(&recording, PERF_RECORD_MMAP2, 0, 0x400000, 0x10000, "//anon", 10);
    for (uint64_t time = 20; time <= 50; time += 10)
        profile_sample(&recording, 0, time);
    return 0;
}

static int end(void **state)
{
    (void)state;
    sample_census_free(&census);
    process_free(&built);
    return 0;
}

static void map_at(uint64_t time, const char *filename)
{
    profile_map(&recording, PERF_RECORD_MMAP2, 0, 0x400000, 0x10000, filename, time);
}

/* Elsewhere in its file than the memory before it, which has the same device and inode here. */
static void map_file_at(uint64_t time)
{
    profile_map(&recording, PERF_RECORD_MMAP2, 0, 0x3ff000, 0x11000, "/usr/lib/libother.so", time);
}

/* Fill in what the profile knows of the process, as jit_processes_read does. */
static void find_maps(struct jit_process *process, const struct records *records)
{
    process->maps = records_maps_of(records, process->pid, &process->map_count);
}

/* Judge the recording with PROCESS as the process that has JIT code, and REFUSED_COUNT dumps that
 * were refused. */
static void judge(struct jit_process *process, struct refused_dump *refused, size_t refused_count)
{
    struct findings findings = {0};
    struct perf_file file;
    struct records records;
    struct timeline timeline = {0};
    struct jit_processes processes = {.items = process,
                                      .count = process ? 1 : 0,
                                      .refused = refused,
                                      .refused_count = refused_count};
    profile_end_records(&recording);
    open_built_profile(&recording, &file);
    assert_int_equal(records_read(&records, &file, &findings), 0);
    assert_int_equal(process_lives_read(&processes.lives, &records, &findings), 0);
    if (process) {
        size_t count;
        find_maps(process, &records);
        process->life = process_lives_of(&processes.lives, process->pid, &count);
        processes.by_life = malloc(processes.lives.count * sizeof *processes.by_life);
        memset(processes.by_life, 0xff, processes.lives.count * sizeof *processes.by_life);
        processes.by_life[process->life] = 0;
        assert_int_equal(timeline_play(&timeline, process, NULL, NULL, records.sample_times_ns,
                                       records.sample_count, &findings),
                         0);
    }
    const struct census_question question = {&records, &processes, &timeline, true, false, NULL};
    assert_int_equal(sample_census_take(&census, &question, &findings), 0);
    timeline_free(&timeline);
    free(processes.by_life);
    process_lives_free(&processes.lives);
    records_free(&records);
    perf_file_close(&file);
    findings_free(&findings);
}

static void assert_counts(uint64_t named, uint64_t in_files, uint64_t unknown)
{
    assert_int_equal(census.named, named);
    assert_int_equal(census.in_files, in_files);
    assert_int_equal(census.unknown, unknown);
}

/* One reason for all that are unknown, the first of them at FIRST_NS. */
static void assert_cause(enum sample_cause cause, uint64_t first_ns)
{
    assert_int_equal(census.group_count, 1);
    assert_string_equal(sample_cause_id(census.groups[0].cause), sample_cause_id(cause));
    assert_int_equal(census.groups[0].count, census.unknown);
    assert_int_equal(census.groups[0].first_ns, first_ns);
    assert_int_equal(census.groups[0].first_ip, IP);
}

static void a_logged_function_is_named(void **state)
{
    (void)state;
    build_load(&built, 15, IP - 16, 64);
    judge(&built.process, NULL, 0);
    assert_int_equal(census.samples, 4);
    assert_counts(4, 0, 0);
    assert_int_equal(census.group_count, 0);
}

static void its_last_byte_is_and_the_next_is_not(void **state)
{
    (void)state;
    build_load(&built, 15, IP - 63, 64);
    judge(&built.process, NULL, 0);
    assert_counts(4, 0, 0);
    end(state);
    begin(state);
    build_load(&built, 15, IP - 64, 64);
    judge(&built.process, NULL, 0);
    assert_counts(0, 0, 4);
    assert_cause(CAUSE_NOT_LOGGED, 20);
}

/* What the sample at 20 hit would stand in front of the last record of the log. */
static void behind_the_end_of_a_cut_dump(void **state)
{
    (void)state;
    build_load(&built, 25, IP - 64, 64);
    built.process.log.cut = true;
    judge(&built.process, NULL, 0);
    assert_counts(0, 0, 4);
    assert_int_equal(census.group_count, 2);
    assert_int_equal(census.groups[0].cause, CAUSE_NOT_WRITTEN);
    assert_int_equal(census.groups[0].count, 3);
    assert_int_equal(census.groups[0].first_ns, 30);
    assert_int_equal(census.groups[1].cause, CAUSE_NOT_LOGGED);
    sample_census_free(&census);
    built.process.log.stubs_unread = true;
    judge(&built.process, NULL, 0);
    assert_int_equal(census.groups[0].cause, CAUSE_STUBS_UNREAD);
}

static void before_its_load(void **state)
{
    (void)state;
    build_load(&built, 35, IP, 64);
    judge(&built.process, NULL, 0);
    assert_counts(2, 0, 2);
    assert_cause(CAUSE_BEFORE_LOAD, 20);
}

static void after_an_unload(void **state)
{
    (void)state;
    uint32_t function = build_load(&built, 15, IP, 64);
    build_unload(&built, 25, function);
    judge(&built.process, NULL, 0);
    assert_counts(1, 0, 3);
    assert_cause(CAUSE_FREED, 30);
}

static void after_a_move(void **state)
{
    (void)state;
    uint32_t function = build_load(&built, 15, IP, 64);
    build_move(&built, 35, function, IP + 0x1000, 64);
    judge(&built.process, NULL, 0);
    assert_counts(2, 0, 2);
    assert_cause(CAUSE_FREED, 40);
}

/* perf shows the mapping then, and no longer that code was unloaded. */
static void freed_memory_that_is_flipped_is_still_freed(void **state)
{
    (void)state;
    uint32_t function = build_load(&built, 15, IP, 64);
    build_unload(&built, 25, function);
    map_at(35, "//anon");
    judge(&built.process, NULL, 0);
    assert_counts(1, 0, 3);
    assert_cause(CAUSE_FREED, 30);
}

/* Gone between two samples: no change speaks of it, but the log does. */
static void a_function_that_no_sample_could_hit_was_freed(void **state)
{
    (void)state;
    uint32_t function = build_load(&built, 32, IP, 64);
    build_unload(&built, 34, function);
    map_at(36, "//anon");
    judge(&built.process, NULL, 0);
    assert_counts(0, 0, 4);
    assert_int_equal(census.group_count, 2);
    for (size_t i = 0; i < 2; i++) {
        bool before = census.groups[i].cause == CAUSE_BEFORE_LOAD;
        assert_int_equal(census.groups[i].count, 2);
        assert_int_equal(census.groups[i].first_ns, before ? 20 : 40);
        assert_true(before || census.groups[i].cause == CAUSE_FREED);
    }
}

static void a_file_over_the_code_has_symbols_of_its_own(void **state)
{
    (void)state;
    build_load(&built, 15, IP, 64);
    map_file_at(25);
    judge(&built.process, NULL, 0);
    assert_counts(1, 3, 0);
}

static void memory_over_that_file_hides_what_was_there(void **state)
{
    (void)state;
    build_load(&built, 15, IP, 64);
    map_file_at(25);
    map_at(35, "//anon");
    judge(&built.process, NULL, 0);
    assert_counts(1, 1, 2);
    assert_cause(CAUSE_REMAPPED, 40);
}

static void a_flip_of_live_code_costs_nothing(void **state)
{
    (void)state;
    build_load(&built, 15, IP, 64);
    map_at(25, "//anon");
    judge(&built.process, NULL, 0);
    assert_counts(4, 0, 0);
}

static void what_runs_in_no_mapping_is_not_judged(void **state)
{
    (void)state;
    profile_begin_one(&recording);
    profile_sample(&recording, 0, 5);
    map_at(10, "//anon");
    profile_sample(&recording, 0, 20);
    build_load(&built, 15, IP, 64);
    judge(&built.process, NULL, 0);
    assert_counts(1, 0, 0);
    assert_int_equal(census.unmapped, 1);
}

static void without_dump_and_map(void **state)
{
    (void)state;
    judge(NULL, NULL, 0);
    assert_counts(0, 0, 4);
    assert_cause(CAUSE_NO_DUMP, 20);
}

static void a_refused_dump_is_the_reason(void **state)
{
    static const struct {
        enum finding_kind why;
        enum sample_cause cause;
    } cases[] = {
        {FINDING_DUMP_MISSING, CAUSE_DUMP_MISSING},   {FINDING_DUMP_UNUSABLE, CAUSE_DUMP_REFUSED},
        {FINDING_DUMP_REPLACED, CAUSE_DUMP_REPLACED}, {FINDING_DUMP_AMBIGUOUS, CAUSE_DUMP_REPLACED},
        {FINDING_DUMP_NOT_OURS, CAUSE_PID_NAMESPACE}, {FINDING_CLOCK_USELESS, CAUSE_WRONG_CLOCK},
        {FINDING_DUMP_OWNER, CAUSE_DUMP_OWNER}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct refused_dump refused = {0, cases[i].why, 0};
        judge(NULL, &refused, 1);
        assert_counts(0, 0, 4);
        assert_cause(cases[i].cause, 20);
        end(state);
        begin(state);
    }
}

/* --repair is for a dump that is damaged. */
static void the_remedy_fits_the_cause(void **state)
{
    (void)state;
    assert_non_null(strstr(sample_cause_remedy(CAUSE_DUMP_REFUSED), "--repair"));
    assert_null(strstr(sample_cause_remedy(CAUSE_DUMP_OWNER), "--repair"));
    assert_non_null(strstr(sample_cause_remedy(CAUSE_DUMP_OWNER), "--force"));
}

/* What was logged before, also at the address of a function that was logged since. */
static void before_the_dump_was_written_anew(void **state)
{
    (void)state;
    struct refused_dump refused = {0, FINDING_DUMP_ANEW, 35};
    build_load(&built, 45, IP, 64);
    judge(&built.process, &refused, 1);
    assert_counts(1, 0, 3);
    assert_int_equal(census.group_count, 2);
    assert_int_equal(census.groups[0].cause, CAUSE_DUMP_ANEW);
    assert_int_equal(census.groups[0].count, 2);
    assert_int_equal(census.groups[1].cause, CAUSE_BEFORE_LOAD);
}

/* Of two dumps one was refused: what the other one speaks of has a reason of its own. */
static void a_refused_dump_explains_only_what_no_other_speaks_of(void **state)
{
    (void)state;
    struct refused_dump refused = {0, FINDING_DUMP_MISSING, 0};
    uint32_t function = build_load(&built, 15, IP, 64);
    build_unload(&built, 25, function);
    judge(&built.process, &refused, 1);
    assert_counts(1, 0, 3);
    assert_cause(CAUSE_FREED, 30);
}

static void a_perf_map_without_the_address(void **state)
{
    (void)state;
    char stand_in;
    build_load(&built, 15, IP + 0x100, 64);
    built.process.perf_map = (struct perfmap_table *)(void *)&stand_in;
    judge(&built.process, NULL, 0);
    assert_counts(0, 0, 4);
    assert_cause(CAUSE_NOT_IN_MAP, 20);
}

static void put_fork(uint32_t child, uint32_t parent, uint64_t time)
{
    struct byte_sink *sink = &recording.sink;
    size_t start = profile_begin_record(&recording, PERF_RECORD_FORK, 0);
    sink_u32(sink, child);
    sink_u32(sink, parent);
    sink_u32(sink, child);
    sink_u32(sink, parent);
    sink_u64(sink, time);
    profile_put_trailer(&recording, 0, child, time);
    profile_end_record(&recording, start);
}

/* Process 4711 is forked at FORK_TIME from one that loads the function at 11 and unloads it at 25.
 */
static void fork_from_parent(uint64_t fork_time)
{
    profile_begin_one(&recording);
    put_fork(4711, PARENT, fork_time);
    for (uint64_t time = 20; time <= 50; time += 10)
        profile_sample(&recording, 0, time);
    built.process.pid = PARENT;
    uint32_t function = build_load(&built, 11, IP, 64);
    build_unload(&built, 25, function);
}

static void a_child_has_what_its_parent_had_at_the_fork(void **state)
{
    (void)state;
    fork_from_parent(15);
    judge(&built.process, NULL, 0);
    assert_counts(4, 0, 0);
}

static void a_child_has_nothing_that_its_parent_freed_before(void **state)
{
    (void)state;
    fork_from_parent(26);
    judge(&built.process, NULL, 0);
    assert_int_equal(census.named, 0);
    assert_cause(CAUSE_FREED, 20);
}

/* A hundred forks, each by the child of the one before, and no sample but in the last. */
static void a_late_descendant_has_what_the_first_had(void **state)
{
    (void)state;
    for (int mapped_over = 0; mapped_over < 2; mapped_over++) {
        profile_begin_one(&recording);
        for (uint32_t i = 0; i < 100; i++)
            put_fork(i == 99 ? 4711 : 5000 + i, i == 0 ? PARENT : 5000 + i - 1, 100 + i);
        if (mapped_over) /* after its fork */
            map_at(300, "/usr/lib/libother.so");
        profile_sample(&recording, 0, 250);
        profile_sample(&recording, 0, 350);
        built.process.pid = PARENT;
        uint32_t function = build_load(&built, 11, IP, 64);
        build_unload(&built, 260, function); /* the parent's, after the first fork */
        judge(&built.process, NULL, 0);
        assert_counts(mapped_over ? 1 : 2, mapped_over ? 1 : 0, 0);
        end(state);
        begin(state);
    }
}

static void every_cause_has_a_text(void **state)
{
    (void)state;
    for (int cause = 0; cause < CAUSES; cause++) {
        assert_non_null(sample_cause_id((enum sample_cause)cause));
        assert_non_null(sample_cause_what((enum sample_cause)cause));
        assert_non_null(sample_cause_remedy((enum sample_cause)cause));
    }
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_logged_function_is_named),
        test(its_last_byte_is_and_the_next_is_not),
        test(behind_the_end_of_a_cut_dump),
        test(before_its_load),
        test(after_an_unload),
        test(after_a_move),
        test(freed_memory_that_is_flipped_is_still_freed),
        test(a_function_that_no_sample_could_hit_was_freed),
        test(a_file_over_the_code_has_symbols_of_its_own),
        test(memory_over_that_file_hides_what_was_there),
        test(a_flip_of_live_code_costs_nothing),
        test(what_runs_in_no_mapping_is_not_judged),
        test(without_dump_and_map),
        test(a_refused_dump_is_the_reason),
        test(the_remedy_fits_the_cause),
        test(a_refused_dump_explains_only_what_no_other_speaks_of),
        test(before_the_dump_was_written_anew),
        test(a_perf_map_without_the_address),
        test(a_child_has_what_its_parent_had_at_the_fork),
        test(a_child_has_nothing_that_its_parent_freed_before),
        test(a_late_descendant_has_what_the_first_had),
        test(every_cause_has_a_text),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
