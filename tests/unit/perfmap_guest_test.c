/* The perf map writer as a guest: among other writers of the same map, threads that a collector stops, closed descriptors, clones and
 * namespaces.  It takes nothing away from its host, and never waits. */
#include "tests/unit/perfmap_test.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

/* ---- Other writers of the process's map ---- */

static void test_another_jits_map_is_appended_to(void **state)
{
    static const int how[] = {O_APPEND, 0}; /* as CPython and Ruby do, and as node does */
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int other = open(path, O_RDWR | O_CREAT | O_TRUNC | how[i], 0600);
        assert_int_equal(write(other, "1000 10 theirs\n", 15), 15);
        struct perfmap *map = open_map();
        assert_int_equal(perfmap_add(map, 1, 2, "ours"), 0);
        assert_int_equal(write(other, "2000 10 theirs\n", 15), 15);
        assert_int_equal(perfmap_add(map, 3, 4, "ours"), 0);
        assert_file("1000 10 theirs\n1 2 ours\n2000 10 theirs\n3 4 ours\n");
        assert_int_equal(perfmap_close(map), 0);
        close(other);
        unlink(path);
    }
}

static void test_another_jit_cuts_the_map(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(perfmap_add(map, 1, 2, "lost"), 0);
    assert_int_equal(perfmap_add(map, 1, 2, "lost"), 0);
    int other = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(perfmap_add(map, 3, 4, "ours"), 0);
    assert_int_equal(write(other, "1000 10 theirs\n", 15), 15);
    assert_int_equal(perfmap_add(map, 5, 6, "ours"), 0);
    assert_file("3 4 ours\n1000 10 theirs\n5 6 ours\n");
    assert_int_equal(perfmap_lost(map), 2);
    assert_non_null(strstr(perfmap_error(map), "2 lines are lost"));
    assert_int_equal(perfmap_close(map), -ESTALE);
    close(other);
}

static void test_a_map_that_was_removed(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(perfmap_add(map, 1, 2, "lost"), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(perfmap_add(map, 1, 2, "lost"), -ENOENT);
    assert_int_equal(perfmap_lost(map), 2);
    assert_int_equal(perfmap_close(map), -ENOENT);
}

static void test_opened_again(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(perfmap_add(map, 1, 2, "first"), 0);
    assert_int_equal(perfmap_close(map), 0);
    map = open_map();
    struct perfmap *second = open_map();
    assert_int_equal(perfmap_add(map, 3, 4, "again"), 0);
    assert_int_equal(perfmap_add(second, 5, 6, "second"), 0);
    assert_int_equal(perfmap_close(map), 0);
    assert_int_equal(perfmap_add(second, 7, 8, "second"), 0);
    assert_int_equal(perfmap_close(second), 0);
    assert_file("1 2 first\n3 4 again\n5 6 second\n7 8 second\n");
}

/* ---- Threads that are stopped ---- */

enum { STOPPED = 4, PAUSES = 300, PAUSED_LINES = 3 };

static struct perfmap *stopped_map;
static _Atomic bool stop_all;
static _Atomic unsigned in_handler;
static sem_t go_on;
static _Atomic uint64_t added;

static void stop_here(int number)
{
    (void)number;
    int error = errno;
    atomic_fetch_add(&in_handler, 1);
    while (sem_wait(&go_on) != 0)
        ;
    atomic_fetch_sub(&in_handler, 1);
    errno = error;
}

static void *add_without_pause(void *argument)
{
    while (!atomic_load(&stop_all))
        if (perfmap_add(stopped_map, (uintptr_t)argument, 2, "of a thread") == 0)
            atomic_fetch_add(&added, 1);
    return NULL;
}

/* A collector: all threads stand somewhere in perfmap_add, for as long as it adds. */
static void stop_the_world(const pthread_t *threads)
{
    for (size_t i = 0; i < STOPPED; i++)
        CHECK(pthread_kill(threads[i], SIGUSR1) == 0);
    while (atomic_load(&in_handler) < STOPPED)
        sched_yield();
    for (int i = 0; i < PAUSED_LINES; i++)
        CHECK(perfmap_add(stopped_map, 0x999, 2, "of the collector") == 0);
    for (size_t i = 0; i < STOPPED; i++)
        CHECK(sem_post(&go_on) == 0);
    while (atomic_load(&in_handler))
        sched_yield();
}

/* How many lines of TEXT end with END.  Line by line: for each strstr AddressSanitizer looks at all of the text. */
static size_t lines_in(const char *text, const char *end)
{
    size_t count = 0, length = strlen(end);
    for (const char *at = text, *next; (next = strchrnul(at, '\n')), *next; at = next + 1)
        count += (size_t)(next + 1 - at) >= length && memcmp(next + 1 - length, end, length) == 0;
    return count;
}

static void child_has_a_collector(struct perfmap *map)
{
    pthread_t threads[STOPPED];
    CHECK(try_open(&map) == 0);
    stopped_map = map;
    CHECK(sem_init(&go_on, 0, 0) == 0);
    struct sigaction action = {.sa_handler = stop_here, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (size_t i = 0; i < STOPPED; i++)
        CHECK(pthread_create(&threads[i], NULL, add_without_pause, (void *)(i + 1)) == 0);
    for (int i = 0; i < PAUSES; i++)
        stop_the_world(threads);
    atomic_store(&stop_all, true);
    for (size_t i = 0; i < STOPPED; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(perfmap_lost(map) == 0);
    char *text = text_of(path);
    CHECK(lines_in(text, "\n") == atomic_load(&added) + PAUSES * PAUSED_LINES);
    CHECK(lines_in(text, "999 2 of the collector\n") == PAUSES * PAUSED_LINES);
    CHECK(lines_in(text, " 2 of a thread\n") == atomic_load(&added));
    CHECK(perfmap_close(map) == 0);
}

static void test_stopped_threads_hold_nothing(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_has_a_collector, NULL), 0);
}

static struct perfmap *interrupted_map;
static _Atomic int from_handler;

static void add_in_handler(int number)
{
    (void)number;
    if (perfmap_add(interrupted_map, 5, 6, "handler") == 0)
        atomic_fetch_add(&from_handler, 1);
}

static void child_adds_in_a_handler(struct perfmap *map)
{
    const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    int lines = 0;
    CHECK(try_open(&map) == 0);
    interrupted_map = map;
    CHECK(signal(SIGALRM, add_in_handler) != SIG_ERR);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (atomic_load(&from_handler) < 200) {
        CHECK(perfmap_add(map, 1, 2, "main") == 0);
        lines++;
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    char *text = text_of(path);
    CHECK(lines_in(text, "5 6 handler\n") == (size_t)atomic_load(&from_handler));
    CHECK(lines_in(text, "1 2 main\n") == (size_t)lines);
    CHECK(perfmap_lost(map) == 0 && perfmap_close(map) == 0);
}

static void test_signal_handler(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_adds_in_a_handler, NULL), 0);
}

/* ---- Descriptors and errno ---- */

static void child_has_no_standard_descriptors(struct perfmap *map)
{
    for (int keep = 0; keep < 3; keep++) {
        closefrom(0);
        for (int fd = 0; fd < keep; fd++)
            CHECK(open("/dev/null", O_RDWR) == fd);
        CHECK(try_open(&map) == 0);
        for (int fd = keep; fd < 3; fd++)
            CHECK(write(fd, "forged\n", 7) < 0 && errno == EBADF);
        CHECK(perfmap_add(map, 1, 2, "fib") == 0);
        CHECK(file_says(path, "1 2 fib\n"));
        CHECK(perfmap_close(map) == 0 && unlink(path) == 0);
    }
}

static void test_never_a_standard_descriptor(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_has_no_standard_descriptors, NULL), 0);
}

static void child_keeps_errno(struct perfmap *map)
{
    errno = 4711;
    CHECK(perfmap_add(map, 1, 2, "child") == 0 && errno == 4711);
    CHECK(perfmap_close(map) == 0 && errno == 4711);
}

static void test_errno_is_kept(void **state)
{
    struct rlimit limit, small = {4, RLIM_INFINITY};
    (void)state;
    write_text(path, "1 2 stale\n");
    errno = 4711;
    struct perfmap *map = open_map();
    assert_int_equal(errno, 4711);
    assert_int_equal(perfmap_add(map, 1, 2, "fib"), 0);
    assert_int_equal(errno, 4711);
    assert_int_equal(run_in_child(child_keeps_errno, map), 0);
    getrlimit(RLIMIT_FSIZE, &limit);
    small.rlim_max = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small);
    errno = 4711;
    int error = perfmap_add(map, 1, 2, "fib");
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(error, -EFBIG);
    assert_int_equal(errno, 4711);
    assert_int_equal(perfmap_close(map), -EFBIG);
    assert_int_equal(errno, 4711);
}

/* ---- Writes that are cut short ---- */

static size_t short_writes, interrupted_writes;

/* Stands in for libc's, as a FUSE or NFS file would behave under signals. */
ssize_t write(int fd, const void *bytes, size_t size)
{
    if (interrupted_writes && interrupted_writes--) {
        errno = EINTR;
        return -1;
    }
    if (short_writes && short_writes-- && size > 3)
        size = 3;
    return syscall(SYS_write, fd, bytes, size);
}

static void test_a_write_cut_short_goes_on(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    short_writes = 2;
    int first = perfmap_add(map, 1, 2, "cut short");
    interrupted_writes = 3;
    int second = perfmap_add(map, 1, 2, "interrupted");
    assert_int_equal(first, 0);
    assert_int_equal(second, 0);
    assert_int_equal(perfmap_lost(map), 0);
    assert_file("1 2 cut short\n1 2 interrupted\n");
    assert_int_equal(perfmap_close(map), 0);
}

/* Threads that reach the limit together: some have looked before the others wrote. */
static void *add_until_full(void *argument)
{
    for (int i = 0; i < 2000; i++)
        perfmap_add(argument, 1, 2, "a line that does not fit a round number of times");
    return NULL;
}

static void child_races_to_the_limit(struct perfmap *map)
{
    CHECK(signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
    CHECK(try_open(&map) == 0);
    for (rlim_t size = 2000; size < 60000; size += 2000) {
        struct rlimit limit = {size, RLIM_INFINITY};
        pthread_t threads[4];
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        for (size_t i = 0; i < 4; i++)
            CHECK(pthread_create(&threads[i], NULL, add_until_full, map) == 0);
        for (size_t i = 0; i < 4; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(perfmap_lost(map) > 0 && perfmap_close(map) == -EFBIG);
}

static void test_no_signal_at_the_size_limit(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_races_to_the_limit, NULL), 0);
}

/* ---- Clones and namespaces ---- */

/* fork, but with FLAGS. */
static pid_t clone_child(unsigned long flags)
{
    fflush(NULL);
    return (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0);
}

static void test_a_clone_with_our_descriptors(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(perfmap_add(map, 1, 2, "before"), 0);
    pid_t child = clone_child(CLONE_FILES);
    if (child == 0) {
        set_path((pid_t)syscall(SYS_getpid));
        CHECK(perfmap_add(map, 3, 4, "child") == 0);
        CHECK(file_says(path, "3 4 child\n"));
        CHECK(perfmap_close(map) == 0);
        _exit(0);
    }
    assert_int_equal(wait_for(child), 0);
    assert_int_equal(perfmap_add(map, 5, 6, "behind"), 0);
    assert_int_equal(perfmap_close(map), 0);
    assert_file("1 2 before\n5 6 behind\n");
}

static bool without_proc;

/* The first process of a namespace in one, with number 1 as its parent. */
static void inner_adds(struct perfmap *map)
{
    int error = perfmap_add(map, 3, 4, "inner");
    if (without_proc)
        CHECK(error == -EEXIST && strstr(perfmap_error(map), "another namespace"));
    else
        CHECK(error == 0 && strcmp(perfmap_path(map), path) != 0 &&
              file_says(perfmap_path(map), "3 4 inner\n"));
    perfmap_close(map);
}

static void outer_adds(struct perfmap *map)
{
    CHECK(getpid() == 1);
    if (without_proc)
        CHECK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
              mount("none", "/proc", "tmpfs", 0, NULL) == 0);
    CHECK(try_open(&map) == 0 && perfmap_add(map, 1, 2, "outer") == 0);
    snprintf(path, sizeof path, "%s", perfmap_path(map));
    CHECK(unshare(CLONE_NEWPID) == 0);
    pid_t child = clone_child(0);
    if (child == 0) {
        CHECK(getpid() == 1);
        inner_adds(map);
        _exit(0);
    }
    CHECK(wait_for(child) == 0);
    CHECK(perfmap_add(map, 5, 6, "outer") == 0 && perfmap_close(map) == 0);
    CHECK(file_says(path, "1 2 outer\n5 6 outer\n"));
}

static void child_makes_a_namespace(struct perfmap *map)
{
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
        _exit(NOT_PERMITTED);
    CHECK(run_in_child(outer_adds, map) == 0);
}

static void test_pid_1_of_a_namespace_in_another(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        without_proc = i;
        int result = run_in_child(child_makes_a_namespace, NULL);
        if (result == NOT_PERMITTED)
            skip_or_fail("pid namespaces are not permitted");
        assert_int_equal(result, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_another_jits_map_is_appended_to), TEST(test_another_jit_cuts_the_map),
        TEST(test_a_map_that_was_removed),          TEST(test_opened_again),
        TEST(test_stopped_threads_hold_nothing),    TEST(test_signal_handler),
        TEST(test_never_a_standard_descriptor),     TEST(test_errno_is_kept),
        TEST(test_a_write_cut_short_goes_on),       TEST(test_no_signal_at_the_size_limit),
        TEST(test_a_clone_with_our_descriptors),    TEST(test_pid_1_of_a_namespace_in_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
