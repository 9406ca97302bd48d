/* What perfjit diff does with very many functions: room, time, memory. */
#include "tests/unit/made_runs.h"

#include <sys/resource.h>

enum { BLOCK = 64 };

/* Of 3 000 functions some have room; the headline is there, and how many are not is told. */
static void test_markdown_ends_before_its_limit(void **state)
{
    (void)state;
    enum { FUNCTIONS = 3000, LIMIT = 16 * 1024 };
    struct made_stack *stacks = calloc(FUNCTIONS, sizeof *stacks);
    char *names = calloc(FUNCTIONS, 64);
    struct run_set set;
    struct diff_report report;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        snprintf(names + 64 * i, 64, "function_%zu_||||||||", i);
        stacks[i] = (struct made_stack){
            {{names + 64 * i, "jit", "a.js", "", FRAME_JIT, false, NULL}}, NULL, {1000, 1100}};
    }
    make_runs(&set, stacks, FUNCTIONS, SIDE, 10, one_program);
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
    free(names);
    free(stacks);
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
    struct made_stack *stacks = calloc(FUNCTIONS, sizeof *stacks);
    char *names = calloc(FUNCTIONS, 32);
    struct run_set set;
    struct diff_report report;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        snprintf(names + 32 * i, 32, "function_%zu", i);
        stacks[i] = (struct made_stack){
            {NATIVE("main"), {names + 32 * i, "jit", "a.js", "", FRAME_JIT, false, NULL}},
            NULL,
            {1000, 1000}};
    }
    double additions = 5 * additions_s(), start = used_s();
    make_runs(&set, stacks, FUNCTIONS, 10, 100, one_program);
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
    free(names);
    free(stacks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markdown_ends_before_its_limit),
        cmocka_unit_test(test_twenty_thousand_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
