/* Whose code is what one process logs in memory that several share: hand-made recordings and dumps.
 * One parent, PID, and two children, one of which compiles. */
#include "tests/unit/process_world.h"

enum { CODE_OF_PROGRAM = 0x1000 };
enum { WRITER = CHILD, SHARER = CHILD + 1, INODE = 41579 };

/* A mapping of object INO at the arena; of shared memory as the kernel names it. */
static void put_object(uint32_t pid, uint64_t ino, uint64_t time)
{
    shares = true;
    put_map(pid, ARENA, "/dev/zero (deleted)", makedev(0, 1), ino, time);
    shares = false;
}

static void put_sample(uint32_t pid, uint64_t ip, uint64_t time)
{
    size_t start = profile_sample(&recording, 0, time);
    uint8_t *fields = recording.bytes + start + PERF_RECORD_HEADER_BYTES;
    const uint32_t pid_and_tid[] = {pid, pid};
    memcpy(fields, &ip, sizeof ip);
    memcpy(fields + 8, pid_and_tid, sizeof pid_and_tid);
}

/* The first function is the parent's, the second the writer's, which it logged as a child. */
static void write_parents_and_childs(void)
{
    const struct load loads[] = {{PID, ms(1100)}, {WRITER, ms(3000)}};
    write_dump(dump_path, PID, loads, 2);
    put_marker(PID, dump_path, ms(1000));
}

static void put_two_children(void)
{
    put_fork(WRITER, PID, ms(2000));
    put_fork(SHARER, PID, ms(2100));
}

/* The writer and the sharer have the parent's memory. */
static void share_with_two(void)
{
    write_parents_and_childs();
    put_object(PID, INODE, ms(900));
    put_two_children();
}

/* The process of PID's only life, or NULL. */
static const struct jit_process *process_of(uint32_t pid)
{
    for (size_t i = 0; i < processes.count; i++)
        if (processes.items[i].pid == pid)
            return &processes.items[i];
    return NULL;
}

/* When PID gets the function NAME from a log; 0: never. */
static uint64_t has_from(uint32_t pid, const char *name)
{
    const struct jit_process *process = process_of(pid);
    for (size_t i = 0; process && i < process->log.event_count; i++) {
        const struct code_event *event = &process->log.events[i];
        const struct jit_function *function = code_event_function(&process->log, event);
        if (function && strcmp(function->name, name) == 0)
            return event->time_ns;
    }
    return 0;
}

/* ---- Who shares ---- */

static void test_what_a_child_logs_is_of_all(void **state)
{
    (void)state;
    share_with_two();
    put_sample(SHARER, addr_of(1), ms(3500));
    assert_reads(NULL, 3);
    assert_int_equal(has_from(WRITER, "load1"), ms(3000));
    assert_int_equal(has_from(SHARER, "load1"), ms(3000));
    assert_int_equal(has_from(PID, "load1"), ms(3000));
    assert_int_equal(has_from(SHARER, "load0"), 0); /* that came with the fork */
    assert_ptr_equal(process_of(SHARER)->parent, process_of(PID));
}

static void test_it_counts_once(void **state)
{
    size_t count = 0;
    (void)state;
    share_with_two();
    put_sample(SHARER, addr_of(1), ms(3500));
    assert_reads(NULL, 3);
    for (size_t i = 0; i < processes.count; i++)
        count += jit_process_own_functions(&processes.items[i]);
    assert_int_equal(count, 2);
}

static void test_private_memory_is_each_ones_own(void **state)
{
    (void)state;
    write_parents_and_childs();
    put_map(PID, ARENA, "/dev/zero (deleted)", makedev(0, 1), INODE, ms(900));
    put_two_children();
    put_sample(SHARER, addr_of(1), ms(3500));
    assert_reads(NULL, 2);
    assert_int_equal(has_from(WRITER, "load1"), ms(3000));
    assert_int_equal(has_from(PID, "load1"), 0);
}

static void test_a_child_forked_later_has_it_from_its_parent(void **state)
{
    (void)state;
    share_with_two();
    put_fork(OTHER, PID, ms(4000));
    put_sample(OTHER, addr_of(1), ms(4500));
    assert_reads(NULL, 2); /* PID, through whom it has it, and WRITER */
    assert_int_equal(has_from(PID, "load1"), ms(3000));
}

static void test_who_has_ended_gets_nothing(void **state)
{
    (void)state;
    share_with_two();
    put_sample(SHARER, addr_of(1), ms(2500));
    put_exit(SHARER, SHARER, ms(2900));
    assert_reads(NULL, 2);
    assert_int_equal(has_from(SHARER, "load1"), 0);
}

static void test_who_mapped_something_else_there_gets_nothing(void **state)
{
    (void)state;
    share_with_two();
    put_object(SHARER, INODE + 1, ms(2500));
    put_sample(SHARER, addr_of(1), ms(3500));
    assert_reads(NULL, 3); /* SHARER has records over what it inherited */
    assert_int_equal(has_from(SHARER, "load1"), 0);
}

/* No fork tells that OTHER has it, but its own record. */
static void test_who_maps_the_object_has_what_is_in_it(void **state)
{
    (void)state;
    share_with_two();
    put_exec(OTHER, ms(1000));
    put_object(OTHER, INODE, ms(2500));
    put_sample(OTHER, addr_of(0), ms(2600));
    put_sample(OTHER, addr_of(1), ms(3500));
    assert_reads(NULL, 3);
    assert_int_equal(has_from(OTHER, "load0"), ms(2500) + 1);
    assert_int_equal(has_from(OTHER, "load1"), ms(3000));
}

static void test_another_object_at_the_address_is_not_shared(void **state)
{
    (void)state;
    write_parents_and_childs();
    put_object(PID, INODE, ms(900));
    put_exec(OTHER, ms(1000));
    put_object(OTHER, INODE + 1, ms(1200));
    put_sample(OTHER, addr_of(0), ms(3500));
    assert_reads(NULL, 1);
}

/* A flip of protection is logged as a mapping. */
static void test_a_mapping_of_the_same_again_changes_nothing(void **state)
{
    (void)state;
    share_with_two();
    put_object(SHARER, INODE, ms(2500));
    put_object(SHARER, INODE, ms(3500));
    put_sample(SHARER, addr_of(1), ms(3600));
    assert_reads(NULL, 3);
    assert_int_equal(has_from(SHARER, "load1"), ms(3000));
    assert_int_equal(process_of(SHARER)->log.event_count, 1);
}

/* No fork tells of those that were there before the recording, but that they have one dump at one
 * address. */
static void test_workers_from_before_the_recording(void **state)
{
    const struct load loads[] = {{PID, ms(1100)}, {WRITER, ms(3000)}};
    (void)state;
    write_dump(dump_path, PID, loads, 2);
    for (size_t i = 0; i < 3; i++) {
        const uint32_t pids[] = {PID, WRITER, SHARER};
        put_marker(pids[i], dump_path, 0);
        put_object(pids[i], INODE, 0);
    }
    put_sample(SHARER, addr_of(0), ms(3500));
    put_sample(SHARER, addr_of(1), ms(3500));
    assert_reads(NULL, 2);
    assert_int_equal(process_of(PID)->dump_count, 1);
    assert_int_equal(has_from(SHARER, "load0"), ms(1100));
    assert_int_equal(has_from(SHARER, "load1"), ms(3000));
    assert_int_equal(findings_lost(&findings), 0);
}

/* perf record --overwrite: the parent executes a shell, which forks the sharer.  What the parent
 * has mapped in the end is known without a time: PROGRAM, and the memory of the dump's code. */
static void end_as(const char *program, ino_t ino)
{
    const struct load load = {PID, ms(1100)};
    write_dump(dump_path, PID, &load, 1);
    put_map(PID, CODE_OF_PROGRAM, "/usr/bin/env", makedev(8, 1), 10, ms(410));
    put_exec(PID, ms(500));
    put_map(PID, CODE_OF_PROGRAM, "/usr/bin/sh", makedev(8, 1), 11, ms(510));
    put_fork(SHARER, PID, ms(600));
    put_sample(SHARER, addr_of(0), ms(1500));
    put_map(PID, CODE_OF_PROGRAM, program, makedev(8, 1), ino, 0);
    put_object(PID, INODE, 0);
    put_marker(PID, dump_path, 0);
    assert_int_equal(read_all(NULL), 0);
}

static void test_a_child_of_the_program_that_is_left(void **state)
{
    (void)state;
    end_as("/usr/bin/sh", 12);
    assert_int_equal(has_from(SHARER, "load0"), ms(1100));
}

/* In a container, and removed. */
static void test_a_child_of_the_program_that_proc_calls_otherwise(void **state)
{
    (void)state;
    end_as("/root/usr/bin/sh (deleted)", 12);
    assert_int_equal(has_from(SHARER, "load0"), ms(1100));
}

static void test_a_child_of_the_program_by_another_name(void **state)
{
    (void)state;
    end_as("/usr/bin/dash", 11);
    assert_int_equal(has_from(SHARER, "load0"), ms(1100));
}

/* The record of the exec is among those that were overwritten. */
static void test_a_child_of_an_earlier_program_has_nothing_of_a_later_one(void **state)
{
    (void)state;
    end_as("/usr/bin/runtime", 12);
    assert_int_equal(has_from(SHARER, "load0"), 0);
}

/* ---- What each gets of it ---- */

static void test_what_no_sample_hits_is_not_copied(void **state)
{
    (void)state;
    share_with_two();
    put_sample(SHARER, addr_of(1) + SLOT / 2, ms(3500));
    put_sample(WRITER, addr_of(1), ms(3500));
    assert_reads(NULL, 2);
    assert_null(process_of(SHARER));
    assert_int_equal(has_from(PID, "load1"), ms(3000));
}

/* Where its last call returns to is not in it any more. */
static void test_the_end_of_a_function_is_a_hit(void **state)
{
    (void)state;
    share_with_two();
    put_sample(SHARER, addr_of(1) + 4, ms(3500));
    assert_reads(NULL, 3);
    assert_int_equal(has_from(SHARER, "load1"), ms(3000));
}

/* ---- The edges of what is shared ---- */

/* When SHARER gets what was loaded at 3000 ms, if it maps another object at ADDR, at TIME. */
static uint64_t has_after_mapping(uint64_t addr, uint64_t time)
{
    void *nothing = NULL;
    share_with_two();
    shares = true;
    put_map(SHARER, addr, "/dev/zero (deleted)", makedev(0, 1), INODE + 1, time);
    shares = false;
    put_sample(SHARER, addr_of(1) + 1, ms(3500));
    assert_int_equal(read_all(NULL), 0);
    uint64_t from_ns = has_from(SHARER, "load1");
    assert_int_equal(end(&nothing), 0);
    assert_int_equal(begin(&nothing), 0);
    return from_ns;
}

static void test_code_of_the_moment_when_something_else_was_mapped_is_not_shared(void **state)
{
    (void)state;
    assert_int_equal(has_after_mapping(ARENA, ms(3000)), 0);
    assert_int_equal(has_after_mapping(ARENA, ms(3000) + 1), ms(3000));
}

/* Its bytes are those from addr_of(1) to addr_of(1) + 4. */
static void test_code_of_which_one_byte_is_not_shared(void **state)
{
    enum { MAP_BYTES = 0x1000, BYTES = 4 };
    (void)state;
    assert_int_equal(has_after_mapping(addr_of(1) + BYTES, ms(2500)), ms(3000));
    assert_int_equal(has_after_mapping(addr_of(1) + BYTES - 1, ms(2500)), 0);
    assert_int_equal(has_after_mapping(addr_of(1) - MAP_BYTES, ms(2500)), ms(3000));
    assert_int_equal(has_after_mapping(addr_of(1) - MAP_BYTES + 1, ms(2500)), 0);
}

/* What is in the object when it is mapped is there a moment later. */
static void test_code_of_the_moment_when_the_object_was_mapped(void **state)
{
    (void)state;
    share_with_two();
    put_exec(OTHER, ms(1000));
    put_object(OTHER, INODE, ms(3000));
    put_sample(OTHER, addr_of(1), ms(3500));
    assert_int_equal(read_all(NULL), 0);
    assert_int_equal(has_from(OTHER, "load1"), ms(3000) + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(test_what_a_child_logs_is_of_all),
        PROCESS_TEST(test_it_counts_once),
        PROCESS_TEST(test_private_memory_is_each_ones_own),
        PROCESS_TEST(test_a_child_forked_later_has_it_from_its_parent),
        PROCESS_TEST(test_who_has_ended_gets_nothing),
        PROCESS_TEST(test_who_mapped_something_else_there_gets_nothing),
        PROCESS_TEST(test_who_maps_the_object_has_what_is_in_it),
        PROCESS_TEST(test_another_object_at_the_address_is_not_shared),
        PROCESS_TEST(test_a_mapping_of_the_same_again_changes_nothing),
        PROCESS_TEST(test_workers_from_before_the_recording),
        PROCESS_TEST(test_a_child_of_the_program_that_is_left),
        PROCESS_TEST(test_a_child_of_the_program_that_proc_calls_otherwise),
        PROCESS_TEST(test_a_child_of_the_program_by_another_name),
        PROCESS_TEST(test_a_child_of_an_earlier_program_has_nothing_of_a_later_one),
        PROCESS_TEST(test_what_no_sample_hits_is_not_copied),
        PROCESS_TEST(test_the_end_of_a_function_is_a_hit),
        PROCESS_TEST(test_code_of_the_moment_when_something_else_was_mapped_is_not_shared),
        PROCESS_TEST(test_code_of_which_one_byte_is_not_shared),
        PROCESS_TEST(test_code_of_the_moment_when_the_object_was_mapped),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
