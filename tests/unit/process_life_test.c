/* The lives that records tell of: where each begins and ends, and which one it was forked from. */
#include "tests/unit/process_world.h"

#define NEVER UINT64_MAX
#define IMAGE "/out/perf.jit.data.dso/0123abcd/jit-x86_64.so"

/* No test here has a dump, so that no process is found; the lives are. */
static const struct process_lives *read_lives(void)
{
    assert_int_equal(read_all(NULL), -1);
    assert_non_null(processes.no_code);
    return &processes.lives;
}

/* Life number INDEX of PID, of COUNT that it has. */
static const struct process_life *life_of(uint32_t pid, size_t index, size_t count)
{
    size_t found;
    uint32_t first = process_lives_of(&processes.lives, pid, &found);
    assert_int_equal(found, count);
    return &processes.lives.items[first + index];
}

static uint32_t number_of(const struct process_life *life)
{
    return (uint32_t)(life - processes.lives.items);
}

static void assert_life(const struct process_life *life, uint64_t begin_ns, uint64_t next_ns,
                        uint64_t end_ns, bool execed)
{
    assert_int_equal(life->begin.time_ns, begin_ns);
    assert_int_equal(life->next.time_ns, next_ns);
    assert_int_equal(life->end_ns, end_ns);
    assert_int_equal(life->execed, execed);
}

/* A mapping by thread TID. */
static void put_map_of_thread(uint32_t pid, uint32_t tid, uint64_t time)
{
    size_t start = recording.sink.size;
    put_memory(pid, ARENA, time);
    memcpy(recording.bytes + start + 12, &tid, sizeof tid);
}

/* ---- Begin and end ---- */

static void test_who_was_there_before_begins_with_the_recording(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    read_lives();
    assert_life(life_of(PID, 0, 1), 0, NEVER, NEVER, false);
    assert_int_equal(life_of(PID, 0, 1)->parent, NO_LIFE);
}

static void test_a_fork_or_an_exec_that_comes_first_begins_the_life(void **state)
{
    (void)state;
    put_fork(PID, 1, 100);
    put_exec(OTHER, 110);
    put_task(PERF_RECORD_FORK, PERF_MISC_FORK_EXEC, CHILD, 1, CHILD, 120);
    read_lives();
    assert_life(life_of(PID, 0, 1), 100, NEVER, NEVER, false);
    assert_life(life_of(OTHER, 0, 1), 110, NEVER, NEVER, false);
    assert_life(life_of(CHILD, 0, 1), 120, NEVER, NEVER, false);
}

static void test_an_exec_ends_a_life_and_begins_the_next(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_exec(PID, 200);
    put_memory(PID, ARENA, 300);
    read_lives();
    assert_life(life_of(PID, 0, 2), 0, 200, 200, true);
    assert_life(life_of(PID, 1, 2), 200, NEVER, NEVER, false);
}

static void test_a_pid_that_is_used_again_is_another_life(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_exit(PID, PID, 150);
    put_fork(PID, 1, 200);
    put_exit(PID, PID, 250);
    put_task(PERF_RECORD_FORK, PERF_MISC_FORK_EXEC, PID, 1, PID, 300);
    read_lives();
    assert_life(life_of(PID, 0, 3), 0, 200, 150, false);
    assert_life(life_of(PID, 1, 3), 200, 300, 250, false);
    assert_life(life_of(PID, 2, 3), 300, NEVER, NEVER, false);
}

static void test_a_main_thread_later_than_its_exit_is_of_another_life(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_exit(PID, PID, 200);
    put_memory(PID, ARENA, 201);
    read_lives();
    assert_life(life_of(PID, 0, 2), 0, 201, 200, false);
    assert_life(life_of(PID, 1, 2), 201, NEVER, NEVER, false);
}

static void test_a_main_thread_at_the_time_of_its_exit_is_of_the_same_life(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_exit(PID, PID, 200);
    put_memory(PID, ARENA, 200);
    read_lives();
    assert_life(life_of(PID, 0, 1), 0, NEVER, 200, false);
}

/* perfjit inject has maps of the main thread where another thread goes on without it. */
static void test_a_map_of_inject_is_no_sign_of_the_main_thread(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_exit(PID, PID, 200);
    put_map(PID, ARENA, IMAGE, 1, 1, 201);
    put_memory(PID, ARENA, 202);
    read_lives();
    assert_life(life_of(PID, 0, 1), 0, NEVER, 202, false);
}

static void test_a_program_in_an_injected_recording_is_of_another_life(void **state)
{
    (void)state;
    put_map(PID, ARENA, IMAGE, 1, 1, 100);
    put_exit(PID, PID, 200);
    put_map(PID, ARENA, "/usr/bin/program", 1, 2, 300);
    read_lives();
    assert_life(life_of(PID, 0, 2), 0, 300, 200, false);
    assert_life(life_of(PID, 1, 2), 300, NEVER, NEVER, false);
}

static void test_a_main_thread_that_never_ended_goes_on(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_exit(PID, PID + 1, 200);
    put_memory(PID, ARENA, 300);
    read_lives();
    assert_life(life_of(PID, 0, 1), 0, NEVER, NEVER, false);
}

/* A thread's mapping, fork and exit are signs of the same life. */
static void test_a_life_lasts_as_long_as_its_last_thread(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_exit(PID, PID, 200);
    put_map_of_thread(PID, PID + 1, 300);
    put_task(PERF_RECORD_FORK, 0, PID, PID, PID + 2, 400);
    read_lives();
    assert_life(life_of(PID, 0, 1), 0, NEVER, 400, false);
}

static void test_a_life_ends_with_the_exit_of_its_last_thread(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_exit(PID, PID + 1, 150);
    put_exit(PID, PID, 200);
    put_exit(PID, PID + 2, 300);
    read_lives();
    assert_life(life_of(PID, 0, 1), 0, NEVER, 300, false);
}

static void test_of_a_pid_that_is_used_again_the_main_thread_has_not_ended(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_exit(PID, PID, 150);
    put_fork(PID, 1, 200);
    put_exit(PID, PID + 1, 300);
    read_lives();
    assert_life(life_of(PID, 0, 2), 0, 200, 150, false);
    assert_life(life_of(PID, 1, 2), 200, NEVER, NEVER, false);
}

/* The thread that execs is the main thread from then on. */
static void test_an_exec_by_another_thread_brings_the_main_thread_back(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_exit(PID, PID, 200);
    put_exec(PID, 200);
    put_memory(PID, ARENA, 300);
    read_lives();
    assert_life(life_of(PID, 0, 2), 0, 200, 200, true);
    assert_life(life_of(PID, 1, 2), 200, NEVER, NEVER, false);
}

/* ---- Parents ---- */

static void test_a_fork_tells_the_parents_life_of_that_time(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_fork(CHILD, PID, 150);
    put_exec(PID, 200);
    put_fork(CHILD + 1, PID, 250);
    put_fork(CHILD + 2, CHILD + 1, 300);
    const struct process_lives *lives = read_lives();
    uint32_t first = number_of(life_of(PID, 0, 2)), second = number_of(life_of(PID, 1, 2));
    uint32_t child = number_of(life_of(CHILD + 1, 0, 1));
    assert_int_equal(life_of(CHILD, 0, 1)->parent, first);
    assert_int_equal(life_of(CHILD + 1, 0, 1)->parent, second);
    assert_int_equal(life_of(CHILD + 2, 0, 1)->parent, child);
    uint32_t last = number_of(life_of(CHILD + 2, 0, 1));
    assert_true(process_life_descends(lives, last, second));
    assert_true(process_life_descends(lives, last, last));
    assert_false(process_life_descends(lives, last, first));
    assert_false(process_life_descends(lives, second, last));
    assert_false(process_life_descends(lives, last, NO_LIFE));
}

static void test_what_ran_already_is_no_copy(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_task(PERF_RECORD_FORK, PERF_MISC_FORK_EXEC, CHILD, PID, CHILD, 150);
    read_lives();
    assert_int_equal(life_of(CHILD, 0, 1)->parent, NO_LIFE);
}

/* A process is a sign of life where it forks: it was there before, unless it begins later. */
static void test_a_parent_is_known_by_its_fork_alone(void **state)
{
    (void)state;
    put_fork(CHILD, OTHER, 150);
    put_fork(OTHER, 1, 200);
    read_lives();
    assert_int_equal(life_of(CHILD, 0, 1)->parent, number_of(life_of(OTHER, 0, 2)));
    assert_life(life_of(OTHER, 0, 2), 0, 200, 200, false);
}

/* ---- A life of which nothing else is known ---- */

/* PID forks CHILD; the added pid stands before both, between them, and behind. */
static void test_a_life_that_is_added_leaves_all_parents_right(void **state)
{
    static const uint32_t added[] = {PID - 1, PID + 1, CHILD + 2};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct process_lives lives = {0};
        if (i == 0) {
            put_memory(PID, ARENA, 100);
            put_fork(CHILD, PID, 150);
            put_fork(CHILD + 1, CHILD, 160);
            read_lives();
        }
        assert_int_equal(process_lives_read(&lives, &records, &findings), 0);
        assert_int_equal(process_lives_add(&lives, added[i], &findings), 0);
        size_t count, all = 0;
        for (uint32_t pid = PID - 1; pid <= CHILD + 2; pid++) {
            uint32_t life = process_lives_of(&lives, pid, &count);
            uint32_t parent = life == NO_LIFE ? NO_LIFE : lives.items[life].parent;
            all += count;
            if (pid == CHILD || pid == CHILD + 1)
                assert_int_equal(lives.items[parent].pid, pid == CHILD ? PID : CHILD);
            else
                assert_int_equal(parent, NO_LIFE);
        }
        assert_int_equal(all, lives.count);
        uint32_t life = process_lives_of(&lives, added[i], &count);
        assert_int_equal(count, 1);
        assert_life(&lives.items[life], 0, NEVER, NEVER, false);
        process_lives_free(&lives);
    }
}

/* ---- Asking ---- */

static void test_the_life_at_a_moment(void **state)
{
    (void)state;
    put_fork(PID, 1, 100);
    put_exec(PID, 200);
    const struct process_lives *lives = read_lives();
    uint32_t first = number_of(life_of(PID, 0, 2));
    struct life_moment begin = lives->items[first + 1].begin;
    assert_int_equal(process_life_at(lives, PID, (struct life_moment){0, 0}), first);
    assert_int_equal(
        process_life_at(lives, PID, (struct life_moment){begin.time_ns, begin.number - 1}), first);
    assert_int_equal(process_life_at(lives, PID, begin), first + 1);
    assert_int_equal(process_life_at(lives, PID, (struct life_moment){NEVER, 0}), first + 1);
    assert_int_equal(process_life_at(lives, PID + 1, begin), NO_LIFE);
}

static void test_the_mappings_of_a_life(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_memory(PID, ARENA, 199);
    put_memory(PID, ARENA, 200); /* before the exec, at its time */
    put_exec(PID, 200);
    put_memory(PID, ARENA, 200);
    put_memory(PID, ARENA, 300);
    read_lives();
    const struct process_life *first = life_of(PID, 0, 2), *second = first + 1;
    size_t count, all;
    const struct recorded_map *maps = records_maps_of(&records, PID, &all);
    assert_int_equal(all, 5);
    assert_ptr_equal(process_life_maps(&records, PID, first->begin, first->next, &count), maps);
    assert_int_equal(count, 3);
    assert_ptr_equal(process_life_maps(&records, PID, second->begin, second->next, &count),
                     maps + 3);
    assert_int_equal(count, 2);
    process_life_maps(&records, PID, second->begin, first->begin, &count);
    assert_int_equal(count, 0);
}

static void test_parents_come_before_their_children(void **state)
{
    (void)state;
    put_fork(PID + 9, 1, 100);
    put_fork(PID + 5, PID + 9, 200);
    put_fork(PID + 7, PID + 5, 300);
    put_exec(PID + 9, 250);
    const struct process_lives *lives = read_lives();
    uint32_t *order = process_lives_order(lives);
    assert_non_null(order);
    assert_int_equal(lives->count, 5); /* one of pid 1 */
    for (size_t i = 1; i < lives->count; i++)
        assert_true(
            life_moment_before(lives->items[order[i - 1]].begin, lives->items[order[i]].begin));
    free(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(test_who_was_there_before_begins_with_the_recording),
        PROCESS_TEST(test_a_fork_or_an_exec_that_comes_first_begins_the_life),
        PROCESS_TEST(test_an_exec_ends_a_life_and_begins_the_next),
        PROCESS_TEST(test_a_pid_that_is_used_again_is_another_life),
        PROCESS_TEST(test_a_main_thread_later_than_its_exit_is_of_another_life),
        PROCESS_TEST(test_a_main_thread_at_the_time_of_its_exit_is_of_the_same_life),
        PROCESS_TEST(test_a_map_of_inject_is_no_sign_of_the_main_thread),
        PROCESS_TEST(test_a_program_in_an_injected_recording_is_of_another_life),
        PROCESS_TEST(test_a_main_thread_that_never_ended_goes_on),
        PROCESS_TEST(test_a_life_lasts_as_long_as_its_last_thread),
        PROCESS_TEST(test_a_life_ends_with_the_exit_of_its_last_thread),
        PROCESS_TEST(test_of_a_pid_that_is_used_again_the_main_thread_has_not_ended),
        PROCESS_TEST(test_an_exec_by_another_thread_brings_the_main_thread_back),
        PROCESS_TEST(test_a_fork_tells_the_parents_life_of_that_time),
        PROCESS_TEST(test_what_ran_already_is_no_copy),
        PROCESS_TEST(test_a_parent_is_known_by_its_fork_alone),
        PROCESS_TEST(test_a_life_that_is_added_leaves_all_parents_right),
        PROCESS_TEST(test_the_life_at_a_moment),
        PROCESS_TEST(test_the_mappings_of_a_life),
        PROCESS_TEST(test_parents_come_before_their_children),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
