/* The names that functions have in all runs: without what runtimes put into them for one run, and
 * with the numbers that are the program's own. */
#include "injector/compare/run_name.h"

#include "tests/unit/scratch.h"

#include <string.h>

static void expect(const char *name, const char *wanted)
{
    char to[256];
    assert_in_range(strlen(name), 0, sizeof to - 1);
    size_t bytes = run_name_put(to, name);
    if (strcmp(to, wanted) != 0)
        fail_msg("%s: '%s' instead of '%s'", name, to, wanted);
    assert_int_equal(bytes, strlen(to));
}

static void test_parts_of_one_run_are_cut(void **state)
{
    (void)state;
    static const struct {
        const char *name, *wanted;
    } names[] = {
        {"long L$$Lambda/0x000000001a041c00.applyAsLong(long)",
         "long L$$Lambda/0x*.applyAsLong(long)"},
        {"Lambda$14/0x00007f44e8001800", "Lambda$*/0x*"},
        {"a.B$$Lambda$14/0x00007f44e8001800.run", "a.B$$Lambda$*/0x*.run"},
        {"a.B$$Lambda$4.0x00007fd65c001a20", "a.B$$Lambda$*.0x*"},
        {"a.B$$Lambda$1/1234567890::run", "a.B$$Lambda$*/*::run"},
        {"java.lang.invoke.LambdaForm$MH/0x0000000800c02400.invoke(int)",
         "java.lang.invoke.LambdaForm$MH/0x*.invoke(int)"},
        {"java.lang.invoke.LambdaForm$DMH/1915318863.invokeStatic",
         "java.lang.invoke.LambdaForm$DMH/*.invokeStatic"},
        {"jdk.internal.reflect.GeneratedMethodAccessor12.invoke",
         "jdk.internal.reflect.GeneratedMethodAccessor*.invoke"},
        {"long $Proxy0.f(long)", "long $Proxy*.f(long)"},
        {"jdk.proxy2.$Proxy14.f", "jdk.proxy*.$Proxy*.f"},
        {"a.B$$EnhancerBySpringCGLIB$$1a2b3c4d.f", "a.B$$EnhancerBySpringCGLIB$$*.f"},
        {"a.B$MockitoMock$1934568.f", "a.B$MockitoMock$*.f"},
        {"a.B$ByteBuddy$Xy12ZaBc.f", "a.B$ByteBuddy$*.f"},
        {"a.B$ByteBuddy$XyQrZaBc.f", "a.B$ByteBuddy$*.f"},
        {"a.B$HibernateProxy$bKtdfgPa.f", "a.B$HibernateProxy$*.f"},
        {"a.B_$$_jvst5f0_1a.f", "a.B_$$_jvst*_*.f"},
        {"a.B_$$_jvstabc_f.f", "a.B_$$_jvst*_*.f"},
        {"user$eval1234$fn__1235.invoke", "user$eval*$fn__*.invoke"},
        {"user$reify__77.run", "user$reify__*.run"},
        {"parse.lto_priv.12", "parse.lto_priv.*"},
        {"parse.constprop.0.isra.1", "parse.constprop.*.isra.*"},
        {"parse(int) [clone .part.3] [clone .cold]", "parse(int) [clone .part.*] [clone .cold]"},
        {"Script7$_run_closure1.doCall", "Script*$_run_closure1.doCall"},
        {"julia_solve_1234", "julia_solve_*"},
        {"jfptr_main_77", "jfptr_main_*"},
        {"evalexpr_19_3", "evalexpr_*_3"},
        {"_ZN4acme3run17h00004a50f0b1ea8fE", "_ZN4acme3run17h*E"},
        {"_ZN4acme3run17h0123456789012345E", "_ZN4acme3run17h*E"},
        {"acme::run::h00004a50f0b1ea8f", "acme::run::h*"},
        {"stub_0x7f1234567000", "stub_0x*"},
        {"f.llvm.123456789", "f.llvm.*"},
        {"anonymous-1234", "anonymous-*"},
        {"[perf-1234.map]", "[perf-*.map]"},
        {"TRACE_12::a.lua:7", "TRACE_*::a.lua:7"},
        {"TRACE 12", "TRACE *"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        expect(names[i].name, names[i].wanted);
}

static void test_the_programs_own_numbers_stay(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "fib_10",
                                        "fib_20",
                                        "$anonfun$main$3",
                                        "foo$1",
                                        "a.B$1.run",
                                        "lambda$3",
                                        "my_TRACE_12",
                                        "xGeneratedMethodAccessor1",
                                        "sha256",
                                        "0x10",
                                        "julia_12_x",
                                        "not_julia_f_1",
                                        "f(int, double2)",
                                        "wasm-function[12]",
                                        "$$Lambda$",
                                        "h264::h264",
                                        "17h",
                                        "$_run_closure1",
                                        "Object_0x1f",
                                        "Lambda$14.f",
                                        "utf8_decode",
                                        "i1234567890",
                                        "a.B$ByteBuddy$short",
                                        "_$$_jvst5f0_max",
                                        "a.constprop",
                                        "my.part.two"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        expect(names[i], names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_of_one_run_are_cut),
        cmocka_unit_test(test_the_programs_own_numbers_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
