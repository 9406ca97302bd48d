/* Which files tell of a runtime that can't log its code. */
#include "injector/recording/silent_runtime.h"

#include "tests/unit/profile_builder.h"

static void those_without_perf_support(void **state)
{
    (void)state;
    assert_string_equal(silent_runtime("/usr/lib/pypy3.9/libpypy3.9-c.so"), "PyPy");
    assert_string_equal(silent_runtime("/usr/lib/x86_64-linux-gnu/libguile-3.0.so.1.6.0"), "Guile");
    assert_string_equal(silent_runtime("/usr/bin/racket"), "Racket");
    assert_string_equal(silent_runtime("/usr/lib/libgjs.so.0.0.0"), "gjs");
    assert_string_equal(silent_runtime("/usr/bin/sbcl"), "SBCL");
    assert_string_equal(silent_runtime("/usr/lib/libgccjit.so.0.0.1"), "libgccjit");
    assert_string_equal(silent_runtime("/usr/bin/python3.11"), "Python before 3.12");
    assert_string_equal(silent_runtime("/usr/lib/libpython3.9.so.1.0"), "Python before 3.12");
    assert_string_equal(silent_runtime("python2.7"), "Python before 3.12");
}

static void those_with_it_and_others(void **state)
{
    (void)state;
    assert_null(silent_runtime("/usr/bin/python3.12"));
    assert_null(silent_runtime("/usr/lib/libpython3.13.so.1.0"));
    assert_null(silent_runtime("/usr/bin/python3")); /* which one is not known */
    assert_null(silent_runtime("/usr/bin/node"));
    assert_null(silent_runtime("/opt/racket/bin/prog"));
    assert_null(silent_runtime("//anon"));
    assert_null(silent_runtime(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_without_perf_support),
        cmocka_unit_test(those_with_it_and_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
