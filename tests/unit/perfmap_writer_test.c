/* The perf map writer: when it is on, its options, the bytes of its lines, and what it refuses to
 * open. */
#include "tests/unit/perfmap_test.h"

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
    assert_int_equal(unlink(path), 0);
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

static void test_file_can_be_read_whatever_the_umask(void **state)
{
    struct stat status;
    (void)state;
    mode_t before = umask(0777);
    struct perfmap *map = open_map();
    umask(before);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0600);
    assert_int_equal(perfmap_close(map), 0);
}

static void test_stale_file_is_replaced(void **state)
{
    (void)state;
    const struct timespec before_our_start[] = {{1000000000, 0}, {1000000000, 0}};
    write_text(path, "1000 40 of an earlier process\n");
    assert_int_equal(utimensat(AT_FDCWD, path, before_our_start, 0), 0);
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

/* lstat stands in for libc's, so that a test can act between perfmap_open's look and its open, and
 * that a file can be another user's without root. */
static const char *planted_link_target, *strangers_path;

static void test_other_users_file_in_the_way(void **state)
{
    (void)state;
    write_text(path, "of nobody");
    strangers_path = path;
    assert_in_the_way("another user's");
    strangers_path = NULL;
}

int lstat(const char *link_path, struct stat *status)
{
    int result = fstatat(AT_FDCWD, link_path, status, AT_SYMLINK_NOFOLLOW);
    int error = errno;
    if (strangers_path && strcmp(link_path, strangers_path) == 0)
        status->st_uid = geteuid() + 1;
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

int main(void)
{
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
        TEST(test_file_can_be_read_whatever_the_umask),
        TEST(test_stale_file_is_replaced),
        TEST(test_symbolic_link_in_the_way),
        TEST(test_fifo_in_the_way),
        TEST(test_directory_in_the_way),
        TEST(test_hard_link_in_the_way),
        TEST(test_other_users_file_in_the_way),
        TEST(test_link_planted_in_the_last_moment),
        TEST(test_missing_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
