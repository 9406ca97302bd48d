/* Names in tables: what is left out of Java's and C++'s, and that all others stay. */
#include "injector/profile/report/short_name.h"

#include "tests/unit/profile_builder.h"

static void becomes(const char *name, const char *wanted)
{
    char text[256];
    assert_string_equal(short_name(name, text, sizeof text), wanted);
}

static void java(void **state)
{
    (void)state;
    becomes("int java.util.HashMap.hash(java.lang.Object)", "HashMap.hash(Object)");
    becomes("java.util.List com.sun.tools.javac.code.Types$1.visit(int, java.util.List, a.B)",
            "Types$1.visit(int, List, B)");
    becomes("void Work.run()", "void Work.run()"); /* without a package it may be anything */
    becomes("void org.Work.run(float)", "Work.run(float)");
}

static void template_arguments(void **state)
{
    (void)state;
    becomes("std::vector<std::pair<int, long>, std::allocator<int> >::push_back(int&&)",
            "std::vector<...>::push_back(int&&)");
    becomes("std::vector<int>::size() const", "std::vector<int>::size() const");
    becomes("bool operator< <std::allocator<char> >(A, B)",
            "bool operator< <std::allocator<char> >(A, B)");
    becomes("f<decltype(a->b()), a_long_argument>(int)", "f<...>(int)");
    becomes("f<a_long_argument(int)", "f<a_long_argument(int)"); /* never closed */
}

static void others_stay(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",        "(anonymous)", "JS:*hot /a/b.js:3:5", "py::f:a.py", "<computed name of it>",
        "a (b.c)", "foo()"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        becomes(names[i], names[i]);
}

static void what_does_not_fit_stays(void **state)
{
    (void)state;
    char text[10];
    const char *name = "int java.util.A.b(int)";
    assert_ptr_equal(short_name(name, text, sizeof text), name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(java),
        cmocka_unit_test(template_arguments),
        cmocka_unit_test(others_stay),
        cmocka_unit_test(what_does_not_fit_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
