/* The perf map writer as a guest: among other writers of the same map, closed descriptors, clones
 * and namespaces.  It takes nothing away from its host. */
#include "jitdump/guest/process_start.h"
#include "tests/unit/own_namespaces.h"
#include "tests/unit/perfmap_test.h"
#include "tests/unit/refused_call.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
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

/* As node does, which has written more by then than there was before. */
static void test_another_jit_cuts_the_map_and_goes_beyond(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(perfmap_add(map, 1, 2, "lost"), 0);
    int other = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < 4; i++)
        assert_int_equal(write(other, "1000 10 theirs\n", 15), 15);
    assert_int_equal(perfmap_add(map, 3, 4, "ours"), 0);
    assert_int_equal(perfmap_lost(map), 1);
    assert_int_equal(write(other, "1000 10 theirs\n", 15), 15);
    assert_int_equal(perfmap_add(map, 5, 6, "ours"), 0);
    assert_file("1000 10 theirs\n1000 10 theirs\n1000 10 theirs\n1000 10 theirs\n3 4 ours\n"
                "1000 10 theirs\n5 6 ours\n");
    assert_int_equal(perfmap_lost(map), 1);
    assert_int_equal(perfmap_close(map), -ESTALE);
    close(other);
}

/* It opens after us, and writes before us. */
static void test_another_jit_comes_before_our_first_line(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    int other = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(other, "1000 10 theirs\n", 15), 15);
    assert_int_equal(perfmap_add(map, 1, 2, "ours"), 0);
    assert_int_equal(write(other, "2000 10 theirs\n", 15), 15);
    assert_int_equal(perfmap_add(map, 3, 4, "ours"), 0);
    assert_file("1000 10 theirs\n1 2 ours\n2000 10 theirs\n3 4 ours\n");
    assert_int_equal(perfmap_close(map), 0);
    close(other);
}

/* As stdio does where its buffer ends: its line can't be saved, ours can. */
static void test_another_jit_is_in_the_middle_of_a_line(void **state)
{
    int other = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
    (void)state;
    assert_int_equal(write(other, "1000 10 the", 11), 11);
    struct perfmap *map = open_map();
    assert_int_equal(perfmap_add(map, 1, 2, "ours"), 0);
    assert_int_equal(write(other, "irs\n2000 10 th", 14), 14);
    assert_int_equal(perfmap_add(map, 3, 4, "ours"), 0);
    assert_int_equal(perfmap_add(map, 5, 6, "ours"), 0);
    assert_file("1000 10 the\n1 2 ours\nirs\n2000 10 th\n3 4 ours\n5 6 ours\n");
    assert_int_equal(perfmap_close(map), 0);
    close(other);
}

/* As node does it, through a descriptor with NUMBER: the file says EXPECTED in the end. */
static void assert_with_descriptor(int number, const char *expected)
{
    struct perfmap *map = open_map();
    int other = open(path, O_RDWR | O_TRUNC | O_CLOEXEC);
    assert_int_equal(dup2(other, number), number);
    close(other);
    assert_int_equal(write(number, "1000 10 theirs\n", 15), 15);
    assert_int_equal(perfmap_add(map, 1, 2, "ours"), 0);
    assert_int_equal(write(number, "2000 10 theirs\n", 15), 15);
    assert_file(expected);
    close(number);
    perfmap_close(map);
    unlink(path);
}

static void test_descriptors_up_to_1023_are_made_to_append(void **state)
{
    struct rlimit limit, higher;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    higher = limit;
    if (higher.rlim_cur < 2048)
        higher.rlim_cur = 2048;
    if (setrlimit(RLIMIT_NOFILE, &higher) != 0)
        skip_or_fail("a process may have no more than 1024 descriptors");
    assert_with_descriptor(1023, "1000 10 theirs\n1 2 ours\n2000 10 theirs\n");
    assert_with_descriptor(1024, "1000 10 theirs\n2000 10 theirs\n");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* As Java does when jcmd asks for its map. */
static void test_a_closed_map_of_this_life(void **state)
{
    struct stat before, after;
    (void)state;
    usleep(50000); /* the process's start is known to 10 ms */
    write_text(path, "1000 10 theirs\n");
    assert_int_equal(stat(path, &before), 0);
    struct perfmap *map = open_map();
    assert_int_equal(perfmap_add(map, 1, 2, "ours"), 0);
    assert_file("1000 10 theirs\n1 2 ours\n");
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(perfmap_close(map), 0);
}

/* Give the file at `path` a time so long after this process's start. */
static void written_after_start(int64_t ns)
{
    struct timespec since_boot, today;
    uint64_t start_ns;
    assert_true(process_start(&start_ns));
    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    clock_gettime(CLOCK_REALTIME, &today);
    ns += (int64_t)start_ns + (today.tv_sec - since_boot.tv_sec) * INT64_C(1000000000) +
          today.tv_nsec - since_boot.tv_nsec;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {ns / 1000000000, ns % 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_a_map_of_the_first_20_ms_is_stale(void **state)
{
    (void)state;
    for (int early = 0; early < 2; early++) {
        write_text(path, "1000 10 theirs\n");
        written_after_start(early ? 5000000 : 100000000);
        struct perfmap *map = open_map();
        assert_int_equal(perfmap_add(map, 1, 2, "ours"), 0);
        assert_file(early ? "1 2 ours\n" : "1000 10 theirs\n1 2 ours\n");
        assert_int_equal(perfmap_close(map), 0);
        unlink(path);
    }
}

/* While descriptors are looked at, another thread closes one, and its number is given to another
 * file. */
static int reused_fd, innocent_fd, looks_before;

int fstat(int fd, struct stat *status)
{
    int result = (int)syscall(SYS_newfstatat, fd, "", status, AT_EMPTY_PATH);
    if (fd == reused_fd && fd > 0 && looks_before-- == 0)
        CHECK(dup2(innocent_fd, fd) == fd);
    return result;
}

static void test_only_writers_of_the_map_are_made_to_append(void **state)
{
    char innocent[160];
    (void)state;
    snprintf(innocent, sizeof innocent, "%s/innocent", dir);
    for (int looks = 0; looks < 5; looks++) {
        int other = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        innocent_fd = open(innocent, O_RDWR | O_CREAT, 0600);
        looks_before = looks;
        reused_fd = other;
        struct perfmap *map = open_map();
        assert_int_equal(perfmap_add(map, 1, 2, "ours"), 0);
        reused_fd = 0;
        assert_int_equal(fcntl(innocent_fd, F_GETFL) & O_APPEND, 0);
        assert_int_equal(perfmap_close(map), 0);
        close(innocent_fd);
        close(other);
        unlink(path);
    }
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

static int refused_call; /* by a sandbox, or 0 */

static size_t short_writes, interrupted_writes;
static bool limit_is_met; /* as if another thread's lines had come first */

/* Stands in for libc's, as a FUSE or NFS file would behave under signals. */
ssize_t write(int fd, const void *bytes, size_t size)
{
    if (interrupted_writes && interrupted_writes--) {
        errno = EINTR;
        return -1;
    }
    if (short_writes && short_writes-- && size > 3)
        size = 3;
    if (limit_is_met) {
        struct rlimit none = {0, RLIM_INFINITY};
        CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    }
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

/* The kernel sends SIGXFSZ, which is never seen; also where a sandbox does not let us take it away.
 */
static void child_is_late_at_the_limit(struct perfmap *map)
{
    struct rlimit limit = {1000, RLIM_INFINITY};
    CHECK(signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
    CHECK(try_open(&map) == 0 && setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(perfmap_add(map, 1, 2, "fib") == 0);
    limit_is_met = true;
    CHECK(perfmap_add(map, 1, 2, "fib") == -EFBIG);
    limit_is_met = false;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    if (refused_call)
        refuse(refused_call, EPERM);
    limit_is_met = true;
    CHECK(perfmap_add(map, 1, 2, "fib") == -EFBIG && perfmap_lost(map) == 2);
    limit_is_met = false;
    CHECK(perfmap_close(map) == -EFBIG && file_says(path, "1 2 fib\n"));
}

static void test_never_a_signal_at_the_size_limit(void **state)
{
    static const int calls[] = {0, SYS_rt_sigtimedwait, SYS_rt_sigpending, SYS_rt_sigprocmask};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        refused_call = calls[i];
        assert_child_may(child_is_late_at_the_limit, "seccomp is not permitted");
    }
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
        mount_in_memory("/proc", 0, NULL);
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
    enter_own(CLONE_NEWPID | CLONE_NEWNS);
    _exit(run_in_child(outer_adds, map));
}

static void test_pid_1_of_a_namespace_in_another(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        without_proc = i;
        assert_child_may(child_makes_a_namespace, "pid namespaces are not permitted");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_another_jits_map_is_appended_to),
        TEST(test_another_jit_cuts_the_map),
        TEST(test_a_map_that_was_removed),
        TEST(test_opened_again),
        TEST(test_another_jit_cuts_the_map_and_goes_beyond),
        TEST(test_another_jit_comes_before_our_first_line),
        TEST(test_another_jit_is_in_the_middle_of_a_line),
        TEST(test_a_closed_map_of_this_life),
        TEST(test_a_map_of_the_first_20_ms_is_stale),
        TEST(test_only_writers_of_the_map_are_made_to_append),
        TEST(test_descriptors_up_to_1023_are_made_to_append),
        TEST(test_never_a_signal_at_the_size_limit),
        TEST(test_never_a_standard_descriptor),
        TEST(test_errno_is_kept),
        TEST(test_a_write_cut_short_goes_on),
        TEST(test_no_signal_at_the_size_limit),
        TEST(test_a_clone_with_our_descriptors),
        TEST(test_pid_1_of_a_namespace_in_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
