/* Whose dump it is, which life it belongs to, and who inherits its code: hand-made recordings and dumps. */
#include "injector/jit/jit_process.h"

#include "injector/jit/perf_map_source.h"

#include "tests/unit/dump_builder.h"
#include "tests/unit/profile_builder.h"
#include "tests/unit/scratch.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

enum { PID = 4711, OTHER = 4800, CHILD = 5000, ARENA = 0x100000, SLOT = 0x100 };

/* One recording, and what is made of it. */
static struct profile_builder recording;
static uint64_t generation; /* of the mappings' files from here on; 0: not told */
static struct perf_file file;
static struct profile profile;
static struct jit_processes processes;
static struct findings findings;
static char dump_path[96], other_path[96], second_path[96],
    second_dir[80]; /* the first and third are named alike */

static int begin(void **state)
{
    (void)state;
    profile_begin_one(&recording);
    generation = 0;
    findings = (struct findings){0};
    snprintf(dump_path, sizeof dump_path, "%s/jit-4711.dump", scratch);
    snprintf(other_path, sizeof other_path, "%s/other", scratch);
    snprintf(second_dir, sizeof second_dir, "%s/sub", scratch);
    snprintf(second_path, sizeof second_path, "%s/jit-4711.dump", second_dir);
    return mkdir(second_dir, 0700);
}

static int end(void **state)
{
    (void)state;
    jit_processes_free(&processes);
    profile_free(&profile);
    perf_file_close(&file);
    findings_free(&findings);
    unlink(dump_path);
    unlink(other_path);
    unlink(second_path);
    return rmdir(second_dir);
}

/* ---- Records of any process ---- */

static void end_record_of(size_t start, uint32_t pid, uint64_t time)
{
    sink_u32(&recording.sink, pid);
    sink_u32(&recording.sink, pid);
    sink_u64(&recording.sink, time);
    profile_end_record(&recording, start);
}

static void put_task(uint32_t type, uint16_t misc, uint32_t pid, uint32_t parent, uint32_t tid,
                     uint64_t time)
{
    size_t start = profile_begin_record(&recording, type, misc);
    sink_u32(&recording.sink, pid);
    sink_u32(&recording.sink, parent);
    sink_u32(&recording.sink, tid);
    sink_u32(&recording.sink, parent);
    sink_u64(&recording.sink, time);
    end_record_of(start, pid, time);
}

static void put_fork(uint32_t pid, uint32_t parent, uint64_t time)
{
    put_task(PERF_RECORD_FORK, 0, pid, parent, pid, time);
}

static void put_exit(uint32_t pid, uint32_t tid, uint64_t time)
{
    put_task(PERF_RECORD_EXIT, 0, pid, pid, tid, time);
}

static void put_exec(uint32_t pid, uint64_t time)
{
    size_t start = profile_begin_record(&recording, PERF_RECORD_COMM, PERF_MISC_COMM_EXEC);
    sink_u32(&recording.sink, pid);
    sink_u32(&recording.sink, pid);
    sink_bytes(&recording.sink, "program", 8);
    end_record_of(start, pid, time);
}

static void put_namespaces(uint32_t pid, uint64_t inode, uint64_t time)
{
    size_t start = profile_begin_record(&recording, PERF_RECORD_NAMESPACES, 0);
    sink_u32(&recording.sink, pid);
    sink_u32(&recording.sink, pid);
    sink_u64(&recording.sink, 7);
    for (int link = 0; link < 7; link++) {
        sink_u64(&recording.sink, 4);
        sink_u64(&recording.sink, link == PERF_NAMESPACE_PID ? inode : 77);
    }
    end_record_of(start, pid, time);
}

static void put_map(uint32_t pid, uint64_t addr, const char *name, dev_t dev, ino_t ino,
                    uint64_t time)
{
    size_t start = profile_begin_record(&recording, PERF_RECORD_MMAP2, PERF_MISC_USER);
    sink_u32(&recording.sink, pid);
    sink_u32(&recording.sink, pid);
    sink_u64(&recording.sink, addr);
    sink_u64(&recording.sink, 0x1000);
    sink_u64(&recording.sink, 0);
    sink_u32(&recording.sink, major(dev));
    sink_u32(&recording.sink, minor(dev));
    sink_u64(&recording.sink, ino);
    sink_u64(&recording.sink, generation);
    sink_u32(&recording.sink, 5);
    sink_u32(&recording.sink, 2);
    sink_cstr(&recording.sink, name);
    sink_zeros(&recording.sink, (8 - (recording.sink.size - start) % 8) % 8);
    end_record_of(start, pid, time);
}

/* A marker of the dump that stands at PATH now. */
static void put_marker(uint32_t pid, const char *path, uint64_t time)
{
    struct stat status = {0};
    stat(path, &status);
    put_map(pid, 0x7000000, path, status.st_dev, status.st_ino, time);
}

static void put_memory(uint32_t pid, uint64_t addr, uint64_t time)
{
    put_map(pid, addr, "//anon", 0, 0, time);
}

/* ---- Dumps ---- */

/* A load record as LOAD.pid has it. */
struct load {
    uint32_t pid;
    uint64_t time;
};

static uint64_t addr_of(size_t load)
{
    return ARENA + load * SLOT;
}

static uint64_t ms(uint64_t count)
{
    return count * 1000000;
}

/* A dump by PID at PATH, with a function at each LOAD, called "load<n>". */
static void write_dump(const char *path, uint32_t pid, const struct load *loads, size_t count)
{
    static struct dump_builder dump;
    dump_begin(&dump, false, JITHEADER_BYTES);
    memcpy(dump.bytes + 20, &pid, sizeof pid);
    if (count) { /* it was opened, and mapped, 100 ms before the first function */
        uint64_t opened = loads[0].time - ms(100);
        memcpy(dump.bytes + 24, &opened, sizeof opened);
    }
    for (size_t i = 0; i < count; i++) {
        char name[16];
        size_t start = dump.sink.size;
        snprintf(name, sizeof name, "load%zu", i);
        dump_load(&dump, loads[i].time, addr_of(i), name, "code", i);
        memcpy(dump.bytes + start + 16, &loads[i].pid, sizeof loads[i].pid);
    }
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(dump.bytes, 1, dump.sink.size, stream), dump.sink.size);
    assert_int_equal(fclose(stream), 0);
}

static void write_two(const char *path, uint32_t pid, uint64_t first, uint64_t second)
{
    const struct load loads[] = {{pid, first}, {pid, second}};
    write_dump(path, pid, loads, 2);
}

/* ---- Reading ---- */

static int read_all(const char *given)
{
    static const struct perf_map_options no_perf_maps = {.only_given = true};
    char *extra[] = {(char *)(uintptr_t)given};
    profile_sample(&recording, 0, 1);
    profile_end_records(&recording);
    open_built_profile(&recording, &file);
    assert_int_equal(profile_read(&profile, &file, &findings), 0);
    return jit_processes_read(&processes, &profile, extra, given != NULL, &no_perf_maps, NULL,
                              false, &findings);
}

static void assert_reads(const char *given, size_t count)
{
    if (read_all(given))
        fail_msg("%s", findings.failure);
    assert_int_equal(processes.count, count);
}

static void assert_refused(const char *given, enum finding_kind kind)
{
    assert_int_equal(read_all(given), -1);
    assert_int_equal(findings.count[kind], findings_lost(&findings));
    assert_true(findings.count[kind] > 0);
    assert_non_null(strstr(findings.failure, "--jitdump"));
}

static size_t events_of(size_t process)
{
    return processes.items[process].log.event_count;
}

/* Milliseconds, so that the slack between clocks is small beside them. */
/* ---- Lives ---- */

static void test_a_dump_of_a_process_alone(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, dump_path, ms(1000));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].pid, PID);
    assert_int_equal(events_of(0), 2);
    assert_int_equal(processes.marker_count, 1);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_of_two_lives_the_one_in_which_it_was_written(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(5100), ms(5200));
    put_fork(PID, 1, ms(900));
    put_marker(PID, dump_path, ms(1000));
    put_exit(PID, PID, ms(2000));
    put_fork(PID, 1, ms(4900));
    put_marker(PID, dump_path, ms(5000));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].begin.time_ns, ms(4900));
    assert_int_equal(processes.items[0].map_count, 1);
    assert_int_equal(findings.count[FINDING_DUMP_REPLACED], 1);
    assert_int_equal(processes.marker_count, 1);
}

static void test_exec_is_another_life(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(5100), ms(5200));
    put_marker(PID, dump_path, ms(1000));
    put_exec(PID, ms(4900));
    put_marker(PID, dump_path, ms(5000));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].begin.time_ns, ms(4900));
    assert_int_equal(findings.count[FINDING_DUMP_REPLACED], 1);
}

static void test_a_dump_from_before_an_exec_keeps_its_life(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, dump_path, ms(1000));
    put_exec(PID, ms(4900));
    put_memory(PID, ARENA, ms(5000));
    assert_reads(NULL, 1);
    assert_true(processes.items[0].execed);
    assert_int_equal(processes.items[0].next.time_ns, ms(4900));
    assert_int_equal(processes.items[0].map_count, 1); /* not the new program's */
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_a_dump_written_after_the_process_ended(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(5100), ms(5200));
    put_marker(PID, dump_path, ms(1000));
    put_exit(PID, PID, ms(2000));
    assert_refused(NULL, FINDING_DUMP_REPLACED);
}

static void test_threads_go_on_without_the_main_thread(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(5100), ms(5200));
    put_marker(PID, dump_path, ms(1000));
    put_exit(PID, PID, ms(2000));
    put_exit(PID, PID + 1, ms(6000));
    assert_reads(NULL, 1);
    assert_int_equal(findings_lost(&findings), 0);
}

/* perf record itself writes FORKs for what ran before it; they are no copies. */
static void test_what_ran_already_inherits_nothing(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, dump_path, ms(1000));
    put_task(PERF_RECORD_FORK, PERF_MISC_FORK_EXEC, CHILD, PID, CHILD, ms(2000));
    put_memory(CHILD, ARENA, ms(3000));
    assert_reads(NULL, 1);
}

/* ---- Heritage ---- */

static void test_only_a_child_with_records_over_the_code_counts(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, dump_path, ms(1000));
    put_fork(CHILD, PID, ms(2000));
    put_memory(CHILD, ARENA + 0x100000, ms(3000)); /* elsewhere */
    put_fork(CHILD + 1, CHILD, ms(4000));
    put_memory(CHILD + 1, ARENA, ms(5000));
    assert_reads(NULL, 2);
    const struct jit_process *heir = &processes.items[1];
    assert_int_equal(heir->pid, CHILD + 1);
    assert_ptr_equal(heir->parent, &processes.items[0]);
    assert_int_equal(heir->forked.time_ns, ms(2000)); /* when its parent left */
    assert_int_equal(heir->heritage.wanted_count, 1);
    assert_int_equal(heir->heritage.wanted[0].start, ARENA);
}

static void test_many_idle_children_cost_nothing(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, dump_path, ms(1000));
    for (uint32_t i = 0; i < 500; i++)
        put_fork(CHILD + i, PID, ms(2000 + i));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].fork_count, 500);
    assert_null(processes.items[0].forks[499].heir);
}

static void test_after_exec_nothing_is_inherited(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, dump_path, ms(1000));
    put_fork(CHILD, PID, ms(2000));
    put_exec(CHILD, ms(2100));
    put_memory(CHILD, ARENA, ms(3000));
    assert_reads(NULL, 1);
}

static void test_records_with_a_childs_pid_are_the_childs(void **state)
{
    const struct load loads[] = {{PID, ms(1100)}, {CHILD, ms(2100)}, {CHILD, ms(1300)},
                                 {0, ms(2200)},   {OTHER, ms(2300)}, {PID, ms(2400)}};
    (void)state;
    write_dump(dump_path, PID, loads, 6);
    put_marker(PID, dump_path, ms(1000));
    put_fork(OTHER, 1, ms(900));
    put_fork(CHILD, PID, ms(2000));
    assert_reads(NULL, 2);
    assert_int_equal(processes.items[0].pid, PID); /* it has no FORK: it was there from the start */
    assert_int_equal(events_of(0), 5);             /* the third was before the child's time */
    assert_int_equal(processes.items[1].pid, CHILD);
    assert_int_equal(events_of(1), 1);
    const struct jit_function *function = &processes.items[1].log.functions[0];
    assert_string_equal(function->name, "load1");
    assert_int_equal(processes.items[1].borrowed_count, 1);
    assert_ptr_equal(processes.items[1].dumps[function->dump].data,
                     processes.items[0].dumps[0].data);
}

/* ---- Several dumps ---- */

static void test_a_dump_that_is_mapped_twice_is_read_once(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, dump_path, ms(1000));
    put_marker(PID, dump_path, ms(1050));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].dump_count, 1);
    assert_int_equal(processes.marker_count, 2);
}

static void test_a_mapping_that_says_deleted_is_the_same_dump(void **state)
{
    char deleted[128];
    struct stat status;
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    stat(dump_path, &status);
    snprintf(deleted, sizeof deleted, "%s (deleted)", dump_path);
    put_map(PID, 0x7000000, deleted, status.st_dev, status.st_ino, ms(1000));
    assert_reads(NULL, 1);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_two_dumps_of_a_process_keep_their_numbers_apart(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    write_two(second_path, PID, ms(1300), ms(1400));
    put_marker(PID, dump_path, ms(1000));
    put_marker(PID, second_path, ms(1200));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].dump_count, 2);
    const struct jit_function *functions = processes.items[0].log.functions;
    assert_int_equal(functions[0].code_index, functions[2].code_index);
    assert_int_not_equal(functions[0].dump, functions[2].dump);
}

/* ---- Which file ---- */

/* A dump by PID whose first function is of FIRST, in the place of one that was mapped at one second.  The recording takes three. */
static void put_other_file(uint32_t pid, uint64_t first)
{
    struct stat status;
    write_two(dump_path, pid, first, first + ms(100));
    stat(dump_path, &status);
    put_map(PID, 0x7000000, dump_path, status.st_dev, status.st_ino + 1, ms(1000));
    profile_sample(&recording, 0, ms(3000));
}

static void test_another_inode_is_a_copy_if_header_and_records_fit(void **state)
{
    (void)state;
    put_other_file(PID, ms(1100));
    assert_reads(NULL, 1);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_no_copy_has_another_pid_in_its_header(void **state)
{
    (void)state;
    put_other_file(PID + 1, ms(1100));
    assert_refused(NULL, FINDING_DUMP_REPLACED);
}

static void test_no_copy_has_a_header_of_another_time(void **state)
{
    (void)state;
    put_other_file(PID, ms(2200)); /* 1.1 s after the mapping */
    assert_refused(NULL, FINDING_DUMP_REPLACED);
}

static void test_no_copy_was_written_after_the_recording(void **state)
{
    (void)state;
    put_other_file(PID, ms(9000));
    assert_refused(NULL, FINDING_DUMP_REPLACED);
}

/* The header of the one was written 20 ms after the mapping of the other. */
static void test_of_two_that_mapped_files_of_their_own_the_one_at_the_headers_time(void **state)
{
    struct stat status;
    (void)state;
    write_two(dump_path, PID, ms(1120), ms(1200));
    stat(dump_path, &status);
    put_fork(PID, 1, ms(900));
    put_fork(CHILD, 1, ms(900));
    put_namespaces(CHILD, 1001, ms(900));
    put_namespaces(1, 1000, ms(900));
    put_map(PID, 0x7000000, dump_path, status.st_dev, status.st_ino + 1, ms(1000));
    put_map(CHILD, 0x7000000, dump_path, 0, 0, ms(1021));
    profile_sample(&recording, 0, ms(3000));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].pid, CHILD);
    assert_int_equal(findings.count[FINDING_DUMP_REPLACED], 1);
}

/* ---- Another user's ---- */

enum { SERVICE_USER = 12345 };

static uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A process of SERVICE_USER that lives until it is killed. */
static pid_t start_service(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        if (setresuid(SERVICE_USER, SERVICE_USER, SERVICE_USER) || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

/* A dump of such a process, which belongs to OWNER, in a recording that does not tell which file was mapped; the header was written
 * AGE_NS before the mapping.  Returns what jit_processes_read does. */
static int read_service(uid_t owner, uint64_t age_ns)
{
    char path[128];
    pid_t service = start_service();
    uint64_t now = monotonic_ns();
    snprintf(path, sizeof path, "%s/jit-%d.dump", scratch, (int)service);
    write_two(path, (uint32_t)service, now + ms(100) - age_ns, now + ms(200));
    assert_int_equal(chown(path, owner, owner), 0);
    put_map((uint32_t)service, 0x7000000, path, 0, 0, now);
    profile_sample(&recording, 0, now + ms(3000));
    int result = read_all(NULL);
    kill(service, SIGKILL);
    waitpid(service, NULL, 0);
    unlink(path);
    return result;
}

static void require_root(void)
{
    if (geteuid() != 0)
        skip();
}

static void test_without_an_inode_the_process_itself_tells_whose_it_is(void **state)
{
    (void)state;
    require_root();
    assert_int_equal(read_service(SERVICE_USER, 0), 0);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_without_an_inode_a_third_users_file_is_refused(void **state)
{
    (void)state;
    require_root();
    assert_int_equal(read_service(SERVICE_USER + 1, 0), -1);
    assert_int_equal(findings.count[FINDING_DUMP_OWNER], 1);
}

static void test_without_an_inode_an_earlier_dump_of_the_user_is_refused(void **state)
{
    (void)state;
    require_root();
    assert_int_equal(read_service(SERVICE_USER, ms(2000)), -1);
    assert_int_equal(findings.count[FINDING_DUMP_OWNER], 1);
}

/* As the file system tells it; many don't. */
static void test_an_inode_that_was_used_again_is_another_file(void **state)
{
    struct jit_dump dump;
    struct stat status;
    char cause[256];
    (void)state;
    write_two(dump_path, PID, ms(9000), ms(9100));
    assert_int_equal(jit_dump_open(&dump, dump_path, cause, sizeof cause), 0);
    jit_dump_close(&dump);
    if (!dump.has_generation)
        skip();
    stat(dump_path, &status);
    generation = dump.generation ^ 1;
    put_map(PID, 0x7000000, dump_path, status.st_dev, status.st_ino, ms(1000));
    profile_sample(&recording, 0, ms(3000));
    assert_refused(NULL, FINDING_DUMP_REPLACED);
    assert_non_null(strstr(findings.failure, "not the one that it mapped"));
}

static void test_another_inode_is_used_if_given_by_hand(void **state)
{
    struct stat status;
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    stat(dump_path, &status);
    put_map(PID, 0x7000000, dump_path, status.st_dev, status.st_ino + 1, ms(1000));
    assert_reads(dump_path, 1);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_on_another_device_nothing_can_be_said(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_map(PID, 0x7000000, dump_path, makedev(200, 1), 5, ms(1000));
    assert_reads(NULL, 1);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_a_renamed_dump_stands_for_the_missing_one(void **state)
{
    (void)state;
    put_map(PID, 0x7000000, dump_path, makedev(200, 1), 5, ms(1000));
    write_two(other_path, PID, ms(1100), ms(1200));
    assert_reads(other_path, 1);
    assert_int_equal(findings_lost(&findings), 0);
}

/* A second dump of the process is missing all the same. */
static void test_a_renamed_dump_stands_for_one_only(void **state)
{
    (void)state;
    put_map(PID, 0x7000000, dump_path, makedev(200, 1), 5, ms(1000));
    put_map(PID, 0x7100000, second_path, makedev(200, 1), 6, ms(1000));
    write_two(other_path, PID, ms(1100), ms(1200));
    assert_reads(other_path, 1);
    assert_int_equal(findings.count[FINDING_DUMP_MISSING], 1);
}

/* ---- Pieces of a recording ---- */

static void test_a_piece_with_samples_alone(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_exec(OTHER, ms(900)); /* the only record with a sample_id */
    assert_reads(dump_path, 1);
    assert_int_equal(processes.items[0].pid, PID); /* of the sample that read_all adds */
    assert_int_equal(processes.items[0].map_count, 0);
    assert_non_null(processes.items[0].witness.bytes);
}

static void test_a_piece_with_a_fork_of_the_process(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_exec(OTHER, ms(900));
    put_fork(CHILD, PID, ms(1300));
    put_exec(PID, ms(2000));
    assert_reads(dump_path, 1);
    assert_int_equal(processes.items[0].witness.type, PERF_RECORD_COMM);
    assert_int_equal(processes.items[0].witness.bytes[8] | processes.items[0].witness.bytes[9] << 8,
                     PID);
}

/* ---- Containers: the name does not have the pid ---- */

static void test_the_only_process_that_mapped_it(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(OTHER, dump_path, ms(1000));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].pid, OTHER);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_its_header_must_say_so_too(void **state)
{
    (void)state;
    write_two(dump_path, PID + 1, ms(1100), ms(1200));
    put_marker(OTHER, dump_path, ms(1000));
    assert_refused(NULL, FINDING_DUMP_NOT_OURS);
}

static void test_a_childs_mapping_of_its_parents_dump(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_fork(OTHER, PID, ms(900));
    put_marker(OTHER, dump_path, ms(1000));
    assert_refused(NULL, FINDING_DUMP_NOT_OURS);
}

static void test_a_dump_that_parent_and_child_have_mapped_is_the_parents(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, dump_path, ms(1000));
    put_fork(OTHER, PID, ms(1010));
    put_marker(OTHER, dump_path, ms(1020));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].pid, PID);
    assert_int_equal(processes.marker_count, 2);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_a_namespace_like_everybodys_speaks_against_it(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_namespaces(OTHER, 1000, ms(900));
    put_namespaces(CHILD, 1000, ms(900));
    put_marker(OTHER, dump_path, ms(1000));
    assert_refused(NULL, FINDING_DUMP_NOT_OURS);
}

static void test_a_namespace_of_its_own_speaks_for_it(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_namespaces(OTHER, 1001, ms(900));
    put_namespaces(PID, 1000, ms(900)); /* the number is a pid, too, but outside */
    put_marker(OTHER, dump_path, ms(1000));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].pid, OTHER);
}

static void test_two_processes_that_fit_are_told(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(OTHER, dump_path, ms(1000));
    put_marker(CHILD, dump_path, ms(1001));
    assert_refused(NULL, FINDING_DUMP_AMBIGUOUS);
    assert_int_equal(findings.count[FINDING_DUMP_AMBIGUOUS], 2);
}

static void test_of_two_processes_the_one_that_was_there(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(5100), ms(5200));
    put_marker(OTHER, dump_path, ms(1000));
    put_exit(OTHER, OTHER, ms(2000));
    put_fork(CHILD, 1, ms(4900));
    put_marker(CHILD, dump_path, ms(5000));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].pid, CHILD);
    assert_int_equal(findings.count[FINDING_DUMP_REPLACED], 1);
}

static void test_two_processes_that_fit_and_a_dump_given_by_hand(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(OTHER, dump_path, ms(1000));
    put_marker(CHILD, dump_path, ms(1001));
    assert_reads(dump_path, 1);
    assert_int_equal(processes.items[0].pid, OTHER); /* neither is the later one */
    assert_int_equal(findings.count[FINDING_DUMP_REPLACED], 1);
}

/* V8's, of the wall clock, which this recording does not have. */
static void set_header_time(const char *path, uint64_t time)
{
    FILE *stream = fopen(path, "r+b");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, JITHEADER_TIMESTAMP, SEEK_SET), 0);
    assert_int_equal(fwrite(&time, sizeof time, 1, stream), 1);
    assert_int_equal(fclose(stream), 0);
}

/* Of two processes that each mapped a dump of that name, given one that was copied. */
static int read_one_of_two(void)
{
    put_map(OTHER, 0x7000000, dump_path, makedev(200, 1), 5, ms(1000));
    put_map(CHILD, 0x7000000, dump_path, makedev(200, 1), 6, ms(1020));
    profile_sample(&recording, 0, ms(3000));
    return read_all(dump_path);
}

static void test_a_given_dump_is_of_the_process_at_the_headers_time(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1119), ms(1200));
    assert_int_equal(read_one_of_two(), 0);
    assert_int_equal(processes.count, 1);
    assert_int_equal(processes.items[0].pid, CHILD);
}

static void test_a_given_dump_that_could_be_of_either_is_left_out(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1119), ms(1200));
    set_header_time(dump_path, UINT64_C(1700000000000000));
    assert_int_equal(read_one_of_two(), -1);
    assert_int_equal(findings.count[FINDING_DUMP_UNPLACED], 1);
}

static void test_a_file_of_another_container(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_map(OTHER, 0x7000000, dump_path, makedev(200, 1), 5, ms(1000));
    assert_refused(NULL, FINDING_DUMP_MISSING);
}

#define PROCESS_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(test_a_dump_of_a_process_alone),
        PROCESS_TEST(test_of_two_lives_the_one_in_which_it_was_written),
        PROCESS_TEST(test_exec_is_another_life),
        PROCESS_TEST(test_a_dump_from_before_an_exec_keeps_its_life),
        PROCESS_TEST(test_a_dump_written_after_the_process_ended),
        PROCESS_TEST(test_threads_go_on_without_the_main_thread),
        PROCESS_TEST(test_what_ran_already_inherits_nothing),
        PROCESS_TEST(test_only_a_child_with_records_over_the_code_counts),
        PROCESS_TEST(test_many_idle_children_cost_nothing),
        PROCESS_TEST(test_after_exec_nothing_is_inherited),
        PROCESS_TEST(test_records_with_a_childs_pid_are_the_childs),
        PROCESS_TEST(test_a_dump_that_is_mapped_twice_is_read_once),
        PROCESS_TEST(test_two_dumps_of_a_process_keep_their_numbers_apart),
        PROCESS_TEST(test_a_mapping_that_says_deleted_is_the_same_dump),
        PROCESS_TEST(test_another_inode_is_a_copy_if_header_and_records_fit),
        PROCESS_TEST(test_no_copy_has_another_pid_in_its_header),
        PROCESS_TEST(test_no_copy_has_a_header_of_another_time),
        PROCESS_TEST(test_no_copy_was_written_after_the_recording),
        PROCESS_TEST(test_of_two_that_mapped_files_of_their_own_the_one_at_the_headers_time),
        PROCESS_TEST(test_without_an_inode_the_process_itself_tells_whose_it_is),
        PROCESS_TEST(test_without_an_inode_a_third_users_file_is_refused),
        PROCESS_TEST(test_without_an_inode_an_earlier_dump_of_the_user_is_refused),
        PROCESS_TEST(test_an_inode_that_was_used_again_is_another_file),
        PROCESS_TEST(test_another_inode_is_used_if_given_by_hand),
        PROCESS_TEST(test_on_another_device_nothing_can_be_said),
        PROCESS_TEST(test_a_renamed_dump_stands_for_the_missing_one),
        PROCESS_TEST(test_a_renamed_dump_stands_for_one_only),
        PROCESS_TEST(test_a_piece_with_samples_alone),
        PROCESS_TEST(test_a_piece_with_a_fork_of_the_process),
        PROCESS_TEST(test_the_only_process_that_mapped_it),
        PROCESS_TEST(test_its_header_must_say_so_too),
        PROCESS_TEST(test_a_childs_mapping_of_its_parents_dump),
        PROCESS_TEST(test_a_dump_that_parent_and_child_have_mapped_is_the_parents),
        PROCESS_TEST(test_a_namespace_like_everybodys_speaks_against_it),
        PROCESS_TEST(test_a_namespace_of_its_own_speaks_for_it),
        PROCESS_TEST(test_two_processes_that_fit_are_told),
        PROCESS_TEST(test_of_two_processes_the_one_that_was_there),
        PROCESS_TEST(test_two_processes_that_fit_and_a_dump_given_by_hand),
        PROCESS_TEST(test_a_given_dump_is_of_the_process_at_the_headers_time),
        PROCESS_TEST(test_a_given_dump_that_could_be_of_either_is_left_out),
        PROCESS_TEST(test_a_file_of_another_container),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
