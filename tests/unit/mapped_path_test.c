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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_inodes_are_compared_on_one_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
