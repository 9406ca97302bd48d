/* What [PID:]FILE is. */
#include "injector/recording/given_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_is(const char *text, uint32_t pid, const char *path)
{
    struct given_file file = given_file_of(text);
    assert_int_equal(file.pid, pid);
    assert_string_equal(file.path, path);
    assert_string_equal(file.text, text);
}

static void test_a_pid_and_a_path(void **state)
{
    (void)state;
    assert_is("7:jit-1.dump", 7, "jit-1.dump");
    assert_is("2147483647:/a:b", 2147483647, "/a:b");
    assert_is("7:", 7, "");
}

static void test_a_path_alone(void **state)
{
    static const char *const paths[] = {
        "jit-7.dump", "7",          "",     ":a",           "a:b",
        "7a:b",       "./7:b",      " 7:b", "+7:b",         "-7:b",
        "0x7:b",      "0:jit.dump", "7 :b", "2147483648:a", "99999999999999999999:a"};
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_is(paths[i], 0, paths[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pid_and_a_path),
        cmocka_unit_test(test_a_path_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
