/* What /proc says of a process: of this one, of one whose name is made to confuse, and of none. */
#include "injector/recording/host/live_process.h"

#include "tests/unit/scratch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

/* The clocks stand: when this process started is the kernel's word, and so many ticks ago. */
static const uint64_t wall_ns = 1700000000 * NS_PER_S, boot_ns = 5000000 * NS_PER_S,
                      mono_ns = 4000000 * NS_PER_S;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    uint64_t ns = clock == CLOCK_REALTIME ? wall_ns : clock == CLOCK_BOOTTIME ? boot_ns : mono_ns;
    *now = (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    return 0;
}

static uint64_t really_since_boot_ns(void)
{
    struct timespec now;
    assert_int_equal(syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now), 0);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void test_this_process(void **state)
{
    struct live_process live;
    (void)state;
    assert_true(live_process_read(&live, (uint32_t)getpid(), UINT64_MAX));
    assert_int_equal(live.uid, geteuid());
    assert_int_equal(live.namespace_pid, getpid());
    assert_false(live.other_root);
    assert_false(live.other_tmp);
    assert_false(live_process_has_other_root((uint32_t)getpid()));
    assert_true(live_process_goes_on((uint32_t)getpid()));
    assert_int_equal(live_process_parent((uint32_t)getpid()), getppid());
    assert_false(live_process_hides((uint32_t)getpid(), "/"));
    assert_true(live_process_own_mounts() != 0);
}

static void test_when_it_started(void **state)
{
    struct live_process live;
    (void)state;
    assert_true(live_process_read(&live, (uint32_t)getpid(), UINT64_MAX));
    uint64_t now_ns = really_since_boot_ns();
    assert_true(live.started_boot_ns <= now_ns);
    assert_true(live.started_boot_ns + 3600 * NS_PER_S > now_ns);
    assert_int_equal(live.started_wall_ns, wall_ns - boot_ns + live.started_boot_ns);
    assert_int_equal(live.started_mono_ns,
                     (int64_t)live.started_boot_ns - (int64_t)(boot_ns - mono_ns));
}

static void test_one_that_began_after_the_recording(void **state)
{
    struct live_process live;
    (void)state;
    assert_true(live_process_read(&live, (uint32_t)getpid(), UINT64_MAX));
    assert_true(live_process_read(&live, (uint32_t)getpid(), live.started_wall_ns));
    assert_false(live_process_read(&live, (uint32_t)getpid(), live.started_wall_ns - 1));
    assert_false(live_process_read(&live, (uint32_t)getpid(), 0));
}

static void test_where_its_root_is(void **state)
{
    char root[LIVE_ROOT_BYTES];
    (void)state;
    assert_string_equal(live_process_root(root, UINT32_MAX), "/proc/4294967295/root");
    assert_false(live_process_has_other_root(UINT32_MAX));
    assert_false(live_process_goes_on(UINT32_MAX));
}

static void test_a_name_with_brackets_blanks_and_a_line(void **state)
{
    struct live_process live;
    (void)state;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, ") R 1 2\n(x) 3");
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    bool found = live_process_read(&live, (uint32_t)child, UINT64_MAX);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(found);
    assert_true(live.started_boot_ns + 3600 * NS_PER_S > really_since_boot_ns());
    assert_false(live_process_read(&live, (uint32_t)child, UINT64_MAX)); /* it is gone */
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_this_process),
        cmocka_unit_test(test_when_it_started),
        cmocka_unit_test(test_one_that_began_after_the_recording),
        cmocka_unit_test(test_where_its_root_is),
        cmocka_unit_test(test_a_name_with_brackets_blanks_and_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
