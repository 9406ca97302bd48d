/* The perf map writer on a full disk, and at the file size limit: whole lines or none, and it goes
 * on when there is room. */
#include "tests/unit/own_namespaces.h"
#include "tests/unit/perfmap_test.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* ---- No room ---- */

static void block_of_name(char name[1001], char letter)
{
    memset(name, letter, 1000);
    name[1000] = '\0';
}

/* Add lines of 1 kB until one fails with ERROR. */
static void fill_up(struct perfmap *map, int error)
{
    char name[1001];
    int result = 0;
    block_of_name(name, 'x');
    for (int i = 0; i < 10000 && result == 0; i++)
        result = perfmap_add(map, 1, 2, name);
    CHECK(result == error);
}

/* Whole lines only: each as fill_up or check_goes_on wrote it. */
static void check_whole_lines(size_t *lines)
{
    char *text = text_of(path);
    CHECK(text && *text);
    *lines = 0;
    for (char *at = text, *end; *at; at = end + 1, ++*lines) {
        end = strchr(at, '\n');
        CHECK(end != NULL);
        CHECK(end - at == 4 + 1000 || memcmp(at, "1 2 after", 9) == 0);
    }
    free(text);
}

/* After there is room again, lines go on where the last whole one ended. */
static void check_goes_on(struct perfmap *map, size_t lines_before)
{
    size_t lines;
    CHECK(perfmap_add(map, 1, 2, "after") == 0);
    check_whole_lines(&lines);
    CHECK(lines == lines_before + 1);
}

/* Stands in for libc's, so that a test can have it fail. */
static bool ftruncate_fails;

int ftruncate(int fd, off_t bytes)
{
    if (!ftruncate_fails)
        return (int)syscall(SYS_ftruncate, fd, bytes);
    errno = EIO;
    return -1;
}

/* A disk of 64 kB at dir, seen by this child only, with a filler that leaves 48 kB. */
static void mount_small_disk(char filler[128])
{
    enter_own_disk(dir, 0, "size=64k");
    snprintf(filler, 128, "%s/filler", dir);
    int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && fallocate(fd, 0, 0, 16384) == 0 && close(fd) == 0);
}

static void child_fills_disk(struct perfmap *map)
{
    char filler[128];
    size_t lines;
    mount_small_disk(filler);
    CHECK(try_open(&map) == 0);
    fill_up(map, -ENOSPC);
    CHECK(perfmap_lost(map) == 1);
    CHECK(strstr(perfmap_error(map), "no room for a line") != NULL);
    check_whole_lines(&lines);
    CHECK(unlink(filler) == 0);
    check_goes_on(map, lines);
    CHECK(perfmap_close(map) == -ENOSPC);
}

/* Half a line that can't be taken back is the last: nothing is glued to it. */
static void child_cannot_take_back(struct perfmap *map)
{
    char filler[128];
    struct stat before, after;
    mount_small_disk(filler);
    CHECK(try_open(&map) == 0);
    ftruncate_fails = true;
    fill_up(map, -EIO);
    CHECK(strstr(perfmap_error(map), "half a line") != NULL);
    CHECK(stat(path, &before) == 0);
    CHECK(unlink(filler) == 0);
    CHECK(perfmap_add(map, 1, 2, "after") == -EIO);
    CHECK(perfmap_lost(map) == 2);
    CHECK(stat(path, &after) == 0 && before.st_size == after.st_size);
    CHECK(perfmap_close(map) == -EIO);
}

static void run_on_small_disk(void (*body)(struct perfmap *))
{
    assert_child_may(body, "mounting a small disk is not permitted");
}

static void test_full_disk(void **state)
{
    (void)state;
    run_on_small_disk(child_fills_disk);
}

static void test_half_line_that_stays(void **state)
{
    (void)state;
    run_on_small_disk(child_cannot_take_back);
}

static void child_meets_size_limit(struct perfmap *map)
{
    struct rlimit limit;
    size_t lines;
    signal(SIGXFSZ, SIG_DFL); /* which would end the child */
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(try_open(&map) == 0);
    limit.rlim_cur = 10000;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    fill_up(map, -EFBIG);
    CHECK(perfmap_lost(map) == 1);
    CHECK(strstr(perfmap_error(map), "file size limit") != NULL);
    check_whole_lines(&lines);
    CHECK(lines == 9);
    limit.rlim_cur = 3; /* below what the file has, and below a line */
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(perfmap_add(map, 1, 2, "after") == -EFBIG);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    check_goes_on(map, lines);
    CHECK(perfmap_lost(map) == 2);
    CHECK(perfmap_close(map) == -EFBIG);
}

/* Lines fit up to the limit's last byte. */
static void child_fills_size_limit_exactly(struct perfmap *map)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_DFL);
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(try_open(&map) == 0);
    limit.rlim_cur = 16;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(perfmap_add(map, 1, 2, "fib") == 0);
    CHECK(perfmap_add(map, 1, 2, "fib") == 0);
    CHECK(perfmap_add(map, 1, 2, "fib") == -EFBIG);
    CHECK(file_says(path, "1 2 fib\n1 2 fib\n"));
}

static void test_file_size_limit(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_meets_size_limit, NULL), 0);
    assert_int_equal(run_in_child(child_fills_size_limit_exactly, NULL), 0);
}

/* The first error's text stays, whatever comes later. */
static void child_meets_two_errors(struct perfmap *map)
{
    struct rlimit limit = {4, 4};
    char first[256];
    CHECK(try_open(&map) == 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(perfmap_add(map, 1, 2, "fib") == -EFBIG);
    snprintf(first, sizeof first, "%s", perfmap_error(map));
    CHECK(*first);
    pid_t child = fork();
    if (child != 0)
        _exit(wait_for(child));
    chmod(dir, 0);
    set_path(getpid());
    CHECK(mkdir(path, 0700) == 0 || geteuid() != 0);
    int error = perfmap_add(map, 1, 2, "fib");
    CHECK(error == -EEXIST || error == -EACCES);
    CHECK(perfmap_add(map, 1, 2, "fib") == error); /* a child whose map can't be opened */
    CHECK(strcmp(perfmap_error(map), first) == 0);
    CHECK(strcmp(perfmap_path(map), "") == 0);
    chmod(dir, 0700);
    CHECK(perfmap_close(map) == -EFBIG);
}

static void test_first_error_is_kept(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_meets_two_errors, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_full_disk),
        TEST(test_half_line_that_stays),
        TEST(test_file_size_limit),
        TEST(test_first_error_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
