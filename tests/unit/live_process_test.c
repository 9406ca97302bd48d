/* What /proc says of a process: of this one, of one whose name is made to confuse, and of none. */
#include "injector/host/live_process.h"

#include "tests/unit/scratch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void test_this_process(void **state)
{
    struct live_process live;
    (void)state;
    assert_true(live_process_read(&live, (uint32_t)getpid(), now_ns()));
    assert_int_equal(live.uid, geteuid());
    assert_int_equal(live.namespace_pid, getpid());
    assert_false(live.other_root);
    assert_false(live.other_tmp);
    assert_true(live.started_wall_ns <= now_ns());
    assert_true(live.started_wall_ns + 3600 * NS_PER_S > now_ns());
}

static void test_one_that_began_after_the_recording(void **state)
{
    struct live_process live;
    (void)state;
    assert_true(live_process_read(&live, (uint32_t)getpid(), now_ns()));
    assert_false(live_process_read(&live, (uint32_t)getpid(), live.started_wall_ns - NS_PER_S));
    assert_false(live_process_read(&live, (uint32_t)getpid(), 0));
}

static void test_a_name_with_brackets_and_blanks(void **state)
{
    struct live_process live;
    (void)state;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, ") R 1 2 (x) 3");
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    bool found = live_process_read(&live, (uint32_t)child, now_ns());
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(found);
    assert_true(live.started_wall_ns + 60 * NS_PER_S > now_ns());
    assert_false(live_process_read(&live, (uint32_t)child, now_ns())); /* it is gone */
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_this_process),
        cmocka_unit_test(test_one_that_began_after_the_recording),
        cmocka_unit_test(test_a_name_with_brackets_and_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
