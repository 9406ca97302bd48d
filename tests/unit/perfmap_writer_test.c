/* The perf map writer: its options, the bytes of its lines, and where the file goes.
 * library_open_test has what libjitdump promises as well. */
#include "tests/unit/perfmap_test.h"

/* ---- On and off ---- */

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
    perfmap_add(map, 1, 2, "x\xc2\x80y\xc2\x9fz\xc2\xa0\x9b\xc2"); /* U+00A0 is none */
    perfmap_add(map, 1, 2, "");
    perfmap_add(map, 1, 2, NULL);
    assert_int_equal(perfmap_close(map), 0);
    assert_file("1 2 a b c d [e   !\n1 2 \xc3\xa4\xe2\x82\xac\xff\n1 2 x y z\xc2\xa0\x9b\xc2\n"
                "1 2 [unnamed]\n1 2 [unnamed]\n");
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
        TEST(test_off_is_null),
        TEST(test_default_directory_is_tmp),
        TEST(test_bad_options),
        TEST(test_longer_options),
        TEST(test_shorter_options),
        TEST(test_line),
        TEST(test_names_are_cleaned),
        TEST(test_long_names_are_cut_between_characters),
        TEST(test_reader_understands_writer),
        TEST(test_file_can_be_read_whatever_the_umask),
        TEST(test_missing_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
