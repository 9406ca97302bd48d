/* libjitdump and code that can't be read: recorded without its bytes, counted, and never a fault.
 */
#include "jitdump/format/dump_clock.h"
#include "jitdump/guest/code_probe.h"
#include "tests/unit/child.h"
#include "tests/unit/jitdump_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

/* ---- A clock, which this file stands in for ---- */

static uint64_t step_ns;      /* it goes on in steps of so much; 0: as it is */
static uint64_t stands_at_ns; /* 0: it does not stand */
static unsigned slower;       /* it is so many times slower; 0: as it is */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    uint64_t ns = (uint64_t)now->tv_sec * 1000000000 + (uint64_t)now->tv_nsec;
    ns = step_ns ? ns / step_ns * step_ns : ns;
    ns = slower ? ns / slower : ns;
    ns = stands_at_ns ? stands_at_ns : ns;
    now->tv_sec = (time_t)(ns / 1000000000);
    now->tv_nsec = (long)(ns % 1000000000);
    return result;
}

enum { PAGE_BYTES = 4096, PAGES = 4, CODE_BYTES = 200 };

static struct jitdump *dump;
static uint8_t *pages;

static int set_up(void **state)
{
    if (make_dir(state))
        return -1;
    pages =
        mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return -1;
    memset(pages, 0x90, PAGES * PAGE_BYTES);
    return try_open(&dump);
}

static int tear_down(void **state)
{
    munmap(pages, PAGES * PAGE_BYTES);
    return remove_dir(state);
}

static void add(const void *bytes, size_t code_bytes)
{
    struct jitdump_code code = code_with_bytes(0x10000, bytes, code_bytes, "f");
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
}

static void protect(size_t page, int protection)
{
    assert_int_equal(mprotect(pages + page * PAGE_BYTES, PAGE_BYTES, protection), 0);
}

/* The code of function NUMBER is FIRST_BYTE in all of its bytes. */
static void assert_code(size_t number, size_t code_bytes, uint8_t first_byte)
{
    struct dump_bytes bytes = read_dump(path);
    size_t offset = JITHEADER_BYTES;
    struct record record = {0};
    for (size_t loads = 0; loads <= number; loads += record.id == JIT_CODE_LOAD)
        assert_true(next_record(&bytes, &offset, &record));
    assert_int_equal(record.total_size, JR_CODE_LOAD_BYTES + 2 + code_bytes);
    for (size_t i = 0; i < code_bytes; i++)
        assert_int_equal(bytes.data[record.offset + JR_CODE_LOAD_BYTES + 2 + i], first_byte);
    free(bytes.data);
}

static void assert_unreadable(uint64_t count)
{
    assert_int_equal(jitdump_unreadable(dump), count);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_string_equal(jitdump_error(dump), "");
}

static void test_no_access(void **state)
{
    (void)state;
    add(pages, CODE_BYTES);
    assert_unreadable(0);
    protect(0, PROT_NONE);
    add(pages, CODE_BYTES);
    assert_unreadable(1);
    protect(0, PROT_READ);
    add(pages, CODE_BYTES);
    assert_unreadable(1);
    assert_int_equal(jitdump_close(dump), 0);
    assert_code(0, CODE_BYTES, 0x90);
    assert_code(1, CODE_BYTES, 0);
    assert_code(2, CODE_BYTES, 0x90);
}

/* Is PAGES' first page readable?  A load tells.  (process_vm_readv refuses what was not mapped
 * PROT_READ, readable or not.) */
static bool is_readable(void)
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* not a sanitizer's report */
        _exit(*(volatile const uint8_t *)pages == 0x90 ? 0 : 1);
    }
    int status = wait_for(child);
    assert_true(status == 0 || status == 128 + SIGSEGV);
    return status == 0;
}

/* With memory protection keys, code can be execute-only; without, x86 code is always readable. */
static void test_execute_only(void **state)
{
    (void)state;
    protect(0, PROT_EXEC);
    bool readable = is_readable();
    add(pages, CODE_BYTES);
    assert_unreadable(!readable);
    assert_int_equal(jitdump_close(dump), 0);
    assert_code(0, CODE_BYTES, readable ? 0x90 : 0);
}

static void test_unmapped(void **state)
{
    (void)state;
    add(pages + PAGE_BYTES, CODE_BYTES);
    munmap(pages + PAGE_BYTES, PAGE_BYTES);
    add(pages + PAGE_BYTES, CODE_BYTES);
    assert_unreadable(1);
    add(NULL, CODE_BYTES); /* said to be none: not counted */
    add((const void *)16, CODE_BYTES);
    add((const void *)(UINTPTR_MAX - 100), CODE_BYTES);
    assert_unreadable(3);
    assert_int_equal(jitdump_close(dump), 0);
    assert_code(1, CODE_BYTES, 0);
}

/* One page in the middle, the first, the last; code that ends with a page, and such that ends one
 * byte behind. */
static void test_some_pages(void **state)
{
    (void)state;
    protect(2, PROT_NONE);
    add(pages, PAGES * PAGE_BYTES);
    add(pages, 2 * PAGE_BYTES + 1);
    add(pages + 2 * PAGE_BYTES + 4095, 2);
    assert_unreadable(3);
    add(pages, 2 * PAGE_BYTES);
    add(pages + 3 * PAGE_BYTES, PAGE_BYTES);
    add(pages + 2 * PAGE_BYTES - 1, 1);
    add(pages + 2 * PAGE_BYTES, 0);
    assert_unreadable(3);
    assert_int_equal(jitdump_close(dump), 0);
}

static bool pages_of_code_are_readable(uintptr_t start, uintptr_t end, unsigned unreadable)
{
    for (uintptr_t at = start; at < end; at = (at / PAGE_BYTES + 1) * PAGE_BYTES)
        if (unreadable >> (at - (uintptr_t)pages) / PAGE_BYTES & 1)
            return false;
    return true;
}

/* Each choice of unreadable pages, and code that begins and ends close to each border: what is
 * asked for lies in all pages of the code, and in no other. */
static void test_borders_of_pages(void **state)
{
    static const int near[] = {-17, -16, -15, -8, -1, 0, 1, 8, 15, 16, 17};
    enum { NEAR = sizeof near / sizeof near[0], PLACES = (PAGES + 1) * NEAR };
    (void)state;
    for (unsigned unreadable = 0; unreadable < 1u << PAGES; unreadable++) {
        for (size_t page = 0; page < PAGES; page++)
            protect(page, unreadable >> page & 1 ? PROT_NONE : PROT_READ);
        for (int i = 0; i < PLACES * PLACES; i++) {
            int from = i / PLACES / NEAR * PAGE_BYTES + near[i / PLACES % NEAR];
            int to = i % PLACES / NEAR * PAGE_BYTES + near[i % PLACES % NEAR];
            if (from < 0 || to > PAGES * PAGE_BYTES || from >= to)
                continue;
            uintptr_t start = (uintptr_t)(pages + from);
            size_t size = (size_t)(to - from);
            if (jd_code_ask(pages + from, size, 0) !=
                pages_of_code_are_readable(start, start + size, unreadable))
                fail_msg("code from %d to %d, unreadable pages %x", from, to, unreadable);
        }
    }
    protect(0, PROT_READ);
    assert_int_equal(jitdump_close(dump), 0);
}

/* Larger than the stage: composed elsewhere, checked all the same. */
static void test_large(void **state)
{
    enum { LARGE_BYTES = 1 << 20 };
    uint8_t *large = mmap(NULL, LARGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    add(large, LARGE_BYTES);
    assert_unreadable(0);
    assert_int_equal(mprotect(large + LARGE_BYTES - PAGE_BYTES, PAGE_BYTES, PROT_NONE), 0);
    add(large, LARGE_BYTES);
    assert_unreadable(1);
    munmap(large, LARGE_BYTES);
    assert_int_equal(jitdump_close(dump), 0);
}

/* What was readable in one call may not be in the next, however soon that comes. */
static void assert_changes_are_seen(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        add(pages, CODE_BYTES);
        add(pages, CODE_BYTES);
        syscall(SYS_mprotect, pages, PAGE_BYTES, PROT_NONE);
        add(pages, CODE_BYTES);
        syscall(SYS_mprotect, pages, PAGE_BYTES, PROT_READ);
    }
    assert_unreadable(rounds);
    assert_int_equal(jitdump_close(dump), 0);
}

static void test_changes_between_calls(void **state)
{
    (void)state;
    assert_changes_are_seen(20000);
}

static uint64_t clock_ns(void)
{
    return jd_clock_now(false);
}

/* Jiffies, a sandbox's clock, libfaketime: what has just been asked need not have been asked just
 * now. */
static void test_clock_in_steps(void **state)
{
    static const uint64_t steps_ns[] = {100, 1000, 10000, 100000, 4000000};
    for (size_t i = 0; i < sizeof steps_ns / sizeof steps_ns[0]; i++) {
        step_ns = steps_ns[i];
        assert_changes_are_seen(3000);
        step_ns = 0;
        assert_int_equal(tear_down(state) | set_up(state), 0);
    }
    assert_int_equal(jitdump_close(dump), 0);
}

static void test_clock_that_stands(void **state)
{
    (void)state;
    stands_at_ns = clock_ns();
    assert_changes_are_seen(3000);
    stands_at_ns = 0;
}

/* It stands from some time on, when the shortest question is known. */
static void test_clock_that_stops(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        add(pages, CODE_BYTES);
    stands_at_ns = clock_ns();
    assert_changes_are_seen(3000);
    stands_at_ns = 0;
}

static void test_slow_clock(void **state)
{
    (void)state;
    slower = 50;
    assert_changes_are_seen(3000);
    slower = 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

/* ---- How often the kernel is asked: an answer that is used again does not see what was done to
 * the page since ---- */

/* Whether an answer, asked for ASKED_AGO_NS before it came, is used again GAP_NS after it came. */
static bool is_used_again(uint64_t asked_ago_ns, uint64_t gap_ns)
{
    protect(0, PROT_READ);
    assert_true(jd_code_is_readable(pages, CODE_BYTES, clock_ns() - asked_ago_ns));
    uint64_t answered_ns = clock_ns();
    protect(0, PROT_NONE);
    return jd_code_is_readable(pages, CODE_BYTES, answered_ns + gap_ns);
}

/* The kernel may put the thread aside between the answer and the next look at the clock: in some of
 * many tries it doesn't. */
static bool is_ever_used_again(uint64_t asked_ago_ns, uint64_t gap_ns)
{
    bool used = false;
    for (int i = 0; i < 1000 && !used; i++)
        used = is_used_again(asked_ago_ns, gap_ns);
    return used;
}

/* To look at a slow clock (hpet) takes longer than an answer lasts. */
static bool clock_is_quick(void)
{
    enum { LOOKS = 100 };
    uint64_t start_ns = clock_ns();
    for (int i = 0; i < LOOKS; i++)
        clock_ns();
    return clock_ns() - start_ns < LOOKS * 100;
}

/* Each with what its own thread knows. */
static void *ask_in_turn(void *context)
{
    bool *results = context;
    results[0] = is_ever_used_again(0, 10);
    results[1] = is_ever_used_again(5000, 10); /* the question took long, not the caller */
    results[2] = is_ever_used_again(0, 600);
    results[3] = is_ever_used_again(10000, 0);
    return NULL;
}

static void test_answers_last_some_time(void **state)
{
    bool results[4];
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, ask_in_turn, results), 0);
    pthread_join(thread, NULL);
    assert_true(results[0] || !clock_is_quick());
    assert_true(results[1] || !clock_is_quick());
    assert_false(results[2]);
    assert_false(results[3]);
    assert_int_equal(jitdump_close(dump), 0);
}

/* A page that is used again and again does not keep alive the answer about its neighbour. */
static void test_answer_about_two_pages(void **state)
{
    const uint8_t *second = pages + PAGE_BYTES;
    bool first_known = false, second_known = false;
    (void)state;
    for (int i = 0; i < 1000 && !first_known; i++) {
        for (int j = 0; j < 10; j++)
            assert_true(jd_code_ask(pages, CODE_BYTES, clock_ns()));
        assert_true(jd_code_ask(pages, 2 * PAGE_BYTES, clock_ns()));
        uint64_t now_ns = clock_ns();
        first_known = jd_code_is_known((uintptr_t)pages, (uintptr_t)pages + CODE_BYTES, now_ns);
        second_known =
            jd_code_is_known((uintptr_t)second, (uintptr_t)second + CODE_BYTES, now_ns + 1);
    }
    assert_true(first_known || !clock_is_quick());
    assert_false(second_known);
    assert_int_equal(jitdump_close(dump), 0);
}

/* Code that would end at a lower address than it begins is not in the pages that were just asked
 * for. */
static void test_code_at_the_end_of_addresses(void **state)
{
    const void *last = (const void *)(UINTPTR_MAX - CODE_BYTES / 2);
    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_true(jd_code_is_readable(pages, CODE_BYTES, clock_ns()));
        assert_false(jd_code_is_readable(last, CODE_BYTES, clock_ns()));
    }
    assert_int_equal(jitdump_close(dump), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_no_access),
        TEST(test_execute_only),
        TEST(test_unmapped),
        TEST(test_some_pages),
        TEST(test_borders_of_pages),
        TEST(test_large),
        TEST(test_changes_between_calls),
        TEST(test_clock_in_steps),
        TEST(test_clock_that_stands),
        TEST(test_clock_that_stops),
        TEST(test_slow_clock),
        TEST(test_answers_last_some_time),
        TEST(test_answer_about_two_pages),
        TEST(test_code_at_the_end_of_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
