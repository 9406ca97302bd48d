/* Whose dump it is: the very file, a copy, another user's, a container's, one given by hand. */
#include "tests/unit/process_world.h"

#include <signal.h>
#include <sys/wait.h>

/* ---- Which file ---- */

/* A dump by PID whose first function is of FIRST, in the place of one that was mapped at one
 * second.  The recording takes three. */
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
    assert_non_null(strstr(findings.first[FINDING_DUMP_REPLACED], "its header has pid 4712"));
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

/* ---- A program after another in one process ---- */

/* At TIME the process becomes another program, which writes the dump anew into the same file. */
static void put_second_program(uint64_t time)
{
    write_two(dump_path, PID, time + ms(110), time + ms(120));
    set_header_time(dump_path, UINT64_C(1700000000000000)); /* CPython's, of the wall clock */
    put_marker(PID, dump_path, ms(1000));
    put_exec(PID, time);
    put_marker(PID, dump_path, time + ms(100));
    profile_sample(&recording, 0, time + ms(1000));
}

static void test_a_later_program_of_the_process_wrote_the_dump_anew(void **state)
{
    (void)state;
    put_second_program(ms(2000));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].begin.time_ns, ms(2000));
    assert_int_equal(findings.count[FINDING_DUMP_REPLACED], 1);
    assert_int_equal(findings_lost(&findings), 1);
    assert_non_null(strstr(findings.first[FINDING_DUMP_REPLACED], "later program of the same"));
    assert_int_equal(processes.marker_count, 2); /* nothing is left to look for */
}

/* ---- Nothing to name ---- */

/* perf record -p of a process that sleeps all the time. */
static void set_elf_mach(uint32_t elf_mach)
{
    enum { ELF_MACH_AT = 12 };
    FILE *stream = fopen(dump_path, "r+b");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, ELF_MACH_AT, SEEK_SET), 0);
    assert_int_equal(fwrite(&elf_mach, sizeof elf_mach, 1, stream), 1);
    assert_int_equal(fclose(stream), 0);
}

static void put_dump_of(uint32_t elf_mach)
{
    struct stat status;
    write_two(dump_path, PID, ms(1100), ms(1200));
    set_elf_mach(elf_mach);
    stat(dump_path, &status);
    put_map(PID, 0x7000000, dump_path, status.st_dev, status.st_ino, ms(1000));
    profile_sample(&recording, 0, ms(3000));
}

/* Nobody knows how wide its addresses are: no ELF file is made of its code. */
static void test_a_dump_of_an_unknown_machine_is_refused(void **state)
{
    (void)state;
    put_dump_of(0x9026);
    assert_int_equal(read_all(NULL), -1);
    assert_int_equal(findings.count[FINDING_DUMP_UNUSABLE], 1);
    assert_non_null(strstr(findings.failure, "machine 36902, which is not known"));
}

static void test_so_is_one_given_by_hand(void **state)
{
    (void)state;
    put_dump_of(0x9026);
    assert_int_equal(read_all(dump_path), -1);
    assert_int_equal(findings.count[FINDING_DUMP_UNUSABLE], findings_lost(&findings));
    assert_true(findings.count[FINDING_DUMP_UNUSABLE] > 0);
}

static void test_a_dump_of_another_known_machine_is_read(void **state)
{
    (void)state;
    put_dump_of(EM_RISCV);
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].dumps[0].elf_mach, EM_RISCV);
}

static void test_a_recording_without_samples_loses_nothing(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    set_header_time(dump_path, UINT64_C(1700000000000000));
    put_marker(PID, dump_path, 0);
    read_recording();
    assert_int_equal(read_profile(NULL), 0);
    assert_int_equal(findings_lost(&findings), 0);
}

/* ---- Injected already ---- */

static void put_image(void)
{
    put_map(PID, ARENA, "/x.data.dso/0e397b18/jit-x86_64.so", 0, 0, ms(1001));
}

static void test_what_an_injection_did_not_find_is_not_told_again(void **state)
{
    (void)state;
    put_map(PID, 0x7000000, dump_path, makedev(200, 1), 5, ms(1000)); /* gone since then */
    put_image();
    assert_int_equal(read_all(NULL), -1);
    assert_int_equal(findings_lost(&findings), 0);
    assert_int_equal(processes.refused_count, 1); /* perfjit check still knows */
    assert_non_null(strstr(findings.failure, "injected already"));
}

/* perf record of all processes, with stacks, while a perf shows another recording. */
static void test_an_image_that_is_only_read_is_no_sign_of_an_injection(void **state)
{
    (void)state;
    put_map(PID, 0x7000000, dump_path, makedev(200, 1), 5, ms(1000)); /* gone since then */
    only_reads = true;
    put_image();
    only_reads = false;
    assert_int_equal(read_all(NULL), -1);
    assert_int_not_equal(findings_lost(&findings), 0);
    assert_null(strstr(findings.failure, "injected already"));
}

static void test_what_an_injection_did_not_find_can_be_given(void **state)
{
    (void)state;
    write_two(other_path, PID, ms(1100), ms(1200));
    put_map(PID, 0x7000000, dump_path, makedev(200, 1), 5, ms(1000));
    put_image();
    assert_reads(other_path, 1);
    assert_int_equal(processes.marker_count, 1);
    assert_int_equal(findings_lost(&findings), 0);
}

/* An empty file's marker is not passed on: the file may be removed.  That of one that is missing
 * is, since it may be found. */
static void test_of_a_dump_that_is_empty_no_marker_is_left(void **state)
{
    FILE *stream = fopen(dump_path, "wb");
    (void)state;
    assert_non_null(stream);
    assert_int_equal(fclose(stream), 0);
    put_marker(PID, dump_path, ms(1000));
    put_map(OTHER, 0x7000000, "/gone/jit-4800.dump", makedev(200, 1), 5, ms(1000));
    assert_int_equal(read_all(NULL), -1);
    assert_int_equal(findings.count[FINDING_DUMP_MISSING], 1);
    assert_int_equal(processes.marker_count, 1);
    assert_int_equal(processes.refused_count, 2);
}

/* ---- Another user's ---- */

#define SERVICE_NS ms(10000) /* when the service mapped its dump */

/* Neither root nor who runs this. */
static uid_t service_user(void)
{
    return geteuid() + 1;
}

/* A dump of a process that lives since STARTED_NS, of the service's user; the file belongs to
 * OWNER, in a recording that does not tell which file was mapped; the header was written AGE_NS
 * before the mapping. */
static void put_service(uint64_t started_ns, uid_t owner, uint64_t age_ns)
{
    write_two(dump_path, PID, SERVICE_NS + ms(100) - age_ns, SERVICE_NS + ms(200));
    give_away(dump_path, owner);
    this_machine.pid = PID;
    this_machine.live = (struct live_process){
        .uid = service_user(), .namespace_pid = PID, .started_mono_ns = (int64_t)started_ns};
    put_map(PID, 0x7000000, dump_path, 0, 0, SERVICE_NS);
    profile_sample(&recording, 0, SERVICE_NS + ms(3000));
}

static void test_without_an_inode_the_process_itself_tells_whose_it_is(void **state)
{
    (void)state;
    put_service(SERVICE_NS - 1, service_user(), 0);
    assert_reads(NULL, 1);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_without_an_inode_a_third_users_file_is_refused(void **state)
{
    (void)state;
    put_service(SERVICE_NS - 1, service_user() + 1, 0);
    assert_refused(NULL, FINDING_DUMP_OWNER);
    assert_int_equal(findings.count[FINDING_DUMP_OWNER], 1);
}

static void test_without_an_inode_an_earlier_dump_of_the_user_is_refused(void **state)
{
    (void)state;
    put_service(SERVICE_NS - 1, service_user(), ms(2000));
    assert_refused(NULL, FINDING_DUMP_OWNER);
    assert_int_equal(findings.count[FINDING_DUMP_OWNER], 1);
}

/* Another process has the pid by now. */
static void test_without_an_inode_a_later_process_tells_nothing(void **state)
{
    (void)state;
    put_service(SERVICE_NS + ms(30), service_user(), 0);
    assert_refused(NULL, FINDING_DUMP_OWNER);
}

/* As the file system tells it; many don't. */
static void test_an_inode_that_was_used_again_is_another_file(void **state)
{
    struct stat status;
    (void)state;
    write_two(dump_path, PID, ms(9000), ms(9100));
    these_files.have_generations = true;
    these_files.generation = 77;
    stat(dump_path, &status);
    generation = these_files.generation ^ 1;
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

/* ---- Dumps given by hand ---- */

/* PATH with PID before it, in one of two buffers. */
static char *of(uint32_t pid, const char *path)
{
    static char texts[2][128];
    static size_t next;
    char *text = texts[next++ % 2];
    snprintf(text, sizeof texts[0], "%" PRIu32 ":%s", pid, path);
    return text;
}

static void assert_fails_saying(const char *text)
{
    if (!strstr(findings.failure, text))
        fail_msg("it said: %s", findings.failure);
}

static void test_a_given_file_that_two_processes_mapped(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_fork(OTHER, 1, ms(900));
    put_exec(OTHER, ms(950));
    put_fork(CHILD, 1, ms(901));
    put_marker(OTHER, dump_path, ms(1000));
    put_marker(CHILD, dump_path, ms(1001));
    assert_int_equal(read_all(dump_path), -1);
    assert_fails_saying("jit-4711.dump: could be the dump of process 4800 (program, since "
                        "0.950000) or 5000 (?, since 0.901000); say whose it is with --jitdump "
                        "PID:FILE");
}

/* Of very many a few are named. */
static void test_a_given_dump_that_could_be_of_many(void **state)
{
    (void)state;
    write_two(other_path, 1, ms(1100), ms(1200));
    for (uint32_t i = 0; i < 7; i++)
        put_map(OTHER + i, 0x7000000, "/mnt/jit-1.dump", makedev(200, 1), 5 + i, ms(1000));
    assert_int_equal(read_all(other_path), -1);
    assert_fails_saying("or 4804 (?, there before the recording) or 2 others; say whose");
}

static void test_with_a_pid_the_others_do_not_get_the_file(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(OTHER, dump_path, ms(1000));
    put_marker(CHILD, dump_path, ms(1001));
    assert_reads(of(CHILD, dump_path), 1);
    assert_int_equal(processes.items[0].pid, CHILD);
    assert_int_equal(findings.count[FINDING_DUMP_REPLACED], 1);
    assert_int_equal(findings_lost(&findings), 1);
}

/* Who was there before the recording has no FORK. */
static void test_a_given_file_that_a_child_has_mapped_too_is_its_writers(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, dump_path, 0);
    put_marker(OTHER, dump_path, 0);
    profile_sample(&recording, 0, ms(3000));
    assert_reads(dump_path, 1);
    assert_int_equal(processes.items[0].pid, PID);
}

/* Two processes each mapped a dump of that name, which are gone; OTHER ends early. */
static void put_two_that_mapped(void)
{
    put_map(OTHER, 0x7000000, dump_path, makedev(200, 1), 5, ms(1040));
    put_map(CHILD, 0x7000000, dump_path, makedev(200, 1), 6, ms(1060));
    put_exit(OTHER, OTHER, ms(1900));
    profile_sample(&recording, 0, ms(3000));
    read_recording();
}

static void test_a_given_dump_of_which_two_mapped_the_name(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1161), ms(1200)); /* its header is of CHILD's mapping */
    put_two_that_mapped();
    assert_int_equal(read_profile(dump_path), -1);
    assert_fails_saying("4800 (?, there before the recording) or 5000 (?, there before the "
                        "recording)");
}

static void test_two_given_dumps_with_pids(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    write_two(second_path, PID, ms(1100), ms(1200));
    put_two_that_mapped();
    assert_int_equal(read_given((char *[]){of(CHILD, second_path), of(OTHER, dump_path)}, 2), 0);
    assert_int_equal(processes.count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(processes.items[i].dump_paths[0],
                            processes.items[i].pid == OTHER ? dump_path : second_path);
    assert_int_equal(findings_lost(&findings), 0);
}

/* Only CHILD was there when it was written. */
static void test_a_given_dump_that_fits_one_life_only(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(2100), ms(2200));
    set_header_time(dump_path, ms(1010));
    put_two_that_mapped();
    assert_int_equal(read_profile(dump_path), 0);
    assert_int_equal(processes.count, 1);
    assert_int_equal(processes.items[0].pid, CHILD);
}

/* Ten minutes after the machine's start its counter says no more of the first second than the
 * header does: the dump is not stamped by cycles. */
static void test_a_given_dump_on_a_machine_that_began_with_the_recording(void **state)
{
    struct clock_live *clocks = &this_machine.clocks;
    const uint64_t now_ns = ms(565580);
    clocks->known[CLOCK_KIND_MONOTONIC] = true;
    clocks->now[CLOCK_KIND_MONOTONIC] = now_ns;
    clocks->known[CLOCK_KIND_RAW] = true;
    clocks->now[CLOCK_KIND_RAW] = now_ns - ms(259);
    clocks->known[CLOCK_KIND_CYCLES] = true;
    clocks->cycles_per_s = UINT64_C(2596120000);
    clocks->now[CLOCK_KIND_CYCLES] = (now_ns + ms(83)) / 1000 * 2596;
    test_a_given_dump_that_fits_one_life_only(state);
}

/* Two programs of a process, one after the other, and a dump that was logged in both. */
static void put_two_programs(uint64_t first, uint64_t second)
{
    write_two(other_path, PID, first, second);
    put_memory(PID, ARENA, ms(1000));
    put_exec(PID, ms(2000));
    put_memory(PID, ARENA, ms(2001));
    profile_sample(&recording, 0, ms(4000));
}

static void test_a_given_dump_of_two_lives(void **state)
{
    (void)state;
    put_two_programs(ms(1100), ms(2100));
    assert_int_equal(read_all(other_path), -1);
    assert_fails_saying(
        "4711 (program, there before the recording) or 4711 (program, since 2.000000)");
}

/* What is synthesized last is of the last life, and has the first time. */
static void test_a_given_dump_that_a_life_mapped_twice(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(5100), ms(5200));
    put_memory(PID, ARENA, ms(500));
    put_exec(PID, ms(900));
    put_map(PID, 0x7000000, dump_path, makedev(200, 1), 5, ms(1000));
    put_exec(PID, ms(4900));
    put_map(PID, 0x7000000, dump_path, makedev(200, 1), 6, ms(5000));
    profile_sample(&recording, 0, ms(6000));
    put_map(PID, 0x7000000, dump_path, makedev(200, 1), 6, 0);
    assert_reads(dump_path, 1);
    assert_int_equal(processes.items[0].begin.time_ns, ms(4900));
}

/* ---- Dumps that are begun anew ---- */

/* The process mapped the dump three times, the last time where it is now; INODES: apart from that
 * of the file. */
static void put_three_openings(const int64_t inodes[3], uint64_t opened)
{
    struct stat status;
    write_two(dump_path, PID, opened + ms(100), opened + ms(200));
    stat(dump_path, &status);
    for (size_t i = 0; i < 3; i++)
        put_map(PID, 0x7000000, dump_path, status.st_dev,
                (ino_t)((int64_t)status.st_ino + inodes[i]), ms(1000) + i * ms(300));
    put_memory(PID, ARENA, ms(1000));
    profile_sample(&recording, 0, ms(3000));
}

static void assert_anew(size_t index, uint64_t time_ns)
{
    assert_int_equal(processes.refused[index].why, FINDING_DUMP_ANEW);
    assert_int_equal(processes.refused[index].anew_ns, time_ns);
}

static void test_what_was_in_files_that_were_removed_is_lost(void **state)
{
    (void)state;
    put_three_openings((int64_t[]){1, 2, 0}, ms(1600));
    assert_reads(NULL, 1);
    assert_int_equal(events_of(0), 2);
    assert_int_equal(findings.count[FINDING_DUMP_ANEW], 2);
    assert_int_equal(findings_lost(&findings), 2);
    assert_int_equal(processes.refused_count, 2);
    assert_anew(0, ms(1300));
    assert_anew(1, ms(1600));
}

/* A new file may have the inode of the removed one. */
static void test_an_inode_that_is_used_again_is_another_file(void **state)
{
    struct stat status;
    (void)state;
    write_two(dump_path, PID, ms(1400), ms(1500));
    stat(dump_path, &status);
    for (generation = 7; generation < 9; generation++)
        put_map(PID, 0x7000000, dump_path, status.st_dev, status.st_ino + 1,
                generation == 7 ? ms(1000) : ms(1300));
    put_memory(PID, ARENA, ms(1000));
    profile_sample(&recording, 0, ms(3000));
    assert_reads(NULL, 1); /* the other one is a copy by what is in it */
    assert_int_equal(findings.count[FINDING_DUMP_ANEW], 1);
    assert_anew(0, ms(1300));
}

static void test_what_was_in_a_file_that_was_truncated_is_lost(void **state)
{
    (void)state;
    put_three_openings((int64_t[]){0, 0, 0}, ms(1600) - 1000);
    assert_reads(NULL, 1);
    assert_int_equal(events_of(0), 2);
    assert_int_equal(findings.count[FINDING_DUMP_ANEW], 1);
    assert_int_equal(processes.refused_count, 1);
    assert_anew(0, ms(1600));
}

static void test_a_dump_that_is_mapped_again_is_as_it_was(void **state)
{
    (void)state;
    put_three_openings((int64_t[]){0, 0, 0}, ms(1000) + 1000);
    assert_reads(NULL, 1);
    assert_int_equal(findings_lost(&findings), 0);
    assert_int_equal(processes.refused_count, 0);
}

/* Nor is a header that was written late a sign. */
static void test_a_header_that_no_mapping_is_near_to_proves_nothing(void **state)
{
    (void)state;
    put_three_openings((int64_t[]){0, 0, 0}, ms(1450));
    assert_reads(NULL, 1);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_with_a_pid_it_is_the_newest_life(void **state)
{
    (void)state;
    put_two_programs(ms(1100), ms(2100));
    assert_reads(of(PID, other_path), 1);
    assert_int_equal(processes.items[0].begin.time_ns, ms(2000));
}

static void test_with_a_pid_it_is_the_only_life_that_fits(void **state)
{
    (void)state;
    put_two_programs(ms(1100), ms(1200));
    assert_reads(of(PID, other_path), 1);
    assert_int_equal(processes.items[0].next.time_ns, ms(2000));
}

static void test_with_a_pid_that_is_not_there(void **state)
{
    (void)state;
    put_two_programs(ms(1100), ms(1200));
    assert_int_equal(read_all(of(OTHER, other_path)), -1);
    assert_fails_saying("process 4800 of ");
}

/* The pid in the header is the one inside the container. */
static void test_a_given_dump_of_another_name_of_the_only_container(void **state)
{
    (void)state;
    write_two(other_path, 1, ms(1100), ms(1200));
    put_map(OTHER, 0x7000000, "/mnt/jit-1.dump", makedev(200, 1), 5, ms(1000));
    put_memory(CHILD, ARENA, ms(1000));
    assert_reads(other_path, 1);
    assert_int_equal(processes.items[0].pid, OTHER);
    assert_int_equal(findings_lost(&findings), 0);
}

/* Two of one name for a process: one may be another run's. */
static void test_two_given_dumps_that_could_be_the_same(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    write_two(second_path, PID, ms(1120), ms(1200));
    put_marker(PID, dump_path, ms(1000));
    profile_sample(&recording, 0, ms(3000));
    read_recording();
    assert_int_equal(read_given((char *[]){second_path, dump_path}, 2), -1);
    assert_fails_saying("could each be the dump of process 4711 (?, there before");
    assert_fails_saying("--jitdump PID:FILE");
}

/* Nor does the recording name any: it is a piece. */
static void test_two_given_dumps_of_a_name_that_nobody_mapped(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    write_two(second_path, PID, ms(1120), ms(1200));
    profile_sample(&recording, 0, ms(3000));
    read_recording();
    assert_int_equal(read_given((char *[]){second_path, dump_path}, 2), -1);
    assert_fails_saying("could each be the dump of process 4711");
}

/* Two runtimes in a process, each with a directory of its own. */
static void test_two_given_dumps_of_one_process(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    write_two(second_path, PID, ms(1120), ms(1200));
    put_marker(PID, dump_path, ms(1000));
    profile_sample(&recording, 0, ms(3000));
    read_recording();
    assert_int_equal(read_given((char *[]){of(PID, second_path), dump_path}, 2), 0);
    assert_int_equal(processes.count, 1);
    assert_int_equal(processes.items[0].dump_count, 2);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_a_dump_that_is_given_twice_is_read_once(void **state)
{
    (void)state;
    write_two(other_path, PID, ms(1100), ms(1200));
    put_memory(OTHER, ARENA, ms(1000));
    read_recording();
    assert_int_equal(read_given((char *[]){other_path, of(OTHER, other_path), other_path}, 3), 0);
    assert_int_equal(processes.count, 1);
    assert_int_equal(processes.items[0].pid, OTHER);
    assert_int_equal(processes.items[0].dump_count, 1);
}

static void test_a_pid_without_a_file(void **state)
{
    (void)state;
    assert_int_equal(read_all("4711:"), -1);
    assert_fails_saying("--jitdump 4711: names no file: --jitdump PID:FILE");
}

/* No copy was written after the recording, nor does what perf record --off-cpu has left, with a
 * time behind all times, make that longer. */
static void test_left_over_samples_do_not_make_the_recording_longer(void **state)
{
    (void)state;
    put_other_file(PID, ms(1100));
    write_two(dump_path, PID, ms(4000), ms(4100));
    set_header_time(dump_path, ms(1000));
    profile_sample(&recording, 0, UINT64_MAX << 32);
    assert_refused(NULL, FINDING_DUMP_REPLACED);
}

static void test_a_file_of_another_container(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_map(OTHER, 0x7000000, dump_path, makedev(200, 1), 5, ms(1000));
    assert_refused(NULL, FINDING_DUMP_MISSING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(test_a_later_program_of_the_process_wrote_the_dump_anew),
        PROCESS_TEST(test_what_was_in_files_that_were_removed_is_lost),
        PROCESS_TEST(test_an_inode_that_is_used_again_is_another_file),
        PROCESS_TEST(test_what_was_in_a_file_that_was_truncated_is_lost),
        PROCESS_TEST(test_a_dump_that_is_mapped_again_is_as_it_was),
        PROCESS_TEST(test_a_header_that_no_mapping_is_near_to_proves_nothing),
        PROCESS_TEST(test_a_dump_of_an_unknown_machine_is_refused),
        PROCESS_TEST(test_so_is_one_given_by_hand),
        PROCESS_TEST(test_a_dump_of_another_known_machine_is_read),
        PROCESS_TEST(test_a_recording_without_samples_loses_nothing),
        PROCESS_TEST(test_what_an_injection_did_not_find_is_not_told_again),
        PROCESS_TEST(test_an_image_that_is_only_read_is_no_sign_of_an_injection),
        PROCESS_TEST(test_what_an_injection_did_not_find_can_be_given),
        PROCESS_TEST(test_of_a_dump_that_is_empty_no_marker_is_left),
        PROCESS_TEST(test_another_inode_is_a_copy_if_header_and_records_fit),
        PROCESS_TEST(test_no_copy_has_another_pid_in_its_header),
        PROCESS_TEST(test_no_copy_has_a_header_of_another_time),
        PROCESS_TEST(test_no_copy_was_written_after_the_recording),
        PROCESS_TEST(test_of_two_that_mapped_files_of_their_own_the_one_at_the_headers_time),
        PROCESS_TEST(test_without_an_inode_the_process_itself_tells_whose_it_is),
        PROCESS_TEST(test_without_an_inode_a_third_users_file_is_refused),
        PROCESS_TEST(test_without_an_inode_an_earlier_dump_of_the_user_is_refused),
        PROCESS_TEST(test_without_an_inode_a_later_process_tells_nothing),
        PROCESS_TEST(test_an_inode_that_was_used_again_is_another_file),
        PROCESS_TEST(test_another_inode_is_used_if_given_by_hand),
        PROCESS_TEST(test_on_another_device_nothing_can_be_said),
        PROCESS_TEST(test_a_renamed_dump_stands_for_the_missing_one),
        PROCESS_TEST(test_a_renamed_dump_stands_for_one_only),
        PROCESS_TEST(test_the_only_process_that_mapped_it),
        PROCESS_TEST(test_its_header_must_say_so_too),
        PROCESS_TEST(test_a_childs_mapping_of_its_parents_dump),
        PROCESS_TEST(test_a_dump_that_parent_and_child_have_mapped_is_the_parents),
        PROCESS_TEST(test_a_namespace_like_everybodys_speaks_against_it),
        PROCESS_TEST(test_a_namespace_of_its_own_speaks_for_it),
        PROCESS_TEST(test_two_processes_that_fit_are_told),
        PROCESS_TEST(test_of_two_processes_the_one_that_was_there),
        PROCESS_TEST(test_left_over_samples_do_not_make_the_recording_longer),
        PROCESS_TEST(test_a_given_file_that_two_processes_mapped),
        PROCESS_TEST(test_a_given_dump_that_could_be_of_many),
        PROCESS_TEST(test_with_a_pid_the_others_do_not_get_the_file),
        PROCESS_TEST(test_a_given_file_that_a_child_has_mapped_too_is_its_writers),
        PROCESS_TEST(test_a_given_dump_of_which_two_mapped_the_name),
        PROCESS_TEST(test_two_given_dumps_with_pids),
        PROCESS_TEST(test_a_given_dump_that_fits_one_life_only),
        PROCESS_TEST(test_a_given_dump_on_a_machine_that_began_with_the_recording),
        PROCESS_TEST(test_a_given_dump_of_two_lives),
        PROCESS_TEST(test_a_given_dump_that_a_life_mapped_twice),
        PROCESS_TEST(test_with_a_pid_it_is_the_newest_life),
        PROCESS_TEST(test_with_a_pid_it_is_the_only_life_that_fits),
        PROCESS_TEST(test_with_a_pid_that_is_not_there),
        PROCESS_TEST(test_a_given_dump_of_another_name_of_the_only_container),
        PROCESS_TEST(test_two_given_dumps_that_could_be_the_same),
        PROCESS_TEST(test_two_given_dumps_of_a_name_that_nobody_mapped),
        PROCESS_TEST(test_two_given_dumps_of_one_process),
        PROCESS_TEST(test_a_dump_that_is_given_twice_is_read_once),
        PROCESS_TEST(test_a_pid_without_a_file),
        PROCESS_TEST(test_a_file_of_another_container),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
