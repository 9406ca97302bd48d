/* One hand-made recording with dumps, and what jit_processes_read makes of it. */
#ifndef PERFJIT_TEST_PROCESS_WORLD_H
#define PERFJIT_TEST_PROCESS_WORLD_H

#include "injector/log/code/jit_process.h"

#include "injector/history/process/process_reading.h"

#include "tests/unit/dump_builder.h"
#include "tests/unit/file_stand_in.h"
#include "tests/unit/machine_stand_in.h"
#include "tests/unit/profile_builder.h"
#include "tests/unit/scratch.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

enum { PID = 4711, OTHER = 4800, CHILD = 5000, ARENA = 0x100000, SLOT = 0x100 };

/* One recording, and what is made of it. */
static struct profile_builder recording;
static uint64_t generation; /* of the mappings' files from here on; 0: not told */
static bool shares;         /* the mappings from here on are MAP_SHARED */
static bool only_reads;     /* and not executable, as perf record -d shows them */
static struct perf_file file;
static struct records records;
static struct jit_processes processes;
static struct findings findings;
static char dump_path[96], other_path[96], second_path[96],
    second_dir[80]; /* the first and third are named alike */

static inline int begin(void **state)
{
    (void)state;
    profile_begin_one(&recording);
    begin_machine();
    memset(&these_files, 0, sizeof these_files);
    these_files.born_ns = 1; /* before any recording */
    unsetenv("SUDO_UID");
    generation = 0;
    shares = only_reads = false;
    findings = (struct findings){0};
    processes = (struct jit_processes){0}; /* a test that is skipped reads none */
    records = (struct records){0};
    file = (struct perf_file){0};
    snprintf(dump_path, sizeof dump_path, "%s/jit-4711.dump", scratch);
    snprintf(other_path, sizeof other_path, "%s/other", scratch);
    snprintf(second_dir, sizeof second_dir, "%s/sub", scratch);
    snprintf(second_path, sizeof second_path, "%s/jit-4711.dump", second_dir);
    return mkdir(second_dir, 0700);
}

static inline int end(void **state)
{
    (void)state;
    jit_processes_free(&processes);
    records_free(&records);
    perf_file_close(&file);
    findings_free(&findings);
    unlink(dump_path);
    unlink(other_path);
    unlink(second_path);
    return rmdir(second_dir);
}

/* ---- Records of any process ---- */

static inline void end_record_of(size_t start, uint32_t pid, uint64_t time)
{
    sink_u32(&recording.sink, pid);
    sink_u32(&recording.sink, pid);
    sink_u64(&recording.sink, time);
    profile_end_record(&recording, start);
}

static inline void put_task(uint32_t type, uint16_t misc, uint32_t pid, uint32_t parent,
                            uint32_t tid, uint64_t time)
{
    size_t start = profile_begin_record(&recording, type, misc);
    sink_u32(&recording.sink, pid);
    sink_u32(&recording.sink, parent);
    sink_u32(&recording.sink, tid);
    sink_u32(&recording.sink, parent);
    sink_u64(&recording.sink, time);
    end_record_of(start, pid, time);
}

static inline void put_fork(uint32_t pid, uint32_t parent, uint64_t time)
{
    put_task(PERF_RECORD_FORK, 0, pid, parent, pid, time);
}

static inline void put_exit(uint32_t pid, uint32_t tid, uint64_t time)
{
    put_task(PERF_RECORD_EXIT, 0, pid, pid, tid, time);
}

static inline void put_exec(uint32_t pid, uint64_t time)
{
    size_t start = profile_begin_record(&recording, PERF_RECORD_COMM, PERF_MISC_COMM_EXEC);
    sink_u32(&recording.sink, pid);
    sink_u32(&recording.sink, pid);
    sink_bytes(&recording.sink, "program", 8);
    end_record_of(start, pid, time);
}

static inline void put_namespaces(uint32_t pid, uint64_t inode, uint64_t time)
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

static inline void put_map(uint32_t pid, uint64_t addr, const char *name, dev_t dev, ino_t ino,
                           uint64_t time)
{
    size_t start = profile_begin_record(&recording, PERF_RECORD_MMAP2,
                                        PERF_MISC_USER | (only_reads ? PERF_MISC_MMAP_DATA : 0));
    sink_u32(&recording.sink, pid);
    sink_u32(&recording.sink, pid);
    sink_u64(&recording.sink, addr);
    sink_u64(&recording.sink, 0x1000);
    sink_u64(&recording.sink, 0);
    sink_u32(&recording.sink, major(dev));
    sink_u32(&recording.sink, minor(dev));
    sink_u64(&recording.sink, ino);
    sink_u64(&recording.sink, generation);
    sink_u32(&recording.sink, only_reads ? PROT_READ : PROT_READ | PROT_EXEC);
    sink_u32(&recording.sink, shares ? MAP_SHARED : MAP_PRIVATE);
    sink_cstr(&recording.sink, name);
    sink_zeros(&recording.sink, (8 - (recording.sink.size - start) % 8) % 8);
    end_record_of(start, pid, time);
}

/* A marker of the dump that stands at PATH now. */
static inline void put_marker(uint32_t pid, const char *path, uint64_t time)
{
    struct stat status = {0};
    stat(path, &status);
    put_map(pid, 0x7000000, path, status.st_dev, status.st_ino, time);
}

/* The same of who reads the dump, or may not execute what it maps. */
static inline void put_reader(uint32_t pid, const char *path, uint64_t time)
{
    only_reads = true;
    put_marker(pid, path, time);
    only_reads = false;
}

static inline void put_memory(uint32_t pid, uint64_t addr, uint64_t time)
{
    put_map(pid, addr, "//anon", 0, 0, time);
}

/* ---- Dumps ---- */

/* A load record as LOAD.pid has it. */
struct load {
    uint32_t pid;
    uint64_t time;
};

static inline uint64_t addr_of(size_t load)
{
    return ARENA + load * SLOT;
}

static inline uint64_t ms(uint64_t count)
{
    return count * 1000000;
}

/* A dump by PID at PATH, with a function at each LOAD, called "load<n>". */
static inline void write_dump(const char *path, uint32_t pid, const struct load *loads,
                              size_t count)
{
    static struct dump_builder dump;
    dump_begin(&dump, false, JITHEADER_BYTES);
    memcpy(dump.bytes + 20, &pid, sizeof pid);
    if (count) { /* it was opened, and mapped, 100 ms before the first function */
        uint64_t opened = loads[0].time - ms(100);
        memcpy(dump.bytes + 24, &opened, sizeof opened);
    }
    for (size_t i = 0; i < count; i++) {
        char name[32];
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

static inline void write_two(const char *path, uint32_t pid, uint64_t first, uint64_t second)
{
    const struct load loads[] = {{pid, first}, {pid, second}};
    write_dump(path, pid, loads, 2);
}

/* Such as V8's, of the wall clock, which this recording does not have. */
static inline void set_header_time(const char *path, uint64_t time)
{
    FILE *stream = fopen(path, "r+b");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, JITHEADER_TIMESTAMP, SEEK_SET), 0);
    assert_int_equal(fwrite(&time, sizeof time, 1, stream), 1);
    assert_int_equal(fclose(stream), 0);
}

/* ---- Reading ---- */

/* Make PROFILE of the records. */
static inline void read_recording(void)
{
    profile_end_records(&recording);
    open_built_profile(&recording, &file);
    assert_int_equal(records_read(&records, &file, &findings), 0);
}

/* As it is, once it is in PROFILE, with the dumps GIVEN.  Returns -1 with the failure text set also
 * if there is no code. */
static inline int read_given(char *const *given, size_t count)
{
    struct given_file dumps[4];
    const struct jit_processes_request request = {
        .dumps = dumps, .dump_count = count, .perf_maps = {.only_given = true}};
    assert_true(count <= sizeof dumps / sizeof dumps[0]);
    for (size_t i = 0; i < count; i++)
        dumps[i] = given_file_of(given[i]);
    switch (jit_processes_read(&processes, &records, &request, &findings)) {
    case RECORDING_OPEN:
        return 0;
    case RECORDING_WITHOUT_CODE:
        return report_failure(&findings, "%s", processes.no_code);
    default:
        return -1;
    }
}

static inline int read_profile(const char *given)
{
    return read_given((char *[]){(char *)(uintptr_t)given}, given != NULL);
}

static inline int read_all(const char *given)
{
    profile_sample(&recording, 0, 1);
    read_recording();
    return read_profile(given);
}

static inline void assert_reads(const char *given, size_t count)
{
    if (read_all(given))
        fail_msg("%s", findings.failure);
    assert_int_equal(processes.count, count);
}

static inline void assert_refused(const char *given, enum finding_kind kind)
{
    assert_int_equal(read_all(given), -1);
    assert_int_equal(findings.count[kind], findings_lost(&findings));
    assert_true(findings.count[kind] > 0);
    assert_non_null(strstr(findings.failure, "--jitdump"));
}

static inline size_t events_of(size_t process)
{
    return processes.items[process].log.event_count;
}

#define PROCESS_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

#endif
