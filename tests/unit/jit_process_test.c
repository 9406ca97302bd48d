/* Which life a dump belongs to, and who inherits its code: hand-made recordings and dumps. */
#include "tests/unit/process_world.h"

#include "injector/history/process/child_processes.h"

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
    assert_int_equal(processes.marker_count, 2);
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

static void test_code_is_late_where_the_agent_for_java_is_mapped(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, "/usr/lib/perfjit/libperfjit-java.so", ms(900));
    put_marker(PID, dump_path, ms(1000));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].load_slack_ns, ms(1000));
    assert_true(processes.items[0].unloads_in_time);
}

static void test_code_of_others_is_hardly_late(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, "/usr/lib/libperfjit-java.so.old", ms(900));
    put_marker(PID, dump_path, ms(1000));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].load_slack_ns, ms(2));
    assert_false(processes.items[0].unloads_in_time);
}

/* ---- Inheritance ---- */

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
    const struct jit_process *child = &processes.items[1];
    assert_int_equal(child->pid, CHILD + 1);
    assert_ptr_equal(child->parent, &processes.items[0]);
    assert_int_equal(child->forked.time_ns, ms(2000)); /* when its parent left */
    assert_int_equal(child->touched_count, 1);
    assert_int_equal(child->touched[0].start, ARENA);
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
    assert_null(processes.items[0].forks[499].child);
}

static void test_without_a_process_there_is_nothing_to_inherit(void **state)
{
    (void)state;
    put_fork(CHILD, PID, ms(2000));
    put_memory(CHILD, ARENA, ms(3000));
    assert_int_equal(read_all(NULL), -1);
    assert_non_null(processes.no_code);
    assert_null(processes.by_life);
    assert_int_equal(child_processes_find(&processes, &records, &findings), 0);
    assert_int_equal(processes.count, 0);
    assert_null(jit_processes_find(&processes, 0));
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

/* ---- Pieces of a recording ---- */

static void test_a_piece_with_samples_alone(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_exec(OTHER, ms(900)); /* the only record with a sample_id */
    assert_reads(dump_path, 1);
    assert_int_equal(processes.items[0].pid, PID); /* of the sample that read_all adds */
    assert_int_equal(processes.items[0].map_count, 0);
    assert_non_null(processes.items[0].trailer_record.bytes);
}

static void test_a_piece_with_a_fork_of_the_process(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_exec(OTHER, ms(900));
    put_fork(CHILD, PID, ms(1300));
    put_exec(PID, ms(2000));
    assert_reads(dump_path, 1);
    assert_int_equal(processes.items[0].trailer_record.type, PERF_RECORD_COMM);
    assert_int_equal(processes.items[0].trailer_record.bytes[8] |
                         processes.items[0].trailer_record.bytes[9] << 8,
                     PID);
}

/* ---- What perf makes up behind a snapshot ---- */

static void test_what_is_synthesized_after_samples_is_of_the_last_life(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(5100), ms(5200));
    put_memory(PID, ARENA, ms(1000));
    put_exec(PID, ms(4900));
    put_marker(PID, dump_path, ms(5000));
    profile_sample(&recording, 0, ms(6000));
    put_marker(PID, dump_path, 0);
    put_memory(PID, ARENA, 0);
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].begin.time_ns, ms(4900));
    assert_int_equal(processes.items[0].map_count, 3);
    assert_int_equal(processes.marker_count, 2);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_what_was_synthesized_first_is_of_the_first_life(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, dump_path, 0);
    put_memory(PID, ARENA, 0);
    profile_sample(&recording, 0, ms(3000));
    put_exec(PID, ms(4900));
    put_memory(PID, ARENA, ms(5000));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].next.time_ns, ms(4900));
    assert_int_equal(processes.items[0].map_count, 2);
    assert_int_equal(findings_lost(&findings), 0);
}

/* The piece has lost the recorded mapping of the dump. */
static void test_a_given_dump_of_a_snapshot_is_of_the_last_life(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(5100), ms(5200));
    put_exec(PID, ms(900));
    put_memory(PID, ARENA, ms(1000));
    put_exec(PID, ms(4900));
    profile_sample(&recording, 0, ms(6000));
    put_marker(PID, dump_path, 0);
    assert_reads(dump_path, 1);
    assert_int_equal(processes.items[0].begin.time_ns, ms(4900));
    assert_int_equal(findings_lost(&findings), 0);
}

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
        PROCESS_TEST(test_code_is_late_where_the_agent_for_java_is_mapped),
        PROCESS_TEST(test_code_of_others_is_hardly_late),
        PROCESS_TEST(test_only_a_child_with_records_over_the_code_counts),
        PROCESS_TEST(test_many_idle_children_cost_nothing),
        PROCESS_TEST(test_without_a_process_there_is_nothing_to_inherit),
        PROCESS_TEST(test_after_exec_nothing_is_inherited),
        PROCESS_TEST(test_records_with_a_childs_pid_are_the_childs),
        PROCESS_TEST(test_a_dump_that_is_mapped_twice_is_read_once),
        PROCESS_TEST(test_two_dumps_of_a_process_keep_their_numbers_apart),
        PROCESS_TEST(test_a_mapping_that_says_deleted_is_the_same_dump),
        PROCESS_TEST(test_a_piece_with_samples_alone),
        PROCESS_TEST(test_a_piece_with_a_fork_of_the_process),
        PROCESS_TEST(test_what_is_synthesized_after_samples_is_of_the_last_life),
        PROCESS_TEST(test_what_was_synthesized_first_is_of_the_first_life),
        PROCESS_TEST(test_a_given_dump_of_a_snapshot_is_of_the_last_life),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
