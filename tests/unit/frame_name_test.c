/* What symbols of JIT code say: name, tier, place; which native ones are interpreters; C++ names.
 */
#include "injector/native/symbols/demangle.h"
#include "injector/profile/frame_name.h"

#include "tests/unit/scratch.h"

static void assert_name(const char *symbol, const char *name, const char *tier, const char *file,
                        uint32_t line)
{
    struct frame_name found = frame_name_of_jit(symbol, strlen(symbol));
    char text[256];
    snprintf(text, sizeof text, "%.*s|%s|%.*s|%u", (int)found.name_bytes, found.name, found.tier,
             (int)found.file_bytes, found.file ? found.file : "", found.line);
    char wanted[256];
    snprintf(wanted, sizeof wanted, "%s|%s|%s|%u", name, tier, file, line);
    if (strcmp(text, wanted))
        fail_msg("%s: %s, wanted %s", symbol, text, wanted);
}

static void test_v8(void **state)
{
    (void)state;
    assert_name("JS:*hot /srv/app.js:12:5", "hot", "TurboFan", "/srv/app.js", 12);
    assert_name("JS:^hot /srv/app.js:12:5", "hot", "Sparkplug", "/srv/app.js", 12);
    assert_name("JS:+hot /a b.js:1:2", "hot", "Maglev", "/a b.js", 1);
    assert_name("JS:~ node:internal/main:1:1", "(anonymous)", "bytecode", "node:internal/main", 1);
    assert_name("JS:~", "(anonymous)", "bytecode", "", 0);
    assert_name("JS:*", "(anonymous)", "TurboFan", "", 0);
    assert_name("LazyCompile:*f /x.js:3", "f", "TurboFan", "/x.js", 3);
    assert_name("Builtin:JSEntry", "Builtin:JSEntry", "", "", 0);
    assert_name("JS:*a b", "a b", "TurboFan", "", 0);
    assert_name("JS:*f :1:2", "f :1:2", "TurboFan", "", 0);
    assert_name("JS:*m e t;h /srv/a b.js:2:29", "m e t;h", "TurboFan", "/srv/a b.js", 2);
    assert_name("JS:*get x file:///srv/a.js:2:29", "get x", "TurboFan", "file:///srv/a.js", 2);
    assert_name("JS:~get x node:net:2:29", "get x", "bytecode", "node:net", 2);
    assert_name("JS:*f rel a.js:2:29", "f", "TurboFan", "rel a.js", 2);
    assert_name("JS:*' /srv/a.js:2:29", "(anonymous)", "TurboFan", "/srv/a.js", 2);
    assert_name("JS:o*'f /srv/a.js:2:29", "f", "TurboFan OSR", "/srv/a.js", 2);
    assert_name("JS:o+ file:///a.js:1:1", "(anonymous)", "Maglev OSR", "file:///a.js", 1);
    assert_name("JS:*k: a b /srv/a.js:2:29", "k: a b", "TurboFan", "/srv/a.js", 2);
    assert_name("JS:*a k: b /srv/a.js:2:29", "a k: b", "TurboFan", "/srv/a.js", 2);
    assert_name("JS:*f ", "f ", "TurboFan", "", 0);
    assert_true(frame_name_of_jit("JS:~f", 5).interpreted);
    assert_false(frame_name_of_jit("JS:*f", 5).interpreted);
}

/* In minified code the column alone tells functions apart. */
static void test_the_column(void **state)
{
    (void)state;
    static const struct {
        const char *symbol;
        uint32_t line, column;
    } names[] = {{"JS:*e /srv/app.min.js:1:129", 1, 129},
                 {"JS:~ /srv/app.min.js:1:14", 1, 14},
                 {"e file:///srv/app.min.js:1:70000", 1, 70000},
                 {"LazyCompile:*f /x.js:3", 3, 0},
                 {"JS:*f", 0, 0}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct frame_name name = frame_name_of_jit(names[i].symbol, strlen(names[i].symbol));
        assert_int_equal(name.line, names[i].line);
        assert_int_equal(name.column, names[i].column);
    }
}

static void test_others(void **state)
{
    (void)state;
    assert_name("py::leaf:/srv/work.py", "leaf", "", "/srv/work.py", 0);
    assert_name("py::A.f.<locals>.g:<string>", "A.f.<locals>.g", "", "<string>", 0);
    assert_name("py::f", "f", "", "", 0);
    assert_name("fib [tier2]", "fib", "tier2", "", 0);
    assert_name("JSC-DFG: fib", "fib", "JSC-DFG", "", 0);
    assert_name("hot", "hot", "", "", 0);
    assert_name("hot (inlined)", "hot", "", "", 0);
    assert_true(frame_name_of_jit("hot (inlined)", 13).inlined);
    assert_false(frame_name_of_jit("hot", 3).inlined);
    assert_name("", "(anonymous)", "", "", 0);
    assert_name("void java.util.A.f(int, long)", "void java.util.A.f(int, long)", "", "", 0);
    assert_true(frame_name_of_jit("Interpreter", 11).interpreted);
    assert_name("x 99999999999:1:1", "x", "", "99999999999", 1);
}

static void test_interpreters(void **state)
{
    (void)state;
    assert_true(frame_name_is_interpreter("_PyEval_EvalFrameDefault"));
    assert_true(frame_name_is_interpreter("Builtins_LdaNamedPropertyHandler"));
    assert_true(frame_name_is_interpreter("execute_ex"));
    assert_false(frame_name_is_interpreter("Builtins_ArrayMap"));
    assert_false(frame_name_is_interpreter("malloc"));
}

static void assert_plain(const char *symbol, const char *wanted)
{
    char *plain = demangle(symbol);
    if (wanted ? !plain || strcmp(plain, wanted) : plain != NULL)
        fail_msg("%s: %s", symbol, plain ? plain : "NULL");
    free(plain);
}

static void test_cxx(void **state)
{
    (void)state;
    assert_plain("malloc", NULL);
    assert_plain("_Zwrong", NULL);
    assert_plain("_ZN4node5StartEiPPc", "node::Start");
    assert_plain("_ZNK3foo3barEv", "foo::bar");
    assert_plain("_ZN3fooclEi", "foo::operator()");
    assert_plain("_Znwm", "operator new");
    assert_plain("_Z3maxIiET_S0_S0_", "max<int>");
    assert_plain("_ZN12_GLOBAL__N_13runEv", "(anonymous namespace)::run");
    assert_plain("_ZTV3foo", "vtable for foo");
    assert_plain("_Z1fv.part.0", "f");
}

/* f(A<int, int>, A<that, that>, ...): each part of ten bytes doubles the name.  Returns SYMBOL. */
static const char *doubled(char *symbol, unsigned parts)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    strcpy(symbol, "_Z1f1AIiiE");
    for (unsigned i = 0; i < parts; i++)
        sprintf(symbol + strlen(symbol), "S_IS%c_S%c_E", digits[i], digits[i]);
    return symbol;
}

static void test_cxx_that_grows(void **state)
{
    (void)state;
    char symbol[512];
    alarm(60);
    assert_plain(doubled(symbol, 1), "f");
    assert_plain(doubled(symbol, 9), "f");
    assert_plain(doubled(symbol, 16), NULL);
    assert_plain(doubled(symbol, 36), NULL);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v8),     cmocka_unit_test(test_the_column),
        cmocka_unit_test(test_others), cmocka_unit_test(test_interpreters),
        cmocka_unit_test(test_cxx),    cmocka_unit_test(test_cxx_that_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
