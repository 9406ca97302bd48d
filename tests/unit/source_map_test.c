/* Source maps: where places of generated scripts come from, by the standard's rules; and scripts
 * that name theirs. */
#include "injector/log/script/declared_name.h"
#include "injector/log/source_map/source_map.h"
#include "injector/log/source_map/source_maps.h"
#include "tests/unit/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static struct source_map map;
static char cause[256];

static int parse(const char *text)
{
    return source_map_parse(&map, text, strlen(text), "/app/dist", cause, sizeof cause);
}

static void assert_from(uint32_t line, uint32_t column, const char *source, uint32_t source_line,
                        uint32_t source_column, const char *name)
{
    const struct source_segment *segment = source_map_find(&map, line, column);
    assert_non_null(segment);
    assert_string_equal(map.sources[segment->source], source);
    assert_int_equal(segment->source_line, source_line);
    assert_int_equal(segment->source_column, source_column);
    if (name)
        assert_string_equal(map.names[segment->name], name);
    else
        assert_int_equal(segment->name, SOURCE_MAP_NOTHING);
}

/* ---- A map ---- */

/* esbuild 0.25, of "function total(n){return n*2}\nexport {total}" and more. */
static void test_columns_lines_sources_and_names(void **state)
{
    (void)state;
    assert_int_equal(parse("{\"version\":3,\"sources\":[\"../src/a.ts\",\"/abs/b.ts\"],"
                           "\"names\":[\"total\",\"other\"],"
                           "\"mappings\":\"AAASA,EAAC,CAAD;;AACA,CCCCC,CDDA;A\"}"),
                     0);
    assert_from(0, 0, "/app/src/a.ts", 0, 9, "total");
    assert_from(0, 1, "/app/src/a.ts", 0, 9, "total");
    assert_from(0, 2, "/app/src/a.ts", 0, 10, NULL);
    assert_from(0, 99, "/app/src/a.ts", 0, 9, NULL);
    assert_null(source_map_find(&map, 1, 5)); /* nothing on that line */
    assert_from(2, 0, "/app/src/a.ts", 1, 9, NULL);
    assert_from(2, 1, "/abs/b.ts", 2, 10, "other");
    assert_from(2, 2, "/app/src/a.ts", 1, 10, NULL);
    assert_int_equal(source_map_find(&map, 3, 0)->source, SOURCE_MAP_NOTHING);
    assert_null(source_map_find(&map, 4, 0));
    source_map_free(&map);
}

static void test_large_numbers(void **state)
{
    (void)state;
    /* 123456789 is qxmvrH */
    assert_int_equal(
        parse("{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"qxmvrHAAA,rxmvrHAqxmvrHqxmvrH\"}"),
        0);
    assert_from(0, 123456789, "/app/dist/a", 0, 0, NULL);
    assert_from(0, 0, "/app/dist/a", 123456789, 123456789, NULL);
    source_map_free(&map);
}

static void test_where_sources_are(void **state)
{
    static const struct {
        const char *root, *source, *path;
    } cases[] = {
        {"", "a.js", "/app/dist/a.js"},
        {"", "./x/../a.js", "/app/dist/a.js"},
        {"", "../../../../a.js", "/a.js"},
        {"..", "src/a.js", "/app/src/a.js"},
        {"../", "src/a.js", "/app/src/a.js"},
        {"/srv", "a.js", "/srv/a.js"},
        {"/srv/", "/abs/a.js", "/abs/a.js"},
        {"", "file:///abs/a.js", "/abs/a.js"},
        {"", "webpack://app/./src/../a.js", "webpack://app/a.js"},
        {"webpack://app/", "a.js", "webpack://app/a.js"},
        {"", "../../../../../a.js", "/a.js"},
        {"", "webpack://app/../shared/a.js", "webpack://app/shared/a.js"},
        {"webpack://app", "../../a.js", "webpack://app/a.js"},
        {"", "webpack:///../a.js?12ab", "webpack:///a.js?12ab"},
        {"", "https://h.org/../a.js", "https://h.org/a.js"},
        {"", "C:\\\\src\\\\..\\\\a.js", "C:/a.js"},
        {"D:/src", "a.js", "D:/src/a.js"},
        {"C:\\\\src\\\\", "x\\\\a.js", "C:/src/x/a.js"},
        {"", "..\\\\src\\\\a.js", "/app/src/a.js"},
        {"", "webpack://app/a\\\\b.js", "webpack://app/a\\b.js"},
        {"", "\\u0000helpers.js", "/app/dist/helpers.js"},
        {"", "\\u0000", "/app/dist/"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"version\":3,\"sourceRoot\":\"%s\",\"sources\":[\"%s\"],\"mappings\":\"AAAA\"}",
                 cases[i].root, cases[i].source);
        assert_int_equal(parse(text), 0);
        assert_string_equal(map.sources[0], cases[i].path);
        source_map_free(&map);
    }
}

/* Each section begins anew, in its own place. */
static void test_index_maps(void **state)
{
    (void)state;
    assert_int_equal(
        parse("{\"version\":3,\"sections\":["
              "{\"offset\":{\"line\":0,\"column\":5},\"map\":{\"version\":3,\"sources\":[\"a\"],"
              "\"names\":[\"f\"],\"mappings\":\"AAAAA;AACA\"}},"
              "{\"offset\":{\"line\":2,\"column\":7},\"map\":{\"version\":3,\"sources\":[\"b\"],"
              "\"names\":[\"g\"],\"mappings\":\"CAEAA;CACA\"}}]}"),
        0);
    assert_null(source_map_find(&map, 0, 4));
    assert_from(0, 5, "/app/dist/a", 0, 0, "f");
    assert_from(1, 0, "/app/dist/a", 1, 0, NULL);
    assert_from(2, 8, "/app/dist/b", 2, 0, "g");
    assert_from(3, 1, "/app/dist/b", 3, 0, NULL);
    source_map_free(&map);
}

static void test_a_prefix_against_xssi(void **state)
{
    (void)state;
    assert_int_equal(parse(")]}'\n{\"version\":3,\"sources\":[null],\"mappings\":\"AAAA\"}"), 0);
    assert_from(0, 0, "", 0, 0, NULL);
    source_map_free(&map);
}

static void expect_bad(const char *text, const char *words)
{
    assert_int_equal(parse(text), -1);
    if (!strstr(cause, words))
        fail_msg("'%s' is not in '%s' of %s", words, cause, text);
    source_map_free(&map);
}

#define HEAD "{\"version\":3,\"sources\":[\"a\"],\"names\":[\"n\"],\"mappings\":"

static void test_what_is_no_map(void **state)
{
    (void)state;
    expect_bad("", "line 1");
    expect_bad("{\"version\":3", "line 1");
    expect_bad("{\"version\":3,\"sources\":[\"\xff\"],\"mappings\":\"\"}", "unable to decode");
    expect_bad("[1]", "no JSON object");
    expect_bad("{\"version\":2,\"sources\":[],\"mappings\":\"\"}", "version is not 3");
    expect_bad("{\"version\":3,\"mappings\":\"\"}", "no sources");
    expect_bad("{\"version\":3,\"sources\":[7],\"mappings\":\"\"}", "no texts");
    expect_bad("{\"version\":3,\"sources\":[],\"names\":7,\"mappings\":\"\"}", "no list");
    expect_bad("{\"version\":3,\"sources\":[]}", "no mappings");
    expect_bad(HEAD "\"A!\"}", "no base64 VLQ");
    expect_bad(HEAD "\"g\"}", "no base64 VLQ");
    expect_bad(HEAD "\"gggggggC\"}", "no base64 VLQ");
    expect_bad(HEAD "\"AAAAAA\"}", "no base64 VLQ");
    expect_bad(HEAD "\"AA\"}", "2 or 3 numbers");
    expect_bad(HEAD "\"AAA\"}", "2 or 3 numbers");
    expect_bad(HEAD "\"D\"}", "not there");
    expect_bad(HEAD "\"ACAA\"}", "not there");
    expect_bad(HEAD "\"AADA\"}", "not there");
    expect_bad(HEAD "\"AAAD\"}", "not there");
    expect_bad(HEAD "\"AAAAC\"}", "not there");
    expect_bad("{\"sections\":[{\"offset\":{\"line\":-1,\"column\":0},\"map\":{}}]}",
               "begins nowhere");
    expect_bad("{\"sections\":[{\"sections\":[{\"sections\":[{\"map\":{\"sections\":[]}}]}]}]}",
               "no JSON object");
}

/* ---- Scripts ---- */

static struct source_maps maps;
static struct findings findings;

/* A script in the scratch folder, of which PLACE is looked up. */
static bool place_in(const char *script, struct mapped_place *place)
{
    write_scratch(script, strlen(script));
    maps = (struct source_maps){.options = {.directory = NULL}, .findings = &findings};
    findings = (struct findings){.quiet = true};
    *place = (struct mapped_place){line_text_of(scratch_file), place->line, place->column};
    return source_maps_place(&maps, place);
}

static void end_scripts(void)
{
    source_maps_free(&maps);
    findings_free(&findings);
}

#define MINIFIED "function t(n){return n*2}"

/* The name is in the map where the script has it, in front of the function's first character. */
#define MAP                                                                                        \
    "{\"version\":3,\"sources\":[\"src/m.ts\"],\"names\":[\"total\"],"                             \
    "\"mappings\":\"AAAA,SAASA,CAAC,CAAC\"}"

static void write_map(const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/m.map", scratch);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* The function that the script calls NAME, at its first character, is shown as WANTED. */
static void assert_name(const char *name, const char *wanted)
{
    char text[2 * PATH_MAX], expected[2 * PATH_MAX];
    snprintf(text, sizeof text, "%s %s:1:11", name, scratch_file);
    snprintf(expected, sizeof expected, "%s %s/src/m.ts:1:11", wanted, scratch);
    const struct line_text shown = source_maps_name(&maps, line_text_of(text));
    assert_int_equal(shown.bytes, strlen(expected));
    assert_memory_equal(shown.text, expected, shown.bytes);
}

#define MAP_WITH_TEXT                                                                              \
    "{\"version\":3,\"sources\":[\"src/m.ts\"],\"names\":[],\"sourcesContent\":[\"a.total = "      \
    "function(n)\"],"                                                                              \
    "\"mappings\":\"AAAA,UAAU\"}"

/* The map has the text that the function was written in. */
static void test_names_by_the_original_text(void **state)
{
    struct mapped_place place = {.line = 1, .column = 1};
    (void)state;
    write_map(MAP_WITH_TEXT);
    assert_true(place_in(MINIFIED "\n//# sourceMappingURL=m.map\n", &place));
    assert_name("JS:*t", "JS:*a.total");
    assert_name("JS:*", "JS:*a.total");
    assert_name("JS:*<computed>.t", "JS:*<computed>.t");
    assert_name("JS:*t.<computed>", "JS:*t.<computed>"); /* the text names another function */
    assert_name("JS:*<anonymous>", "JS:*<anonymous>");
    assert_name("JS:*x-t", "JS:*x-t"); /* a key */
    assert_name("JS:*x t", "JS:*x t");
    assert_name("JS:*get t", "JS:*get a.total");
    end_scripts();
}

/* The text is in the file, which is as old as EPOCH_SECONDS. */
static void write_original(time_t epoch_seconds)
{
    const struct timespec times[2] = {{.tv_sec = epoch_seconds}, {.tv_sec = epoch_seconds}};
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/src", scratch);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    strcat(path, "/m.ts");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("var sum = function(n)", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_names_by_the_file_unless_it_is_newer(void **state)
{
    struct mapped_place place = {.line = 1, .column = 1};
    (void)state;
    write_map("{\"version\":3,\"sources\":[\"src/m.ts\"],\"mappings\":\"AAAA,UAAU\"}");
    for (int is_newer = 0; is_newer < 2; is_newer++) {
        write_original(is_newer ? (time_t)INT32_MAX : 1000);
        assert_true(place_in(MINIFIED "\n//# sourceMappingURL=m.map\n", &place));
        place = (struct mapped_place){.line = 1, .column = 1};
        assert_name("JS:*t", is_newer ? "JS:*t" : "JS:*sum");
        end_scripts();
    }
}

static void test_names_of_functions(void **state)
{
    struct mapped_place place = {.line = 1, .column = 1};
    (void)state;
    write_map(MAP);
    assert_true(place_in(MINIFIED "\n//# sourceMappingURL=m.map\n", &place));
    assert_name("JS:*t", "JS:*total");
    assert_name("JS:o*'t", "JS:o*'total");
    assert_name("JS:~a.t", "JS:~a.total");
    assert_name("JS:~<computed>.t", "JS:~<computed>.total");
    assert_name("JS:~t.<computed>", "JS:~total.<computed>");
    assert_name("JS:~<computed>", "JS:~<computed>");
    assert_name("JS:*get t", "JS:*get total");
    assert_name("JS:*x", "JS:*x"); /* the script has another name there */
    assert_name("JS:*", "JS:*");
    end_scripts();
}

/* The nearest "t" is a parameter of a method, which the minifier called as the class. */
static void test_a_class_has_its_own_name(void **state)
{
    static const char name[] = "JS:*t";
    struct mapped_place place = {.line = 1, .column = 1};
    char text[2 * PATH_MAX];
    (void)state;
    write_map("{\"version\":3,\"sources\":[\"src/m.ts\"],\"names\":[\"Total\",\"item\"],"
              "\"mappings\":\"AAAA,MAAMA,QAAQC,UAAgBA,EAAU\"}");
    assert_true(place_in("class t{a=1;b(t){return t}constructor(n){this.n=n}}\n"
                         "//# sourceMappingURL=m.map\n",
                         &place));
    snprintf(text, sizeof text, "%s %s:1:38", name, scratch_file);
    const struct line_text shown = source_maps_name(&maps, line_text_of(text));
    assert_memory_equal(shown.text, "JS:*Total /", strlen("JS:*Total /"));
    end_scripts();
}

/* terser leaves the "#" out of names; a script has it. */
static void test_a_private_method_stays_private(void **state)
{
    struct mapped_place place = {.line = 1, .column = 1};
    char text[2 * PATH_MAX];
    (void)state;
    write_map("{\"version\":3,\"sources\":[\"src/m.ts\"],\"names\":[\"total\"],"
              "\"mappings\":\"AAAA,QAAQA\"}");
    assert_true(place_in("class t{#e(n){}}\n//# sourceMappingURL=m.map\n", &place));
    snprintf(text, sizeof text, "JS:*#e %s:1:11", scratch_file);
    const struct line_text shown = source_maps_name(&maps, line_text_of(text));
    assert_memory_equal(shown.text, "JS:*#total /", strlen("JS:*#total /"));
    end_scripts();
}

/* ---- Names where functions are written ---- */

/* The function at "^" in TEXT. */
static void expect_declared(const char *marked, bool is_named, const char *wanted)
{
    struct script_file text;
    char plain[256], name[DECLARED_NAME_BYTES];
    const char *mark = strchr(marked, '^'), *line = mark;
    uint32_t before = 0;
    while (line > marked && line[-1] != '\n')
        line--;
    for (const char *at = marked; at < line; at++)
        before += *at == '\n';
    snprintf(plain, sizeof plain, "%.*s%s", (int)(mark - marked), marked, mark + 1);
    assert_int_equal(script_file_take(&text, plain, strlen(plain)), 0);
    const bool found = declared_name(&text, before, (uint32_t)(mark - line), is_named, name);
    if (found != (wanted != NULL) || (found && strcmp(name, wanted)))
        fail_msg("%s: %s instead of %s", marked, found ? name : "none", wanted ? wanted : "none");
    script_file_free(&text);
}

static void test_names_where_functions_are_written(void **state)
{
    static const struct {
        const char *marked, *name;
    } cases[] = {
        {"x();\nfunction total^(n) {", "total"},
        {"^function total(n) {", "total"},
        {"async function ^total(n) {", "total"},
        {"^async function* total (n) {", "total"},
        {"var a = function total^(n) {", "total"},
        {"class A { total^(n) {", "total"},
        {"class A { ^static async total(n) {", "total"},
        {"class A { static get ^total() {", "total"},
        {"class A { #total^(n) {", "#total"},
        {"class A { *total ^(n) {", "total"},
        {"const total = ^n => n", "total"},
        {"const total = ^(n) => n", "total"},
        {"const total = async ^(n) => n", "total"},
        {"const total = ^function (n) {", "total"},
        {"const total = function^(n) {", "total"},
        {"const total = async function* ^(n) {", "total"},
        {"A.prototype.total = function^(n) {", "A.total"},
        {"exports.total = ^(n) => n", "exports.total"},
        {"this.total = ^(n) => n", "total"},
        {"A.prototype.sum = A.prototype.total = function^(n) {", "A.sum.A.total"},
        {"a.b = c = exports.total = ^(n) => n", "a.b.exports.total"},
        {"var sum = exports.total = ^(n) => n", "exports.total"},
        {"a.sum = total = ^(n) => n", "total"},
        {"a[0] = b.total = ^(n) => n", "b.total"},
        {"a.b >= c.total = ^(n) => n", "c.total"},
        {"o = { total: function^(n) {", "total"},
        {"o = { a: 1, total: ^n => n", "total"},
        {"^class Vec {", "Vec"},
        {"const Vec = ^class {", "Vec"},
        {"const Vec = ^class extends Array {", "Vec"},
        {"o = { 'a total': ^(n) => n", "a total"},
        {"o = { a: 1, \"total\": function^(n) {", "total"},
        {"o = { if: ^(n) => n", "if"},
        {"total ||= ^(n) => n", "total"},
        {"a.total ?\?= function^(n) {", "a.total"},
        {"f()\ntotal = ^(n) => n", "total"},
        {"class A { /* sum */ total = ^(n) => n", "total"},
        {"class A { // sum\n total = ^(n) => n", "total"},
        {"class A { // The sum:\n total = ^(n) => n", "total"},
        {"a.\n total = ^(n) => n", NULL},
        {"class A { private readonly total = ^(n) => n", "total"},
        {"const total = (^n) => n", "total"},
        {"o = { total: async ( ^n ) => n", "total"},
        {"return ^(function total() {", "total"},
        {"var a = ^(async function* total(n) {", "total"},
        {"var total = ^(function(n) {", "total"},
        {"const total = ^((n) => n", "total"},
        /* of TypeScript */
        {"const total: A = <T>(^n: T) => n", "total"},
        {"const total: Sum = ^(n) => n", "total"},
        {"const total: (a: number, b: number) => number = ^(a, b) => a", "total"},
        {"let total: typeof sum = ^(n) => n", "total"},
        {"const total: A | B<C, D> = async ^(n) => n", "total"},
        {"const total: {\n a: A;\n} = ^(n) => n", "total"},
        {"var sum: A = 1, b; var total: A extends B ? C : D = ^(n) => n", "total"},
        {"class A { a: A;\n total?: A.B = ^(n) => n", "total"},
        {"class A { a() {}\n private total!: A = ^(n) => n", "total"},
        {"f(total: A = ^(n) => n", "total"},
        {"class A {\n private a: number = 1;\n total: (n: number) => number = ^(n) => {", "total"},
        {"const total = ^<T>(n: T) => n", "total"},
        {"const total = async <T extends A<B>>^(n: T) => n", "total"},
        {"function total<T>^(n: T) {", "total"},
        {"function ^total<T>(n: T) {", "total"},
        {"class A { ^total<T>(n: T) {", "total"},
        /* no name, or none that is sure */
        {"list.map(^n => n)", NULL},
        {"list.map(function^(n) {", NULL},
        {"list.map(async ^(n) => n)", NULL},
        {"export default ^(n) => n", NULL},
        {"return ^(n) => n", NULL},
        {"if ^(n)", NULL},
        {"class A { constructor^(n) {", NULL},
        {"class A { [key]^(n) {", NULL},
        {"a == ^(n) => n", NULL},
        {"a ? b : ^(n) => n", NULL},
        {"total(^n)", NULL},
        {"list.map((^n) => n", NULL},
        {"a ? b : c = ^(n) => n", NULL},
        {"const { a: b = ^(n) => n", NULL},
        {"const { a,\n b: c = ^(n) => n", NULL},
        {"const { total, sum }: A = ^(n) => n", NULL},
        {"let sum; a[0]: A = ^(n) => n", NULL},
        {"o = { 'a\\'b': ^(n) => n", NULL},
        {"ab': ^(n) => n", NULL},
        {"': ^(n) => n", NULL},
        {"o = { 'a' + 'b': ^(n) => n", NULL},
        {"a[0].total = ^(n) => n", NULL},
        {"f().total = ^(n) => n", NULL},
        {"= ^(n) => n", NULL},
        {"^(", NULL},
        {"^", NULL},
        {"const t\xc3\xb6tal = ^(n) => n", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_declared(cases[i].marked, true, cases[i].name);
    expect_declared("const total = ^(() => {", false, NULL); /* it is called at once, perhaps */
    expect_declared("const total = ^(function () {", false, NULL);
    expect_declared("^total(n => n)", true, "total");
    expect_declared("^total(n => n)", false, NULL); /* it is called, perhaps */
}

static void test_where_a_map_is_named(void **state)
{
    static const struct {
        const char *script;
        bool is_found;
    } cases[] = {
        {"f()\n//# sourceMappingURL=m.map", true},
        {"f()\n//@ sourceMappingURL=m.map\r\n\r\n", true},
        {"f()\n/*# sourceMappingURL=m.map */\n", true},
        {"f()\n//# sourceMappingURL=none.map\n//# sourceMappingURL=./m.map\n", true},
        {"f()\n//# sourceMappingURL=%6d.map\n", true},
        {"f()\n//# sourceMappingURL=data:application/json;charset=utf-8;base64,"
         "eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbInNyYy9tLnRzIl0sIm1hcHBpbmdzIjoiQUFBQSJ9\n",
         true},
        {"f()\n//# sourceMappingURL=data:application/"
         "json,%7B%22version%22:3,%22sources%22:%5B%22src/m.ts%22%5D,%22mappings%22:%22AAAA%22%7D",
         true},
        /* encodeURIComponent leaves ' and * */
        {"f()\n//# sourceMappingURL=data:application/"
         "json,%7B%22sourceRoot%22:%22%22,%22names%22:%5B%22'*%22%5D,%22version%22:3,"
         "%22sources%22:%5B%22src/m.ts%22%5D,%22mappings%22:%22AAAA%22%7D",
         true},
        {"f()\n/*# sourceMappingURL=data:application/"
         "json,%7B%22version%22:3,%22sources%22:%5B%22src/"
         "m.ts%22%5D,%22mappings%22:%22AAAA%22%7D*/",
         true},
        {"f()\n//# sourceMappingURL=m.map\n//# debugId=7\n/* end */\n", true},
        {"f()\n//# sourceMappingURL=m.map\n\n}})();\n", true}, /* the end of a wrapper */
        {"f()\n//# sourceMappingURL=m.map\n}f()\n", false},
        {"f('sourceMappingURL=m.map')\n", false},
        {"f('//# sourceMappingURL=m.map')\n", false},
        {"f(`\n//# sourceMappingURL=m.map\n`)\n", false},
        {"//# sourceMappingURL=m.map\nf()\n", false},
        {"f()\n//# sourceMappingURL=m.map\n/* a */ f()\n", false},
        {"f()\n", false},
        {"", false},
    };
    (void)state;
    write_map(MAP);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mapped_place place = {.line = 1, .column = 1};
        char wanted[PATH_MAX];
        if (place_in(cases[i].script, &place) != cases[i].is_found)
            fail_msg("%s", cases[i].script);
        snprintf(wanted, sizeof wanted, "%s/src/m.ts", scratch);
        if (cases[i].is_found)
            assert_memory_equal(place.file.text, wanted, strlen(wanted));
        assert_int_equal(findings.count[FINDING_SOURCE_MAP], 0);
        end_scripts();
    }
}

static void give(const char *text)
{
    assert_int_equal(source_maps_give(&maps, line_text_of(scratch_file), text, strlen(text)), 0);
}

/* tsx, jest and others compile in memory: the file is what people wrote. */
static void test_a_text_that_ran_counts_before_the_file(void **state)
{
    static const char made[] = "f()\n//# sourceMappingURL=m.map";
    struct mapped_place place = {.line = 1, .column = 1};
    (void)state;
    write_map(MAP);
    for (int is_given = 0; is_given < 2; is_given++) {
        write_scratch("f()", 3);
        maps = (struct source_maps){.findings = &findings};
        findings = (struct findings){.quiet = true};
        if (is_given)
            give(made);
        give("f()\n//# sourceMappingURL=none.map"); /* that of another process */
        place.file = line_text_of(scratch_file);
        assert_int_equal(source_maps_place(&maps, &place), is_given);
        assert_int_equal(findings.count[FINDING_SOURCE_MAP], !is_given);
        end_scripts();
    }
}

static void test_a_text_that_ran_has_the_names(void **state)
{
    static const char made[] = MINIFIED "\n//# sourceMappingURL=m.map\n";
    (void)state;
    write_map(MAP);
    write_scratch("const total = 7", 15);
    maps = (struct source_maps){.findings = &findings};
    findings = (struct findings){.quiet = true};
    give(made);
    assert_name("t", "total");
    end_scripts();
}

/* A long last line may hold the whole map. */
static void test_a_map_in_a_last_line_of_any_length(void **state)
{
    struct mapped_place place = {.line = 1, .column = 1};
    const size_t bytes = 1 << 20;
    char *script = malloc(bytes + 256);
    (void)state;
    int at =
        sprintf(script, "f()\n//# sourceMappingURL=data:application/json;base64,"
                        "eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbInNyYy9tLnRzIl0sIm1hcHBpbmdzIjoiQUFBQSJ9");
    memset(script + at, '=', bytes);
    strcpy(script + at + bytes, "\n\n");
    assert_true(place_in(script, &place));
    end_scripts();
    free(script);
}

static void expect_told(const char *script, const char *words)
{
    struct mapped_place place = {.line = 1, .column = 1};
    assert_false(place_in(script, &place));
    assert_false(source_maps_place(&maps, &place)); /* and is told once */
    assert_int_equal(findings.count[FINDING_SOURCE_MAP], 1);
    if (!strstr(findings.first[FINDING_SOURCE_MAP], words))
        fail_msg("'%s' is not in %s", words, findings.first[FINDING_SOURCE_MAP]);
    end_scripts();
}

static void test_a_map_that_cannot_be_used_is_told_once(void **state)
{
    (void)state;
    write_map("{}");
    expect_told("//# sourceMappingURL=none.map\n", "none.map: No such file");
    expect_told("//# sourceMappingURL=m.map\n", "version is not 3");
    expect_told("//# sourceMappingURL=https://example.com/m.map\n", "no map is fetched");
    expect_told("//# sourceMappingURL=data:application/json\n", "no data");
    expect_told("//# sourceMappingURL=/dev/zero\n", "not a regular file");
}

static void test_maps_in_another_directory(void **state)
{
    struct mapped_place place = {.line = 1, .column = 1};
    char directory[PATH_MAX], path[2 * PATH_MAX];
    (void)state;
    write_scratch("f()\n", 4);
    snprintf(directory, sizeof directory, "%s/maps", scratch);
    snprintf(path, sizeof path, "%s/file.map", directory);
    assert_int_equal(mkdir(directory, 0700), 0);
    FILE *file = fopen(path, "w");
    fputs(MAP, file);
    fclose(file);
    maps = (struct source_maps){.options = {.directory = directory}};
    place.file = line_text_of(scratch_file);
    assert_true(source_maps_place(&maps, &place));
    source_maps_free(&maps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_lines_sources_and_names),
        cmocka_unit_test(test_large_numbers),
        cmocka_unit_test(test_where_sources_are),
        cmocka_unit_test(test_index_maps),
        cmocka_unit_test(test_a_prefix_against_xssi),
        cmocka_unit_test(test_what_is_no_map),
        cmocka_unit_test(test_names_of_functions),
        cmocka_unit_test(test_a_class_has_its_own_name),
        cmocka_unit_test(test_a_private_method_stays_private),
        cmocka_unit_test(test_names_by_the_original_text),
        cmocka_unit_test(test_names_by_the_file_unless_it_is_newer),
        cmocka_unit_test(test_names_where_functions_are_written),
        cmocka_unit_test(test_where_a_map_is_named),
        cmocka_unit_test(test_a_text_that_ran_counts_before_the_file),
        cmocka_unit_test(test_a_text_that_ran_has_the_names),
        cmocka_unit_test(test_a_map_in_a_last_line_of_any_length),
        cmocka_unit_test(test_a_map_that_cannot_be_used_is_told_once),
        cmocka_unit_test(test_maps_in_another_directory),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
