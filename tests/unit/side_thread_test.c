/* A thread beside the one that runs the command: what it does, once, and where none can be had. */
#include "injector/files/side_thread.h"
#include "tests/unit/refused_call.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

struct work {
    int done;
    pthread_t thread;
    sigset_t masked;
};

static void *work(void *context)
{
    struct work *all = context;
    all->thread = pthread_self();
    pthread_sigmask(SIG_SETMASK, NULL, &all->masked);
    all->done++;
    return NULL;
}

static void test_it_is_done_beside_and_joined_once(void **state)
{
    struct side_thread side = {0};
    struct work all = {0};
    sigset_t before, after;
    (void)state;
    assert_false(side_thread_join(&side)); /* none was begun */
    sigemptyset(&before);
    sigaddset(&before, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_true(side_thread_begin(&side, work, &all));
    assert_true(side_thread_join(&side));
    assert_int_equal(all.done, 1);
    assert_false(pthread_equal(all.thread, pthread_self()));
    assert_false(side_thread_join(&side));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int i = 1; i < 32; i++) {
        assert_int_equal(sigismember(&after, i), i == SIGUSR1);
        assert_int_equal(sigismember(&all.masked, i), i != SIGBUS && i != SIGKILL && i != SIGSTOP);
    }
}

/* One that is begun after another in the same place. */
static void test_one_after_another(void **state)
{
    struct side_thread side = {0};
    struct work all = {0};
    (void)state;
    for (int i = 1; i <= 100; i++) {
        assert_true(side_thread_begin(&side, work, &all));
        assert_true(side_thread_join(&side));
        assert_int_equal(all.done, i);
    }
}

/* The struct may have had one before. */
static void begin_without_threads(void)
{
    struct side_thread side = {.runs = true};
    struct work all = {0};
    sigset_t after;
    refuse(SYS_clone3, EAGAIN);
    refuse(SYS_clone, EAGAIN);
    CHECK(!side_thread_begin(&side, work, &all));
    CHECK(!side_thread_join(&side));
    CHECK(all.done == 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    CHECK(!sigismember(&after, SIGTERM)); /* as it was */
}

static void test_where_none_can_be_had(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        begin_without_threads();
        _exit(0);
    }
    int status = wait_for(child);
    if (status == NOT_PERMITTED)
        skip();
    assert_int_equal(status, 0);
}

static void test_pays_with_two_processors(void **state)
{
    (void)state;
    assert_int_equal(side_thread_pays(), sysconf(_SC_NPROCESSORS_ONLN) >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_done_beside_and_joined_once),
        cmocka_unit_test(test_one_after_another),
        cmocka_unit_test(test_where_none_can_be_had),
        cmocka_unit_test(test_pays_with_two_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
