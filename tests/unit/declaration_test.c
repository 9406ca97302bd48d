/* Where a script declares what V8 named a function by, in the groups around the function. */
#include "injector/log/script/declaration.h"
#include "tests/unit/scratch.h"

#include <string.h>

static struct script_file text;
static struct script_groups groups;

static void take(const char *script)
{
    assert_int_equal(script_file_take(&text, script, strlen(script)), 0);
    assert_int_equal(script_groups_find(&groups, &text), 0);
}

static void end(void)
{
    script_groups_free(&groups);
    script_file_free(&text);
}

/* ---- Groups ---- */

/* MARKS has "<" and ">" below the ends of each group of SCRIPT, "|" below one of a single unit. */
static void expect_groups(const char *script, const char *marks)
{
    char found[256] = "";
    take(script);
    memset(found, ' ', strlen(script));
    for (size_t i = 0; i < groups.count; i++) {
        found[groups.items[i].open] = '<';
        found[groups.items[i].close] = groups.items[i].close == groups.items[i].open ? '|' : '>';
    }
    if (strncmp(found, marks, strlen(script)))
        fail_msg("%s\n%s instead of\n%s", script, found, marks);
    for (size_t i = 0; i < groups.count; i++) {
        const struct script_group *group = &groups.items[i];
        assert_true(i == 0 || group[-1].open < group->open);
        assert_true(group->outer == SCRIPT_GROUP_NONE ||
                    (group->outer < i && groups.items[group->outer].open < group->open &&
                     groups.items[group->outer].close >= group->close));
    }
    end();
}

static void test_groups(void **state)
{
    (void)state;
    expect_groups("a(b[c],{d})e", " < < > < >> ");
    expect_groups("'(\\')'+\"[\"(", "<    > < >|");
    expect_groups("'(\n)", "< > ");
    expect_groups("a//(\nb/*[*/(c)", " < >  <   >< >");
    expect_groups("`(${a+`{${b}}`}[`/2", "<  <  <  < > >> >  ");
    expect_groups("#!/bin/(\n(a)", "         < >");
    expect_groups("(a]b)", "<   >");
    expect_groups("(a{b)c}", "< < >  ");
    expect_groups("(a", "<>");
}

/* Whether a "/" divides is told from what stands in front of it. */
static void test_regular_expressions(void **state)
{
    (void)state;
    expect_groups("a=/[(/]\\/(/g;b", "  <       >   ");
    expect_groups("a/(b)/(c)", "  < > < >");
    expect_groups("(a)/(b)/c", "< > < >  ");
    expect_groups("a[0]/(b)/c", " < > < >  ");
    expect_groups("if(a)/(/.b", "  < >< >  ");
    expect_groups("return/(/.b", "      < >  ");
    expect_groups("a++/(b)/c", "    < >  ");
    expect_groups("a+/(/.b", "  < >  ");
    expect_groups("/a/g/(b)/c", "< >  < >  ");
    expect_groups("if(a){}/(/.b", "  < ><>< >  ");
    expect_groups("a={}/(b)/c", "  <> < >  ");
    expect_groups("a=/(\n(b)", "   < < >");
}

/* Deep nesting takes no time that grows faster than the text. */
static void test_nesting(void **state)
{
    enum { DEPTH = 200000 };
    char *script = malloc(4 * DEPTH + 1);
    (void)state;
    for (int i = 0; i < 3; i++) {
        memset(script, i == 2 ? '`' : '(', DEPTH);
        for (int at = 0; at < DEPTH; at++)
            memcpy(script + DEPTH + (size_t)at * 3, i == 0 ? ")/a" : i == 1 ? "]/a" : "${(", 3);
        script[4 * DEPTH] = '\0';
        take(script);
        assert_true(groups.count >= DEPTH);
        end();
    }
    free(script);
}

/* ---- Declarations ---- */

/* In SCRIPT the function at "^" has a name of T, which "@" stands in front of where it is declared;
 * "@" is nowhere: no declaration is found. */
static void expect_declaration(const char *marked)
{
    char script[512];
    size_t filled = 0, function = SIZE_MAX, wanted = SIZE_MAX;
    for (const char *at = marked; *at; at++) {
        if (*at == '^')
            function = filled;
        else if (*at == '@')
            wanted = filled;
        else
            script[filled++] = *at;
    }
    script[filled] = '\0';
    struct declaration_search search;
    struct declaration found = {.is_key = true};
    size_t at = SIZE_MAX;
    take(script);
    declaration_begin(&search, &text, &groups, function, "t", 1);
    while (found.is_key && declaration_next(&search, &found))
        at = found.at;
    if (at != wanted)
        fail_msg("%s: at %zd", marked, (ssize_t)at);
    end();
}

static void test_declarations(void **state)
{
    (void)state;
    expect_declaration("function @t^(n){}");
    expect_declaration("function*@t^(t,n){}");
    expect_declaration("t=3;x={@t^(t){}}");
    expect_declaration("const @t=^t=>t+1");
    expect_declaration("const @t=^(t,n)=>t+1");
    expect_declaration("var t=function(){};@t.a=b.c=function^(n){}");
    expect_declaration("var t=3;@t[f(t)].b=function^(n){}");
    expect_declaration("@t||=^(n)=>n");
    expect_declaration("x={@t:function^(n){}}");
    expect_declaration("t=1;x={t:n=>n,@t:async function*^(n){}}");
    expect_declaration("t=1;x={@t:^n=>n}");
    expect_declaration("t=1;x={@'a/b.t':^(n)=>n}");
    expect_declaration("t=1;x={@\"t.js\" ^(n){}}");
    expect_declaration("@t=[u?'t':3,^(n)=>n]");
    /* the class is in front of its fields and methods */
    expect_declaration("class @t{a=1;b(t){let t=1}constructor^(n){}}");
    expect_declaration("class @t extends f(t){t=2;constructor^(n){}}");
    expect_declaration("@t=class{a(t){t=1}constructor^(n){}}");
    expect_declaration("x(t=1);^class @t{}");
    expect_declaration("@t=^class extends u{}");
    /* in an object or a list */
    expect_declaration("@t={a:t=>t(3)+t.b,[k]:function^(n){}}");
    expect_declaration("@t={a:1,b:[n=>n,function^(n){}]}");
    expect_declaration("@t=[t=>t==1,'t=(',/t=(/,`${t=1}t=`,/*t=*/function^(n){}]");
    expect_declaration("function t(){};@t={*[k]^(n){}}");
    /* of the function around */
    expect_declaration("function @t(t,n){let u=t;this.a=function^(){}}");
    /* of no declaration */
    expect_declaration("f(t,n);t(3);t==4;t.a;x=^(n)=>n");
    expect_declaration("x=^(n)=>n;t=3");
    expect_declaration("^");
}

static void test_a_declaration_that_is_far_away(void **state)
{
    enum { FAR = 100000 };
    char *script = malloc(2 * FAR);
    struct declaration_search search;
    struct declaration found;
    (void)state;
    for (int is_far = 0; is_far < 2; is_far++) {
        int filled = sprintf(script, "t={a:%s", is_far ? "" : "(");
        memset(script + filled, ';', FAR);
        filled += FAR;
        filled += sprintf(script + filled, "%s,b:x(n=>n)}", is_far ? "" : ")");
        take(script);
        declaration_begin(&search, &text, &groups, (size_t)filled - 6, "t", 1);
        assert_int_equal(declaration_next(&search, &found), !is_far);
        end();
    }
    free(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_regular_expressions),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_a_declaration_that_is_far_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
