/* A perf map that becomes another file between the look and the opening, that can't be read, or
 * that somebody makes empty again and again. */
#include "tests/unit/perfmap_test.h"

#include <sys/syscall.h>

/* ---- Another's file in the last moment ---- */

/* Stands in for libc's, so that a test can act between perfmap_open's look and its open. */
static void (*after_look)(void);

int lstat(const char *looked_at, struct stat *status)
{
    int result = fstatat(AT_FDCWD, looked_at, status, AT_SYMLINK_NOFOLLOW);
    if (after_look && strcmp(looked_at, path) == 0)
        after_look();
    return result;
}

static char planted[128];

static void plant_hard_link(void)
{
    char beside[160];
    snprintf(beside, sizeof beside, "%s.link", planted);
    write_text(planted, "precious");
    CHECK(link(planted, beside) == 0 && rename(beside, path) == 0);
}

static void plant_fifo(void)
{
    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
}

static void plant_nothing(void)
{
    CHECK(unlink(path) == 0);
}

/* The map is opened a second time, and when it has been looked at it becomes what PLANT makes of
 * it. */
static void expect_noticed(void (*plant)(void), int error, const char *words)
{
    struct perfmap *map = open_map();
    assert_int_equal(perfmap_add(map, 1, 2, "fib"), 0);
    assert_int_equal(perfmap_close(map), 0);
    snprintf(planted, sizeof planted, "%s/planted", dir);
    after_look = plant;
    int opened = try_open(&map);
    after_look = NULL;
    assert_int_equal(opened, error);
    assert_non_null(strstr(perfmap_error(map), words));
    assert_int_equal(perfmap_add(map, 3, 4, "fib"), error);
    assert_int_equal(perfmap_close(map), error);
}

static void test_a_hard_link_planted_in_the_last_moment_is_not_written(void **state)
{
    (void)state;
    expect_noticed(plant_hard_link, -EEXIST, "this moment");
    assert_true(file_says(planted, "precious"));
}

static void test_a_fifo_planted_in_the_last_moment_is_not_written(void **state)
{
    (void)state;
    alarm(20);
    expect_noticed(plant_fifo, -EEXIST, "this moment");
    alarm(0);
}

static void test_a_map_removed_in_the_last_moment(void **state)
{
    (void)state;
    expect_noticed(plant_nothing, -ENOENT, "directory");
}

/* ---- A map that can't be read ---- */

/* Stands in for libc's: a disk that fails, or a file that ends before it should. */
static enum { READS, FAILS, ENDS } reading;

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
    if (reading == READS)
        return syscall(SYS_pread64, fd, bytes, size, offset);
    errno = EIO;
    return reading == FAILS ? -1 : 0;
}

static void test_lines_of_a_map_that_can_not_be_read_are_not_lost(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(perfmap_add(map, 1, 2, "first"), 0);
    reading = FAILS;
    assert_int_equal(perfmap_add(map, 3, 4, "second"), 0);
    reading = READS;
    assert_int_equal(perfmap_lost(map), 0);
    assert_int_equal(perfmap_add(map, 5, 6, "third"), 0);
    assert_int_equal(perfmap_lost(map), 0);
    assert_file("1 2 first\n3 4 second\n5 6 third\n");
    assert_int_equal(perfmap_close(map), 0);
}

/* Once it has been read again, it is seen that somebody made it empty meanwhile. */
static void test_lines_that_are_lost_while_a_map_can_not_be_read(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(perfmap_add(map, 1, 2, "first"), 0);
    assert_int_equal(truncate(path, 0), 0);
    reading = FAILS;
    assert_int_equal(perfmap_add(map, 3, 4, "second"), 0);
    reading = READS;
    assert_int_equal(perfmap_lost(map), 0);
    assert_int_equal(perfmap_add(map, 5, 6, "third"), 0);
    assert_int_equal(perfmap_lost(map), 2);
    assert_int_equal(perfmap_close(map), -ESTALE);
}

static void test_a_map_that_ends_where_our_line_was_has_lost_it(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(perfmap_add(map, 1, 2, "first"), 0);
    reading = ENDS;
    assert_int_equal(perfmap_add(map, 3, 4, "second"), 0);
    reading = READS;
    assert_int_equal(perfmap_lost(map), 1);
    assert_non_null(strstr(perfmap_error(map), "1 line is lost"));
    assert_int_equal(perfmap_close(map), -ESTALE);
}

/* ---- Lost again ---- */

static void test_a_map_that_is_cut_twice_has_lost_each_line_once(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(perfmap_add(map, 1, 2, "lost"), 0);
    assert_int_equal(perfmap_add(map, 3, 4, "lost"), 0);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(perfmap_add(map, 5, 6, "lost"), 0);
    assert_int_equal(perfmap_lost(map), 2);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(perfmap_add(map, 7, 8, "kept"), 0);
    assert_int_equal(perfmap_lost(map), 3);
    assert_file("7 8 kept\n");
    assert_int_equal(perfmap_close(map), -ESTALE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_hard_link_planted_in_the_last_moment_is_not_written),
        TEST(test_a_fifo_planted_in_the_last_moment_is_not_written),
        TEST(test_a_map_removed_in_the_last_moment),
        TEST(test_lines_of_a_map_that_can_not_be_read_are_not_lost),
        TEST(test_lines_that_are_lost_while_a_map_can_not_be_read),
        TEST(test_a_map_that_ends_where_our_line_was_has_lost_it),
        TEST(test_a_map_that_is_cut_twice_has_lost_each_line_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
