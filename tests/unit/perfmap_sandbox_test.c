/* libperfmap in sandboxes that refuse one of its system calls, and in a world without /proc:
 * nothing is raised, nothing ends, and a line is in the file, whole, or it is counted. */
#include "tests/unit/call_numbers.h"
#include "tests/unit/own_namespaces.h"
#include "tests/unit/perfmap_test.h"
#include "tests/unit/refused_call.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

enum { LINES = 50, LINE_BYTES = 8 /* "1 2 fib\n" */ };

/* What the library may call.  (AddressSanitizer takes memory for itself, and ends without.) */
static const struct call {
    int number;
    bool needed; /* nothing can be written without it */
} calls[] = {
    {SYS_openat, true},
    {SYS_newfstatat, true},
    {SYS_write, true},
    {SYS_rt_sigprocmask, true},
    {UNLINK_CALL, true},
    {SYS_pread64, false},
    {SYS_fcntl, false},
    {READLINK_CALL, false},
    {SYS_read, false},
#ifndef __SANITIZE_ADDRESS__
    {SYS_mmap, false},
    {SYS_munmap, false},
    {SYS_madvise, false},
    {SYS_brk, false},
#endif
    {SYS_fchmod, false},
    {SYS_ftruncate, false},
    {SYS_prlimit64, false},
    {SYS_rt_sigpending, false},
    {SYS_rt_sigtimedwait, false},
    {SYS_kcmp, false},
    {SYS_getpid, false},
    {SYS_getppid, false},
    {SYS_close, false},
    {SYS_clock_nanosleep, false},
    {SYS_clock_gettime, false},
};

static struct sandbox {
    int call, error;
    bool before_open, has_limit;
} sandbox;

/* The lines that are in the file, all of which are whole. */
static size_t lines_in_file(void)
{
    char *text = text_of(path);
    size_t length = text ? strlen(text) : 0;
    CHECK(length % LINE_BYTES == 0);
    for (size_t at = 0; at < length; at += LINE_BYTES)
        CHECK(memcmp(text + at, "1 2 fib\n", LINE_BYTES) == 0);
    free(text);
    return length / LINE_BYTES;
}

static uint64_t add_lines(struct perfmap *map)
{
    uint64_t failed = 0;
    for (int i = 0; i < LINES; i++)
        failed += perfmap_add(map, 1, 2, "fib") != 0;
    CHECK(perfmap_lost(map) == failed);
    CHECK((failed > 0) == (perfmap_error(map)[0] != '\0'));
    return failed;
}

/* Status 2: lines were lost. */
static void child_lives_in_sandbox(struct perfmap *map)
{
    const struct timespec before_our_start[] = {{1000000000, 0}, {1000000000, 0}};
    const struct rlimit near = {65536, RLIM_INFINITY};
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, "1 2 an earlier process's\n", 25) == 25 && close(fd) == 0);
    CHECK(utimensat(AT_FDCWD, path, before_our_start, 0) == 0);
    if (sandbox.has_limit)
        CHECK(setrlimit(RLIMIT_FSIZE, &near) == 0);
    if (sandbox.before_open)
        refuse(sandbox.call, sandbox.error);
    int opened = try_open(&map);
    if (!sandbox.before_open)
        refuse(sandbox.call, sandbox.error);
    uint64_t failed = add_lines(map);
    CHECK(opened == 0 || failed == LINES);
    perfmap_close(map);
    _exit(failed ? 2 : 0);
}

/* The child may not be able to read what is there. */
static void check_sandbox(const struct call *call)
{
    pid_t child = start_child(child_lives_in_sandbox, NULL);
    int status = wait_for(child);
    path_of(path, dir, child);
    if (status == 0)
        assert_int_equal(lines_in_file(), LINES);
    unlink(path);
    if (status == NOT_PERMITTED)
        skip_or_fail("seccomp is not permitted");
    if (status != 0 && (status != 2 || !call->needed))
        fail_msg("call %d, error %d, %s%s: status %d", sandbox.call, sandbox.error,
                 sandbox.before_open ? "before" : "after", sandbox.has_limit ? ", limit" : "",
                 status);
}

static void test_refused_calls(void **state)
{
    static const int errors[] = {EPERM, ENOSYS};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (size_t j = 0; j < 8; j++) {
            sandbox = (struct sandbox){calls[i].number, errors[j % 2], j / 2 % 2, j / 4};
            check_sandbox(&calls[i]);
        }
}

/* In a child of the sandbox's. */
static void forked_child_adds(struct perfmap *map)
{
    uint64_t lost_before = perfmap_lost(map), failed = 0;
    for (int i = 0; i < LINES; i++)
        failed += perfmap_add(map, 1, 2, "fib") != 0;
    CHECK(perfmap_lost(map) - lost_before == failed);
    perfmap_close(map);
    _exit(failed ? 2 : 0);
}

static void child_forks_in_sandbox(struct perfmap *map)
{
    refuse(sandbox.call, sandbox.error);
    _exit(run_in_child(forked_child_adds, map));
}

static void test_refused_calls_in_a_forked_child(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (int error = 0; error < 2; error++) {
            sandbox = (struct sandbox){calls[i].number, error ? EPERM : ENOSYS, false, false};
            int status = run_in_child(child_forks_in_sandbox, map);
            if (status == NOT_PERMITTED)
                skip_or_fail("seccomp is not permitted");
            if (status != 0 && (status != 2 || !calls[i].needed))
                fail_msg("call %d, error %d: status %d", sandbox.call, sandbox.error, status);
        }
    assert_int_equal(perfmap_add(map, 1, 2, "fib"), 0);
    assert_int_equal(lines_in_file(), 1);
    assert_int_equal(perfmap_close(map), 0);
}

/* ---- No /proc ---- */

static void child_has_no_proc(struct perfmap *map)
{
    enter_own_disk("/proc", 0, NULL);
    CHECK(try_open(&map) == 0 && add_lines(map) == 0);
    CHECK(strcmp(perfmap_path(map), path) == 0);
    CHECK(perfmap_close(map) == 0);
    CHECK(try_open(&map) == 0 && add_lines(map) == 0 && perfmap_close(map) == 0);
    CHECK(lines_in_file() == 2 * LINES);
}

static void test_no_proc(void **state)
{
    (void)state;
    assert_child_may(child_has_no_proc, "mounting is not permitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_refused_calls),
        TEST(test_refused_calls_in_a_forked_child),
        TEST(test_no_proc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
