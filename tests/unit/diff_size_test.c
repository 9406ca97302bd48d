/* What perfjit diff does with very many functions: room, time, memory. */
#include "tests/unit/made_runs.h"

#include <sys/resource.h>

enum { BLOCK = 64 };

/* Functions, each with a stack of its own. */
struct many_functions {
    struct made_stack *stacks;
    char *names;
};

enum { NAME_BYTES = 64 };

/* COUNT of them, of which each takes BASE and NEW us, called by CALLER if it has a name. */
static struct many_functions make_functions(size_t count, const char *format,
                                            struct made_frame caller, uint32_t base, uint32_t new)
{
    struct many_functions many = {calloc(count, sizeof *many.stacks), calloc(count, NAME_BYTES)};
    for (size_t i = 0; i < count; i++) {
        struct made_stack *stack = &many.stacks[i];
        char *name = many.names + NAME_BYTES * i;
        snprintf(name, NAME_BYTES, format, i);
        *stack = (struct made_stack){.frames = {caller}, .us = {base, new}};
        stack->frames[caller.name != NULL] =
            (struct made_frame){name, "jit", "a.js", "", FRAME_JIT, false, NULL};
    }
    return many;
}

static void free_functions(struct many_functions *many)
{
    free(many->stacks);
    free(many->names);
}

/* Of 3 000 functions some have room; the headline is there, and how many are not is told. */
static void test_markdown_ends_before_its_limit(void **state)
{
    (void)state;
    enum { FUNCTIONS = 3000, LIMIT = 16 * 1024 };
    struct many_functions many =
        make_functions(FUNCTIONS, "function_%zu_||||||||", (struct made_frame){0}, 1000, 1100);
    struct run_set set;
    struct diff_report report;
    make_runs(&set, many.stacks, FUNCTIONS, SIDE, 10, one_program);
    assert_int_equal(diff_report_make(&report, &set, false, 0.01), 0);
    char *markdown = markdown_of(&report, LIMIT);
    size_t left = 0, rows = 0;
    assert_in_range(strlen(markdown), LIMIT / 2, LIMIT - 1);
    assert_ptr_equal(strstr(markdown, "### slower: +"), markdown);
    for (char *at = markdown; (at = strstr(at, "<code>function")) != NULL; at++)
        rows++;
    char *notice = strstr(markdown, "\n\n");
    while (strstr(notice + 1, "\n\n") || strstr(notice + 1, "|\n\n"))
        notice = strstr(notice + 1, "\n\n");
    assert_int_equal(sscanf(notice, "\n\n%zu more functions are left out: this is limited", &left),
                     1);
    assert_int_equal(left + rows, FUNCTIONS);
    free(markdown);
    diff_report_free(&report);
    run_set_free(&set);
    free_functions(&many);
}

/* ---- Time ---- */

static double used_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
}

/* A tenth of the additions that all labellings of all functions take, 64 at a time: how long these
 * take is what the machine is worth at this moment. */
static double additions_s(void)
{
    enum { TIMES = 1000 * 20 * 20000 / BLOCK };
    static volatile double result;
    double sums[BLOCK] = {0}, start = used_s();
    static double values[BLOCK * 16];
    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = (double)i;
    for (size_t time = 0; time < TIMES; time++)
        for (size_t i = 0; i < BLOCK; i++)
            sums[i] += values[time % 16 * BLOCK + i];
    result = sums[(size_t)values[3]];
    (void)result;
    return used_s() - start;
}

/* 10 against 10 runs of 20 000 functions, all of which are tested, in 10 000 ways: 5 s of a core
 * (bench/comparisons.md).  Here it is counted in additions, since no machine is as fast as another
 * one. */
static void test_twenty_thousand_functions(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    enum { FUNCTIONS = 500 };
#else
    enum { FUNCTIONS = 20000, MOST_ADDITIONS = 8, MOST_KIB = 500 * 1024 };
#endif
    struct made_frame caller = NATIVE("main");
    struct many_functions many = make_functions(FUNCTIONS, "function_%zu", caller, 1000, 1000);
    struct run_set set;
    struct diff_report report;
    double additions = 5 * additions_s(), start = used_s();
    make_runs(&set, many.stacks, FUNCTIONS, 10, 100, one_program);
    assert_int_equal(diff_report_make(&report, &set, false, 0), 0);
    char *json = text_of(&report, diff_json_put);
    double seconds = used_s() - start;
    additions += 5 * additions_s();
    assert_int_equal(report.verdicts.tables[BY_FUNCTION].count, FUNCTIONS);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    print_message("%.2f s of user time, %.2f of the additions alone, %ld KiB\n", seconds, additions,
                  usage.ru_maxrss);
#if !defined(__SANITIZE_ADDRESS__)
    assert_true(seconds < MOST_ADDITIONS * additions);
    assert_true(usage.ru_maxrss < MOST_KIB);
#endif
    free(json);
    diff_report_free(&report);
    run_set_free(&set);
    free_functions(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markdown_ends_before_its_limit),
        cmocka_unit_test(test_twenty_thousand_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
