/* The names of threads and processes at each moment. */
#include "injector/recording/thread_names.h"

#include "injector/recording/perf_data/perf_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SHELL = 7, PID = 20, POOL = 21, WORKER = 22 };

#define NO_NEXT ((struct life_moment){UINT64_MAX, UINT64_MAX})

static struct thread_list list;
static struct thread_names names;
static uint8_t comms[16][PERF_COMM_BYTES + 16];
static size_t comm_count;

static int begin(void **state)
{
    (void)state;
    list = (struct thread_list){.events = calloc(16, sizeof *list.events), .capacity = 16};
    comm_count = 0;
    return list.events ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    thread_names_free(&names);
    thread_list_free(&list);
    return 0;
}

static struct thread_event *add(uint32_t kind, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
    assert_true(list.count < list.capacity);
    struct thread_event *event = &list.events[list.count];
    *event = (struct thread_event){
        .time_ns = time_ns, .kind = kind, .pid = pid, .tid = tid, .record = {.number = list.count}};
    list.count++;
    return event;
}

static struct thread_event *add_comm(uint32_t pid, uint32_t tid, const char *name, uint64_t time_ns)
{
    struct thread_event *event = add(THREAD_NAMED, pid, tid, time_ns);
    uint8_t *bytes = comms[comm_count++];
    memset(bytes, 0, sizeof comms[0]);
    memcpy(bytes + PERF_COMM_BYTES, name, strlen(name));
    event->record.bytes = bytes;
    event->record.size = sizeof comms[0];
    return event;
}

static void add_fork(uint32_t pid, uint32_t tid, uint32_t creator_pid, uint32_t creator_tid,
                     uint64_t time_ns)
{
    struct thread_event *event =
        add(pid == creator_pid ? THREAD_BORN : THREAD_FORKED, pid, tid, time_ns);
    event->creator_pid = creator_pid;
    event->creator_tid = creator_tid;
}

static void find(void)
{
    assert_int_equal(thread_list_order(&list), 0);
    assert_int_equal(thread_names_find(&names, &list), 0);
}

static void assert_name(uint32_t pid, uint32_t tid, uint64_t time_ns, const char *expected)
{
    assert_string_equal(thread_names_at(&names, pid, tid, time_ns), expected);
}

static void test_a_thread_has_the_name_of_the_thread_that_created_it(void **state)
{
    (void)state;
    add_comm(PID, PID, "main", 10);
    add_fork(PID, POOL, PID, PID, 20);
    add_comm(PID, POOL, "pool", 30);
    add_fork(PID, WORKER, PID, POOL, 40);
    add_comm(PID, POOL, "later", 50);
    find();
    assert_name(PID, POOL, 20, "main");
    assert_name(PID, POOL, 30, "pool");
    assert_name(PID, POOL, 50, "later");
    assert_name(PID, WORKER, 40, "pool");
    assert_name(PID, WORKER, 60, "pool");
}

static void test_a_process_has_the_name_of_the_thread_that_forked_it(void **state)
{
    (void)state;
    add_comm(PID, PID, "main", 10);
    add_comm(PID, POOL, "pool", 20);
    add_fork(WORKER, WORKER, PID, POOL, 30);
    find();
    assert_name(WORKER, WORKER, 30, "pool");
}

static void test_a_pid_that_is_used_again_has_its_own_name(void **state)
{
    (void)state;
    add_comm(SHELL, SHELL, "sh", 1);
    add_comm(PID, PID, "first", 10);
    add(THREAD_ENDED, PID, PID, 20);
    add_fork(PID, PID, SHELL, SHELL, 30);
    add_comm(PID, PID, "second", 40);
    find();
    assert_name(PID, PID, 25, "first"); /* the kernel's last samples in it */
    assert_name(PID, PID, 30, "sh");
    assert_name(PID, PID, 40, "second");
    assert_string_equal(thread_names_of_process(&names, PID, (struct life_moment){30, 3}), "first");
    assert_string_equal(thread_names_of_process(&names, PID, NO_NEXT), "second");
}

static void test_a_thread_that_maps_memory_after_its_end_is_another(void **state)
{
    (void)state;
    add_comm(PID, PID, "first", 10);
    add(THREAD_ENDED, PID, PID, 20);
    add(THREAD_MAPPED, PID, PID, 30);
    add(THREAD_MAPPED, PID, PID, 31);
    find();
    assert_name(PID, PID, 29, "first");
    assert_name(PID, PID, 30, "");
}

static void test_a_process_is_called_what_it_was_called_last(void **state)
{
    (void)state;
    add_fork(PID, PID, SHELL, SHELL, 5);
    add_comm(PID, PID, "prog", 10)->exec = true;
    add_comm(PID, PID, "renamed", 20);
    add_comm(PID, PID, "again", 30);
    add_comm(PID, PID, "other", 40)->exec = true;
    find();
    assert_string_equal(thread_names_of_process(&names, PID, (struct life_moment){40, 4}), "again");
    assert_string_equal(thread_names_of_process(&names, PID, NO_NEXT), "other");
    assert_name(PID, PID, 10, "prog");
}

static void test_samples_in_front_of_the_first_name_have_it(void **state)
{
    (void)state;
    add(THREAD_MAPPED, PID, POOL, 5);
    add_comm(PID, PID, "main", 10);
    add_comm(PID, POOL, "pool", 30);
    add_fork(PID, WORKER, PID, WORKER + 1, 5); /* by a thread that nothing names */
    add_comm(PID, WORKER, "worker", 40);
    find();
    assert_name(PID, PID, 1, "main");
    assert_name(PID, POOL, 1, "pool");
    assert_name(PID, WORKER, 6, "worker");
}

static void test_a_name_does_not_reach_into_an_earlier_life(void **state)
{
    (void)state;
    add_fork(PID, PID, POOL, POOL, 10); /* by one that nothing names */
    add_comm(SHELL, SHELL, "sh", 25);
    add_fork(PID, PID, SHELL, SHELL, 30);
    add_comm(PID, PID, "second", 40);
    find();
    assert_name(PID, PID, 20, "");
    assert_name(PID, PID, 30, "sh");
    assert_name(PID, PID, 40, "second");
}

static void test_a_late_name_is_that_of_the_last_life(void **state)
{
    (void)state;
    add_fork(PID, PID, SHELL, SHELL, 10);
    add_fork(PID, PID, SHELL, SHELL, 30);
    add_comm(PID, PID, "last", 0)->late = true;
    add_comm(SHELL, SHELL, "sh", 1);
    add_comm(SHELL, SHELL, "end", 0)->late = true; /* what it was renamed to is not known */
    add_comm(POOL, POOL, "pool", 0)->late = true;
    find();
    assert_name(PID, PID, 20, "sh");
    assert_name(PID, PID, 30, "last");
    assert_name(SHELL, SHELL, 0, "sh");
    assert_name(SHELL, SHELL, 50, "sh");
    assert_name(POOL, POOL, 0, "pool");
}

static void test_of_names_without_a_time_the_late_one_counts(void **state)
{
    (void)state;
    add_comm(PID, PID, "perf-exec", 0);
    add_fork(PID, POOL, PID, PID, 20);
    add_comm(PID, PID, "node", 0)->late = true;
    find();
    assert_name(PID, PID, 10, "node");
    assert_name(PID, POOL, 20, "node");
}

static void test_what_nothing_names_has_its_number(void **state)
{
    (void)state;
    char number[THREAD_NUMBER_BYTES];
    add_comm(PID, PID, "main", 10);
    find();
    assert_name(PID, POOL, 20, "");
    assert_null(thread_names_comm(&names, PID, POOL, 20));
    thread_names_number(number, POOL);
    assert_string_equal(number, ":21");
    thread_names_number(number, UINT32_MAX); /* of a task that has ended */
    assert_string_equal(number, ":-1");
}

static void test_pid_0_is_the_swapper(void **state)
{
    (void)state;
    find();
    assert_name(0, 0, 20, "swapper");
    assert_string_equal(thread_names_of_process(&names, 0, NO_NEXT), "swapper");
}

static void test_a_name_without_an_end_is_none(void **state)
{
    (void)state;
    add_comm(PID, PID, "main", 10)->record.size = PERF_COMM_BYTES + 3;
    add_comm(POOL, POOL, "pool", 10)->record.size = PERF_COMM_BYTES;
    find();
    assert_name(PID, PID, 20, "");
    assert_name(POOL, POOL, 20, "");
}

#define NAMES_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMES_TEST(test_a_thread_has_the_name_of_the_thread_that_created_it),
        NAMES_TEST(test_a_process_has_the_name_of_the_thread_that_forked_it),
        NAMES_TEST(test_a_pid_that_is_used_again_has_its_own_name),
        NAMES_TEST(test_a_thread_that_maps_memory_after_its_end_is_another),
        NAMES_TEST(test_a_process_is_called_what_it_was_called_last),
        NAMES_TEST(test_samples_in_front_of_the_first_name_have_it),
        NAMES_TEST(test_a_name_does_not_reach_into_an_earlier_life),
        NAMES_TEST(test_a_late_name_is_that_of_the_last_life),
        NAMES_TEST(test_of_names_without_a_time_the_late_one_counts),
        NAMES_TEST(test_what_nothing_names_has_its_number),
        NAMES_TEST(test_pid_0_is_the_swapper),
        NAMES_TEST(test_a_name_without_an_end_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
