/* libjitdump when threads are stopped, or leave, in the middle of its calls: a collector that stops
 * them by a signal and then moves and unloads code does not wait for them.
 *
 * STOP_SECONDS=N in the environment: the world is stopped again and again for so long.
 */
#include "tests/unit/jitdump_inventory.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- A thread that is stopped while it holds the lock: by a fault in what it was given ---- */

enum then { GO_ON, JUMP };

static uint8_t *trap; /* a page that can't be read until the thread may go on */
static enum then then;
static atomic_int stopped_thread;
static sem_t is_stopped, may_go_on;
static __thread sigjmp_buf before_call;

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

/* Until the thread that said that it is stopped sleeps: the library looks whether it does. */
static void await_stopped(void)
{
    char path_of_state[64], state = '\0';
    await(&is_stopped);
    snprintf(path_of_state, sizeof path_of_state, "/proc/self/task/%d/stat",
             atomic_load(&stopped_thread));
    while (state != 'S') {
        FILE *file = fopen(path_of_state, "r");
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
        fclose(file);
        usleep(100);
    }
}

static void on_fault(int signal_number)
{
    (void)signal_number;
    atomic_store(&stopped_thread, gettid());
    sem_post(&is_stopped);
    await(&may_go_on);
    if (then == JUMP)
        siglongjmp(before_call, 1);
    mprotect(trap, 4096, PROT_READ);
}

/* Unwind tables are copied under the lock. */
static int add_trapped(struct jitdump *dump)
{
    const struct jitdump_unwind unwind = {trap, 16, 8, 16};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = "trapped";
    code.unwind = &unwind;
    return jitdump_add_code(dump, &code, NULL);
}

static void *add_and_be_trapped(void *argument)
{
    void *volatile dump = argument; /* a longjmp may leave registers as they were */
    int error = -1;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    if (sigsetjmp(before_call, 1) == 0)
        return (void *)(intptr_t)add_trapped(dump);
    add_first(dump, 2, 3); /* the next call of who jumped is as any other */
    return (void *)(intptr_t)error;
}

static pthread_t stop_a_thread(struct jitdump *dump)
{
    struct sigaction action = {.sa_handler = on_fault};
    pthread_t thread;
    trap = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(trap != MAP_FAILED);
    assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
    sem_init(&is_stopped, 0, 0);
    sem_init(&may_go_on, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, add_and_be_trapped, dump), 0);
    await_stopped();
    return thread;
}

static intptr_t end_of(pthread_t thread)
{
    void *result;
    assert_int_equal(pthread_join(thread, &result), 0);
    munmap(trap, 4096);
    return (intptr_t)result;
}

/* As often as each record is there. */
static void assert_counts(size_t loads, size_t moves, size_t unloads)
{
    assert_int_equal(count_records(path, JIT_CODE_LOAD), loads);
    assert_int_equal(count_records(path, JIT_CODE_MOVE), moves);
    assert_int_equal(count_records(path, JIT_CODE_UNLOAD), unloads);
}

static void assert_times_ascend(void)
{
    struct dump_bytes bytes = read_dump(path);
    size_t offset = JITHEADER_BYTES;
    struct record record;
    uint64_t time = 0;
    while (next_record(&bytes, &offset, &record)) {
        assert_true(record.timestamp >= time);
        time = record.timestamp;
    }
    free(bytes.data);
}

enum { MANY = 5000 };

/* 20 ms of waiting in sleeps of up to 0.1 ms, and not for each call. */
enum { SLEEPS_MAX = 500 };

static atomic_uint sleeps;

void __real_jd_holder_sleep(uint64_t ns);
void __wrap_jd_holder_sleep(uint64_t ns);

void __wrap_jd_holder_sleep(uint64_t ns)
{
    atomic_fetch_add(&sleeps, 1);
    __real_jd_holder_sleep(ns);
}

/* What a collector does meanwhile: returns at once, and is recorded, or counted. */
static void collect(struct jitdump *dump)
{
    atomic_store(&sleeps, 0);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(jitdump_move_code(dump, 0, 0x1000 * i, 0x2000 * i, 16), 0);
        assert_int_equal(jitdump_unload_code(dump, 0, 0x2000 * i, 16), 0);
        assert_in_range(atomic_load(&sleeps), 0, SLEEPS_MAX);
    }
    assert_int_equal(add_function(dump, 0, 1, NULL), -EAGAIN);
    assert_in_range(atomic_load(&sleeps), 0, 2 * SLEEPS_MAX);
    assert_int_equal(jitdump_lost(dump), 1);
}

static void test_stopped_in_a_record(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    then = GO_ON;
    add_first(dump, 0, 1);
    pthread_t thread = stop_a_thread(dump);
    collect(dump);
    sem_post(&may_go_on);
    assert_int_equal(end_of(thread), 0);
    add_first(dump, 1, 2);
    assert_non_null(strstr(jitdump_error(dump), "stopped"));
    assert_int_equal(jitdump_close(dump), -EAGAIN); /* for the one that was lost */
    assert_counts(3, MANY, MANY);
    assert_times_ascend();
}

/* Nothing was lost, so nothing is an error. */
static void test_stopped_and_nothing_added(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    then = GO_ON;
    pthread_t thread = stop_a_thread(dump);
    assert_int_equal(jitdump_unload_code(dump, 0, 0x2000, 16), 0);
    sem_post(&may_go_on);
    assert_int_equal(end_of(thread), 0);
    assert_int_equal(jitdump_close(dump), 0);
    assert_counts(1, 0, 1);
}

static void test_left_by_a_longjmp(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    then = JUMP;
    add_first(dump, 0, 1);
    pthread_t thread = stop_a_thread(dump);
    collect(dump);
    sem_post(&may_go_on);
    assert_int_equal(end_of(thread), -1);
    add_first(dump, 1, 2);
    assert_int_equal(jitdump_close(dump), -EAGAIN);
    assert_counts(3, MANY, MANY);
    assert_times_ascend();
}

/* The sanitizers' run time does not let a thread be cancelled in a handler. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CAN_CANCEL 1
#else
#define CAN_CANCEL 0
#endif

#if CAN_CANCEL
/* Its thread has ended meanwhile, with the lock. */
static void test_cancelled_in_a_record(void **state)
{
    void *result;
    (void)state;
    struct jitdump *dump = open_dump();
    then = GO_ON;
    add_first(dump, 0, 1);
    pthread_t thread = stop_a_thread(dump);
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    munmap(trap, 4096);
    add_first(dump, 1, 3000);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, 3000, 1);
}
#endif

/* ---- A thread that is stopped while it writes to the body ---- */

static atomic_bool stop_at_write;

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t offset)
{
    if (atomic_exchange(&stop_at_write, false)) {
        atomic_store(&stopped_thread, gettid());
        sem_post(&is_stopped);
        await(&may_go_on);
    }
    return syscall(SYS_pwritev, fd, pieces, count, offset, offset >> 32);
}

static void *add_until_stopped(void *dump)
{
    for (unsigned i = 0; atomic_load(&stop_at_write); i++)
        CHECK(add_function(dump, 1, i, NULL) == 0);
    return NULL;
}

static void test_stopped_in_a_write(void **state)
{
    struct jitdump *dump = open_dump();
    pthread_t thread;
    unsigned added = 0;
    (void)state;
    sem_init(&is_stopped, 0, 0);
    sem_init(&may_go_on, 0, 0);
    add_first(dump, 0, 300); /* the stage has its size */
    atomic_store(&stop_at_write, true);
    assert_int_equal(pthread_create(&thread, NULL, add_until_stopped, dump), 0);
    await_stopped();
    while (add_function(dump, 0, 300 + added, NULL) == 0)
        added++; /* into the spill */
    assert_true(added > 10);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(jitdump_unload_code(dump, 0, 0x2000 * i, 16), 0);
    assert_int_equal(jitdump_lost(dump), 1);
    sem_post(&may_go_on);
    pthread_join(thread, NULL);
    add_first(dump, 300 + added, 310 + added);
    assert_int_equal(jitdump_close(dump), -EAGAIN);
    assert_int_equal(count_records(path, JIT_CODE_UNLOAD), MANY);
    assert_times_ascend();
}

/* ---- The world is stopped, wherever it is ---- */

enum { WORKERS = 4, ROUND_FUNCTIONS = 20000, ROUND_PAUSES = 100 };

static struct worker {
    pthread_t thread;
    unsigned number;
    struct jitdump *dump;
    unsigned pause_us; /* after each function */
    bool added[ROUND_FUNCTIONS];
} workers[WORKERS];

static atomic_bool round_is_over;

static atomic_uint stopped, epoch, lost;

static void stop_here(int signal_number)
{
    int callers_errno = errno;
    unsigned mine = atomic_load(&epoch);
    sigset_t all_but_wake;
    (void)signal_number;
    sigfillset(&all_but_wake);
    sigdelset(&all_but_wake, SIGUSR2);
    atomic_fetch_add(&stopped, 1);
    while (atomic_load(&epoch) == mine)
        sigsuspend(&all_but_wake);
    atomic_fetch_sub(&stopped, 1);
    errno = callers_errno;
}

static void wake_up(int signal_number)
{
    (void)signal_number;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    memset(worker->added, 0, sizeof worker->added);
    for (unsigned i = 0; i < ROUND_FUNCTIONS && !atomic_load(&round_is_over); i++) {
        worker->added[i] = add_function(worker->dump, worker->number, i, NULL) == 0;
        if (!worker->added[i])
            atomic_fetch_add(&lost, 1);
        if (worker->pause_us)
            usleep(worker->pause_us);
    }
    while (!atomic_load(&round_is_over))
        usleep(100); /* who has ended can't be stopped */
    return NULL;
}

struct collector {
    struct jitdump *dump;
    size_t moves, unloads, adds, pauses;
    uint64_t longest_ns;
};

static void collect_some(struct collector *collector)
{
    uint64_t start_ns = now_ns();
    for (unsigned i = 0; i < 20; i++) {
        CHECK(jitdump_unload_code(collector->dump, i, 0x1000 * i, 16) == 0);
        CHECK(jitdump_move_code(collector->dump, i, 0x1000 * i, 0x2000 * i, 16) == 0);
    }
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = "of the collector";
    int error = jitdump_add_code(collector->dump, &code, NULL);
    CHECK(error == 0 || error == -EAGAIN);
    uint64_t took_ns = now_ns() - start_ns;
    collector->longest_ns = took_ns > collector->longest_ns ? took_ns : collector->longest_ns;
    collector->unloads += 20;
    collector->moves += 20;
    collector->adds += error == 0;
    collector->pauses++;
}

static void stop_the_world(struct collector *collector)
{
    for (int i = 0; i < WORKERS; i++)
        pthread_kill(workers[i].thread, SIGUSR1);
    while (atomic_load(&stopped) < WORKERS)
        usleep(10);
    collect_some(collector);
    atomic_fetch_add(&epoch, 1);
    while (atomic_load(&stopped) > 0) {
        for (int i = 0; i < WORKERS; i++)
            pthread_kill(workers[i].thread, SIGUSR2);
        usleep(10);
    }
}

/* Each add that returned 0 is there once, and no other. */
static void check_round(const struct collector *collector)
{
    struct dump_bytes bytes = read_dump(path);
    size_t offset = JITHEADER_BYTES, of_collector = 0, of_workers = 0, expected = 0;
    size_t moves = 0, unloads = 0;
    struct record record;
    while (next_record(&bytes, &offset, &record)) {
        moves += record.id == JIT_CODE_MOVE;
        unloads += record.id == JIT_CODE_UNLOAD;
        if (record.id != JIT_CODE_LOAD)
            continue;
        unsigned thread, sequence;
        cursor_skip(&record.body, JR_CODE_LOAD_BYTES - JR_PREFIX_BYTES);
        const char *name = cursor_cstr(&record.body);
        if (sscanf(name, "t%u_%u", &thread, &sequence) == 2) {
            CHECK(thread < WORKERS && sequence < ROUND_FUNCTIONS);
            CHECK(workers[thread].added[sequence]);
            of_workers++;
        } else {
            of_collector++;
        }
    }
    for (int i = 0; i < WORKERS; i++)
        for (int j = 0; j < ROUND_FUNCTIONS; j++)
            expected += workers[i].added[j];
    CHECK(of_workers == expected && of_collector == collector->adds);
    CHECK(moves == collector->moves && unloads == collector->unloads);
    free(bytes.data);
}

static void run_round(struct collector *sum, unsigned pause_us)
{
    struct collector collector = {.dump = open_dump()};
    atomic_store(&round_is_over, false);
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i].number = i;
        workers[i].dump = collector.dump;
        workers[i].pause_us = pause_us;
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    while (collector.pauses < ROUND_PAUSES) {
        stop_the_world(&collector);
        usleep(200);
    }
    atomic_store(&round_is_over, true);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
    jitdump_close(collector.dump);
    check_round(&collector);
    unlink(path);
    sum->pauses += collector.pauses;
    sum->longest_ns =
        collector.longest_ns > sum->longest_ns ? collector.longest_ns : sum->longest_ns;
}

static void test_stopped_world(void **state)
{
    const char *seconds = getenv("STOP_SECONDS");
    uint64_t end_ns = now_ns() + (seconds ? strtoull(seconds, NULL, 10) : 0) * 1000000000;
    struct sigaction stop = {.sa_handler = stop_here, .sa_flags = SA_RESTART};
    struct sigaction wake = {.sa_handler = wake_up};
    struct collector sum = {0};
    unsigned rounds = 0;
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* its run time puts signals off, and the world never stands */
#endif
    sigfillset(&stop.sa_mask);
    sigdelset(&stop.sa_mask, SIGUSR2);
    assert_int_equal(sigaction(SIGUSR1, &stop, NULL) | sigaction(SIGUSR2, &wake, NULL), 0);
    do {
        run_round(&sum, rounds % 2 ? 20 : 0);
        rounds++;
    } while (now_ns() < end_ns || rounds < 2);
    printf("# %zu pauses in %u rounds, the longest took %.1f ms; %u functions of workers lost\n",
           sum.pauses, rounds, (double)sum.longest_ns / 1e6, atomic_load(&lost));
    assert_true(sum.pauses > 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_stopped_in_a_record),
        TEST(test_stopped_and_nothing_added),
        TEST(test_left_by_a_longjmp),
        TEST(test_stopped_in_a_write),
        TEST(test_stopped_world),
#if CAN_CANCEL
        TEST(test_cancelled_in_a_record),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
