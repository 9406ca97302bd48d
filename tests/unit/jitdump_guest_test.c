/* libjitdump in a process that is not its own: what it must leave as it was. */
#include "tests/unit/jitdump_inventory.h"

#include <sys/mman.h>

/* ---- errno ---- */

static void assert_errno_kept(int expected)
{
    assert_int_equal(errno, expected);
    errno = expected;
}

/* The code stands in pages that the kernel is asked about, and there is enough of it for every part of the writer. */
static void test_errno(void **state)
{
    struct jitdump *dump;
    uint64_t code_index;
    (void)state;
    errno = 4711;
    assert_int_equal(try_open(&dump), 0);
    assert_errno_kept(4711);
    for (unsigned i = 0; i < 3000; i++) {
        assert_int_equal(add_function(dump, 0, i, &code_index), 0);
        assert_errno_kept(4711);
    }
    assert_int_equal(jitdump_move_code(dump, code_index, 1, 2, 3), 0);
    assert_int_equal(jitdump_unload_code(dump, code_index, 2, 3), 0);
    assert_errno_kept(4711);
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.bytes = (const void *)16; /* can't be read */
    code.code_size = 100;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    code.size = 1;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EINVAL);
    assert_errno_kept(4711);
    assert_int_equal(jitdump_close(dump), -EINVAL);
    assert_errno_kept(4711);
    struct jitdump_options options = options_in_dir();
    options.dir = "/nonexistent";
    assert_int_equal(jitdump_open(&dump, &options), -ENOENT);
    assert_errno_kept(4711);
    assert_int_equal(jitdump_close(dump), -ENOENT);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_errno),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
