/* Where the file of a mapping is looked for, and whether its inode says anything. */
#include "injector/recording/host/mapped_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

static void assert_path(const char *root, const char *name, const char *wanted)
{
    char *path = mapped_path(root, name);
    assert_string_equal(path, wanted);
    free(path);
}

static void test_paths(void **state)
{
    (void)state;
    assert_path("", "/usr/lib/libc.so.6", "/usr/lib/libc.so.6");
    assert_path("/mnt/root", "/usr/lib/libc.so.6", "/mnt/root/usr/lib/libc.so.6");
    assert_path("/mnt/root", "/tmp/jit-1.dump (deleted)", "/mnt/root/tmp/jit-1.dump");
    assert_path("/mnt/root", "jitted-1-2.so", "/mnt/root/jitted-1-2.so");
    assert_path("", "jitted-1-2.so", "jitted-1-2.so");
}

static void test_inodes_are_compared_on_one_device(void **state)
{
    struct perf_map map = {.has_inode = true, .maj = 8, .min = 1};
    (void)state;
    assert_true(mapped_inode_is_on(&map, makedev(8, 1)));
    assert_false(mapped_inode_is_on(&map, makedev(8, 2)));
    assert_false(mapped_inode_is_on(&map, makedev(9, 1)));
    map.has_inode = false;
    assert_false(mapped_inode_is_on(&map, makedev(8, 1)));
}

static void test_another_file(void **state)
{
    struct stat status;
    (void)state;
    assert_int_equal(stat("/dev/shm", &status), 0); /* tmpfs */
    struct perf_map map = {.has_inode = true,
                           .maj = major(status.st_dev),
                           .min = minor(status.st_dev),
                           .ino = status.st_ino};
    assert_false(mapped_file_is_another(&map, "/dev/shm", &status, true));
    map.ino++;
    assert_true(mapped_file_is_another(&map, "/dev/shm", &status, false));
    map.min++;
    assert_false(mapped_file_is_another(&map, "/dev/shm", &status, false)); /* numbers changed */
    assert_true(mapped_file_is_another(&map, "/dev/shm", &status, true));
    assert_false(mapped_file_is_another(&map, "/proc", &status, true)); /* it tells no device */
    assert_false(mapped_file_is_another(&map, "/nowhere", &status, true));
    map.has_inode = false;
    assert_false(mapped_file_is_another(&map, "/dev/shm", &status, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_inodes_are_compared_on_one_device),
        cmocka_unit_test(test_another_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
