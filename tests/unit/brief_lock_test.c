/* A lock whose holder's state is unknown, because the process has no descriptor left: the holder
 * counts as one that works.  (jitdump_stop_test and jitdump_wait_test have holders that are seen.)
 */
#include "jitdump/guest/brief_lock.h"
#include "jitdump/guest/holder_state.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#define MS UINT64_C(1000000)

struct held {
    struct brief_lock lock;
    uint64_t hold_ns; /* each time */
    int turns;
    atomic_bool begun;
    atomic_bool ends; /* at once, in place of the turns */
};

static uint32_t this_thread(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

static void *hold(void *context)
{
    struct held *held = context;
    uint32_t self = this_thread();
    for (int turn = 0; turn < held->turns && !atomic_load(&held->ends); turn++) {
        while (jd_lock(&held->lock, self, JD_PATIENCE_NS) != 0)
            continue;
        atomic_store(&held->begun, true);
        uint64_t until_ns = now_ns() + held->hold_ns;
        while (now_ns() < until_ns && !atomic_load(&held->ends))
            jd_holder_sleep(MS);
        jd_unlock(&held->lock);
    }
    return NULL;
}

/* Let another thread hold HELD, and wait until it does. */
static pthread_t begin(struct held *held)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hold, held), 0);
    while (!atomic_load(&held->begun))
        jd_holder_sleep(MS);
    return thread;
}

static int take(struct held *held, uint64_t patience_ns)
{
    int error = jd_lock(&held->lock, this_thread(), patience_ns);
    if (!error)
        jd_unlock(&held->lock);
    return error;
}

static struct rlimit usual;

static int forbid_descriptors(void **state)
{
    (void)state;
    getrlimit(RLIMIT_NOFILE, &usual);
    return setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, usual.rlim_max});
}

/* The sanitizer looks for leaks at the end, and reads files for it. */
static int allow_descriptors(void **state)
{
    (void)state;
    return setrlimit(RLIMIT_NOFILE, &usual);
}

static void test_threads_are_not_seen(void **state)
{
    (void)state;
    assert_int_equal(jd_holder_state(this_thread()), HOLDER_UNKNOWN);
}

static void test_a_long_hold_is_waited_for(void **state)
{
    static struct held held = {.hold_ns = 200 * MS, .turns = 1};
    (void)state;
    pthread_t thread = begin(&held);
    assert_int_equal(take(&held, JD_PATIENCE_NS), 0);
    pthread_join(thread, NULL);
}

/* It is taken again at once, for longer in all than one hold may take. */
static void test_turns_are_progress(void **state)
{
    static struct held held = {.hold_ns = 30 * MS, .turns = 10};
    (void)state;
    pthread_t thread = begin(&held);
    assert_int_equal(take(&held, JD_LITTLE_PATIENCE_NS), 0);
    pthread_join(thread, NULL);
}

static void test_a_hold_without_end_is_given_up_after_a_second(void **state)
{
    static struct held held = {.hold_ns = 3600 * 1000 * MS, .turns = 1};
    (void)state;
    pthread_t thread = begin(&held);
    uint64_t begun_ns = now_ns();
    assert_int_equal(take(&held, JD_PATIENCE_NS), -EAGAIN);
    assert_true(now_ns() - begun_ns >= 1000 * MS);
    begun_ns = now_ns();
    for (int i = 0; i < 100; i++)
        assert_int_equal(take(&held, JD_PATIENCE_NS), -EAGAIN);
    assert_true(now_ns() - begun_ns < 1000 * MS);
    atomic_store(&held.ends, true);
    pthread_join(thread, NULL);
    assert_int_equal(take(&held, JD_PATIENCE_NS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_are_not_seen),
        cmocka_unit_test(test_a_long_hold_is_waited_for),
        cmocka_unit_test(test_turns_are_progress),
        cmocka_unit_test(test_a_hold_without_end_is_given_up_after_a_second),
    };
    return cmocka_run_group_tests(tests, forbid_descriptors, allow_descriptors);
}
