/* A function that is too large for the stage: what it does to the disk and to other threads. */
#include "tests/unit/clock_stand_in.h"
#include "tests/unit/jitdump_inventory.h"
#include "tests/unit/own_namespaces.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

enum { DISK_BYTES = 16 << 20, TOO_LARGE_BYTES = 64 << 20, LARGE_BYTES = 8 << 20 };

/* ---- The system's calls, which this file stands in for ---- */

static bool disk_says_nothing;     /* about its room */
static atomic_uint large_writes;   /* tries to write a large function */
static atomic_bool hold_writes;    /* until the small functions are there: */
static atomic_uint small_returned; /* in another thread */

enum { SMALL_FUNCTIONS = 500, WAIT_MS = 20000 };

static bool wait_for_small(void)
{
    for (int i = 0; i < WAIT_MS && atomic_load(&small_returned) < SMALL_FUNCTIONS; i++)
        usleep(1000);
    return atomic_load(&small_returned) == SMALL_FUNCTIONS;
}

static bool was_held_in_vain;

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t offset)
{
    if (pieces[0].iov_len > LARGE_BYTES / 2) {
        bool first = atomic_fetch_add(&large_writes, 1) == 0;
        if (first && atomic_load(&hold_writes))
            was_held_in_vain = !wait_for_small();
    }
    return syscall(SYS_pwritev, fd, pieces, count, offset, offset >> 32);
}

int fstatfs(int fd, struct statfs *status)
{
    int result = (int)syscall(SYS_fstatfs, fd, status);
    if (disk_says_nothing)
        status->f_blocks = 0;
    return result;
}

/* ---- Functions ---- */

static uint8_t *large_bytes;

static int add_large(struct jitdump *dump, size_t bytes)
{
    struct jitdump_code code = code_with_bytes(0x10000, large_bytes, bytes, "large");
    return jitdump_add_code(dump, &code, NULL);
}

static int set_up(void **state)
{
    large_bytes = mmap(NULL, TOO_LARGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    disk_says_nothing = false;
    return large_bytes == MAP_FAILED ? -1 : make_dir(state);
}

static int tear_down(void **state)
{
    munmap(large_bytes, TOO_LARGE_BYTES);
    return remove_dir(state);
}

/* ---- A disk that is too small ---- */

static uint64_t free_bytes(void)
{
    struct statvfs status;
    CHECK(statvfs(dir, &status) == 0);
    return (uint64_t)status.f_bfree * status.f_frsize;
}

static void child_has_a_small_disk(struct jitdump *dump)
{
    enter_own_disk(dir, 0, "size=16m");
    dump = open_dump();
    add_first(dump, 0, 100);
    uint64_t before = free_bytes();
    stop_clock(); /* the two are at once, however busy the machine is */
    CHECK(add_large(dump, TOO_LARGE_BYTES) == -ENOSPC);
    CHECK(strstr(jitdump_error(dump), "free some space"));
    unsigned writes = atomic_load(&large_writes);
    CHECK((writes > 0) == disk_says_nothing);
    CHECK(free_bytes() + (2 << 20) > before);           /* a new stage may have been made */
    CHECK(add_large(dump, TOO_LARGE_BYTES) == -ENOSPC); /* nobody tries again at once */
    CHECK(atomic_load(&large_writes) == writes);
    restore_clock();
    add_first(dump, 100, 3000);
    CHECK(add_large(dump, LARGE_BYTES) == 0); /* a smaller one is another matter */
    add_first(dump, 3000, 4000);
    CHECK(jitdump_lost(dump) == 2);
    CHECK(jitdump_close(dump) == -ENOSPC);
    check_inventory(path, 4000, 2);
}

static void test_disk_that_is_too_small(void **state)
{
    (void)state;
    assert_child_may(child_has_a_small_disk, "mounting is not permitted");
}

static void test_disk_that_does_not_say_how_small(void **state)
{
    (void)state;
    disk_says_nothing = true;
    assert_child_may(child_has_a_small_disk, "mounting is not permitted");
}

/* ---- Other threads ---- */

static void *add_small(void *dump)
{
    while (atomic_load(&large_writes) == 0)
        sched_yield();
    for (unsigned i = 0; i < SMALL_FUNCTIONS; i++) {
        add_first(dump, i, i + 1);
        atomic_store(&small_returned, i + 1);
    }
    return NULL;
}

/* The large one's write does not end before the small ones have returned. */
static void test_others_go_on(void **state)
{
    struct jitdump *dump = open_dump();
    pthread_t thread;
    (void)state;
    atomic_store(&large_writes, 0);
    atomic_store(&hold_writes, true);
    assert_int_equal(pthread_create(&thread, NULL, add_small, dump), 0);
    assert_int_equal(add_large(dump, LARGE_BYTES), 0);
    pthread_join(thread, NULL);
    atomic_store(&hold_writes, false);
    assert_false(was_held_in_vain);
    check_first(path, SMALL_FUNCTIONS);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, SMALL_FUNCTIONS, 2);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_disk_that_is_too_small),
        TEST(test_disk_that_does_not_say_how_small),
        TEST(test_others_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
