/* libjitdump in a process that is not its own: what it must leave as it was. */
#include "tests/unit/jitdump_inventory.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* ---- errno ---- */

static void assert_errno_kept(int expected)
{
    assert_int_equal(errno, expected);
    errno = expected;
}

/* The code stands in pages that the kernel is asked about, and there is enough of it for every part
 * of the writer. */
static void test_errno(void **state)
{
    struct jitdump *dump;
    uint64_t code_index;
    (void)state;
    errno = 4711;
    assert_int_equal(try_open(&dump), 0);
    assert_errno_kept(4711);
    for (unsigned i = 0; i < 3000; i++) {
        assert_int_equal(add_function(dump, 0, i, &code_index), 0);
        assert_errno_kept(4711);
    }
    assert_int_equal(jitdump_move_code(dump, code_index, 1, 2, 3), 0);
    assert_int_equal(jitdump_unload_code(dump, code_index, 2, 3), 0);
    assert_errno_kept(4711);
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.bytes = (const void *)16; /* can't be read */
    code.code_size = 100;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    code.size = 1;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EINVAL);
    assert_errno_kept(4711);
    assert_int_equal(jitdump_close(dump), -EINVAL);
    assert_errno_kept(4711);
    struct jitdump_options options = options_in_dir();
    options.dir = "/nonexistent";
    assert_int_equal(jitdump_open(&dump, &options), -ENOENT);
    assert_errno_kept(4711);
    assert_int_equal(jitdump_close(dump), -ENOENT);
}

/* ---- Descriptors ---- */

static bool standard_streams_are_closed(void)
{
    return fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 && fcntl(2, F_GETFD) < 0;
}

/* What a program prints later must not be in the dump. */
static void child_has_no_standard_streams(struct jitdump *dump)
{
    close(0);
    close(1);
    close(2);
    int opened = try_open(&dump);
    bool closed = standard_streams_are_closed();
    int added = add_function(dump, 0, 0, NULL);
    int result = jitdump_close(dump);
    _exit(opened || added || result ? 1 : !closed);
}

static void child_may_have_three_descriptors(struct jitdump *dump)
{
    struct rlimit limit = {3, 3};
    close(0);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(try_open(&dump) == -EMFILE);
    CHECK(access(path, F_OK) != 0);
    CHECK(strstr(jitdump_error(dump), path) && strstr(jitdump_error(dump), "ulimit -n"));
    CHECK(jitdump_close(dump) == -EMFILE);
    CHECK(fcntl(0, F_GETFD) < 0);
}

static void test_descriptors_above_the_standard_streams(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_has_no_standard_streams, NULL), 0);
    assert_int_equal(run_in_child(child_may_have_three_descriptors, NULL), 0);
}

/* How many descriptors this process has; those above 2 without FD_CLOEXEC end the test. */
static unsigned descriptors_from(int first)
{
    unsigned count = 0;
    for (int fd = first; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        count += flags != -1;
        CHECK(flags == -1 || flags & FD_CLOEXEC);
    }
    return count;
}

static void child_counts_descriptors(struct jitdump *dump)
{
    struct jitdump_options options = options_in_dir();
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    CHECK(jitdump_open(&dump, &options) == 0);
    add_first(dump, 0, 5000);
    CHECK(descriptors_from(3) == 2);
    CHECK(jitdump_close(dump) == 0);
    options.flags |= JITDUMP_UNMAPPED;
    CHECK(jitdump_open(&dump, &options) == 0);
    add_first(dump, 0, 5000);
    CHECK(descriptors_from(3) == 1);
    CHECK(jitdump_close(dump) == 0);
    CHECK(descriptors_from(3) == 0);
}

static void test_two_descriptors_or_one(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_counts_descriptors, NULL), 0);
}

/* ---- Children that know nothing of it ---- */

/* One that lives on, with a copy of every descriptor. */
static pid_t start_idle_child(int *life)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ends[0]);
    *life = ends[1];
    return child;
}

static void end_idle_child(pid_t child, int life)
{
    close(life);
    assert_int_equal(wait_for(child), 0);
}

/* A dump that is closed is not locked any more, whoever else has inherited it: nobody waits for its
 * end, and it can be replaced. */
static void test_child_that_outlives_the_dump(void **state)
{
    int life;
    struct jitdump *dump = open_dump();
    (void)state;
    pid_t child = start_idle_child(&life);
    assert_int_equal(jitdump_close(dump), 0);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
    close(fd);
    assert_int_equal(try_open(&dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    end_idle_child(child, life);
}

/* A child with memory of its own that shares its parent's table of descriptors. */
static void test_child_that_shares_descriptors(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    for (int closes = 0; closes < 2; closes++) {
        add_first(dump, closes ? 2000 : 0, closes ? 4000 : 2000);
        pid_t child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, 0);
        if (child == 0) {
            if (!closes)
                CHECK(add_function(dump, 1, 0, NULL) == 0);
            _exit(jitdump_close(dump) ? 1 : 0);
        }
        assert_int_equal(wait_for(child), 0);
    }
    add_first(dump, 4000, 6000);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, 6000, 1);
}

/* A thread that was cancelled before the fork's child first records is not cancelled in the middle
 * of that: there is no cancellation point. */
static void *cancel_oneself_and_add(void *dump)
{
    pthread_cancel(pthread_self());
    return add_function(dump, 1, 0, NULL) == 0 ? dump : NULL;
}

static void child_is_cancelled(struct jitdump *dump)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, cancel_oneself_and_add, dump) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == dump);
    CHECK(jitdump_close(dump) == 0);
    check_inventory(path, 1, 1);
}

static void test_cancellation_in_a_fresh_child(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    assert_int_equal(run_in_child(child_is_cancelled, dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
}

/* How many functions: the stage grows, and is emptied some times. */
enum { CANCELLED_ADDS = 20000 };

/* Cancelled before its first call, the thread goes through all of them.  Returns its argument. */
static void *make_each_call_cancelled(void *argument)
{
    static const uint8_t large[100000];
    struct jitdump_options options = options_in_dir();
    struct jitdump_code code = JITDUMP_CODE_INIT;
    struct jitdump *dump;
    uint64_t index;
    options.flags |= *(const uint32_t *)argument;
    CHECK(pthread_cancel(pthread_self()) == 0); /* takes effect at the next cancellation point */
    CHECK(jitdump_open(&dump, &options) == 0);
    add_first(dump, 0, CANCELLED_ADDS);
    code.code_size = sizeof large;
    code.bytes = large;
    CHECK(jitdump_add_code(dump, &code, &index) == 0);
    CHECK(jitdump_move_code(dump, index, 0, 0x100000, sizeof large) == 0);
    CHECK(jitdump_unload_code(dump, index, 0x100000, sizeof large) == 0);
    CHECK(jitdump_lost(dump) == 0 && jitdump_unreadable(dump) == 0);
    CHECK(*jitdump_path(dump) && !*jitdump_error(dump));
    CHECK(jitdump_close(dump) == 0);
    options.dir = "/nonexistent";
    CHECK(jitdump_open(&dump, &options) == -ENOENT);
    CHECK(jitdump_close(dump) == -ENOENT);
    return argument;
}

static void test_no_call_is_a_cancellation_point(void **state)
{
    uint32_t modes[] = {0, JITDUMP_UNMAPPED};
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        pthread_t thread;
        void *result;
        assert_int_equal(pthread_create(&thread, NULL, make_each_call_cancelled, &modes[i]), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_ptr_equal(result, &modes[i]);
        assert_int_equal(count_records(path, JIT_CODE_LOAD), CANCELLED_ADDS + 1);
        assert_int_equal(count_records(path, JIT_CODE_CLOSE), 1);
        remove_dump(path);
    }
}

/* ---- What others do to the file ---- */

/* A process that tidies up. */
static void test_removed_meanwhile(void **state)
{
    struct jitdump *dump = open_dump();
    unsigned added = 0;
    (void)state;
    add_first(dump, 0, 10);
    assert_int_equal(unlink(path), 0);
    while (add_function(dump, 0, 10 + added, NULL) == 0)
        added++; /* until the stage is full */
    assert_in_range(added, 10, 5000);
    assert_int_equal(jitdump_lost(dump), 1);
    assert_non_null(strstr(jitdump_error(dump), "was removed"));
    assert_int_equal(jitdump_close(dump), -ENOENT);
    dump = open_dump();
    add_first(dump, 0, 10); /* so few that nothing is noticed before the end */
    assert_int_equal(unlink(jitdump_path(dump)), 0); /* beside the first one's stage */
    assert_int_equal(jitdump_lost(dump), 0);
    assert_int_equal(jitdump_close(dump), -ENOENT);
}

static void test_cut_meanwhile(void **state)
{
    struct jitdump *dump = open_dump();
    struct stat status;
    (void)state;
    add_first(dump, 0, 10);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(jitdump_close(dump), -ESTALE);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 0);
}

/* Another JIT opens the path with O_TRUNC and writes its own dump there, longer than ours: that is
 * not touched. */
static void test_taken_by_another_jit(void **state)
{
    enum { LENGTH = 3 << 20 };
    static char others[LENGTH], found[LENGTH];
    struct jitdump *dump = open_dump();
    (void)state;
    add_first(dump, 0, 10);
    memset(others, 'x', LENGTH);
    int fd = open(path, O_RDWR | O_TRUNC | O_CLOEXEC);
    assert_int_equal(write(fd, others, LENGTH), LENGTH);
    while (add_function(dump, 0, 10, NULL) == 0)
        ;
    assert_int_equal(jitdump_lost(dump), 1);
    assert_non_null(strstr(jitdump_error(dump), "somebody else"));
    assert_int_equal(jitdump_close(dump), -ESTALE);
    assert_int_equal(pread(fd, found, LENGTH, 0), LENGTH);
    assert_memory_equal(found, others, LENGTH);
    close(fd);
}

/* ---- While others add ---- */

static void empty_it(void)
{
    CHECK(truncate(path, 0) == 0);
}

static void remove_it(void)
{
    CHECK(unlink(path) == 0);
}

static void replace_it(void)
{
    char other[160];
    snprintf(other, sizeof other, "%s.new", path);
    int fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, "precious", 8) == 8 && close(fd) == 0);
    CHECK(rename(other, path) == 0);
}

/* As V8 opens its dump. */
static void take_it(void)
{
    static char others[4 << 20];
    memset(others, 'x', sizeof others);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    CHECK(fd >= 0 && write(fd, others, sizeof others) == sizeof others && close(fd) == 0);
}

static void remove_all(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s/*", dir);
    CHECK(system(command) == 0);
}

enum { NO_FILE = -1, ANY = -2 };

static const struct deed {
    void (*do_it)(void);
    int error;
    off_t size; /* that the file at the path has then; NO_FILE, or ANY: what was being written at
                   that moment comes after it */
} deeds[] = {
    {empty_it, -ESTALE, ANY}, {remove_it, -ENOENT, NO_FILE},  {replace_it, -ENOENT, 8},
    {take_it, -ESTALE, ANY},  {remove_all, -ENOENT, NO_FILE},
};

static const struct deed *deed;
static bool unmapped;

enum { ADDERS = 4, ADDED_BEFORE = 300 };

static atomic_uint added_by_all, failed_by_all;

/* Goes on until so many have failed that the stage is full. */
static void *add_until_it_fails(void *dump)
{
    for (unsigned i = 0; i < FUNCTIONS_MAX && atomic_load(&failed_by_all) < 100; i++)
        atomic_fetch_add(add_function(dump, 0, i, NULL) ? &failed_by_all : &added_by_all, 1);
    return NULL;
}

static void child_whose_dump_is_harmed(struct jitdump *dump)
{
    struct jitdump_options options = options_in_dir();
    pthread_t threads[ADDERS];
    struct stat status;
    options.flags |= unmapped ? JITDUMP_UNMAPPED : 0;
    CHECK(jitdump_open(&dump, &options) == 0);
    for (int i = 0; i < ADDERS; i++)
        CHECK(pthread_create(&threads[i], NULL, add_until_it_fails, dump) == 0);
    while (atomic_load(&added_by_all) < ADDED_BEFORE)
        sched_yield();
    deed->do_it();
    for (int i = 0; i < ADDERS; i++)
        pthread_join(threads[i], NULL);
    CHECK(jitdump_lost(dump) == atomic_load(&failed_by_all));
    CHECK(strstr(jitdump_error(dump), path));
    CHECK(jitdump_close(dump) == deed->error);
    off_t size = stat(path, &status) == 0 ? status.st_size : NO_FILE;
    CHECK(deed->size == ANY || size == deed->size);
}

/* No signal, no byte in a file that has come to the place, and what can't be recorded is counted.
 */
static void test_harm_while_threads_add(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++)
        for (deed = deeds; deed < deeds + sizeof deeds / sizeof deeds[0]; deed++) {
            unmapped = turn == 1;
            assert_int_equal(run_in_child(child_whose_dump_is_harmed, NULL), 0);
        }
}

/* ---- Without a mapping ---- */

static bool is_mapped_to_be_written(void)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps))
        found |= strstr(line, " rw-s ") && strstr(line, dir);
    fclose(maps);
    return found;
}

static void check_unmapped(struct jitdump *dump)
{
    char stage_path[160];
    stage_path_of(stage_path, path);
    for (unsigned i = 0; i < 2000; i++) {
        add_first(dump, i, i + 1);
        CHECK(i % 100 || count_records(path, JIT_CODE_LOAD) == i + 1); /* it is there */
    }
    CHECK(!is_mapped_to_be_written());
    CHECK(access(stage_path, F_OK) != 0);
    CHECK(jitdump_close(dump) == 0);
    check_inventory(path, 2000, 1);
    remove_dump(path);
}

static void test_unmapped(void **state)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump = open_dump();
    (void)state;
    assert_true(is_mapped_to_be_written()); /* as a rule */
    assert_int_equal(jitdump_close(dump), 0);
    options.flags |= JITDUMP_UNMAPPED;
    assert_int_equal(jitdump_open(&dump, &options), 0);
    check_unmapped(dump);
    setenv("PERFJIT", "dump,unmapped", 1);
    assert_int_equal(try_open(&dump), 0);
    check_unmapped(dump);
}

/* As on a file system that has none (9p). */
static bool no_shared_mappings;
static unsigned mappings;

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    mappings++;
    if (no_shared_mappings && fd >= 0 && flags & MAP_SHARED) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

static void test_no_shared_mappings(void **state)
{
    (void)state;
    no_shared_mappings = true;
    check_unmapped(open_dump());
    no_shared_mappings = false;
}

/* To map memory for each record would cost more than to write it. */
static void test_unmapped_maps_no_memory_for_a_record(void **state)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    (void)state;
    options.flags |= JITDUMP_UNMAPPED;
    assert_int_equal(jitdump_open(&dump, &options), 0);
    add_first(dump, 0, 1);
    mappings = 0;
    for (unsigned i = 1; i < 1000; i++)
        add_first(dump, i, i + 1);
    assert_int_equal(mappings, 0);
    assert_int_equal(jitdump_close(dump), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_errno),
        TEST(test_descriptors_above_the_standard_streams),
        TEST(test_two_descriptors_or_one),
        TEST(test_child_that_outlives_the_dump),
        TEST(test_child_that_shares_descriptors),
        TEST(test_cancellation_in_a_fresh_child),
        TEST(test_no_call_is_a_cancellation_point),
        TEST(test_removed_meanwhile),
        TEST(test_cut_meanwhile),
        TEST(test_taken_by_another_jit),
        TEST(test_harm_while_threads_add),
        TEST(test_unmapped),
        TEST(test_no_shared_mappings),
        TEST(test_unmapped_maps_no_memory_for_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
