/* libjitdump's dump stays sound: under threads, forks, kills, full disks and limits. */
#include "tests/unit/clock_stand_in.h"
#include "tests/unit/jitdump_inventory.h"
#include "tests/unit/own_namespaces.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* ---- Threads ---- */

struct adder {
    struct jitdump *dump;
    unsigned thread, count;
    pthread_t id;
    atomic_uint *added; /* may be NULL */
};

static atomic_bool stop_adding;

static void *add_functions(void *argument)
{
    struct adder *adder = argument;
    for (unsigned i = 0; i < adder->count && !atomic_load(&stop_adding); i++) {
        uint64_t code_index;
        CHECK(add_function(adder->dump, adder->thread, i, &code_index) == 0);
        if (i % 3 == 0 && !adder->added)
            CHECK(jitdump_unload_code(adder->dump, code_index, addr_of(adder->thread, i), 1) == 0);
        if (adder->added)
            atomic_store(adder->added, i + 1);
    }
    return NULL;
}

static void start_threads(struct adder *adders, unsigned threads, struct jitdump *dump,
                          unsigned count, atomic_uint *added)
{
    for (unsigned i = 0; i < threads; i++) {
        adders[i] = (struct adder){dump, i, count, 0, added ? &added[i] : NULL};
        CHECK(pthread_create(&adders[i].id, NULL, add_functions, &adders[i]) == 0);
    }
}

static void join_threads(struct adder *adders, unsigned threads)
{
    for (unsigned i = 0; i < threads; i++)
        CHECK(pthread_join(adders[i].id, NULL) == 0);
}

/* Eight threads, through several stages. */
static void test_threads(void **state)
{
    enum { THREADS = 8, COUNT = 5000 };
    struct adder adders[THREADS];
    struct jitdump *dump = open_dump();
    (void)state;
    start_threads(adders, THREADS, dump, COUNT, NULL);
    join_threads(adders, THREADS);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, THREADS * COUNT, THREADS * (size_t)((COUNT + 2) / 3) + 1);
}

/* ---- Forks ---- */

static void child_adds_two(struct jitdump *dump)
{
    uint64_t code_index;
    CHECK(chdir("/") == 0); /* the parent's directory counts */
    CHECK(strcmp(jitdump_path(dump), path) != 0);
    CHECK(add_function(dump, 1, 0, &code_index) == 0);
    CHECK(code_index == 2); /* the parent added two before the fork */
    CHECK(strcmp(jitdump_path(dump), path) == 0);
    CHECK(jitdump_move_code(dump, 0, 1, 2, 3) == 0);
    CHECK(add_function(dump, 1, 1, &code_index) == 0);
    CHECK(code_index == 3);
    CHECK(jitdump_close(dump) == 0);
    check_inventory(path, 2, 2);
    struct dump_bytes bytes = read_dump(path);
    struct byte_cursor header = file_header(&bytes);
    cursor_skip(&header, 20);
    CHECK(cursor_u32(&header) == (uint32_t)getpid());
    uint64_t opened = cursor_u64(&header);
    struct record record;
    size_t offset = JITHEADER_BYTES;
    while (next_record(&bytes, &offset, &record) && record.id != JIT_CODE_LOAD)
        ;
    CHECK(record.timestamp > opened); /* although the call began before its file was there */
    CHECK(cursor_u32(&record.body) == (uint32_t)getpid());
    CHECK(cursor_u32(&record.body) == (uint32_t)getpid()); /* the child's only thread */
    free(bytes.data);
}

static void test_child_has_its_own_dump(void **state)
{
    struct jitdump *dump = open_dump();
    char child_path[128];
    (void)state;
    assert_int_equal(add_function(dump, 0, 0, NULL), 0);
    assert_int_equal(add_function(dump, 0, 1, NULL), 0);
    pid_t child = start_child(child_adds_two, dump);
    assert_int_equal(wait_for(child), 0);
    path_of(child_path, dir, child);
    assert_int_equal(access(child_path, F_OK), 0);
    assert_string_equal(jitdump_path(dump), path);
    assert_int_equal(add_function(dump, 0, 2, NULL), 0);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, 3, 1);
}

/* Whether FILE_PATH is mapped or open in this process. */
static bool is_held(const char *file_path)
{
    char line[512];
    bool held = false;
    struct stat status, other;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL && stat(file_path, &status) == 0);
    while (fgets(line, sizeof line, maps))
        held = held || strstr(line, file_path);
    fclose(maps);
    for (int fd = 3; fd < 256; fd++)
        held = held || (fstat(fd, &other) == 0 && other.st_ino == status.st_ino);
    return held;
}

static void child_lets_go(struct jitdump *dump)
{
    char parents_path[128];
    snprintf(parents_path, sizeof parents_path, "%s", jitdump_path(dump));
    CHECK(is_held(parents_path));
    CHECK(add_function(dump, 1, 0, NULL) == 0);
    CHECK(!is_held(parents_path));
}

static void child_only_closes(struct jitdump *dump)
{
    char parents_path[128];
    snprintf(parents_path, sizeof parents_path, "%s", jitdump_path(dump));
    CHECK(jitdump_close(dump) == 0);
    CHECK(!is_held(parents_path));
    CHECK(access(path, F_OK) != 0);
}

static void child_has_a_child(struct jitdump *dump)
{
    CHECK(add_function(dump, 1, 0, NULL) == 0);
    CHECK(run_in_child(child_lets_go, dump) == 0);
    CHECK(run_in_child(child_only_closes, dump) == 0);
    CHECK(add_function(dump, 1, 1, NULL) == 0);
    CHECK(jitdump_close(dump) == 0);
    check_inventory(path, 2, 1);
}

static void test_children_leave_the_parents_dump_alone(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    assert_int_equal(add_function(dump, 0, 0, NULL), 0);
    assert_int_equal(run_in_child(child_lets_go, dump), 0);
    assert_int_equal(run_in_child(child_only_closes, dump), 0);
    assert_int_equal(run_in_child(child_has_a_child, dump), 0);
    assert_int_equal(add_function(dump, 0, 1, NULL), 0);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, 2, 1);
}

static void child_adds_from_threads(struct jitdump *dump)
{
    enum { THREADS = 4, COUNT = 50 };
    struct adder adders[THREADS];
    atomic_uint added[THREADS];
    atomic_store(&stop_adding, false);
    start_threads(adders, THREADS, dump, COUNT, added);
    join_threads(adders, THREADS);
    CHECK(jitdump_close(dump) == 0);
    check_inventory(path, THREADS * COUNT, 1);
}

/* Forks while other threads hold the mutex and change stages; in the children several threads come
 * first at the same time. */
static void test_forks_among_threads(void **state)
{
    enum { THREADS = 3, FORKS = 30 };
    struct adder adders[THREADS];
    atomic_uint added[THREADS] = {0, 0, 0};
    int forks = 0, good = 0;
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* its run time can't start threads in a child that was forked among threads */
#endif
    struct jitdump *dump = open_dump();
    start_threads(adders, THREADS, dump, FUNCTIONS_MAX, added);
    for (; forks == 0 || (forks < FORKS && atomic_load(&added[0]) < FUNCTIONS_MAX); forks++)
        good += run_in_child(child_adds_from_threads, dump) == 0;
    atomic_store(&stop_adding, true);
    join_threads(adders, THREADS);
    atomic_store(&stop_adding, false);
    assert_int_equal(good, forks);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, (size_t)added[0] + added[1] + added[2], 1);
}

static void child_cannot_open(struct jitdump *dump)
{
    make_place();
    CHECK(symlink("/nonexistent", path) == 0);
    stop_clock();
    CHECK(add_function(dump, 1, 0, NULL) == -EEXIST);
    CHECK(add_function(dump, 1, 1, NULL) == -EEXIST);
    CHECK(jitdump_lost(dump) == 2);
    CHECK(strstr(jitdump_error(dump), path) && strstr(jitdump_error(dump), "symbolic link"));
    CHECK(unlink(path) == 0);
    CHECK(add_function(dump, 1, 2, NULL) == -EEXIST); /* not at each call */
    pass_retry_time();
    CHECK(add_function(dump, 1, 2, NULL) == 0); /* later calls try again */
    CHECK(jitdump_lost(dump) == 3);
    CHECK(jitdump_close(dump) == -EEXIST);
    check_inventory(path, 1, 1);
}

static void test_child_cannot_open(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    assert_int_equal(run_in_child(child_cannot_open, dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, 0, 1);
}

/* Stand in for libc's, so that tests can have a kernel without these. */
static bool no_wipe_on_fork;
static int fallocate_error;

int madvise(void *start, size_t bytes, int advice)
{
    if (no_wipe_on_fork && advice == MADV_WIPEONFORK) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_madvise, start, bytes, advice);
}

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    if (fallocate_error) {
        errno = fallocate_error;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

static void test_fork_without_wipe_on_fork(void **state)
{
    no_wipe_on_fork = true;
    test_child_has_its_own_dump(state);
    no_wipe_on_fork = false;
}

/* ---- Kills ---- */

static atomic_uint
    *shared_counts; /* what add_function has returned for, by thread; shared with the child */

static void child_adds_until_killed(struct jitdump *dump)
{
    enum { THREADS = 4 };
    struct adder adders[THREADS];
    dump = open_dump();
    start_threads(adders, THREADS, dump, FUNCTIONS_MAX, shared_counts);
    join_threads(adders, THREADS);
}

/* Everything that a killed process had returned from is in its dump. */
static void check_killed(const char *file_path)
{
    struct inventory *inventory = take_inventory(file_path);
    for (size_t thread = 0; thread < 4; thread++)
        for (size_t i = 0; i < atomic_load(&shared_counts[thread]); i++)
            CHECK(inventory->seen[thread][i]);
    CHECK(inventory->fillers <= FILLERS_MAX);
    CHECK(inventory->others == 0);
    free(inventory);
}

static void test_killed_producer(void **state)
{
    (void)state;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    shared_counts = page;
    for (unsigned i = 0; i < 20; i++) {
        char child_path[128];
        memset(page, 0, 4096);
        pid_t child = start_child(child_adds_until_killed, NULL);
        while (atomic_load(&shared_counts[0]) < 100 + 300 * i)
            assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* it lives */
        kill(child, SIGKILL);
        assert_int_equal(wait_for(child), 128 + SIGKILL);
        path_of(child_path, dir, child);
        check_killed(child_path);
        remove_dump(child_path);
    }
    munmap(page, 4096);
}

/* ---- No room ---- */

static void check_goes_on(struct jitdump *dump, unsigned added, int error)
{
    pass_retry_time();
    CHECK(jitdump_lost(dump) == 1);
    CHECK(add_function(dump, 1, 0, NULL) == 0);
    for (unsigned i = added; i < added + 1000; i++)
        CHECK(add_function(dump, 0, i, NULL) == 0);
    CHECK(jitdump_lost(dump) == 1);
    CHECK(jitdump_close(dump) == error);
    check_inventory(path, added + 1000 + 1, 1);
}

static void child_fills_disk(struct jitdump *dump)
{
    char filler[128];
    enter_own_disk(dir, 0, "size=4m");
    snprintf(filler, sizeof filler, "%s/filler", dir);
    int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && posix_fallocate(fd, 0, 3 << 20) == 0 && close(fd) == 0);
    dump = open_dump();
    unsigned added = add_until(dump, 0, -ENOSPC);
    CHECK(added > 1000); /* a megabyte, to the last page */
    CHECK(strstr(jitdump_error(dump), path) && strstr(jitdump_error(dump), "No space left"));
    CHECK(strstr(jitdump_error(dump), "free some space"));
    CHECK(unlink(filler) == 0);
    check_goes_on(dump, added, -ENOSPC);
}

static void test_full_disk(void **state)
{
    (void)state;
    assert_child_may(child_fills_disk, "mounting is not permitted");
}

static void test_full_disk_without_fallocate(void **state)
{
    (void)state;
    fallocate_error = EOPNOTSUPP;
    assert_child_may(child_fills_disk, "mounting is not permitted");
    fallocate_error = 0;
}

static void child_meets_size_limit(struct jitdump *dump)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    rlim_t before = limit.rlim_cur;
    signal(SIGXFSZ, SIG_DFL); /* would end this process with another status */
    limit.rlim_cur = 1000000;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    dump = open_dump();
    unsigned added = add_until(dump, 0, -EFBIG);
    CHECK(added > 1000);
    CHECK(strstr(jitdump_error(dump), path) && strstr(jitdump_error(dump), "ulimit -f"));
    struct stat status;
    CHECK(stat(path, &status) == 0 && status.st_size > 990000 && status.st_size <= 1000000);
    limit.rlim_cur = before;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    check_goes_on(dump, added, -EFBIG);
}

/* No file at all may be written: jitdump_open fails, and leaves none. */
static void child_has_no_size_at_all(struct jitdump *dump)
{
    struct rlimit limit = {0, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(try_open(&dump) == -EFBIG);
    CHECK(jitdump_close(dump) == -EFBIG);
    CHECK(access(path, F_OK) != 0);
}

static void test_size_limit(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_meets_size_limit, NULL), 0);
    assert_int_equal(run_in_child(child_has_no_size_at_all, NULL), 0);
}

static void assert_works_without_fallocate(int error)
{
    struct jitdump *dump;
    fallocate_error = error;
    dump = open_dump();
    for (unsigned i = 0; i < 10000; i++)
        assert_int_equal(add_function(dump, 0, i, NULL), 0);
    fallocate_error = 0;
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, 10000, 1);
    remove_dump(path);
}

static void test_no_fallocate(void **state)
{
    (void)state;
    assert_works_without_fallocate(EOPNOTSUPP);
    assert_works_without_fallocate(EINTR);
}

/* Where the stage can't grow it does as it is, for all that fits into it. */
static void test_failing_disk(void **state)
{
    struct jitdump *dump = open_dump();
    struct jitdump_code code = JITDUMP_CODE_INIT;
    (void)state;
    fallocate_error = EIO;
    add_first(dump, 0, 3000);
    code.code_size = 20000; /* more than the stage has at first */
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EIO);
    fallocate_error = 0;
    assert_non_null(strstr(jitdump_error(dump), "cannot grow"));
    check_goes_on(dump, 3000, -EIO);
}

/* A program that closes all descriptors, and gets the dump's number for a file of its own. */
static void test_descriptor_closed_behind_our_back(void **state)
{
    char other_path[128];
    struct jitdump *dump = open_dump();
    struct stat dump_status, status;
    int number = 3;
    (void)state;
    assert_int_equal(stat(path, &dump_status), 0);
    while (fstat(number, &status) != 0 || status.st_ino != dump_status.st_ino)
        number++;
    snprintf(other_path, sizeof other_path, "%s/other", dir);
    int other = open(other_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(other, "precious", 8), 8);
    assert_int_equal(dup3(other, number, O_CLOEXEC), number);
    unsigned added = add_until(dump, 0, -EBADF);
    assert_non_null(strstr(jitdump_error(dump), "closed the file's descriptor"));
    assert_int_equal(jitdump_close(dump), -EBADF);
    assert_int_equal(fstat(number, &status), 0);
    assert_int_equal(status.st_size, 8);
    close(number);
    close(other);
    check_unclosed(path, added, 1, FILLERS_MAX); /* CLOSE is in the stage */
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_threads),
        TEST(test_child_has_its_own_dump),
        TEST(test_children_leave_the_parents_dump_alone),
        TEST(test_forks_among_threads),
        TEST(test_child_cannot_open),
        TEST(test_fork_without_wipe_on_fork),
        TEST(test_killed_producer),
        TEST(test_full_disk),
        TEST(test_full_disk_without_fallocate),
        TEST(test_size_limit),
        TEST(test_no_fallocate),
        TEST(test_failing_disk),
        TEST(test_descriptor_closed_behind_our_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
