/* V8's code log: which function of a dump it is about, and what was inlined there. */
#include "injector/log/v8/v8_inlines.h"
#include "tests/unit/line_world.h"

#include <unistd.h>

/* A script in one line: functions begin at characters 10, 40 and 70. */
#define OUTER "outer /a.js:1:11"
#define INNER "inner /a.js:1:41"
#define DEEP  "deep /a.js:1:71"

#define BYTECODE(us, name, sfi) "code-creation,JS,10," us ",0x77" us ",50," name "," sfi ",~\n"
#define FUNCTIONS                                                                                  \
    BYTECODE("1", OUTER, "0xa0")                                                                   \
    "code-source-info,0x771,5,10,39,C0O10,,\n" BYTECODE(                                           \
        "2", INNER,                                                                                \
        "0xb0") "code-source-info,0x772,5,40,69,C0O40,,\n" BYTECODE("3", DEEP,                     \
                                                                    "0xc0") "code-source-info,"    \
                                                                            "0x773,5,70,99,C0O70," \
                                                                            ",\n"
#define CODE(us, name, sfi) "code-creation,JS,13," us ",0x10000,96," name "," sfi ",*\n"
#define INFO                "code-source-info,0x10000,5,10,39,"

static struct {
    struct v8_log log;
    size_t given;
} v8;

/* The dump that was built, with the log of TEXT, whose first line is added. */
static void read_both(const char *text)
{
    char *whole;
    const int bytes = asprintf(&whole, "v8-version,11,3,244,8,-node.38,0\n%s", text);
    assert_true(bytes > 0);
    read_log();
    v8.log = (struct v8_log){.path = "v8.log"};
    v8.given = 0;
    assert_int_equal(v8_log_parse(&v8.log, whole, (size_t)bytes, &fixture.findings), 0);
    assert_int_equal(v8_inlines_give(&fixture.log, &v8.log, NULL, &v8.given, &fixture.findings), 0);
    v8_log_free(&v8.log); /* what was given does not need it */
    free(whole);
}

static void assert_call(size_t at, int32_t parent, const char *name, uint32_t line, uint32_t column)
{
    assert_true(at < fixture.table.inline_count);
    const struct line_inline *call = &fixture.table.inlines[at];
    assert_int_equal(call->parent, parent);
    assert_text(call->name, name);
    assert_int_equal(call->call_line, line);
    assert_int_equal(call->call_column, column);
}

static void assert_span(size_t at, uint64_t offset, int32_t call)
{
    assert_true(at < fixture.table.span_count);
    assert_int_equal(fixture.table.spans[at].offset, offset);
    assert_int_equal(fixture.table.spans[at].inline_index, call);
}

/* ---- The tree ---- */

static void test_calls_with_names_places_and_spans(void **state)
{
    (void)state;
    load(1, ADDR, "JS:*" OUTER);
    read_both(FUNCTIONS CODE("9", OUTER, "0xa0") INFO
              "C0O10C8O45I0C16O75I1C24O20C90O21I0,F0O25F1O55I0,S0xb0S0xc0\n");
    assert_int_equal(v8.given, 1);
    assert_nothing_found();
    assert_true(decode(0));
    assert_int_equal(fixture.table.inline_count, 2);
    assert_call(0, LINE_NOT_INLINED, "JS:*" INNER, 1, 26);
    assert_call(1, 0, "JS:*" DEEP, 1, 56);
    assert_text(fixture.table.inlines[1].decl_file, "/a.js");
    assert_text(fixture.table.inlines[1].call_file, "/a.js");
    assert_int_equal(fixture.table.inlines[1].decl_line, 1);
    assert_span(0, 0, LINE_NOT_INLINED);
    assert_span(1, 8, 0);
    assert_span(2, 16, 1);
    assert_span(3, 24, LINE_NOT_INLINED);
    assert_span(4, 90, 0);
    release();
}

/* Its callees are its caller's then, at the place where it was called. */
static void test_a_builtin_has_no_number_and_is_left_out(void **state)
{
    (void)state;
    load(1, ADDR, "JS:*" OUTER);
    read_both(FUNCTIONS CODE("9", OUTER, "0xa0") INFO
              "C0O10C8O1I0C16O75I1C24O45I2,FO25F0O3I0F1O55I1,S0xb0S0xc0\n");
    assert_true(decode(0));
    assert_int_equal(fixture.table.inline_count, 2);
    assert_call(0, LINE_NOT_INLINED, "JS:*" INNER, 1, 26);
    assert_call(1, 0, "JS:*" DEEP, 1, 56);
    assert_span(1, 8, LINE_NOT_INLINED);
    assert_span(2, 16, 0);
    release();
}

static void test_of_positions_at_one_offset_the_last_counts(void **state)
{
    (void)state;
    load(1, ADDR, "JS:*" OUTER);
    read_both(FUNCTIONS CODE("9", OUTER, "0xa0") INFO "C0O10C8O20C8O45I0C8O46I0,F0O25,S0xb0\n");
    assert_true(decode(0));
    assert_int_equal(fixture.table.span_count, 2);
    assert_span(1, 8, 0);
    release();
}

static void test_maglevs_code_and_that_of_a_loop(void **state)
{
    (void)state;
    load(1, ADDR, "JS:+" OUTER);
    load(2, ADDR + STEP, "JS:o*'" OUTER);
    read_both(FUNCTIONS "code-creation,JS,11,9,0x10000,96," OUTER ",0xa0,+\n" INFO
                        "C8O45I0,F0O25,S0xb0\n"
                        "code-creation,JS,13,10,0x10100,96," OUTER ",0xa0,o*'\n"
                        "code-source-info,0x10100,5,10,39,C8O45I0,F0O25,S0xb0\n");
    assert_int_equal(v8.given, 2);
    assert_true(decode(0));
    assert_call(0, LINE_NOT_INLINED, "JS:+" INNER, 1, 26);
    assert_true(decode(1));
    assert_call(0, LINE_NOT_INLINED, "JS:*" INNER, 1, 26);
    release();
}

/* V8 10 (node 18): its dump has the line of a function, and its log the column, too. */
static void test_a_dump_that_names_no_columns(void **state)
{
    (void)state;
    load(1, ADDR, "LazyCompile:*outer /a.js:1");
    read_both(FUNCTIONS CODE("9", OUTER, "0xa0") INFO "C0O10C8O45I0,F0O25,S0xb0\n");
    assert_int_equal(v8.given, 1);
    assert_nothing_found();
    assert_true(decode(0));
    assert_call(0, LINE_NOT_INLINED, "LazyCompile:*inner /a.js:1", 1, 26);
    release();
}

static void test_another_line_or_file_is_another_function(void **state)
{
    static const char *const others[] = {"LazyCompile:*outer /a.js:2", "LazyCompile:*outer /a.js",
                                         "LazyCompile:*outer /b.js:1", "LazyCompile:*outer :1"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        load(1, ADDR, others[i]);
        read_both(FUNCTIONS CODE("9", OUTER, "0xa0") INFO "C0O10C8O45I0,F0O25,S0xb0\n");
        assert_int_equal(v8.given, 0);
        release();
    }
}

/* ---- Names ---- */

static void test_escapes_in_names(void **state)
{
    (void)state;
    size_t bytes;
    char *plain =
        v8_text_plain(line_text_of("a\\x2Cb\\\\c\\nd\\u20AC\\uD83D\\uDE00\\xE9\\u12"), &bytes);
    assert_string_equal(plain, "a,b\\c\nd\u20ac\U0001F600\u00e9u12");
    free(plain);
}

static void test_the_garbage_collector_moves_functions(void **state)
{
    (void)state;
    load(1, ADDR, "JS:*" OUTER);
    read_both(FUNCTIONS "sfi-move,0xb0,0xb8\nsfi-move,0xa0,0xb0\n" CODE("9", OUTER, "0xb0") INFO
              "C8O45I0,F0O25,S0xb8\n");
    assert_true(decode(0));
    assert_call(0, LINE_NOT_INLINED, "JS:*" INNER, 1, 26);
    release();
}

/* ---- Which function ---- */

static void test_code_of_another_name_or_size_is_another(void **state)
{
    (void)state;
    load(1, ADDR, "JS:*" INNER);
    read_both(FUNCTIONS CODE("9", OUTER, "0xa0") INFO "C8O45I0,F0O25,S0xb0\n"
                                                      "code-creation,JS,13,10,0x10000,95," INNER
                                                      ",0xb0,*\n" INFO "C8O45I0,F0O25,S0xc0\n");
    assert_int_equal(v8.given, 0);
    assert_false(decode(0));
    release();
}

/* The same function at the same address, compiled anew with something else inlined. */
static void test_an_address_that_was_used_again_in_order(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 2; i++)
        load(1 + i, ADDR, "JS:*" OUTER);
    read_both(FUNCTIONS CODE("9", OUTER, "0xa0") INFO
              "C8O45I0,F0O25,S0xb0\n" CODE("10", OUTER, "0xa0") INFO "C8O75I0,F0O25,S0xc0\n");
    assert_int_equal(v8.given, 2);
    assert_true(decode(0));
    assert_call(0, LINE_NOT_INLINED, "JS:*" INNER, 1, 26);
    assert_true(decode(1));
    assert_call(0, LINE_NOT_INLINED, "JS:*" DEEP, 1, 26);
    release();
}

/* The first code has nothing inlined. */
static void test_an_address_whose_first_code_has_no_calls(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 2; i++)
        load(1 + i, ADDR, "JS:*" OUTER);
    read_both(FUNCTIONS CODE("9", OUTER, "0xa0") INFO "C8O45,,\n" CODE("10", OUTER, "0xa0") INFO
              "C8O75I0,F0O25,S0xc0\n");
    assert_int_equal(v8.given, 1);
    assert_false(decode(0));
    assert_true(decode(1));
    assert_call(0, LINE_NOT_INLINED, "JS:*" DEEP, 1, 26);
    release();
}

/* The first of the log's was before the dump began. */
static void test_an_address_that_was_used_more_often_in_the_log_by_time(void **state)
{
    (void)state;
    load(5000000, ADDR + STEP, "JS:*" INNER);
    load(9000000, ADDR, "JS:*" OUTER);
    read_both(FUNCTIONS CODE("1000", OUTER, "0xa0") INFO
              "C8O45I0,F0O25,S0xb0\n"
              "code-creation,JS,13,4000,0x10100,96," INNER ",0xb0,*\n"
              "code-source-info,0x10100,5,40,69,C8O75I0,F0O25,S0xc0\n" CODE("8000", OUTER, "0xa0")
                  INFO "C8O75I0,F0O25,S0xc0\n" CODE("12000", OUTER, "0xa0") INFO
              "C8O45I0,F0O25,S0xb0\n");
    assert_true(decode(1));
    assert_call(0, LINE_NOT_INLINED, "JS:*" DEEP, 1, 26);
    release();
}

/* Nothing is inlined, so nothing needs the log. */
static void test_a_log_of_the_dumps_process(void **state)
{
    (void)state;
    load(1, ADDR, "JS:*" OUTER);
    read_both(FUNCTIONS CODE("9", OUTER, "0xa0") INFO "C8O45,,\n");
    assert_true(fixture.log.has_v8_log);
    release();
}

static void test_a_log_of_another_process(void **state)
{
    (void)state;
    load(1, ADDR + STEP, "JS:*" OUTER);
    read_both(FUNCTIONS CODE("9", OUTER, "0xa0") INFO "C8O45,,\n");
    assert_false(fixture.log.has_v8_log);
    release();
}

/* ---- Places ---- */

/* The log has characters, and the dump the lines of those that code is of. */
static void test_a_call_by_a_row_of_the_dump(void **state)
{
    static const struct built_row rows[] = {
        {ADDR, 8, 15, "/b.js"}, {ADDR + 8, 3, 7, "/b.js"}, {ADDR + 16, 11, 9, "/b.js"}};
    (void)state;
    dump_lines(&built, 0, ADDR, rows, 3);
    load(1, ADDR, "JS:*outer /b.js:8:15");
    read_both(BYTECODE("1", "outer /b.js:8:15",
                       "0xa0") "code-source-info,0x771,5,271,429,C0O271,,"
                               "\n" BYTECODE("2", "inner /b.js:3:13",
                                             "0xb0") "code-source-info,0x772,5,40,69,"
                                                     "C0O40,,\n"
                                                     "code-creation,JS,13,9,0x10000,96,"
                                                     "outer /b.js:8:15,0xa0,*\n" INFO
                                                     "C0O271C8O45I0C16O339C24O45I1,"
                                                     "F0O339F0O350,S0xb0\n");
    assert_true(decode(0));
    assert_call(0, LINE_NOT_INLINED, "JS:*inner /b.js:3:13", 11, 9);
    assert_call(1, LINE_NOT_INLINED, "JS:*inner /b.js:3:13", 0,
                0); /* on a line that is not known */
    assert_row(1, 8, 3, "/b.js");
    release();
}

/* V8 names the file of the function that has the code in all rows.  INNER is what was inlined from
 * elsewhere, and calls deep. */
static void inline_from_elsewhere(const char *inner)
{
    static const struct built_row rows[] = {
        {ADDR, 8, 15, "/b.js"}, {ADDR + 8, 3, 7, "/b.js"}, {ADDR + 16, 11, 9, "/b.js"}};
    char *log;
    assert_true(
        asprintf(&log,
                 BYTECODE("1", "outer /b.js:8:15", "0xa0") "code-source-info,0x771,5,271,429,"
                                                           "C0O271,,\n"
                                                           "code-creation,JS,10,2,0x772,50,"
                                                           "%s,0xb0,~\n"
                                                           "code-source-info,0x772,6,40,69,"
                                                           "C0O40,,\n"
                                                           "code-creation,JS,13,9,0x10000,"
                                                           "96,outer /b.js:8:15,0xa0,*\n" INFO
                                                           "C0O271C8O45I0C16O339C24O60I1,"
                                                           "F0O339F0O45I0,S0xb0\n",
                 inner) > 0);
    dump_lines(&built, 0, ADDR, rows, 3);
    load(1, ADDR, "JS:*outer /b.js:8:15");
    read_both(log);
    free(log);
    assert_true(decode(0));
}

static void test_a_row_of_what_was_inlined_from_another_file(void **state)
{
    (void)state;
    inline_from_elsewhere("inner /c.js:3:13");
    assert_row(0, 0, 8, "/b.js");
    assert_row(1, 8, 3, "/c.js");
    assert_row(2, 16, 11, "/b.js");
    assert_call(0, LINE_NOT_INLINED, "JS:*inner /c.js:3:13", 11, 9);
    assert_call(1, 0, "JS:*inner /c.js:3:13", 3, 7); /* by the row */
    release();
}

static void test_a_row_of_what_was_inlined_from_no_file(void **state)
{
    (void)state;
    inline_from_elsewhere("inner :3:13");
    assert_row(1, 8, 3, "<unknown>");
    release();
}

static const char source[] = "const \u20ac = '\U0001F600';\n"
                             "function outer() {\n"
                             "    return 1 + inner();\n"
                             "}\n";

/* OUTER: where the log has outer's "(". */
static void expect_call_in_source(const char *place, uint32_t line, uint32_t column)
{
    char path[] = "/tmp/perfjit-script-XXXXXX", *name, *log;
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, source, sizeof source - 1), sizeof source - 1);
    close(fd);
    assert_true(asprintf(&name, "JS:*outer %s:%s", path, place) > 0);
    assert_true(asprintf(&log,
                         "code-creation,JS,10,1,0x771,50,outer %s:%s,0xa0,~\n"
                         "code-source-info,0x771,5,30,57,C0O30,,\n"
                         "code-creation,JS,10,2,0x772,50,inner /n.js:1:1,0xb0,~\n"
                         "code-creation,JS,13,9,0x10000,96,outer %s:%s,0xa0,*\n"
                         "code-source-info,0x10000,5,30,57,C8O4I0,F0O50,S0xb0\n",
                         path, place, path, place) > 0);
    load(1, ADDR, name);
    read_both(log);
    assert_true(decode(0));
    assert_int_equal(fixture.table.inlines[0].call_line, line);
    assert_int_equal(fixture.table.inlines[0].call_column, column);
    assert_int_equal(fixture.findings.count[FINDING_SCRIPT_CHANGED], line ? 0 : 1);
    release();
    unlink(path);
    free(name);
    free(log);
}

/* Characters are counted as JavaScript does: two for one outside of the basic plane. */
static void test_a_call_by_the_scripts_file(void **state)
{
    (void)state;
    expect_call_in_source("2:15", 3, 16);
}

static void test_a_file_that_is_not_the_script_is_told(void **state)
{
    (void)state;
    expect_call_in_source("2:16", 0, 0);
}

/* A loader made the text in memory, and stands in front of its first line.  OUTER: where the log
 * has outer's "(". */
static void read_with_text(const char *outer)
{
    char *name, *log;
    assert_true(asprintf(&name, "JS:*outer /none/t\u00e9.ts:%s", outer) > 0);
    assert_true(asprintf(&log,
                         "script-source,5,/none/t\\xE9.ts,wrap(const \\u20AC = '\\uD83D\\uDE00';"
                         "\\nfunction outer() {\\n    return 1 + inner();\\n}\n"
                         "code-creation,JS,10,1,0x771,50,first /none/t\\xE9.ts:1:3,0xd0,~\n"
                         "code-source-info,0x771,5,7,60,C0O7,,\n"
                         "code-creation,JS,10,2,0x772,50,outer /none/t\\xE9.ts:%s,0xa0,~\n"
                         "code-source-info,0x772,5,35,62,C0O35,,\n"
                         "code-creation,JS,10,3,0x773,50,inner /n.js:1:1,0xb0,~\n"
                         "code-creation,JS,13,9,0x10000,96,outer /none/t\\xE9.ts:%s,0xa0,*\n"
                         "code-source-info,0x10000,5,35,62,C8O55I0C16O9I1C24O2I2,"
                         "F0O55F0O9F0O2,S0xb0\n",
                         outer, outer) > 0);
    load(1, ADDR, name);
    read_both(log);
    free(name);
    free(log);
    assert_nothing_found();
    assert_true(decode(0));
}

static void test_a_call_by_the_text_in_the_log(void **state)
{
    (void)state;
    read_with_text("2:15");
    assert_call(0, LINE_NOT_INLINED, "JS:*inner /n.js:1:1", 3, 16);
    assert_call(1, LINE_NOT_INLINED, "JS:*inner /n.js:1:1", 1, 5);
    assert_call(2, LINE_NOT_INLINED, "JS:*inner /n.js:1:1", 0, 0); /* in the loader's words */
    release();
}

/* It is in no file. */
static void test_a_call_in_a_script_of_nodes_own(void **state)
{
    (void)state;
    load(1, ADDR, "JS:*outer node:a/b:2:15");
    read_both("script-source,5,node:a/b,a;//# sourceURL=c\\nfunction outer() { inner(); }\n"
              "code-creation,JS,10,2,0x772,50,outer node:a/b:2:15,0xa0,~\n"
              "code-source-info,0x772,5,32,46,C0O32,,\n"
              "code-creation,JS,10,3,0x773,50,inner /n.js:1:1,0xb0,~\n"
              "code-creation,JS,13,9,0x10000,96,outer node:a/b:2:15,0xa0,*\n"
              "code-source-info,0x10000,5,32,46,C8O5I0,F0O37,S0xb0\n");
    assert_nothing_found();
    assert_true(decode(0));
    assert_call(0, LINE_NOT_INLINED, "JS:*inner /n.js:1:1", 2, 20);
    release();
}

static void test_a_text_that_has_a_function_elsewhere_tells_nothing(void **state)
{
    (void)state;
    read_with_text("2:16");
    assert_call(0, LINE_NOT_INLINED, "JS:*inner /n.js:1:1", 0, 0);
    release();
}

/* Each eval has characters of its own, and all have the same name: none. */
static void test_a_call_in_a_script_without_a_name_has_no_line(void **state)
{
    (void)state;
    load(1, ADDR, "JS:*outer :1:11");
    read_both("code-creation,JS,10,1,0x771,50,inner :1:41,0xb0,~\n"
              "code-source-info,0x771,5,40,69,C0O40,,\n" CODE("9", "outer :1:11", "0xa0") INFO
              "C8O45I0,F0O40,S0xb0\n");
    assert_true(decode(0));
    assert_call(0, LINE_NOT_INLINED, "JS:*inner :1:41", 0, 0);
    release();
}

/* ---- Functions of eval ---- */

/* eval's script NUMBER, which calls itself URL. */
#define EVAL(number, url)                                                                          \
    "script-source," number ",<unknown>,use('//# sourceURL=no');function outer(){\\n"              \
    "return inner();} function inner(){}\\n//# sourceURL=[module]\\n//# sourceURL=" url            \
    "\\n\\n})\n"
#define EVAL_FUNCTIONS(number)                                                                     \
    "code-creation,JS,2,1,0x10100,96,outer :1:39,0xa0,~\n"                                         \
    "code-source-info,0x10100," number ",38,58,,,\n" BYTECODE("2", "outer :1:39", "0xa0")          \
        BYTECODE("3", "inner :2:32", "0xb0") "code-source-info,0x773," number ",73,77,C0O73,,\n"

static void assert_name(size_t function, const char *name)
{
    const struct jit_function *of = &fixture.log.functions[function];
    assert_text(((struct line_text){of->name, of->name_bytes}), name);
}

static void test_a_function_of_eval_has_the_name_of_its_script(void **state)
{
    (void)state;
    load(1, ADDR, "JS:*outer :1:39");
    load(2, ADDR + STEP, "JS:~outer :1:39");
    load(3, ADDR + 2 * STEP, "JS:~outer :1:39");
    read_both(EVAL("5", "webpack-internal:///./a.js") EVAL_FUNCTIONS("5")
                  CODE("9", "outer :1:39", "0xa0") "code-source-info,0x10000,5,38,58,"
                                                   "C0O38C8O73I0,F0O49,S0xb0\n");
    assert_int_equal(v8.given, 1);
    assert_nothing_found();
    assert_name(0, "JS:*outer webpack-internal:///./a.js:1:39");
    assert_name(1, "JS:~outer webpack-internal:///./a.js:1:39");
    assert_name(2, "JS:~outer :1:39"); /* is not in the log */
    assert_true(decode(0));
    assert_call(0, LINE_NOT_INLINED, "JS:*inner webpack-internal:///./a.js:2:32", 2, 8);
    assert_text(fixture.table.inlines[0].decl_file, "webpack-internal:///./a.js");
    assert_int_equal(fixture.table.inlines[0].decl_line, 2);
    release();
}

/* The garbage collector took the first one away. */
static void test_two_scripts_whose_functions_are_alike(void **state)
{
    (void)state;
    load(1, ADDR + STEP, "JS:~outer :1:39");
    load(2, ADDR, "JS:*outer :1:39");
    load(3, ADDR + STEP, "JS:~outer :1:39");
    read_both(EVAL("5", "a.js") EVAL_FUNCTIONS("5") CODE("4", "outer :1:39", "0xa0")
                  EVAL("6", "a\\x2Cb.js") EVAL_FUNCTIONS("6"));
    assert_name(0, "JS:~outer a.js:1:39");
    assert_name(1, "JS:*outer a.js:1:39");
    assert_name(2, "JS:~outer a,b.js:1:39");
    release();
}

/* So did it the second and the third one.  The second calls itself nothing. */
static void test_scripts_of_which_one_calls_itself_nothing(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 3; i++)
        load(1 + i, ADDR + STEP, "JS:~outer :1:39");
    read_both(EVAL("5", "a.js") EVAL_FUNCTIONS("5") EVAL_FUNCTIONS("6") EVAL("7", "c.js")
                  EVAL_FUNCTIONS("7"));
    assert_name(0, "JS:~outer a.js:1:39");
    assert_name(1, "JS:~outer :1:39");
    assert_name(2, "JS:~outer c.js:1:39");
    release();
}

static void test_what_is_no_name_of_a_script(void **state)
{
    static const char *const ends[] = {
        "//# sourceURL=a.js\\nmore();", "'//# sourceURL=a.js'", "//# sourceURL=",
        "//# sourceURL=a\\\\b.js",      "// sourceURL=a.js",    "//# sourceURL=a.js b"};
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *log;
        assert_int_equal(begin(NULL), 0);
        load(1, ADDR + STEP, "JS:~outer :1:39");
        assert_true(asprintf(&log, "script-source,5,<unknown>,%s\n" EVAL_FUNCTIONS("5"), ends[i]) >
                    0);
        read_both(log);
        assert_name(0, "JS:~outer :1:39");
        release();
        free(log);
    }
}

/* Node's names are kept, whatever a script calls itself. */
static void test_a_script_of_a_file_keeps_its_name(void **state)
{
    (void)state;
    load(1, ADDR, "JS:*" OUTER);
    read_both(
        "script-source,5,/a.js,f();\\n//# sourceURL=b.js\n" FUNCTIONS CODE("9", OUTER, "0xa0"));
    assert_name(0, "JS:*" OUTER);
    release();
}

/* ---- What is wrong with it ---- */

static void expect_broken(const char *info, const char *words)
{
    char *log;
    assert_int_equal(begin(NULL), 0);
    load(1, ADDR, "JS:*" OUTER);
    assert_true(asprintf(&log, FUNCTIONS CODE("9", OUTER, "0xa0") INFO "%s\n", info) > 0);
    read_both(log);
    assert_int_equal(v8.given, 0);
    assert_false(decode(0));
    assert_only(FINDING_INLINES_BROKEN, 1);
    if (!strstr(fixture.findings.first[FINDING_INLINES_BROKEN], words))
        fail_msg("'%s' is not in: %s", words, fixture.findings.first[FINDING_INLINES_BROKEN]);
    release();
    free(log);
}

static void test_inlines_that_contradict_themselves(void **state)
{
    (void)state;
    expect_broken("C8O45I0,F0O25I0,S0xb0", "comes before its caller");
    expect_broken("C8O45I0,F0O25I1F1O55I0,S0xb0S0xc0", "comes before its caller");
    expect_broken("C8O45I1,F0O25,S0xb0", "positions can't be read");
    expect_broken("C8O45I0C4O45I0,F0O25,S0xb0", "positions can't be read");
    expect_broken("C8O45I0C,F0O25,S0xb0", "positions can't be read");
    expect_broken("C8O45I0,F0O25G,S0xb0", "inlined calls can't be read");
    expect_broken("C8O45I0,F0O99999999999,S0xb0", "inlined calls can't be read");
}

static void test_calls_that_lie_too_deep(void **state)
{
    char info[8192];
    size_t bytes = (size_t)snprintf(info, sizeof info, "C8O45I299,F0O25");
    (void)state;
    for (int i = 0; i < 299; i++)
        bytes += (size_t)snprintf(info + bytes, sizeof info - bytes, "F0O55I%d", i);
    snprintf(info + bytes, sizeof info - bytes, ",S0xb0");
    expect_broken(info, "more than 256 calls");
}

static void test_lines_that_cannot_be_read_are_counted(void **state)
{
    static const char text[] = "v8-version,11\n"
                               "code-creation,JS,13,9,0x10000,96\n"
                               "code-creation,JS,13,9,10000,96,f /a.js:1:1,0xa0,*\n"
                               "code-source-info,0x10000\n"
                               "sfi-move,0xa0\n"
                               "script-source,5,/a.js\n"
                               "code-move,0xa0,0xb0\n"
                               "code-deopt,1,2,0x10000\n"
                               "code-creation,Builtin,2,1,0x10000,96,Abort\n"
                               "anything\n"
                               "code-creation,JS,13,9,0x1";
    struct findings findings = {0};
    (void)state;
    v8.log = (struct v8_log){.path = "v8.log"};
    assert_int_equal(v8_log_parse(&v8.log, text, sizeof text - 1, &findings), 0);
    assert_int_equal(v8.log.bad_lines, 6);
    assert_int_equal(v8.log.first_bad, 2);
    v8_log_free(&v8.log);
    assert_int_equal(v8_log_parse(&v8.log, "jit", 3, &findings), V8_NO_LOG);
    assert_non_null(strstr(findings.failure, "no code log of V8"));
    v8_log_free(&v8.log);
    findings_free(&findings);
}

/* ---- Deopts ---- */

#define DEOPT(us, addr, rest) "code-deopt," us ",96," addr ",-1,10,deopt-eager," rest "\n"

static void assert_deopt(size_t at, uint64_t time_ns, uint32_t function, const char *reason)
{
    assert_true(at < fixture.log.deopt_count);
    const struct code_deopt *deopt = &fixture.log.deopts[at];
    assert_int_equal(deopt->time_ns, time_ns);
    assert_int_equal(deopt->function, function);
    assert_string_equal(deopt->kind, "deopt-eager");
    assert_string_equal(deopt->place, "/a,b.js:1:20");
    assert_string_equal(deopt->reason, reason);
}

/* Code without inlined calls is given up as well. */
static void test_deopts_by_the_dumps_clock(void **state)
{
    (void)state;
    load(5009000, ADDR, "JS:*" OUTER);
    load(5030000, ADDR, "JS:*" DEEP);
    read_both(FUNCTIONS CODE("9", OUTER, "0xa0")
                  DEOPT("20", "0x10000", "</a\\x2Cb.js:1:20>,wrong map") CODE("30", DEEP, "0xc0")
                      DEOPT("41", "0x10000", "</a\\x2Cb.js:1:20>,Insufficient type feedback"));
    assert_int_equal(fixture.log.deopt_count, 2);
    assert_deopt(0, 5020000, 0, "wrong map");
    assert_deopt(1, 5041000, 1, "Insufficient type feedback");
    assert_nothing_found();
    release();
}

static void test_deopts_of_code_that_is_not_in_the_dump_are_left_out(void **state)
{
    (void)state;
    load(5009000, ADDR, "JS:*" OUTER);
    read_both(FUNCTIONS CODE("9", OUTER, "0xa0") DEOPT(
        "20", "0x20000", "<>,wrong map") "code-creation,JS,13,30,0x30000,96," DEEP
                                         ",0xc0,*\n" DEOPT("41", "0x30000", "<>,wrong map"));
    assert_int_equal(fixture.log.deopt_count, 0);
    release();
}

/* Another process has the same functions at the same addresses, compiled at other times. */
static void test_deopts_of_another_process_are_left_out(void **state)
{
    (void)state;
    load(5009000, ADDR, "JS:*" OUTER);
    load(85030000, ADDR + 4096, "JS:*" DEEP);
    read_both(
        FUNCTIONS CODE("9", OUTER, "0xa0") "code-creation,JS,13,30,0x11000,96," DEEP
                                           ",0xc0,*\n" DEOPT("41", "0x10000", "<>,wrong map"));
    assert_int_equal(fixture.log.deopt_count, 0);
    release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINE_TEST(test_deopts_by_the_dumps_clock),
        LINE_TEST(test_deopts_of_code_that_is_not_in_the_dump_are_left_out),
        LINE_TEST(test_deopts_of_another_process_are_left_out),
        LINE_TEST(test_calls_with_names_places_and_spans),
        LINE_TEST(test_a_builtin_has_no_number_and_is_left_out),
        LINE_TEST(test_of_positions_at_one_offset_the_last_counts),
        LINE_TEST(test_maglevs_code_and_that_of_a_loop),
        LINE_TEST(test_a_dump_that_names_no_columns),
        LINE_TEST(test_another_line_or_file_is_another_function),
        LINE_TEST(test_escapes_in_names),
        LINE_TEST(test_the_garbage_collector_moves_functions),
        LINE_TEST(test_code_of_another_name_or_size_is_another),
        LINE_TEST(test_an_address_that_was_used_again_in_order),
        LINE_TEST(test_an_address_whose_first_code_has_no_calls),
        LINE_TEST(test_a_log_of_the_dumps_process),
        LINE_TEST(test_a_log_of_another_process),
        LINE_TEST(test_an_address_that_was_used_more_often_in_the_log_by_time),
        LINE_TEST(test_a_call_by_a_row_of_the_dump),
        LINE_TEST(test_a_row_of_what_was_inlined_from_another_file),
        LINE_TEST(test_a_row_of_what_was_inlined_from_no_file),
        LINE_TEST(test_a_call_by_the_scripts_file),
        LINE_TEST(test_a_file_that_is_not_the_script_is_told),
        LINE_TEST(test_a_call_by_the_text_in_the_log),
        LINE_TEST(test_a_call_in_a_script_of_nodes_own),
        LINE_TEST(test_a_text_that_has_a_function_elsewhere_tells_nothing),
        LINE_TEST(test_a_call_in_a_script_without_a_name_has_no_line),
        LINE_TEST(test_a_function_of_eval_has_the_name_of_its_script),
        LINE_TEST(test_two_scripts_whose_functions_are_alike),
        LINE_TEST(test_scripts_of_which_one_calls_itself_nothing),
        LINE_TEST(test_what_is_no_name_of_a_script),
        LINE_TEST(test_a_script_of_a_file_keeps_its_name),
        LINE_TEST(test_inlines_that_contradict_themselves),
        LINE_TEST(test_calls_that_lie_too_deep),
        LINE_TEST(test_lines_that_cannot_be_read_are_counted),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
