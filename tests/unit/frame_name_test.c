/* What symbols of JIT code say: name, tier, place; which native ones are interpreters. */
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
    assert_name("JS:*f :1:2", "f", "TurboFan", "<unknown>", 1); /* of eval */
    assert_name("JS:* :1:2", "(anonymous)", "TurboFan", "<unknown>", 1);
    assert_name("JS:*get x :34:2", "get x", "TurboFan", "<unknown>", 34);
    assert_name("JS:*f :2", "f :2", "TurboFan", "", 0);
    assert_name("JS:*f :-2:1", "f", "TurboFan", "<unknown>", 0);
    assert_name("JS:~ /srv/a b.ts:1:-195", "(anonymous)", "bytecode", "/srv/a b.ts", 1);
    assert_name("JS:*f /srv/a.js:0:5", "f", "TurboFan", "/srv/a.js", 0);
    assert_name("JS:*f /srv/a.js:-1:0", "f", "TurboFan", "/srv/a.js", 0);
    assert_name("JS:*f /srv/a.js:-1", "f /srv/a.js:-1", "TurboFan", "", 0);
    assert_name("JS:*a b x-y:///./c.js:2:29", "a b", "TurboFan", "x-y:///./c.js", 2);
    assert_name("JS:*a b-c:d e.js:2:29", "a", "TurboFan", "b-c:d e.js", 2);
    assert_name("JS:*m e t;h /srv/a b.js:2:29", "m e t;h", "TurboFan", "/srv/a b.js", 2);
    assert_name("JS:*get x file:///srv/a.js:2:29", "get x", "TurboFan", "file:///srv/a.js", 2);
    assert_name("JS:*get x [eval]:2:29", "get x", "TurboFan", "[eval]", 2);
    assert_name("JS:*f [worker eval]:2:29", "f", "TurboFan", "[worker eval]", 2);
    assert_name("JS:*get [Symbol.species] a.js:2:29", "get [Symbol.species]", "TurboFan", "a.js",
                2);
    assert_name("JS:*get a.js:2:29", "get", "TurboFan", "a.js", 2);
    assert_name("JS:*k l [worker eval]:2:29", "k l", "TurboFan", "[worker eval]", 2);
    assert_name("JS:* my file.js:2:29", "(anonymous)", "TurboFan", "my file.js", 2);
    assert_name("TRACE 12 load.lua:25", "TRACE 12", "", "load.lua", 25);
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
                 {"JS:~ /srv/app.ts:1:-195", 1, 0},
                 {"JS:~f /srv/app.ts:0:7", 0, 0},
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
    assert_name("py::<module>:/srv/work.py", "<module>", "", "/srv/work.py", 0);
    assert_name("py::gr\u00f6\u00dfe.<lambda>:a.py", "gr\u00f6\u00dfe.<lambda>", "", "a.py", 0);
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

/* Only CPython's form is CPython's. */
static void test_names_that_begin_like_python(void **state)
{
    (void)state;
    const char *const names[] = {"py::f",       "py::object::get",  "py::a::b:/x.py",
                                 "py::",        "py::f:",           "py::f::",
                                 "py::f:b",     "py::f(int):/x.py", "py::f.:/x.y",
                                 "py::<f:/x.y", "py:::/x.py",       "py::f.<>:/x.y"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_name(names[i], names[i], "", "", 0);
}

static void test_wasm(void **state)
{
    (void)state;
    const char name[] = "JS:a b-3-turbofan";
    struct frame_name found = frame_name_of_jit(name, strlen(name));
    assert_int_equal(found.number_bytes, 1);
    assert_memory_equal(found.number, "3", 1);
    assert_name(name, "a b", "TurboFan", "", 0);
    assert_name("JS:a b-3-liftoff", "a b", "Liftoff", "", 0);
    assert_name("JS:wasm-function[12]-12-liftoff", "wasm-function[12]", "Liftoff", "", 0);
    assert_name("Function:fib-3-0-liftoff", "fib-3", "Liftoff", "", 0);
    assert_name("JSC-WasmBBQ: fib", "fib", "JSC-WasmBBQ", "", 0);
    assert_name("WasmOMG: fib", "fib", "WasmOMG", "", 0);
    assert_true(frame_name_of_jit("JSC-WasmIPInt: f", 16).interpreted);
    assert_false(frame_name_of_jit("JSC-WasmOMG: f", 14).interpreted);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v8),     cmocka_unit_test(test_the_column),
        cmocka_unit_test(test_others), cmocka_unit_test(test_names_that_begin_like_python),
        cmocka_unit_test(test_wasm),   cmocka_unit_test(test_interpreters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
