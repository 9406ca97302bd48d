/* The perf map writer: the bytes of its lines, what it refuses to open, full disks, threads and forks. */
#include "perfmap/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- A directory for each test, and what lies in it ---- */

enum { NOT_PERMITTED = 77 };

static char dir[64];
static char path[128]; /* of this process's map */

static void set_path(pid_t pid)
{
    snprintf(path, sizeof path, "%s/perf-%d.map", dir, (int)pid);
}

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/perfmap_writer_test.XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    set_path(getpid());
    unsetenv("PERFJIT");
    return 0;
}

static int remove_dir(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

/* For the bodies of child processes, where cmocka's assertions do not reach. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static pid_t start_child(void (*body)(struct perfmap *), struct perfmap *map)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60); /* a deadlock must not hang the tests */
        set_path(getpid());
        body(map);
        _exit(0);
    }
    return child;
}

static int wait_for(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_in_child(void (*body)(struct perfmap *), struct perfmap *map)
{
    return wait_for(start_child(body, map));
}

static struct perfmap_options options_in_dir(void)
{
    struct perfmap_options options = PERFMAP_OPTIONS_INIT;
    options.dir = dir;
    options.flags = PERFMAP_ALWAYS;
    return options;
}

static int try_open(struct perfmap **map)
{
    struct perfmap_options options = options_in_dir();
    return perfmap_open(map, &options);
}

static struct perfmap *open_map(void)
{
    struct perfmap *map;
    assert_int_equal(try_open(&map), 0);
    assert_non_null(map);
    return map;
}

/* The text of FILE, to be freed, or NULL. */
static char *text_of(const char *file_path)
{
    struct stat status;
    int fd = open(file_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    fstat(fd, &status);
    char *text = calloc(1, (size_t)status.st_size + 1);
    if (text && read(fd, text, (size_t)status.st_size) != status.st_size)
        text[0] = '\0';
    close(fd);
    return text;
}

static bool file_says(const char *file_path, const char *expected)
{
    char *text = text_of(file_path);
    bool same = text && strcmp(text, expected) == 0;
    if (!same)
        fprintf(stderr, "%s: \"%s\", not \"%s\"\n", file_path, text ? text : "(none)", expected);
    free(text);
    return same;
}

static void assert_file(const char *expected)
{
    assert_true(file_says(path, expected));
}

static void write_text(const char *file_path, const char *text)
{
    FILE *file = fopen(file_path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static bool exists(const char *file_path)
{
    struct stat status;
    return lstat(file_path, &status) == 0;
}

/* ---- On and off ---- */

static bool on_with(const char *value)
{
    struct perfmap_options options = options_in_dir();
    struct perfmap *map = (struct perfmap *)dir;
    options.flags = 0;
    if (value)
        setenv("PERFJIT", value, 1);
    else
        unsetenv("PERFJIT");
    assert_int_equal(perfmap_open(&map, &options), 0);
    assert_int_equal(map != NULL, exists(path));
    bool on = map != NULL;
    assert_int_equal(perfmap_close(map), 0);
    unlink(path);
    return on;
}

static void test_environment(void **state)
{
    (void)state;
    assert_false(on_with(NULL));
    assert_false(on_with(""));
    assert_false(on_with("mapper"));
    assert_false(on_with("ma"));
    assert_false(on_with("MAP"));
    assert_false(on_with("dump"));
    assert_false(on_with(" map"));
    assert_false(on_with("xmap,"));
    assert_false(on_with("mapper,dump,,bitmap"));
    assert_true(on_with("map"));
    assert_true(on_with("dump,map"));
    assert_true(on_with("map,dump"));
    assert_true(on_with("mapper,,map"));
}

static void test_off_is_null(void **state)
{
    struct perfmap *map = (struct perfmap *)dir;
    (void)state;
    assert_int_equal(perfmap_open(&map, NULL), 0);
    assert_null(map);
    assert_int_equal(perfmap_add(NULL, 1, 1, "fib"), 0);
    assert_int_equal(perfmap_add_on(NULL, 1, 1, "fib"), 0);
    assert_int_equal(perfmap_lost(NULL), 0);
    assert_string_equal(perfmap_error(NULL), "");
    assert_string_equal(perfmap_path(NULL), "");
    assert_int_equal(perfmap_close(NULL), 0);
}

static void child_opens_in_tmp(struct perfmap *map)
{
    char expected[64];
    setenv("PERFJIT", "map", 1);
    snprintf(expected, sizeof expected, "/tmp/perf-%d.map", (int)getpid());
    CHECK(perfmap_open(&map, NULL) == 0);
    CHECK(strcmp(perfmap_path(map), expected) == 0);
    CHECK(perfmap_close(map) == 0);
    CHECK(unlink(expected) == 0);
}

static void test_default_directory_is_tmp(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_opens_in_tmp, NULL), 0);
}

/* ---- Options ---- */

static void assert_options_fail(const struct perfmap_options *options, int error)
{
    struct perfmap *map;
    assert_int_equal(perfmap_open(&map, options), error);
    assert_non_null(map);
    assert_true(strlen(perfmap_error(map)) > 0);
    assert_int_equal(perfmap_add(map, 1, 1, "fib"), error);
    assert_int_equal(perfmap_close(map), error);
    assert_false(exists(path));
}

static void test_bad_options(void **state)
{
    struct perfmap_options options = options_in_dir();
    (void)state;
    options.size = 0;
    assert_options_fail(&options, -EINVAL);
    options = options_in_dir();
    options.flags |= 0x80;
    assert_options_fail(&options, -EINVAL);
    options = options_in_dir();
    options.reserved = 1;
    assert_options_fail(&options, -E2BIG);
    options.flags = 0; /* found although PERFJIT is not set */
    assert_options_fail(&options, -E2BIG);
}

static void test_longer_options(void **state)
{
    struct {
        struct perfmap_options options;
        char unknown[16];
    } longer = {options_in_dir(), {0}};
    struct perfmap *map;
    (void)state;
    longer.options.size = sizeof longer;
    longer.unknown[15] = 1;
    assert_options_fail(&longer.options, -E2BIG);
    longer.unknown[15] = 0;
    assert_int_equal(perfmap_open(&map, &longer.options), 0);
    assert_string_equal(perfmap_path(map), path);
    assert_int_equal(perfmap_close(map), 0);
}

/* An older caller's struct that ended before flags: what lies behind it is not looked at. */
static void test_shorter_options(void **state)
{
    struct perfmap_options options = options_in_dir();
    struct perfmap *map;
    (void)state;
    options.size = offsetof(struct perfmap_options, flags);
    options.flags = 0xffffffffu;
    setenv("PERFJIT", "map", 1);
    assert_int_equal(perfmap_open(&map, &options), 0);
    assert_string_equal(perfmap_path(map), path);
    assert_int_equal(perfmap_close(map), 0);
}

/* ---- Lines ---- */

static void test_line(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_string_equal(perfmap_path(map), path);
    assert_int_equal(perfmap_add(map, 0x7f00aa001000, 0x4c, "fib"), 0);
    assert_file("7f00aa001000 4c fib\n"); /* at once, without a flush */
    assert_int_equal(perfmap_add(map, 0, 0, "main loop"), 0);
    assert_int_equal(perfmap_add(map, UINT64_MAX, UINT64_MAX, "f"), 0);
    assert_file("7f00aa001000 4c fib\n0 0 main loop\nffffffffffffffff ffffffffffffffff f\n");
    assert_int_equal(perfmap_lost(map), 0);
    assert_string_equal(perfmap_error(map), "");
    assert_int_equal(perfmap_close(map), 0);
    assert_true(exists(path)); /* for perf, which reads it afterwards */
}

static void test_names_are_cleaned(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    perfmap_add(map, 1, 2, "a\nb\rc\td\x1b[e\x7f\x01\x1f!");
    perfmap_add(map, 1, 2, "\xc3\xa4\xe2\x82\xac\xff");
    perfmap_add(map, 1, 2, "");
    perfmap_add(map, 1, 2, NULL);
    assert_int_equal(perfmap_close(map), 0);
    assert_file("1 2 a b c d [e   !\n1 2 \xc3\xa4\xe2\x82\xac\xff\n1 2 [unnamed]\n1 2 [unnamed]\n");
}

/* A name of PLAIN letters and then TAIL comes out KEPT bytes long. */
static void assert_name_cut(size_t plain, const char *tail, size_t kept)
{
    char name[4100] = "", line[4100];
    memset(name, 'x', plain);
    strcpy(name + plain, tail);
    snprintf(line, sizeof line, "1 2 %.*s\n", (int)kept, name);
    struct perfmap *map = open_map();
    assert_int_equal(perfmap_add(map, 1, 2, name), 0);
    assert_int_equal(perfmap_close(map), 0);
    assert_file(line);
}

static void test_long_names_are_cut_between_characters(void **state)
{
    (void)state;
    assert_name_cut(4000, "", 4000);
    assert_name_cut(4001, "", 4000);
    assert_name_cut(3998, "\xc3\xa4", 4000);
    assert_name_cut(3999, "\xc3\xa4", 3999);
    assert_name_cut(3997, "\xe2\x82\xac", 4000);
    assert_name_cut(3998, "\xe2\x82\xac", 3998);
    assert_name_cut(3999, "\xe2\x82\xac", 3999);
    assert_name_cut(3997, "\xf0\x9f\x98\x80", 3997);
    assert_name_cut(3996, "\xf0\x9f\x98\x80", 4000);
    assert_name_cut(3990, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 4000); /* no UTF-8 */
}

static void test_reader_understands_writer(void **state)
{
    struct perfmap *map = open_map();
    struct perfmap_table *table;
    (void)state;
    perfmap_add(map, 0x1000, 0x40, "old");
    perfmap_add(map, 0x1000, 0x20, " new\n");
    assert_int_equal(perfmap_read(&table, perfmap_path(map), NULL, 0), 0);
    assert_string_equal(perfmap_find(table, 0x1000)->name, " new ");
    assert_string_equal(perfmap_find(table, 0x1020)->name, "old");
    assert_int_equal(perfmap_bad_lines(table), 0);
    perfmap_free(table);
    assert_int_equal(perfmap_close(map), 0);
}

/* ---- Opening ---- */

static void test_file_is_private_and_closed_on_exec(void **state)
{
    struct perfmap *map = open_map();
    struct stat status, other;
    bool found = false;
    (void)state;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0600);
    for (int fd = 3; fd < 256; fd++)
        if (fstat(fd, &other) == 0 && other.st_ino == status.st_ino) {
            found = true;
            assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
            assert_int_equal(fcntl(fd, F_GETFL) & O_APPEND, O_APPEND);
        }
    assert_true(found);
    assert_int_equal(perfmap_close(map), 0);
}

static void test_stale_file_is_replaced(void **state)
{
    (void)state;
    write_text(path, "1000 40 of an earlier process\n");
    chmod(path, 0644);
    int old = open(path, O_RDONLY | O_CLOEXEC);
    struct perfmap *map = open_map();
    struct stat status;
    perfmap_add(map, 1, 2, "fib");
    assert_int_equal(perfmap_close(map), 0);
    assert_file("1 2 fib\n");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    fstat(old, &status); /* made anew, not cut to length under those who have it open */
    assert_int_equal(status.st_size, 30);
    close(old);
}

/* perfmap_open finds something in its way, says what, and leaves it there. */
static void assert_in_the_way(const char *what)
{
    struct stat before, after;
    struct perfmap *map;
    assert_int_equal(lstat(path, &before), 0);
    assert_int_equal(try_open(&map), -EEXIST);
    assert_non_null(map);
    assert_non_null(strstr(perfmap_error(map), path));
    assert_non_null(strstr(perfmap_error(map), what));
    assert_non_null(strstr(perfmap_error(map), "remove it"));
    assert_string_equal(perfmap_path(map), "");
    assert_int_equal(perfmap_add(map, 1, 2, "fib"), -EEXIST);
    assert_int_equal(perfmap_lost(map), 1);
    assert_int_equal(perfmap_close(map), -EEXIST);
    assert_int_equal(lstat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(before.st_size, after.st_size);
}

static void test_symbolic_link_in_the_way(void **state)
{
    char target[128];
    (void)state;
    snprintf(target, sizeof target, "%s/target", dir);
    assert_int_equal(symlink(target, path), 0);
    assert_in_the_way("symbolic link");
    assert_false(exists(target));
    write_text(target, "precious");
    assert_in_the_way("symbolic link");
    assert_true(file_says(target, "precious"));
}

static void test_fifo_in_the_way(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20);
    assert_in_the_way("FIFO");
    alarm(0);
}

static void test_directory_in_the_way(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path, 0700), 0);
    assert_in_the_way("directory");
}

static void test_hard_link_in_the_way(void **state)
{
    char other[128];
    (void)state;
    snprintf(other, sizeof other, "%s/other", dir);
    write_text(other, "precious");
    assert_int_equal(link(other, path), 0);
    assert_in_the_way("hard links");
    assert_true(file_says(other, "precious"));
}

static void test_other_users_file_in_the_way(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can give files away */
    write_text(path, "of nobody");
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_in_the_way("another user's");
}

/* Stands in for libc's, so that a test can act between perfmap_open's look and its open. */
static const char *planted_link_target;

int lstat(const char *link_path, struct stat *status)
{
    int result = fstatat(AT_FDCWD, link_path, status, AT_SYMLINK_NOFOLLOW);
    int error = errno;
    if (planted_link_target && symlink(planted_link_target, link_path) != 0)
        result = -1;
    errno = error;
    return result;
}

static void test_link_planted_in_the_last_moment(void **state)
{
    char target[128];
    struct perfmap *map;
    (void)state;
    snprintf(target, sizeof target, "%s/target", dir);
    planted_link_target = target;
    int error = try_open(&map);
    planted_link_target = NULL;
    assert_int_equal(error, -EEXIST);
    assert_non_null(strstr(perfmap_error(map), "this moment"));
    assert_int_equal(perfmap_close(map), -EEXIST);
    assert_false(exists(target));
}

static void test_missing_directory(void **state)
{
    struct perfmap_options options = options_in_dir();
    struct perfmap *map;
    (void)state;
    options.dir = "/nonexistent";
    assert_int_equal(perfmap_open(&map, &options), -ENOENT);
    assert_non_null(strstr(perfmap_error(map), "/nonexistent/perf-"));
    assert_non_null(strstr(perfmap_error(map), "does the directory exist"));
    assert_int_equal(perfmap_close(map), -ENOENT);
}

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
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", dir, "tmpfs", 0, "size=64k") != 0)
        _exit(NOT_PERMITTED);
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
    int result = run_in_child(body, NULL);
    if (result == NOT_PERMITTED && !(getenv("CI") && strcmp(getenv("CI"), "true") == 0))
        skip(); /* mounting a small disk takes root */
    assert_int_equal(result, 0);
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

/* ---- Threads ---- */

enum { THREADS = 8, LINES_EACH = 1000 };

struct adder {
    struct perfmap *map;
    pthread_t thread;
    uint64_t number;
};

static void name_of(char name[128], uint64_t thread, uint64_t line)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdef";
    snprintf(name, 128, "thread %" PRIu64 " line %" PRIu64 " %.*s", thread, line,
             (int)((thread * 7 + line) % 32), letters);
}

static void *add_lines(void *argument)
{
    const struct adder *adder = argument;
    char name[128];
    for (uint64_t line = 0; line < LINES_EACH; line++) {
        name_of(name, adder->number, line);
        if (perfmap_add(adder->map, adder->number << 20 | line << 4, 16, name) != 0)
            return argument;
    }
    return NULL;
}

/* THREADS threads add LINES_EACH lines; returns how many of them failed. */
static size_t add_from_threads(struct perfmap *map)
{
    struct adder adders[THREADS];
    size_t failed = 0;
    for (size_t i = 0; i < THREADS; i++) {
        adders[i] = (struct adder){map, 0, i};
        pthread_create(&adders[i].thread, NULL, add_lines, &adders[i]);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(adders[i].thread, &result);
        failed += result != NULL;
    }
    return failed;
}

/* Every line is there once and whole.  Returns the first thread * LINES_EACH + line that is not. */
static size_t first_missing_line(const char *file_path)
{
    struct perfmap_table *table;
    char name[128];
    size_t count, i;
    if (perfmap_read(&table, file_path, NULL, 0) != 0)
        return 0;
    perfmap_entries(table, &count);
    if (count != THREADS * LINES_EACH || perfmap_bad_lines(table) != 0)
        count = 0;
    for (i = 0; i < count; i++) {
        const uint64_t thread = i / LINES_EACH, line = i % LINES_EACH;
        const struct perfmap_entry *entry = perfmap_find(table, thread << 20 | line << 4);
        name_of(name, thread, line);
        if (!entry || entry->size_bytes != 16 || strcmp(entry->name, name) != 0)
            break;
    }
    perfmap_free(table);
    return i;
}

static void test_threads(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(add_from_threads(map), 0);
    assert_int_equal(first_missing_line(path), THREADS * LINES_EACH);
    assert_int_equal(perfmap_close(map), 0);
}

static void child_loses_from_threads(struct perfmap *map)
{
    struct rlimit limit = {10, 10};
    CHECK(try_open(&map) == 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(add_from_threads(map) == THREADS);
    CHECK(perfmap_lost(map) == THREADS); /* each gives up at its first */
    CHECK(strstr(perfmap_error(map), "file size limit") != NULL);
    CHECK(perfmap_close(map) == -EFBIG);
}

static void test_losses_are_counted_across_threads(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_loses_from_threads, NULL), 0);
}

static void *add_for_ever(void *argument)
{
    struct perfmap *map = argument;
    for (;;) {
        pthread_testcancel();
        perfmap_add(map, 1, 2, "cancelled");
    }
    return NULL;
}

/* A cancelled thread neither keeps the lock nor tears a line. */
static void child_cancels_adders(struct perfmap *map)
{
    CHECK(try_open(&map) == 0);
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, add_for_ever, map) == 0);
        usleep(500);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        CHECK(perfmap_add(map, 1, 2, "still here") == 0);
    }
    CHECK(perfmap_close(map) == 0);
}

static void test_cancellation(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_cancels_adders, NULL), 0);
}

/* ---- Fork ---- */

static size_t open_descriptors(void)
{
    size_t count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void child_adds(struct perfmap *map)
{
    size_t descriptors = open_descriptors();
    CHECK(perfmap_add(map, 3, 4, "child") == 0);
    CHECK(open_descriptors() == descriptors); /* its own instead of the parent's */
    CHECK(strcmp(perfmap_path(map), path) == 0);
    CHECK(perfmap_add(map, 5, 6, "again") == 0);
    CHECK(file_says(path, "3 4 child\n5 6 again\n"));
    CHECK(perfmap_close(map) == 0);
    CHECK(open_descriptors() == descriptors - 1);
}

static void test_child_gets_its_own_map(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    perfmap_add(map, 1, 2, "parent");
    assert_int_equal(run_in_child(child_adds, map), 0);
    perfmap_add(map, 7, 8, "parent");
    assert_string_equal(perfmap_path(map), path);
    assert_file("1 2 parent\n7 8 parent\n");
    assert_int_equal(perfmap_close(map), 0);
}

static void child_only_closes(struct perfmap *map)
{
    CHECK(perfmap_close(map) == 0);
    CHECK(!exists(path));
}

static void test_child_that_only_closes(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(run_in_child(child_only_closes, map), 0);
    perfmap_add(map, 1, 2, "parent");
    assert_file("1 2 parent\n");
    assert_int_equal(perfmap_close(map), 0);
}

static void child_forks_again(struct perfmap *map)
{
    pid_t grandchild;
    CHECK(perfmap_add(map, 3, 4, "child") == 0);
    const char *path_before = perfmap_path(map);
    if ((grandchild = fork()) == 0) {
        set_path(getpid());
        child_adds(map);
        _exit(0);
    }
    CHECK(wait_for(grandchild) == 0);
    CHECK(perfmap_path(map) == path_before);
    CHECK(file_says(path, "3 4 child\n"));
    CHECK(perfmap_close(map) == 0);
}

static void test_grandchild(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(run_in_child(child_forks_again, map), 0);
    assert_int_equal(perfmap_close(map), 0);
    assert_file("");
}

/* All threads of the child find at once that the map is the parent's. */
static void child_adds_from_threads(struct perfmap *map)
{
    CHECK(add_from_threads(map) == 0);
    CHECK(first_missing_line(path) == THREADS * LINES_EACH);
    CHECK(perfmap_close(map) == 0);
}

static void test_threads_of_a_child(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(run_in_child(child_adds_from_threads, map), 0);
    assert_file("");
    assert_int_equal(perfmap_close(map), 0);
}

/* A daemon closes what it inherited; our old descriptor's number is somebody else's by then. */
static void child_reuses_descriptor(struct perfmap *map)
{
    struct stat status, other;
    char parent_path[128];
    int mine = -1;
    snprintf(parent_path, sizeof parent_path, "%s/perf-%d.map", dir, (int)getppid());
    CHECK(stat(parent_path, &status) == 0);
    for (int fd = 3; fd < 256; fd++)
        if (fstat(fd, &other) == 0 && other.st_ino == status.st_ino &&
            other.st_dev == status.st_dev)
            mine = fd;
    CHECK(mine > 0);
    CHECK(dup2(0, mine) == mine);
    CHECK(perfmap_add(map, 1, 2, "child") == 0);
    CHECK(fcntl(mine, F_GETFD) >= 0);
    CHECK(perfmap_close(map) == 0);
    CHECK(fcntl(mine, F_GETFD) >= 0);
}

static void test_closes_no_descriptor_but_its_own(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(run_in_child(child_reuses_descriptor, map), 0);
    assert_int_equal(perfmap_close(map), 0);
}

struct busy_adder {
    struct perfmap *map;
    pthread_t thread;
    _Atomic bool stop;
};

static void *add_until_stopped(void *argument)
{
    struct busy_adder *adder = argument;
    while (!atomic_load(&adder->stop))
        perfmap_add(adder->map, 1, 2, "parent");
    return NULL;
}

static void child_adds_one(struct perfmap *map)
{
    CHECK(perfmap_add(map, 3, 4, "child") == 0);
    CHECK(file_says(path, "3 4 child\n"));
}

/* Threads that add hold the lock most of the time: nearly every child is born with it taken. */
static void test_fork_while_others_add(void **state)
{
    enum { ADDERS = 4, CHILDREN = 60 };
    struct busy_adder adders[ADDERS];
    struct perfmap *map = open_map();
    int failed = 0;
    (void)state;
    for (int i = 0; i < ADDERS; i++) {
        adders[i].map = map;
        atomic_init(&adders[i].stop, false);
        pthread_create(&adders[i].thread, NULL, add_until_stopped, &adders[i]);
    }
    for (int i = 0; i < CHILDREN && !failed; i++)
        failed = run_in_child(child_adds_one, map);
    for (int i = 0; i < ADDERS; i++) {
        atomic_store(&adders[i].stop, true);
        pthread_join(adders[i].thread, NULL);
    }
    assert_int_equal(failed, 0);
    assert_int_equal(perfmap_close(map), 0);
    char *text = text_of(path);
    size_t length = strlen(text), lines = 0;
    for (const char *at = text; strncmp(at, "1 2 parent\n", 11) == 0; at += 11)
        lines++;
    assert_int_equal(lines * 11, length);
    free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        TEST(test_environment),
        TEST(test_off_is_null),
        TEST(test_default_directory_is_tmp),
        TEST(test_bad_options),
        TEST(test_longer_options),
        TEST(test_shorter_options),
        TEST(test_line),
        TEST(test_names_are_cleaned),
        TEST(test_long_names_are_cut_between_characters),
        TEST(test_reader_understands_writer),
        TEST(test_file_is_private_and_closed_on_exec),
        TEST(test_stale_file_is_replaced),
        TEST(test_symbolic_link_in_the_way),
        TEST(test_fifo_in_the_way),
        TEST(test_directory_in_the_way),
        TEST(test_hard_link_in_the_way),
        TEST(test_other_users_file_in_the_way),
        TEST(test_link_planted_in_the_last_moment),
        TEST(test_missing_directory),
        TEST(test_full_disk),
        TEST(test_half_line_that_stays),
        TEST(test_file_size_limit),
        TEST(test_first_error_is_kept),
        TEST(test_threads),
        TEST(test_losses_are_counted_across_threads),
        TEST(test_cancellation),
        TEST(test_child_gets_its_own_map),
        TEST(test_child_that_only_closes),
        TEST(test_grandchild),
        TEST(test_threads_of_a_child),
        TEST(test_closes_no_descriptor_but_its_own),
        TEST(test_fork_while_others_add),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
