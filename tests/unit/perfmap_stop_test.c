/* The perf map writer among threads that a collector stops by a signal, wherever they are, and in
 * signal handlers: nobody waits, and no line that was taken is missing.
 *
 * STOP_SECONDS=N in the environment: the world is stopped again and again for so long.
 */
#include "tests/unit/perfmap_test.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* How many lines of TEXT end with END.  Line by line: for each strstr AddressSanitizer looks at all
 * of the text. */
static size_t lines_in(const char *text, const char *end)
{
    size_t count = 0, length = strlen(end);
    for (const char *at = text, *next; (next = strchrnul(at, '\n')), *next; at = next + 1)
        count += (size_t)(next + 1 - at) >= length && memcmp(next + 1 - length, end, length) == 0;
    return count;
}

/* ---- The world is stopped ---- */

enum { STOPPED = 4, PAUSES = 150, PAUSED_LINES = 3 };

static struct perfmap *stopped_map;
static _Atomic bool stop_all;
static _Atomic unsigned in_handler;
static sem_t go_on;
static _Atomic uint64_t added, in_handlers;

/* Half of the threads add a line while they are stopped: the call that was interrupted may be one
 * of the same. */
static void stop_here(int number)
{
    (void)number;
    int error = errno;
    if (atomic_fetch_add(&in_handler, 1) % 2)
        atomic_fetch_add(&in_handlers, perfmap_add(stopped_map, 0x888, 2, "of a handler") == 0);
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

static void check_lines(void)
{
    char *text = text_of(path);
    uint64_t of_threads = atomic_load(&added), of_handlers = atomic_load(&in_handlers);
    CHECK(lines_in(text, "\n") == of_threads + of_handlers + PAUSES * PAUSED_LINES);
    CHECK(lines_in(text, "999 2 of the collector\n") == PAUSES * PAUSED_LINES);
    CHECK(lines_in(text, "888 2 of a handler\n") == of_handlers);
    CHECK(lines_in(text, " 2 of a thread\n") == of_threads);
    free(text);
}

static void run_round(void)
{
    pthread_t threads[STOPPED];
    CHECK(try_open(&stopped_map) == 0);
    atomic_store(&stop_all, false);
    atomic_store(&added, 0);
    atomic_store(&in_handlers, 0);
    for (size_t i = 0; i < STOPPED; i++)
        CHECK(pthread_create(&threads[i], NULL, add_without_pause, (void *)(i + 1)) == 0);
    for (int i = 0; i < PAUSES; i++)
        stop_the_world(threads);
    atomic_store(&stop_all, true);
    for (size_t i = 0; i < STOPPED; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(perfmap_lost(stopped_map) == 0);
    check_lines();
    CHECK(perfmap_close(stopped_map) == 0);
    CHECK(unlink(path) == 0);
}

static void child_has_a_collector(struct perfmap *map)
{
    const char *seconds = getenv("STOP_SECONDS");
    uint64_t end_ms = now_ms() + 1000 * (seconds ? strtoull(seconds, NULL, 10) : 0);
    struct sigaction action = {.sa_handler = stop_here, .sa_flags = SA_RESTART};
    size_t rounds = 0;
    (void)map;
    alarm((unsigned)(end_ms - now_ms()) / 1000 + 300);
    CHECK(sem_init(&go_on, 0, 0) == 0);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    do {
        run_round();
        rounds++;
    } while (now_ms() < end_ms || rounds < 2);
    printf("# %zu rounds of %d pauses\n", rounds, PAUSES);
    fflush(NULL);
}

static void test_stopped_threads_hold_nothing(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_has_a_collector, NULL), 0);
}

/* ---- Signal handlers ---- */

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

/* ---- A thread that is stopped while it makes the map of a child ---- */

enum { MORE_LINES = 1000, WAIT_MS = 100 };

static _Atomic bool stop_at_open;
static sem_t is_stopped, may_go_on;

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

/* Stands in for libc's. */
int open(const char *file_path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (atomic_exchange(&stop_at_open, false)) {
        sem_post(&is_stopped);
        await(&may_go_on);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, file_path, flags, mode);
}

static uint64_t slept_ns;

/* The same: how long all calls wait is counted, and not how long it takes. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
    slept_ns += (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
    return (int)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, time, left);
}

static void *add_first(void *map)
{
    return (void *)(intptr_t)perfmap_add(map, 1, 2, "of who made it");
}

/* The others wait for a moment, once, for as a rule it is there at once. */
static void child_stops_at_open(struct perfmap *map)
{
    pthread_t thread;
    void *result;
    CHECK(sem_init(&is_stopped, 0, 0) == 0 && sem_init(&may_go_on, 0, 0) == 0);
    atomic_store(&stop_at_open, true);
    CHECK(pthread_create(&thread, NULL, add_first, map) == 0);
    await(&is_stopped);
    for (int i = 0; i < MORE_LINES; i++) {
        CHECK(perfmap_add(map, 3, 4, "lost") == -EAGAIN);
        CHECK(slept_ns <= WAIT_MS * UINT64_C(1000000)); /* all of them together */
    }
    CHECK(perfmap_lost(map) == MORE_LINES);
    CHECK(strstr(perfmap_error(map), "another thread"));
    sem_post(&may_go_on);
    CHECK(pthread_join(thread, &result) == 0 && result == NULL);
    CHECK(perfmap_add(map, 5, 6, "behind") == 0);
    CHECK(file_says(path, "1 2 of who made it\n5 6 behind\n"));
    CHECK(perfmap_close(map) == -EAGAIN);
}

static void test_stopped_while_it_makes_a_map(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(run_in_child(child_stops_at_open, map), 0);
    assert_int_equal(perfmap_close(map), 0);
}

/* ---- Cancellation ---- */

static void *open_add_and_close(void *argument)
{
    struct perfmap *map;
    (void)argument;
    CHECK(pthread_cancel(pthread_self()) == 0); /* takes effect at the next cancellation point */
    int opened = try_open(&map), added_one = perfmap_add(map, 1, 2, "fib"),
        closed = perfmap_close(map);
    return opened == 0 && added_one == 0 && closed == 0 ? PTHREAD_CANCELED : NULL;
}

/* No call is cut short: the file says what happened. */
static void child_is_cancelled(struct perfmap *map)
{
    pthread_t thread;
    void *result;
    (void)map;
    CHECK(pthread_create(&thread, NULL, open_add_and_close, NULL) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(file_says(path, "1 2 fib\n"));
    for (int fd = 3; fd < 256; fd++) {
        char link[64], target[256];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(link, target, sizeof target - 1);
        target[size > 0 ? size : 0] = '\0';
        CHECK(strcmp(target, path) != 0);
    }
}

static void test_cancelled_before_each_call(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_is_cancelled, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_stopped_threads_hold_nothing),
        TEST(test_signal_handler),
        TEST(test_stopped_while_it_makes_a_map),
        TEST(test_cancelled_before_each_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
