/* libjitdump's waiting for a thread that is stopped inside a call: for how long, who waits again,
 * and what is lost.
 *
 * Time is counted, not measured: a clock of this file's own goes on by a millisecond each time the
 * waiting thread looks at it.
 */
#include "jitdump/format/attach_page.h"
#include "jitdump/guest/holder_state.h"
#include "tests/unit/jitdump_inventory.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

/* ---- The clock ---- */

enum { STEP_NS = 1000000, ADD_LOOKS = 1 /* for the record's timestamp */ };

static uint64_t clock_ns; /* 0: the machine's clock */
static atomic_uint looks;
static unsigned stands_from; /* so many looks on; 0: it goes on for ever */
static unsigned leaps_at;    /* an hour, at that look; 0: never */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!clock_ns)
        return (int)syscall(SYS_clock_gettime, clock, now);
    unsigned look = atomic_fetch_add(&looks, 1) + 1;
    clock_ns += !stands_from || look < stands_from ? STEP_NS : 0;
    clock_ns += look == leaps_at ? UINT64_C(3600000000000) : 0;
    now->tv_sec = (time_t)(clock_ns / 1000000000);
    now->tv_nsec = (long)(clock_ns % 1000000000);
    return 0;
}

static void count_looks(void)
{
    struct timespec now;
    clock_ns = 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    clock_ns = (uint64_t)now.tv_sec * 1000000000;
    atomic_store(&looks, 0);
}

/* How often this thread looked at the clock, adding a function, with RESULT. */
static unsigned looks_of_add(struct jitdump *dump, int result)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = "waits";
    count_looks();
    assert_int_equal(jitdump_add_code(dump, &code, NULL), result);
    clock_ns = 0;
    return atomic_load(&looks) - ADD_LOOKS;
}

static unsigned looks_of_unload(struct jitdump *dump)
{
    count_looks();
    assert_int_equal(jitdump_unload_code(dump, 0, 0x2000, 16), 0);
    clock_ns = 0;
    return atomic_load(&looks) - ADD_LOOKS;
}

/* ---- A thread that is stopped while it holds the stage's lock: by a fault in what it was given
 * ---- */

enum manner { SLEEPS, SPINS, SLEEPS_THEN_SPINS };

static uint8_t *trap; /* a page that can't be read until the thread may go on */
static enum manner manner;
static sem_t is_stopped, may_go_on;
static atomic_bool may_stop_spinning;
static atomic_uint looks_to_spin_for;
static uint32_t stopped_thread;

static void sleep_here(void)
{
    while (sem_wait(&may_go_on) != 0)
        ;
}

static void on_fault(int signal_number)
{
    (void)signal_number;
    stopped_thread = (uint32_t)syscall(SYS_gettid);
    sem_post(&is_stopped);
    if (manner != SPINS)
        sleep_here();
    while (manner == SPINS && !atomic_load(&may_stop_spinning))
        ;
    while (manner == SLEEPS_THEN_SPINS && atomic_load(&looks) < atomic_load(&looks_to_spin_for))
        ;
    mprotect(trap, 4096, PROT_READ);
}

/* Unwind tables are copied under the lock. */
static void *add_trapped(void *dump)
{
    const struct jitdump_unwind unwind = {trap, 16, 8, 16};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = "trapped";
    code.unwind = &unwind;
    return (void *)(intptr_t)jitdump_add_code(dump, &code, NULL);
}

static void await_state(enum holder_state state)
{
    while (jd_holder_state(stopped_thread) != state)
        usleep(100);
}

static void start_stopping(void)
{
    sem_init(&is_stopped, 0, 0);
    sem_init(&may_go_on, 0, 0);
    stands_from = leaps_at = 0;
    atomic_store(&may_stop_spinning, false);
}

static pthread_t stop_a_thread(struct jitdump *dump, enum manner how)
{
    struct sigaction action = {.sa_handler = on_fault};
    pthread_t thread;
    start_stopping();
    manner = how;
    trap = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(trap != MAP_FAILED);
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, add_trapped, dump) == 0);
    while (sem_wait(&is_stopped) != 0)
        ;
    await_state(how == SPINS ? HOLDER_RUNS : HOLDER_STOPPED);
    return thread;
}

static void let_go_on(pthread_t thread)
{
    void *result;
    atomic_store(&may_stop_spinning, true);
    sem_post(&may_go_on);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    munmap(trap, 4096);
}

/* The first look begins the waiting. */
enum { STOPPED_LOOKS = 1 + 20, SPINNING_LOOKS = 1 + 1000, SPINNING_LATE_LOOKS = 1 + 100 };

static void *add_in_another_thread(void *dump)
{
    return (void *)(uintptr_t)looks_of_add(dump, -EAGAIN);
}

static void test_a_stopped_thread_is_waited_for_20_ms(void **state)
{
    struct jitdump *dump = open_dump();
    pthread_t another;
    void *looks_of_another;
    (void)state;
    pthread_t thread = stop_a_thread(dump, SLEEPS);
    assert_int_equal(looks_of_unload(dump), 1);
    assert_int_equal(looks_of_add(dump, -EAGAIN), STOPPED_LOOKS);
    assert_int_equal(looks_of_add(dump, -EAGAIN), 0);
    assert_int_equal(pthread_create(&another, NULL, add_in_another_thread, dump), 0);
    assert_int_equal(pthread_join(another, &looks_of_another), 0);
    assert_int_equal((uintptr_t)looks_of_another, STOPPED_LOOKS);
    assert_int_equal(looks_of_add(dump, -EAGAIN), STOPPED_LOOKS);
    assert_int_equal(jitdump_lost(dump), 4);
    let_go_on(thread);
    assert_int_equal(looks_of_add(dump, 0), 0);
    assert_int_equal(jitdump_close(dump), -EAGAIN);
}

static void test_a_thread_that_spins_is_waited_for_1_s(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    pthread_t thread = stop_a_thread(dump, SPINS);
    assert_int_equal(looks_of_unload(dump), SPINNING_LATE_LOOKS);
    assert_int_equal(looks_of_add(dump, -EAGAIN), SPINNING_LOOKS);
    assert_int_equal(looks_of_add(dump, -EAGAIN), 0);
    assert_int_equal(looks_of_unload(dump), 0);
    let_go_on(thread);
    assert_int_equal(looks_of_add(dump, 0), 0);
    assert_int_equal(jitdump_close(dump), -EAGAIN);
}

/* As by the collector that stopped the other one. */
static void test_time_in_which_the_waiting_thread_is_stopped_does_not_count(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    pthread_t thread = stop_a_thread(dump, SLEEPS);
    leaps_at = ADD_LOOKS + 2;
    assert_int_equal(looks_of_add(dump, -EAGAIN), STOPPED_LOOKS);
    let_go_on(thread);
    assert_int_equal(jitdump_close(dump), -EAGAIN);
}

/* A thread that has given up waits again as soon as the stopped one goes on, not when that one has
 * let go. */
static void test_who_gave_up_waits_for_a_thread_that_goes_on(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    pthread_t thread = stop_a_thread(dump, SLEEPS_THEN_SPINS);
    assert_int_equal(looks_of_add(dump, -EAGAIN), STOPPED_LOOKS);
    count_looks();
    atomic_store(&looks_to_spin_for, ADD_LOOKS + 3);
    stands_from = ADD_LOOKS + 3;
    sem_post(&may_go_on);
    await_state(HOLDER_RUNS);
    assert_in_range(looks_of_add(dump, 0), 3, UINT32_MAX);
    let_go_on(thread);
    assert_int_equal(jitdump_lost(dump), 1);
    assert_int_equal(jitdump_close(dump), -EAGAIN);
}

/* ---- The other lock: a thread that is stopped while it writes to the body ---- */

static atomic_bool stop_at_write;
static bool disk_is_full;
static unsigned writes;

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t offset)
{
    if (atomic_exchange(&stop_at_write, false)) {
        stopped_thread = (uint32_t)syscall(SYS_gettid);
        sem_post(&is_stopped);
        sleep_here();
    }
    writes++;
    if (disk_is_full) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwritev, fd, pieces, count, offset, offset >> 32);
}

static void *add_until_stopped(void *dump)
{
    for (unsigned i = 0; atomic_load(&stop_at_write); i++)
        CHECK(add_function(dump, 1, i, NULL) == 0);
    return NULL;
}

static void test_a_thread_stopped_in_a_write_is_waited_for_20_ms(void **state)
{
    struct jitdump *dump = open_dump();
    pthread_t thread;
    (void)state;
    start_stopping();
    atomic_store(&stop_at_write, true);
    assert_int_equal(pthread_create(&thread, NULL, add_until_stopped, dump), 0);
    while (sem_wait(&is_stopped) != 0)
        ;
    await_state(HOLDER_STOPPED);
    unsigned looked = 0;
    for (unsigned i = 0; looked == 0; i++) {
        count_looks();
        int result = add_function(dump, 0, i, NULL); /* into the spill, until that is full */
        looked = result ? atomic_load(&looks) : 0;
        clock_ns = 0;
    }
    assert_in_range(looked, STOPPED_LOOKS, STOPPED_LOOKS + 3);
    assert_int_equal(jitdump_lost(dump), 1);
    sem_post(&may_go_on);
    pthread_join(thread, NULL);
    assert_int_equal(jitdump_close(dump), -EAGAIN);
}

/* ---- A write that failed ---- */

enum { RETRY_LOOKS = 100, LOOKS_AROUND = 8 };

/* How often the clock is looked at until the disk is written to again. */
static unsigned looks_until_write(struct jitdump *dump, unsigned sequence, int result)
{
    unsigned before = writes, from = atomic_load(&looks);
    int error;
    do
        error = add_function(dump, 0, sequence, NULL);
    while (writes == before && error == -ENOSPC);
    assert_int_equal(error, result);
    return atomic_load(&looks) - from;
}

static void test_a_failed_write_is_tried_again_after_100_ms(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    disk_is_full = true;
    count_looks();
    unsigned added = add_until(dump, 0, -ENOSPC);
    looks_until_write(dump, added, -ENOSPC);
    for (int i = 0; i < 3; i++)
        assert_in_range(looks_until_write(dump, added, -ENOSPC), RETRY_LOOKS,
                        RETRY_LOOKS + LOOKS_AROUND);
    disk_is_full = false;
    assert_in_range(looks_until_write(dump, added, 0), RETRY_LOOKS, RETRY_LOOKS + LOOKS_AROUND);
    clock_ns = 0;
    assert_int_equal(jitdump_close(dump), -ENOSPC);
}

/* ---- What is kept in memory meanwhile ---- */

/* Moves and unloads are there if the process ends by itself, and not if it is killed; what was
 * added before is there in any case. */
static void unload_and(struct jitdump *dump, bool is_killed)
{
    dump = open_dump();
    add_first(dump, 0, 100);
    pthread_t thread = stop_a_thread(dump, SLEEPS);
    CHECK(jitdump_unload_code(dump, 0, 0x2000, 16) == 0);
    CHECK(jitdump_move_code(dump, 1, 0x3000, 0x4000, 16) == 0);
    if (is_killed)
        raise(SIGKILL);
    let_go_on(thread);
    CHECK(jitdump_unload_code(dump, 2, 0x2000, 16) == 0);
    raise(SIGKILL);
}

static void be_killed_stopped(struct jitdump *dump)
{
    unload_and(dump, true);
}

static void be_killed_later(struct jitdump *dump)
{
    unload_and(dump, false);
}

static size_t count_of_killed(void (*body)(struct jitdump *), uint32_t id)
{
    char stage_path[160];
    int status;
    pid_t child = start_child(body, NULL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    set_path(child);
    stage_path_of(stage_path, path);
    return count_records(path, id) + count_records(stage_path, id);
}

static void test_a_kill_loses_what_is_kept_meanwhile(void **state)
{
    (void)state;
    assert_int_equal(count_of_killed(be_killed_stopped, JIT_CODE_UNLOAD), 0);
    assert_int_equal(count_of_killed(be_killed_stopped, JIT_CODE_MOVE), 0);
    assert_int_equal(count_of_killed(be_killed_stopped, JIT_CODE_LOAD), 100);
    assert_int_equal(count_of_killed(be_killed_later, JIT_CODE_UNLOAD), 2);
    assert_int_equal(count_of_killed(be_killed_later, JIT_CODE_MOVE), 1);
}

/* ---- A thread may be stopped inside malloc ---- */

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CAN_COUNT_MALLOC 1

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static unsigned allocations, open_allocations; /* open: the thread can be cancelled inside */

static void note_allocation(void)
{
    int state, ignored;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcancelstate(state, &ignored);
    allocations++;
    open_allocations += state == PTHREAD_CANCEL_ENABLE;
}

void *malloc(size_t size)
{
    note_allocation();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    note_allocation();
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    note_allocation();
    return __libc_realloc(old, size);
}

/* Add, with a body of CODE_BYTES and inlined calls or without. */
static int add_some(struct jitdump *dump, size_t code_bytes, bool inlined)
{
    static const uint8_t bytes[100000];
    static const struct jitdump_line lines[] = {{0x1004, "b", 2, 0}, {0x1000, "a", 1, 0}};
    static const struct jitdump_inline calls[] = {{.name = "g", .parent = JITDUMP_NOT_INLINED}};
    static const uint32_t of_lines[] = {0, JITDUMP_NOT_INLINED};
    struct jitdump_code code = code_with_bytes(0x1000, bytes, code_bytes, "f");
    code.lines = lines;
    code.line_count = 2;
    if (inlined) {
        code.inlines = calls;
        code.inline_count = 1;
        code.line_inlines = of_lines;
    }
    return jitdump_add_code(dump, &code, NULL);
}

static void never_asked(struct jitdump *dump, void *user)
{
    (void)dump, (void)user;
    CHECK(false);
}

static void test_a_poll_without_a_request_takes_no_memory_from_malloc(void **state)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    (void)state;
    options.flags = JITDUMP_ATTACHABLE;
    assert_int_equal(jitdump_open(&dump, &options), 0);
    allocations = 0;
    for (uint32_t word = ATTACH_QUIET; word <= ATTACH_SPLIT; word++) {
        *(volatile uint32_t *)(uintptr_t)jitdump_poll_word(dump) = word; /* with no request */
        assert_int_equal(jitdump_poll(dump, never_asked, NULL), 0);
    }
    assert_int_equal(allocations, 0);
    assert_int_equal(jitdump_close(dump), 0);
}

static void test_only_inlined_calls_take_memory_from_malloc(void **state)
{
    struct jitdump *dump = open_dump();
    int errors = 0;
    (void)state;
    allocations = 0;
    for (unsigned i = 0; i < 20000; i++) {
        errors |= add_some(dump, i % 500 ? i % 300 : 100000, false);
        errors |= jitdump_move_code(dump, i, 0x1000, 0x2000, 16);
        errors |= jitdump_unload_code(dump, i, 0x2000, 16);
    }
    assert_int_equal(allocations, 0);
    pthread_t thread = stop_a_thread(dump, SLEEPS);
    unsigned before = allocations;
    for (unsigned i = 0; i < 5000; i++)
        errors |= jitdump_unload_code(dump, i, 0x2000, 16);
    assert_int_equal(add_some(dump, 16, false), -EAGAIN);
    assert_int_equal(allocations, before);
    let_go_on(thread);
    assert_int_equal(errors, 0);
    allocations = open_allocations = 0;
    assert_int_equal(add_some(dump, 16, true), 0);
    assert_in_range(allocations, 1, 10);
    assert_int_equal(open_allocations, 0); /* malloc's lock is never left behind */
    assert_int_equal(jitdump_close(dump), -EAGAIN);
}
#else
#define CAN_COUNT_MALLOC 0
#endif

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_stopped_thread_is_waited_for_20_ms),
        TEST(test_a_thread_that_spins_is_waited_for_1_s),
        TEST(test_time_in_which_the_waiting_thread_is_stopped_does_not_count),
        TEST(test_who_gave_up_waits_for_a_thread_that_goes_on),
        TEST(test_a_thread_stopped_in_a_write_is_waited_for_20_ms),
        TEST(test_a_failed_write_is_tried_again_after_100_ms),
        TEST(test_a_kill_loses_what_is_kept_meanwhile),
#if CAN_COUNT_MALLOC
        TEST(test_only_inlined_calls_take_memory_from_malloc),
        TEST(test_a_poll_without_a_request_takes_no_memory_from_malloc),
#endif
    };
    alarm(60); /* a test that fails leaves a stopped thread behind */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
