/* What a perf map's entries become: functions of the process's log, where and when its memory
 * allows. */
#include "injector/log/perf_map/perf_map_source.h"

#include "tests/producers/symbol_file.h"
#include "tests/unit/machine_stand_in.h"
#include "tests/unit/profile_builder.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>

enum { PID = 4711 };

static struct profile_builder built;
static char map_path[80], library_path[64];

/* A profile, the processes found in it, and what was said. */
struct fixture {
    struct perf_file file;
    struct records records;
    struct jit_processes processes;
    struct findings findings;
    size_t dumped; /* how many functions are a dump's */
};

static struct fixture fixture;

static int begin(void **state)
{
    (void)state;
    fixture = (struct fixture){0};
    begin_machine();
    snprintf(map_path, sizeof map_path, "%s/perf-%d.map", scratch, PID);
    snprintf(library_path, sizeof library_path, "%s/library.so", scratch);
    built.records_end = 0;
    profile_begin_one(&built);
    return 0;
}

static int end(void **state)
{
    (void)state;
    jit_processes_free(&fixture.processes);
    records_free(&fixture.records);
    perf_file_close(&fixture.file);
    findings_free(&fixture.findings);
    remove(map_path);
    remove(library_path);
    return 0;
}

static void map_at(uint64_t time_ns, uint64_t start, uint64_t end_addr, const char *filename)
{
    profile_map(&built, PERF_RECORD_MMAP2, 0, start, end_addr - start, filename, time_ns);
}

/* A mapping that is not executable. */
static void data_map_at(uint64_t time_ns, uint64_t start, uint64_t end_addr, const char *filename)
{
    size_t at = built.sink.size;
    map_at(time_ns, start, end_addr, filename);
    struct byte_sink misc = byte_sink_over(built.bytes + at + 4, 2);
    sink_u16(&misc, PERF_MISC_USER | PERF_MISC_MMAP_DATA);
}

/* The main thread gets a name; by exec, if MISC says so. */
static void comm_at(uint64_t time_ns, uint16_t misc)
{
    size_t at = profile_begin_record(&built, PERF_RECORD_COMM, misc);
    sink_u32(&built.sink, PID);
    sink_u32(&built.sink, PID);
    sink_bytes(&built.sink, "program", 8);
    profile_put_trailer(&built, 0, PID, time_ns);
    profile_end_record(&built, at);
}

static void exec_at(uint64_t time_ns)
{
    comm_at(time_ns, PERF_MISC_COMM_EXEC);
}

static void open_profile(void)
{
    if (!built.records_end)
        profile_end_records(&built);
    open_built_profile(&built, &fixture.file);
    assert_int_equal(records_read(&fixture.records, &fixture.file, &fixture.findings), 0);
    assert_int_equal(
        process_lives_read(&fixture.processes.lives, &fixture.records, &fixture.findings), 0);
}

/* Its life that has the map, or else its last one. */
static struct jit_process *process_of_pid(void)
{
    size_t count;
    uint32_t first = process_lives_of(&fixture.processes.lives, PID, &count);
    assert_int_not_equal(first, NO_LIFE);
    for (size_t i = 0; i < fixture.processes.count; i++)
        if (fixture.processes.items[i].pid == PID && fixture.processes.items[i].perf_map)
            return &fixture.processes.items[i];
    return jit_process_of_life(&fixture.processes, first + (uint32_t)count - 1);
}

static void write_map(const char *text)
{
    FILE *file = fopen(map_path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int read_given(char *const *given, size_t count)
{
    struct given_file files[4];
    struct perf_map_options options = {.only_given = true, .given = files, .given_count = count};
    assert_true(count <= sizeof files / sizeof files[0]);
    for (size_t i = 0; i < count; i++)
        files[i] = given_file_of(given[i]);
    return perf_maps_read(&fixture.processes, &fixture.records, &options, &fixture.findings);
}

/* Read TEXT as the map of the process. */
static struct jit_process *read_text(const char *text)
{
    char *given = map_path;
    if (!fixture.records.file)
        open_profile();
    write_map(text);
    if (read_given(&given, 1))
        fail_msg("%s", fixture.findings.failure);
    return process_of_pid();
}

/* The functions of the process's map, a line each: when, from where to where, and its name. */
static void assert_functions(const struct jit_process *process, const char *expected)
{
    char text[512] = "";
    size_t length = 0;
    for (size_t i = fixture.dumped; i < process->log.function_count; i++) {
        const struct jit_function *function = &process->log.functions[i];
        const struct code_event *event = &process->log.events[i];
        assert_null(function->code);
        assert_int_equal(event->kind, CODE_EVENT_LOAD);
        assert_int_equal(event->index, i);
        assert_true(length < sizeof text);
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "%" PRIu64 " %" PRIx64 "-%" PRIx64 " %s\n", event->time_ns,
                                   function->addr, function->addr + function->size, function->name);
    }
    assert_string_equal(text, expected);
    assert_int_equal(process->log.event_count, process->log.function_count);
    assert_int_equal(process->perf_map_counts.functions,
                     process->log.function_count - fixture.dumped);
}

static void test_functions_are_there_right_after_their_mapping(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    map_at(200, 0x30000, 0x40000, "/memfd:jit (deleted)");
    const struct jit_process *process = read_text("10000 10 f\n0x30010 0x20 g with blanks\n");
    assert_functions(process, "101 10000-10010 f\n"
                              "201 30010-30030 g with blanks\n");
}

/* As one of a dump: a line of perf script would be broken, a terminal controlled. */
static void test_a_name_that_cannot_be_shown_is_cleaned(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    const struct jit_process *process =
        read_text("10000 10 f\n10010 10 \033[31mred\tone\n10020 10 \xc3\xbc\xff\n");
    assert_functions(process, "101 10000-10010 f\n"
                              "101 10010-10020 ?[31mred one\n"
                              "101 10020-10030 \xc3\xbc?\n");
    assert_int_equal(fixture.findings.repaired[QUIRK_NAME_UNPRINTABLE], 2);
    assert_non_null(strstr(fixture.findings.first_repaired[QUIRK_NAME_UNPRINTABLE], "at 0x10010"));
}

static void test_it_stands_among_the_dumps_with_the_recordings_machine(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    const struct jit_process *process = read_text("10000 10 f\n");
    assert_int_equal(process->dump_count, 1);
    assert_string_equal(process->dump_paths[0], map_path);
    assert_int_equal(process->log.functions[0].dump, 0);
    assert_true(process->dumps[0].elf_mach != 0); /* the profile does not say: this one's */
    assert_null(process->dumps[0].data);
}

static void test_a_mapping_again_changes_nothing(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    map_at(300, 0x10000, 0x20000, "//anon");
    const struct jit_process *process = read_text("10000 10 f\n");
    assert_functions(process, "101 10000-10010 f\n");
}

static void test_a_function_in_a_grown_arena_is_there_when_all_of_it_is(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    map_at(200, 0x10000, 0x30000, "//anon");
    const struct jit_process *process = read_text("1fff0 20 across\n20100 10 behind\n");
    assert_functions(process, "201 1fff0-20010 across\n"
                              "201 20100-20110 behind\n");
    assert_int_equal(process->perf_map_counts.clipped, 0);
}

static void test_what_reaches_out_of_memory_is_clipped(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    map_at(100, 0x30000, 0x40000, "//anon");
    const struct jit_process *process = read_text("f000 2000 below\n1f000 12000 over the hole\n");
    assert_functions(process, "101 10000-11000 below\n"
                              "101 1f000-20000 over the hole\n");
    assert_int_equal(process->perf_map_counts.clipped, 2);
}

static void test_an_entry_without_size_has_its_own_address(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    const struct jit_process *process = read_text("10010 0 stub\n10020 10 f\n");
    assert_functions(process, "101 10010-10011 stub\n101 10020-10030 f\n");
}

/* A file of which profile_map maps code from 0x2000 on, with symbols in [0x2000, 0x2010) and
 * [0x2110, 0x2120). */
static void write_library(void)
{
    static const uint8_t code[0x4000];
    static const struct file_symbol symbols[] = {
        {"f", 0x2000, 0x10, STT_FUNC, STV_DEFAULT, SYMBOL_FILE_TEXT},
        {"g", 0x2110, 0x10, STT_FUNC, STV_DEFAULT, SYMBOL_FILE_TEXT}};
    assert_int_equal(
        write_symbol_file(library_path, EM_X86_64, code, sizeof code, symbols, 2, SHT_SYMTAB), 0);
}

static void test_code_outside_and_in_files_that_name_it_is_left_out(void **state)
{
    (void)state;
    write_library();
    map_at(100, 0x10000, 0x20000, "//anon");
    map_at(100, 0x40000, 0x42000, library_path);
    data_map_at(100, 0x50000, 0x52000, library_path);
    map_at(100, 0x58000, 0x59000, "[vdso]");
    data_map_at(100, 0x60000, 0x70000, "//anon");
    const struct jit_process *process =
        read_text("10000 10 f\n40000 10 builtin\n50020 10 data\n58000 10 vdso\n60000 10 bytecode\n"
                  "80000 10 nowhere\nfffffffffffffff0 f last\n");
    assert_functions(process, "101 10000-10010 f\n");
    assert_int_equal(process->perf_map_counts.entries, 7);
    assert_int_equal(process->perf_map_counts.in_files, 3);
    assert_int_equal(process->perf_map_counts.outside, 3);
    assert_int_equal(findings_lost(&fixture.findings), 0);
}

/* Deno is stripped, and its map has all of V8's builtins. */
static void test_code_in_files_that_do_not_name_it_is_taken(void **state)
{
    (void)state;
    write_library();
    map_at(100, 0x10000, 0x20000, "//anon");
    map_at(150, 0x40000, 0x42000, library_path);
    map_at(160, 0x50000, 0x52000, "/no/such/library.so");
    const struct jit_process *process =
        read_text("40008 18 behind f\n40100 40 around g\n50000 10 not readable\n");
    assert_functions(process, "151 40010-40020 behind f\n"
                              "151 40100-40110 around g\n"
                              "151 40120-40140 around g\n"
                              "161 50000-50010 not readable\n");
    assert_int_equal(process->perf_map_counts.in_files, 0);
}

/* V8 maps its builtins over memory that it reserved for code, so that calls are short. */
static void test_a_file_mapped_again_over_memory_is_the_files(void **state)
{
    (void)state;
    write_library();
    map_at(50, 0x40000, 0x42000, library_path);
    map_at(100, 0x10000, 0x20000, "//anon");
    map_at(200, 0x18000, 0x1a000, library_path);
    const struct jit_process *process =
        read_text("10000 10 code\n18000 10 f\n18020 10 builtin\n1b000 10 more code\n");
    assert_functions(process, "101 10000-10010 code\n"
                              "201 18020-18030 builtin\n"
                              "101 1b000-1b010 more code\n");
    assert_int_equal(process->perf_map_counts.in_files, 1);
}

/* But where a library is loaded first, the entries may be of the code that was there before. */
static void test_a_file_mapped_first_over_memory_has_no_entries(void **state)
{
    (void)state;
    write_library();
    map_at(100, 0x10000, 0x20000, "//anon");
    map_at(200, 0x18000, 0x1a000, library_path);
    const struct jit_process *process = read_text("18020 10 code\n");
    assert_functions(process, "101 18020-18030 code\n");
}

/* A library was there for a while: the map, written in the end, means the memory of the end. */
static void test_memory_behind_a_file_is_memory_anew(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    map_at(200, 0x10000, 0x18000, "/usr/lib/libx.so");
    map_at(300, 0x10000, 0x14000, "//anon");
    const struct jit_process *process =
        read_text("10000 10 later\n16000 10 before the file\n19000 10 untouched\n");
    assert_functions(process, "301 10000-10010 later\n"
                              "101 16000-16010 before the file\n"
                              "101 19000-19010 untouched\n");
}

static void test_maps_before_the_last_exec_do_not_count(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    exec_at(150);
    map_at(200, 0x10000, 0x18000, "//anon");
    exec_at(300); /* into a program without executable memory */
    map_at(301, 0x90000, 0x98000, "/usr/bin/true");
    const struct jit_process *process = read_text("10000 10 f\n19000 10 gone\n");
    assert_int_equal(process->begin.time_ns, 150);
    assert_functions(process, "201 10000-10010 f\n");
    assert_int_equal(process->perf_map_counts.outside, 1);
}

/* ---- Which program left it ---- */

#define S(count) ((count)*UINT64_C(1000000000))

enum { WALL_S = 1000 }; /* what the wall clock showed when perf's began */

/* Look below a root directory for the map, which was written last WRITTEN_S after perf's clock
 * began. Whether it is used.  *STALE: maps that another process left. */
static bool is_used_if_written(uint64_t written_s, size_t *stale)
{
    char directory[80];
    const struct perf_map_options options = {.root = scratch};
    const struct timespec written = {WALL_S + (time_t)written_s, 0};
    const struct timespec times[] = {written, written};
    snprintf(directory, sizeof directory, "%s/tmp", scratch);
    mkdir(directory, 0700);
    snprintf(map_path, sizeof map_path, "%s/tmp/perf-%d.map", scratch, PID);
    write_map("10000 10 f\n");
    assert_int_equal(utimensat(AT_FDCWD, map_path, times, 0), 0);
    open_profile();
    assert_int_equal(
        perf_maps_read(&fixture.processes, &fixture.records, &options, &fixture.findings), 0);
    size_t functions = process_of_pid()->log.function_count;
    *stale = fixture.findings.count[FINDING_MAP_STALE];
    end(NULL);
    fixture = (struct fixture){0};
    return functions > 0;
}

/* Whether it counts as the process's own. */
static bool is_found_if_written(uint64_t written_s)
{
    size_t stale;
    bool is_used = is_used_if_written(written_s, &stale);
    assert_int_equal(stale, !is_used);
    return is_used;
}

/* A program with executable memory at START_S, MEMORY_S after its exec. */
static void exec_with_memory(uint64_t start_s, uint64_t memory_s)
{
    exec_at(S(start_s));
    map_at(S(start_s + memory_s), 0x10000, 0x20000, "//anon");
}

static void end_on_another_host(void)
{
    profile_end_records(&built);
    profile_host(&built, "another host", "x86_64", 1, (const uint64_t[]){S(WALL_S), 0});
}

static void test_of_two_execs_a_map_is_not_older_than_the_second(void **state)
{
    (void)state;
    exec_with_memory(100, 10);
    exec_with_memory(200, 10);
    end_on_another_host();
    assert_true(is_found_if_written(205)); /* and before there was any memory */
    assert_true(is_found_if_written(199)); /* clocks are not that exact */
    assert_false(is_found_if_written(198));
    assert_false(is_found_if_written(150));
    assert_false(is_found_if_written(50));
}

/* The map is that of the program that had executable memory last. */
static void test_an_exec_into_a_program_without_memory_makes_no_map_old(void **state)
{
    (void)state;
    exec_with_memory(100, 10);
    exec_at(S(200));
    map_at(S(201), 0x90000, 0x98000, "/usr/bin/true");
    end_on_another_host();
    assert_true(is_found_if_written(150));
    assert_false(is_found_if_written(50));
}

static void test_an_exec_at_the_time_of_its_memory_is_that_programs(void **state)
{
    (void)state;
    exec_with_memory(100, 10);
    exec_with_memory(200, 0);
    end_on_another_host();
    assert_true(is_found_if_written(205));
    assert_false(is_found_if_written(150));
}

/* Its main thread is called otherwise from then on: no exec. */
static void test_a_new_name_makes_no_map_old(void **state)
{
    (void)state;
    exec_with_memory(100, 10);
    comm_at(S(200), 0);
    map_at(S(210), 0x20000, 0x30000, "//anon");
    end_on_another_host();
    assert_true(is_found_if_written(150));
}

/* ---- Files that hold code, and children ---- */

/* One of FILENAME, mapped with PROT and FLAGS. */
static void map_file_at(uint64_t time_ns, const char *filename, uint32_t prot, uint32_t flags)
{
    size_t at = built.sink.size;
    map_at(time_ns, 0x10000, 0x20000, filename);
    struct byte_sink fields = byte_sink_over(built.bytes + at + 64, 8);
    sink_u32(&fields, prot);
    sink_u32(&fields, flags);
}

static void fork_at(uint64_t time_ns, uint32_t child, uint32_t parent)
{
    size_t at = profile_begin_record(&built, PERF_RECORD_FORK, 0);
    sink_u32(&built.sink, child);
    sink_u32(&built.sink, parent);
    sink_u32(&built.sink, child);
    sink_u32(&built.sink, parent);
    sink_u64(&built.sink, time_ns);
    profile_put_trailer(&built, 0, parent, time_ns);
    profile_end_record(&built, at);
}

static void test_the_map_is_looked_for_where_a_file_may_hold_code(void **state)
{
    static const struct {
        const char *filename;
        uint32_t prot, flags;
        bool is_found;
    } cases[] = {
        {"/dev/shm/code (deleted)", 5, MAP_PRIVATE, true},
        {"/dev/shm/code", 5, MAP_SHARED, true},
        {"/tmp/code.Xq3 (deleted)", 5, MAP_SHARED, true},
        {"/tmp/code.Xq3", 5, MAP_SHARED, true}, /* it was removed later */
        {"/tmp/code.Xq3", 7, MAP_PRIVATE, true},
        {"/memfd:code (deleted)", 5, MAP_SHARED, true},
        {"/SYSV00000000 (deleted)", 5, MAP_SHARED, true},
        {"/dev/zero (deleted)", 5, MAP_SHARED, true},
        {"/usr/bin/true", 5, MAP_PRIVATE, false},
        {"/tmp/jit-4711.dump (deleted)", 5, MAP_PRIVATE, false}, /* the marker of a dump */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(begin(state), 0);
        map_file_at(S(100), cases[i].filename, cases[i].prot, cases[i].flags);
        end_on_another_host();
        size_t stale;
        bool is_found = is_used_if_written(150, &stale);
        assert_int_equal(stale, 0);
        if (is_found != cases[i].is_found)
            fail_msg("%s: %s", cases[i].filename, is_found ? "found" : "not found");
    }
}

static void test_a_child_has_a_map_for_memory_that_it_inherited(void **state)
{
    char given[96];
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    fork_at(200, PID + 1, PID);
    fork_at(300, PID + 2, PID + 1);
    map_at(400, 0x20000, 0x30000, "//anon"); /* the parent alone has it */
    open_profile();
    write_map("10000 10 f\n20000 10 g\n");
    snprintf(given, sizeof given, "%d:%s", PID + 2, map_path);
    assert_int_equal(read_given((char *[]){given}, 1), 0);
    assert_int_equal(fixture.processes.count, 1);
    assert_int_equal(fixture.processes.items[0].pid, PID + 2);
    assert_functions(&fixture.processes.items[0], "301 10000-10010 f\n");
    assert_int_equal(fixture.processes.items[0].perf_map_counts.outside, 1);
}

static void test_the_map_of_a_child_without_mappings_is_looked_for(void **state)
{
    (void)state;
    const uint32_t parent = PID - 1;
    size_t at = built.sink.size;
    map_at(S(100), 0x10000, 0x20000, "//anon");
    struct byte_sink pid = byte_sink_over(built.bytes + at + 8, 4);
    sink_u32(&pid, parent);
    fork_at(S(200), PID, parent);
    end_on_another_host();
    assert_true(is_found_if_written(250));
    assert_false(is_found_if_written(150)); /* another's who had the pid */
}

/* ---- Beside a dump ---- */

static struct jit_process *dumped(uint64_t start, uint64_t size)
{
    static struct jit_dump dump = {.elf_mach = 183, .address_bytes = 8};
    struct jit_process *process = process_of_pid();
    if (!process->dump_count)
        assert_int_equal(jit_process_add_dump(process, &dump, strdup("jit-4711.dump")), 0);
    assert_int_equal(code_log_add_named(&process->log, 0, 500, start, size, "of the dump"), 0);
    fixture.dumped++;
    return process;
}

static void test_what_a_dump_ever_covered_is_the_dumps(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    open_profile();
    dumped(0x10000, 0x10);
    dumped(0x10110, 0x10);
    dumped(0x10130, 0x10);
    const struct jit_process *process =
        read_text("10000 10 the same\n10100 50 around\n10200 10 alone\n");
    assert_functions(process, "101 10100-10110 around\n"
                              "101 10120-10130 around\n"
                              "101 10140-10150 around\n"
                              "101 10200-10210 alone\n");
    assert_int_equal(process->dump_count, 2);
    assert_int_equal(process->log.functions[6].dump, 1);
    assert_int_equal(process->dumps[1].elf_mach, 183); /* as the dump's */
}

static void test_a_map_that_adds_nothing_is_not_kept(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    open_profile();
    dumped(0x10000, 0x10);
    const struct jit_process *process = read_text("10000 10 the same\n");
    assert_int_equal(process->log.function_count, 1);
    assert_int_equal(process->dump_count, 1);
    assert_null(process->perf_map);
    assert_int_equal(findings_lost(&fixture.findings), 0);
}

/* ---- Neighbours ---- */

static void test_functions_in_one_mapping_are_neighbours(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    map_at(100, 0x20000, 0x30000, "//anon");
    const struct jit_process *process =
        read_text("10000 10 a\n18000 10 b\n20000 10 c\n28000 10 d\n");
    static const bool same_memory[] = {true, false, true, false};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(process->log.functions[i].same_memory, same_memory[i]);
}

/* ---- Maps that can't be used ---- */

static void test_none_of_it_inside_is_told(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    const struct jit_process *process = read_text("50000 10 f\n60000 10 g\n");
    assert_functions(process, "");
    assert_int_equal(fixture.findings.count[FINDING_MAP_ELSEWHERE], 1);
    assert_non_null(strstr(fixture.findings.first[FINDING_MAP_ELSEWHERE], "none of its 2"));
    assert_null(process->perf_map);
}

static void test_empty_is_no_finding(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    assert_functions(read_text(""), "");
    assert_int_equal(findings_lost(&fixture.findings), 0);
}

static void test_broken_lines_are_told(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    assert_functions(read_text("10000 10 f\n10008 rubbish\n10010\n"), "101 10000-10010 f\n");
    assert_int_equal(fixture.findings.count[FINDING_MAP_LINES], 1);
    assert_non_null(strstr(fixture.findings.first[FINDING_MAP_LINES], "2 lines"));
}

static void assert_given_refused(char *const *given, size_t count, const char *words)
{
    assert_int_equal(read_given(given, count), -1);
    if (!strstr(fixture.findings.failure, words))
        fail_msg("'%s' does not say '%s'", fixture.findings.failure, words);
    fixture.findings.failure[0] = '\0';
}

static void test_given_by_hand(void **state)
{
    (void)state;
    char by_pid[96], other_pid[96], nameless[] = "/tmp/x", signed_pid[] = "-1:/tmp/x",
                                    huge[] = "4294967296:/tmp/x", absent[] = "4711:/nowhere/x";
    map_at(100, 0x10000, 0x20000, "//anon");
    open_profile();
    write_map("10000 10 f\n");
    snprintf(by_pid, sizeof by_pid, "4711:%s", map_path);
    snprintf(other_pid, sizeof other_pid, "4712:%s", map_path);
    assert_given_refused((char *[]){nameless}, 1, "not named perf-<pid>.map");
    assert_given_refused((char *[]){signed_pid}, 1, "not named perf-<pid>.map");
    assert_given_refused((char *[]){huge}, 1, "not named perf-<pid>.map");
    assert_given_refused((char *[]){other_pid}, 1, "process 4712 of ");
    assert_given_refused((char *[]){absent}, 1, "/nowhere/x: No such file");
    assert_int_equal(process_of_pid()->log.function_count, 0);
    assert_int_equal(read_given((char *[]){by_pid}, 1), 0);
    assert_functions(process_of_pid(), "101 10000-10010 f\n");
}

static void test_two_for_one_process_are_refused(void **state)
{
    (void)state;
    map_at(100, 0x10000, 0x20000, "//anon");
    open_profile();
    write_map("10000 10 f\n");
    assert_given_refused((char *[]){map_path, map_path}, 2, "has another map given");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_functions_are_there_right_after_their_mapping),
        TEST(test_a_name_that_cannot_be_shown_is_cleaned),
        TEST(test_it_stands_among_the_dumps_with_the_recordings_machine),
        TEST(test_a_mapping_again_changes_nothing),
        TEST(test_a_function_in_a_grown_arena_is_there_when_all_of_it_is),
        TEST(test_what_reaches_out_of_memory_is_clipped),
        TEST(test_an_entry_without_size_has_its_own_address),
        TEST(test_code_outside_and_in_files_that_name_it_is_left_out),
        TEST(test_code_in_files_that_do_not_name_it_is_taken),
        TEST(test_a_file_mapped_again_over_memory_is_the_files),
        TEST(test_a_file_mapped_first_over_memory_has_no_entries),
        TEST(test_memory_behind_a_file_is_memory_anew),
        TEST(test_maps_before_the_last_exec_do_not_count),
        TEST(test_of_two_execs_a_map_is_not_older_than_the_second),
        TEST(test_an_exec_into_a_program_without_memory_makes_no_map_old),
        TEST(test_an_exec_at_the_time_of_its_memory_is_that_programs),
        TEST(test_a_new_name_makes_no_map_old),
        TEST(test_the_map_is_looked_for_where_a_file_may_hold_code),
        TEST(test_a_child_has_a_map_for_memory_that_it_inherited),
        TEST(test_the_map_of_a_child_without_mappings_is_looked_for),
        TEST(test_what_a_dump_ever_covered_is_the_dumps),
        TEST(test_a_map_that_adds_nothing_is_not_kept),
        TEST(test_functions_in_one_mapping_are_neighbours),
        TEST(test_none_of_it_inside_is_told),
        TEST(test_empty_is_no_finding),
        TEST(test_broken_lines_are_told),
        TEST(test_given_by_hand),
        TEST(test_two_for_one_process_are_refused),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
