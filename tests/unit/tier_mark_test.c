/* What in a name says its tier. */
#include "injector/log/code/tier_mark.h"

#include "tests/unit/scratch.h"

/* NAME is FRONT, the mark, BEHIND; the mark says TEXT. */
static void assert_mark(const char *name, const char *without, const char *text)
{
    struct tier_mark mark = tier_mark_of(name, strlen(name));
    char left[128], said[TIER_TEXT_BYTES];
    snprintf(left, sizeof left, "%.*s%s", (int)mark.at, name, name + mark.at + mark.bytes);
    assert_string_equal(left, without);
    tier_mark_text(name, mark, said);
    assert_string_equal(said, text);
}

static void test_v8(void **state)
{
    (void)state;
    assert_mark("JS:*fib /a.js:1:2", "JS:fib /a.js:1:2", "TurboFan");
    assert_mark("JS:^fib /a.js:1:2", "JS:fib /a.js:1:2", "Sparkplug");
    assert_mark("JS:+fib /a.js:1:2", "JS:fib /a.js:1:2", "Maglev");
    assert_mark("JS:~fib /a.js:1:2", "JS:fib /a.js:1:2", "bytecode");
    assert_mark("LazyCompile:*fib a.js:1", "LazyCompile:fib a.js:1", "TurboFan");
    assert_mark("JS:* /a.js:1:1", "JS: /a.js:1:1", "TurboFan");
    assert_mark("JS:", "JS:", "");
    assert_mark("JS:o*fib /a.js:1:2", "JS:fib /a.js:1:2", "TurboFan OSR");
    assert_mark("JS:o+ /a.js:1:1", "JS: /a.js:1:1", "Maglev OSR");
    assert_mark("JS:*'fib /a.js:1:2", "JS:fib /a.js:1:2", "TurboFan");
    assert_mark("JS:+'fib /a.js:1:2", "JS:fib /a.js:1:2", "Maglev");
    assert_mark("JS:o*'fib /a.js:1:2", "JS:fib /a.js:1:2", "TurboFan OSR");
    assert_mark("JS:*'", "JS:", "TurboFan");
    assert_mark("JS:~'fib", "JS:'fib", "bytecode"); /* only optimized code has them */
    assert_mark("JS:o~fib", "JS:o~fib", "");
    assert_mark("JS:o", "JS:o", "");
    assert_mark("JS:o fib", "JS:o fib", "");
    assert_mark("JS:*o*", "JS:o*", "TurboFan");
}

static void test_wasm(void **state)
{
    (void)state;
    assert_mark("JS:fib-3-liftoff", "JS:fib-3", "Liftoff");
    assert_mark("JS:fib-3-turbofan", "JS:fib-3", "TurboFan");
    assert_mark("Function:-3-turbofan", "Function:-3", "TurboFan");
    assert_mark("JS:fib-liftoff", "JS:fib-liftoff", "");
    assert_mark("JS:3-liftoff", "JS:3-liftoff", "");
    assert_mark("fib-3-liftoff", "fib-3-liftoff", "");
    assert_mark("JSC-WasmOMG: fib", "fib", "JSC-WasmOMG");
    assert_mark("JSC-WasmBBQ: fib", "fib", "JSC-WasmBBQ");
}

static void assert_own(const char *name, const char *own)
{
    const char *start;
    size_t bytes = tier_mark_own_name(name, strlen(name), tier_mark_of(name, strlen(name)), &start);
    char text[128];
    snprintf(text, sizeof text, "%.*s", (int)bytes, start);
    assert_string_equal(text, own);
}

static void test_own_names(void **state)
{
    (void)state;
    assert_own("JS:o*'fib /a.js:1:2", "fib /a.js:1:2");
    assert_own("JS:a b-3-liftoff", "a b");
    assert_own("JSC-DFG: fib", "fib");
    assert_own("tj::fib [tier2]", "tj::fib");
    assert_own("plain", "plain");
    assert_own("JS:", "JS:");
}

static void test_brackets(void **state)
{
    (void)state;
    assert_mark("tj::fib [tier2]", "tj::fib", "tier2");
    assert_mark("int C::Fib(int)[OptimizedTier1]", "int C::Fib(int)", "OptimizedTier1");
    assert_mark("int A.f(int) [interpreted]", "int A.f(int)", "interpreted");
    assert_mark("int C::Fib(int)[PreJIT]", "int C::Fib(int)", "PreJIT");
    assert_mark("tier[tier", "tier[tier", "");
}

static void test_prefixes(void **state)
{
    (void)state;
    assert_mark("JSC-DFG: fib", "fib", "JSC-DFG");
    assert_mark("Ion: fib (a.js:1:2)", "fib (a.js:1:2)", "Ion");
    assert_mark("Baseline: fib", "fib", "Baseline");
}

static void test_what_is_none(void **state)
{
    (void)state;
    const char *const names[] = {"",        "fib",  "tj::[stub] fib", "a[0]", "[tier2]",
                                 "f [hot]", "*fib", "f [tier 2]",     "f]",   "JSX:*fib"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_mark(names[i], names[i], "");
}

static void test_ranks(void **state)
{
    (void)state;
    static const char *const orders[][5] = {{"bytecode", "Sparkplug", "Maglev", "TurboFan OSR"},
                                            {"JSC-LLInt", "JSC-Baseline", "JSC-DFG", "JSC-FTL"},
                                            {"tier1", "tier3", "tier4"},
                                            {"QuickJitted", "OptimizedTier1"}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        for (size_t j = 1; orders[i][j]; j++)
            assert_true(tier_rank(orders[i][j - 1]) < tier_rank(orders[i][j]));
    assert_int_equal(tier_rank("bytecode"), 0);
    assert_int_equal(tier_rank("PreJIT"), -1);
    assert_int_equal(tier_rank(""), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v8),        cmocka_unit_test(test_wasm),
        cmocka_unit_test(test_own_names), cmocka_unit_test(test_brackets),
        cmocka_unit_test(test_prefixes),  cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
