/* The report of perfjit diff on runs that are made here: sums, states and moves, activities and
 * warnings.  Each form also gets names that mean something in it. */
#include "injector/compare/diff_page.h"
#include "injector/compare/diff_text.h"
#include "injector/compare/two_programs.h"
#include "injector/text/base64.h"
#include "tests/unit/made_runs.h"

#include <math.h>
#include <zlib.h>

static char *page_of(const struct diff_report *report)
{
    char *page = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&page, &bytes);
    assert_int_equal(diff_page_write(stream, report), 0);
    assert_int_equal(fclose(stream), 0);
    return page;
}

/* The head of the text about STACKS, to be freed. */
static char *head_of(const struct made_stack *stacks, size_t count, const char *const processes[2])
{
    struct run_set set;
    struct diff_report report;
    make_runs(&set, stacks, count, SIDE, 20, processes);
    assert_int_equal(two_programs_tell(&set), 0);
    assert_int_equal(diff_report_make(&report, &set, false, 0.01), 0);
    char *head = text_of(&report, diff_text_put);
    diff_report_free(&report);
    run_set_free(&set);
    return head;
}

static void assert_says(const char *text, const char *wanted)
{
    if (!strstr(text, wanted))
        fail_msg("'%s' is not in:\n%s", wanted, text);
}

/* What is packed in PAGE (packed_data.h), to be freed. */
static char *data_of(const char *page)
{
    static const char begin[] = "id=\"data\">\n";
    const char *at = strstr(page, begin);
    assert_non_null(at);
    const size_t most = strlen(page), room = 1 << 20;
    uint8_t *packed = malloc(most);
    char *data = calloc(1, room);
    size_t count = 0;
    uint32_t bits = 0, held = 0;
    assert_non_null(packed);
    assert_non_null(data);
    for (at += strlen(begin); base64_value(*at) >= 0; at++) {
        bits = bits << 6 | (uint32_t)base64_value(*at);
        held += 6;
        if (held >= 8)
            packed[count++] = (uint8_t)(bits >> (held -= 8));
    }
    uLongf bytes = room - 1;
    assert_int_equal(uncompress((Bytef *)data, &bytes, packed, count), Z_OK);
    free(packed);
    return data;
}

static void assert_head_says(const struct made_stack *stacks, size_t count, const char *wanted)
{
    char *head = head_of(stacks, count, one_program);
    char *end = head;
    for (size_t i = 0; i < 3 && end; i++) /* the first three lines name the cause */
        end = strchr(end + 1, '\n');
    assert_non_null(end);
    *end = '\0';
    assert_says(head, wanted);
    free(head);
}

/* ---- Sums ---- */

static void test_each_table_adds_up_to_the_total(void **state)
{
    (void)state;
    static const struct made_stack stacks[] = {
        {{NATIVE("main"), JIT("hot", "TurboFan")}, NULL, {50000, 60000}},
        {{NATIVE("main"), JIT("hot", "Maglev")}, NULL, {5000, 6000}},
        {{NATIVE("main"), JIT("gone", "Maglev")}, NULL, {7000, 0}},
        {{JIT("hot", "TurboFan"), KERNEL("page_fault")}, NULL, {100, 300}},
        {{{NULL}}, NULL, {40, 60}}};
    struct run_set set;
    struct verdicts verdicts;
    make_runs(&set, stacks, COUNT(stacks), SIDE, 10, one_program);
    assert_int_equal(verdicts_find(&verdicts, &set, false, 0.01), 0);
    for (int table = 0; table < BY_STACK; table++) {
        double base = 0, new = 0;
        for (size_t i = 0; i < verdicts.tables[table].count; i++) {
            base += verdicts.tables[table].items[i].base;
            new += verdicts.tables[table].items[i].new;
        }
        assert_true(fabs(base - verdicts.total.base) < 1);
        assert_true(fabs(new - verdicts.total.new) < 1);
    }
    const struct compared_row *root = &verdicts.tables[BY_STACK].items[0];
    assert_true(fabs(root->base - verdicts.total.base) < 1);
    /* lines differ from run to run, and two tiers are one function; with main: 5, less it */
    assert_int_equal(verdicts.tables[BY_FUNCTION].count, 4);
    assert_int_equal(verdicts.tables[BY_STATE].count, 5);
    verdicts_free(&verdicts);
    run_set_free(&set);
}

/* ---- Causes ---- */

static void test_the_first_lines_name_what_changed(void **state)
{
    (void)state;
    static const struct made_stack slower[] = {
        {{NATIVE("main"), JIT("hot", "TurboFan")}, NULL, {50000, 60000}},
        {{NATIVE("main"), JIT("same", "TurboFan")}, NULL, {50000, 50000}}};
    assert_head_says(slower, COUNT(slower), "by: hot  hot.js +10.");
    static const struct made_stack deoptimised[] = {
        {{JIT("main", "TurboFan"), JIT("hot", "TurboFan")}, NULL, {10000, 0}},
        {{JIT("main", "TurboFan"), JIT("hot", "Sparkplug")}, NULL, {0, 40000}},
        {{JIT("main", "TurboFan")}, NULL, {50000, 50000}}};
    assert_head_says(deoptimised, COUNT(deoptimised),
                     " ms (TurboFan, then Sparkplug: deoptimised)\n");
    static const struct made_stack interpreted[] = {
        {{JIT("main", "TurboFan"), JIT("hot", "TurboFan")}, NULL, {10000, 0}},
        {{JIT("main", "TurboFan"), BYTECODE("hot")}, NULL, {0, 40000}},
        {{JIT("main", "TurboFan")}, NULL, {50000, 50000}}};
    assert_head_says(interpreted, COUNT(interpreted),
                     "(TurboFan, then bytecode: deoptimised, interpreted)");
    static const struct made_stack outlined[] = {
        {{JIT("main", "TurboFan"), INLINED("hot", "TurboFan")}, NULL, {10000, 0}},
        {{JIT("main", "TurboFan"), JIT("hot", "TurboFan")}, NULL, {0, 40000}},
        {{JIT("main", "TurboFan")}, NULL, {50000, 50000}}};
    assert_head_says(outlined, COUNT(outlined),
                     "(TurboFan, inlined, then TurboFan: no longer inlined)");
    static const struct made_stack parted[] = {
        {{JIT("main", "TurboFan"), JIT("hot", "TurboFan")}, NULL, {100, 70000}},
        {{JIT("main", "TurboFan")}, NULL, {50000, 30000}}};
    assert_head_says(parted, COUNT(parted), " ms (no longer inlined into main  main.js)\n");
    static const struct made_stack called[] = {
        {{JIT("hot", "TurboFan")}, NULL, {20000, 0}},
        {{JIT("hot", "Sparkplug")}, NULL, {0, 18000}},
        {{JIT("hot", "Sparkplug"), NATIVE("Builtins_Add")}, NULL, {0, 60000}},
        {{JIT("main", "TurboFan")}, NULL, {50000, 50000}}};
    assert_head_says(called, COUNT(called), "by: Builtins_Add  node +60.");
    /* two tiers of which neither does more */
    static const struct made_stack beside[] = {
        {{JIT("main", "TurboFan"), JIT("hot", "OptimizedTier1")}, NULL, {10000, 0}},
        {{JIT("main", "TurboFan"), JIT("hot", "OptimizedTier1OSR")}, NULL, {0, 40000}},
        {{JIT("main", "TurboFan")}, NULL, {50000, 50000}}};
    assert_head_says(beside, COUNT(beside), "(OptimizedTier1, then OptimizedTier1OSR: moved)");
    /* two states that are called the same: another library's code of one source */
    static const struct made_stack rebuilt[] = {
        {{JIT("main", "TurboFan"), {"hot", "libold.so", "hot.c", "", FRAME_NATIVE, true, NULL}},
         NULL,
         {10000, 0}},
        {{JIT("main", "TurboFan"), {"hot", "libnew.so", "hot.c", "", FRAME_NATIVE, true, NULL}},
         NULL,
         {0, 40000}},
        {{JIT("main", "TurboFan")}, NULL, {50000, 50000}}};
    assert_head_says(rebuilt, COUNT(rebuilt), "by: hot  hot.c +30.");
    assert_head_says(rebuilt, COUNT(rebuilt), " ms\n4 of 5");
    /* what differs where the total does not */
    static const struct made_stack exchanged[] = {
        {{JIT("hot", "TurboFan")}, NULL, {50000, 30000}},
        {{JIT("cold", "TurboFan")}, NULL, {30000, 50000}},
        {{JIT("same", "TurboFan")}, NULL, {50000, 50000}}};
    assert_head_says(exchanged, COUNT(exchanged), " ms; ");
    assert_head_says(exchanged, COUNT(exchanged), "\nbut: ");
    assert_head_says(exchanged, COUNT(exchanged), "hot  hot.js -20.");
    assert_head_says(exchanged, COUNT(exchanged), "cold  cold.js +20.");
    static const struct made_stack alike[] = {{{JIT("same", "TurboFan")}, NULL, {50000, 50000}}};
    char *head = head_of(alike, COUNT(alike), one_program);
    assert_null(strstr(head, "but: "));
    free(head);
}

/* V8's dumps have the lines of what was inlined, and no other word of it. */
static void test_inlined_by_its_lines_alone(void **state)
{
    (void)state;
    static const struct made_stack parted[] = {
        {{JIT("main", "TurboFan"), AT("hot", "/src/hot.js")}, NULL, {0, 70000}},
        {{AT("main", "/work/hot.js")}, NULL, {20000, 0}},
        {{AT("main", "main.js")}, NULL, {30000, 50000}}};
    assert_head_says(parted, COUNT(parted), " ms (no longer inlined into main  main.js)\n");
    static const struct made_stack joined[] = {
        {{JIT("main", "TurboFan"), AT("hot", "hot.js")}, NULL, {70000, 0}},
        {{AT("main", "hot.js")}, NULL, {0, 20000}},
        {{AT("main", "main.js")}, NULL, {50000, 30000}}};
    assert_head_says(joined, COUNT(joined), " ms (inlined into main  main.js)\n");
    /* lines that the caller has on both sides, or of another file */
    static const struct made_stack others[] = {
        {{JIT("main", "TurboFan"), AT("hot", "hot.js")}, NULL, {0, 70000}},
        {{AT("main", "hot.js")}, NULL, {20000, 20000}},
        {{AT("main", "cold.js")}, NULL, {20000, 0}},
        {{AT("main", "main.js")}, NULL, {10000, 30000}}};
    assert_head_says(others, COUNT(others), "by: hot  hot.js +70.");
    char *head = head_of(others, COUNT(others), one_program);
    assert_null(strstr(head, "inlined"));
    free(head);
}

static void test_collectors_and_compilers_are_named(void **state)
{
    (void)state;
    static const struct made_stack collected[] = {
        {{NATIVE("v8::internal::Heap::CollectGarbage"), NATIVE("memcpy")}, NULL, {5000, 35000}},
        {{NATIVE("v8::internal::Heap::CollectGarbage"), KERNEL("munmap")}, NULL, {100, 9000}},
        {{JIT("hot", "TurboFan"), NATIVE("memcpy")}, NULL, {50000, 50000}}};
    assert_head_says(collected, COUNT(collected), "by: garbage collector +39.");
    static const struct made_stack threads[] = {
        {{NATIVE("PhaseIdealLoop::split_if")}, "C2 CompilerThre", {5000, 35000}},
        {{JIT("hot", "")}, NULL, {50000, 50000}}};
    assert_head_says(threads, COUNT(threads), "by: JIT compilers +30.");
    /* JIT code that a compiler calls is the program's own */
    static const struct made_stack within[] = {
        {{NATIVE("v8::internal::Compiler::Compile"), JIT("hot", "TurboFan")}, NULL, {5000, 35000}},
        {{JIT("main", "TurboFan")}, NULL, {50000, 50000}}};
    assert_head_says(within, COUNT(within), "by: hot  hot.js +30.");
}

static void test_different_programs_are_told(void **state)
{
    (void)state;
    static const struct made_stack one[] = {{{JIT("hot", "TurboFan")}, NULL, {50000, 50000}}};
    static const struct made_stack two[] = {{{JIT("hot", "TurboFan")}, NULL, {50000, 0}},
                                            {{JIT("cold", "TurboFan")}, NULL, {0, 50000}},
                                            {{KERNEL("page_fault")}, NULL, {90000, 90000}}};
    static const char *const names[2] = {"node", "bun"};
    char *head = head_of(one, COUNT(one), one_program);
    assert_null(strstr(head, "warning"));
    free(head);
    head = head_of(one, COUNT(one), names);
    assert_says(head, "warning: the sides ran different programs, node and bun");
    assert_says(head, "give two builds of one program the same file name, in two directories");
    free(head);
    head = head_of(two, COUNT(two), one_program);
    assert_says(head, "warning: the sides have 0 % of their time in functions that both have");
    free(head);
    static const struct made_stack renamed[] = {{{JIT("hot", "TurboFan")}, NULL, {50000, 0}},
                                                {{JIT("cold", "TurboFan")}, NULL, {0, 50000}},
                                                {{NATIVE("main")}, NULL, {20000, 20000}}};
    head = head_of(renamed, COUNT(renamed), one_program);
    assert_says(head, "warning: the sides have 0 % of their JIT code's time in functions that both "
                      "have; give the source files of both the same names");
    free(head);
    static const struct made_stack little[] = {{{JIT("hot", "TurboFan")}, NULL, {500, 0}},
                                               {{JIT("cold", "TurboFan")}, NULL, {0, 500}},
                                               {{NATIVE("main")}, NULL, {90000, 90000}}};
    head = head_of(little, COUNT(little), one_program);
    assert_null(strstr(head, "warning"));
    free(head);
}

/* All runs alike: nothing is divided by 0, and what differs does. */
static void test_no_variance(void **state)
{
    (void)state;
    static const struct made_stack stacks[] = {{{JIT("hot", "TurboFan")}, NULL, {50000, 60000}},
                                               {{JIT("same", "TurboFan")}, NULL, {50000, 50000}}};
    struct run_set set;
    struct diff_report report;
    make_runs(&set, stacks, COUNT(stacks), SIDE, 0, one_program);
    for (int paired = 0; paired < 2; paired++) {
        assert_int_equal(diff_report_make(&report, &set, paired, 0.01), 0);
        assert_int_equal(report.verdicts.total.verdict, VERDICT_SLOWER);
        assert_int_equal(report.verdicts.tables[BY_FUNCTION].items[0].verdict, VERDICT_SLOWER);
        assert_int_equal(report.verdicts.tables[BY_FUNCTION].items[1].verdict, VERDICT_NO_CHANGE);
        char *json = text_of(&report, diff_json_put);
        assert_null(strstr(json, "nan"));
        assert_null(strstr(json, "inf"));
        free(json);
        diff_report_free(&report);
    }
    run_set_free(&set);
}

/* Runs that differ by more than what is looked for, each from the others. */
static void test_what_can_tell_more_is_named(void **state)
{
    (void)state;
    static const char advice[] = "perfjit bench --order together runs both at the same time";
    static const struct made_stack stacks[] = {{{JIT("hot", "TurboFan")}, NULL, {50000, 50000}}};
    struct run_set set;
    struct diff_report report;
    make_runs(&set, stacks, COUNT(stacks), SIDE, 2000, one_program);
    for (int paired = 0; paired < 2; paired++) {
        assert_int_equal(diff_report_make(&report, &set, paired, 0.01), 0);
        assert_int_equal(report.verdicts.total.verdict, VERDICT_UNKNOWN);
        char *text = text_of(&report, diff_text_put);
        if (paired)
            assert_null(strstr(text, advice));
        else
            assert_says(text, advice);
        free(text);
        diff_report_free(&report);
    }
    run_set_free(&set);
    char *head = head_of(stacks, COUNT(stacks), one_program);
    assert_says(head, "no change: ");
    assert_null(strstr(head, advice));
    free(head);
}

/* A change that is certain and too small, and one run that takes thirty times as long. */
static void test_what_was_tested_is_told(void **state)
{
    (void)state;
    static const struct made_stack small[] = {{{JIT("hot", "TurboFan")}, NULL, {10000, 10300}},
                                              {{JIT("same", "TurboFan")}, NULL, {90000, 90000}}};
    static const struct made_stack far[] = {{{JIT("hot", "TurboFan")}, NULL, {3000000, 0}}};
    char *head = head_of(small, COUNT(small), one_program);
    assert_null(strstr(head, "far off"));
    free(head);
    struct run_set set;
    struct diff_report report;
    make_runs(&set, small, COUNT(small), SIDE, 1, one_program);
    assert_int_equal(diff_report_make(&report, &set, false, 0.01), 0);
    head = text_of(&report, diff_text_put);
    assert_says(head, "no change: +0.3 % in all");
    assert_says(head, "\nthe change is more than noise, and below the floor of 1.0 %\n");
    free(head);
    diff_report_free(&report);
    add_runs(&set, far, COUNT(far), 1, 0, one_program);
    assert_int_equal(diff_report_make(&report, &set, false, 0.01), 0);
    head = text_of(&report, diff_text_put);
    assert_says(head, "no change: +0.3 % in all");
    assert_says(head, "run 9 of the base is far off: 3000.0 ms, and their middle is 100.1 ms\n"
                      "run 9 of the new ones is far off: 0.0 ms, and their middle is 100.3 ms\n"
                      "the means, which these runs move, differ by -78.9 %\n");
    free(head);
    char *json = text_of(&report, diff_json_put);
    assert_says(json, "{\"side\":\"base\",\"run\":9,\"value\":3e+09}");
    free(json);
    diff_report_free(&report);
    run_set_free(&set);
}

/* ---- Forms ---- */

static void test_one_is_no_plural(void **state)
{
    (void)state;
    static const struct made_stack stacks[] = {{{JIT("hot", "TurboFan")}, NULL, {50000, 60000}},
                                               {{JIT("cold", "TurboFan")}, NULL, {3000, 3000}},
                                               {{JIT("same", "TurboFan")}, NULL, {5000, 5000}}};
    static const char *const left[] = {"... and 1 more function", "... and 2 more functions"};
    struct run_set set;
    struct diff_report report;
    make_runs(&set, stacks, COUNT(stacks), SIDE, 20, one_program);
    assert_int_equal(diff_report_make(&report, &set, false, 0.01), 0);
    for (size_t i = 0; i < COUNT(left); i++) {
        report.most_rows = 2 - i;
        char *text = text_of(&report, diff_text_put), *markdown = markdown_of(&report, 65536);
        char wanted[64];
        snprintf(wanted, sizeof wanted, "%s (--rows N)\n", left[i]);
        assert_says(text, wanted);
        snprintf(wanted, sizeof wanted, "%s.\n", left[i]);
        assert_says(markdown, wanted);
        free(text);
        free(markdown);
    }
    diff_report_free(&report);
    run_set_free(&set);
}

static void test_names_are_no_markup(void **state)
{
    (void)state;
    static const struct made_stack stacks[] = {
        {{{"a|b`c`*d*<script>@you [x](y)", "jit", "", "", FRAME_JIT, false, NULL}},
         NULL,
         {50000, 60000}},
        {{{"\\\"</script>", "jit", "", "", FRAME_JIT, false, NULL}}, NULL, {10000, 90000}}};
    struct run_set set;
    struct diff_report report;
    make_runs(&set, stacks, COUNT(stacks), SIDE, 10, one_program);
    assert_int_equal(diff_report_make(&report, &set, false, 0.01), 0);
    char *markdown = markdown_of(&report, MARKDOWN_MOST_BYTES);
    assert_ptr_equal(strstr(markdown, "### slower: +"), markdown);
    assert_says(markdown, "| <code>a&#124;b&#96;c&#96;&#42;d&#42;&#60;script&#62;&#64;you "
                          "&#91;x&#93;(y)</code> |\n");
    assert_says(markdown, "\n<code>by: &#92;&#34;&#60;/script&#62; +");
    assert_says(markdown, "&#64;you &#91;x&#93;(y) +");
    assert_null(strstr(markdown, "a|b"));
    assert_null(strstr(markdown, "<script"));
    free(markdown);
    char *json = text_of(&report, diff_json_put);
    assert_says(json, "\"name\":\"\\\\\\\"\\u003c/script>\"");
    free(json);
    char *page = page_of(&report), *data = data_of(page);
    assert_says(data, "\"difference\":{\"base\":[");
    assert_says(data, "a|b`c`*d*");
    assert_null(strstr(page, "\\\"</script>"));
    free(data);
    free(page);
    diff_report_free(&report);
    run_set_free(&set);
}

/* What changes the direction of text is told by its bytes, in JSON by its number. */
static void test_names_do_not_turn_the_text_around(void **state)
{
    (void)state;
    static const struct made_stack stacks[] = {
        {{{"a\xe2\x80\xae"
           "b\xe2\x81\xa6\xd8\x9c",
           "jit", "", "", FRAME_JIT, false, NULL}},
         NULL,
         {50000, 60000}},
        {{{"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "jit", "", "", FRAME_JIT, false, NULL}},
         NULL,
         {50000, 50000}}};
    static const char *const programs[2] = {"no\xe2\x80\xae", "de"};
    struct run_set set;
    struct diff_report report;
    make_runs(&set, stacks, COUNT(stacks), SIDE, 10, programs);
    assert_int_equal(two_programs_tell(&set), 0);
    assert_int_equal(run_set_add_note(&set, "cut in a character: \xe2\x82"), 0);
    assert_int_equal(diff_report_make(&report, &set, false, 0.01), 0);
    char *forms[] = {text_of(&report, diff_text_put), markdown_of(&report, MARKDOWN_MOST_BYTES),
                     text_of(&report, diff_json_put)};
    assert_says(forms[0], "by: a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6\\xd8\\x9c ");
    assert_says(forms[0], "slower      a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6\\xd8\\x9c\n");
    assert_says(forms[0], "no\\xe2\\x80\\xae and de");
    assert_says(forms[1], "<code>a&#92;xe2&#92;x80&#92;xaeb&#92;xe2");
    assert_says(forms[2], "\"a\\u202eb\\u2066\\u061c\"");
    for (size_t i = 0; i < COUNT(forms); i++) {
        assert_says(forms[i], "cut in a character");
        assert_null(strstr(forms[i], "character: \xe2"));
        assert_null(strstr(forms[i], "\xe2\x80\xae"));
        assert_says(forms[i], "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
        free(forms[i]);
    }
    diff_report_free(&report);
    run_set_free(&set);
}

/* Numbers that are wider than their columns stand apart. */
static void test_large_numbers_stand_apart(void **state)
{
    (void)state;
    static const struct made_stack stacks[] = {
        {{JIT("hot", "TurboFan")}, NULL, {UINT32_MAX, UINT32_MAX}}};
    struct run_set set;
    struct diff_report report;
    make_runs(&set, stacks, COUNT(stacks), SIDE, 0, one_program);
    assert_int_equal(diff_report_make(&report, &set, false, 0.01), 0);
    report.unit = "instructions";
    char *text = text_of(&report, diff_text_put);
    assert_says(text, " 4294967295000 4294967295000 ");
    free(text);
    diff_report_free(&report);
    run_set_free(&set);
}

/* Lines of a function that was asked for are in all forms, and its name is no markup in any. */
static void test_lines_are_in_each_form(void **state)
{
    (void)state;
    static const struct made_stack stacks[] = {
        {{{"a|<b>", "jit", "x<i>.js", "", FRAME_JIT, false, NULL}}, NULL, {50000, 60000}},
        {{JIT("same", "")}, NULL, {50000, 50000}}};
    struct run_set set;
    struct diff_report report;
    begin_runs(&set, "a|<b>");
    add_runs(&set, stacks, COUNT(stacks), SIDE, 10, one_program);
    assert_int_equal(diff_report_make(&report, &set, false, 0.01), 0);
    char *markdown = markdown_of(&report, MARKDOWN_MOST_BYTES), *page = page_of(&report);
    char *text = text_of(&report, diff_text_put);
    assert_says(text, "line of a|<b>\n");
    assert_says(markdown, "| verdict | line of <code>a&#124;&#60;b&#62;</code> |\n");
    assert_says(markdown, "| verdict | instruction of <code>a&#124;&#60;b&#62;</code> |\n");
    assert_says(markdown, " | slower | <code>(its line is not known)</code> |\n");
    assert_says(page, "<caption>lines of a|&lt;b&gt;</caption>");
    assert_says(page, "<caption>instructions of a|&lt;b&gt;</caption>");
    assert_says(page, "<td>slower</td><td>(its line is not known)</td></tr>");
    assert_null(strstr(page, "<b>"));
    free(text);
    free(page);
    free(markdown);
    report.most_rows = 0;
    markdown = markdown_of(&report, MARKDOWN_MOST_BYTES);
    assert_says(markdown, "... and 1 more line.\n");
    free(markdown);
    diff_report_free(&report);
    set.lines_of = NULL;
    assert_int_equal(diff_report_make(&report, &set, false, 0.01), 0);
    page = page_of(&report);
    assert_null(strstr(page, "<table"));
    assert_null(strstr(page, "%TABLES%"));
    free(page);
    diff_report_free(&report);
    run_set_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_table_adds_up_to_the_total),
        cmocka_unit_test(test_the_first_lines_name_what_changed),
        cmocka_unit_test(test_inlined_by_its_lines_alone),
        cmocka_unit_test(test_collectors_and_compilers_are_named),
        cmocka_unit_test(test_different_programs_are_told),
        cmocka_unit_test(test_no_variance),
        cmocka_unit_test(test_what_can_tell_more_is_named),
        cmocka_unit_test(test_what_was_tested_is_told),
        cmocka_unit_test(test_one_is_no_plural),
        cmocka_unit_test(test_names_are_no_markup),
        cmocka_unit_test(test_names_do_not_turn_the_text_around),
        cmocka_unit_test(test_lines_are_in_each_form),
        cmocka_unit_test(test_large_numbers_stand_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
