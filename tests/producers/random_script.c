/* random_script: a script for tinyjit that nobody would write.
 *
 *     random_script SEED [MAY_FAIL] >script.tj
 *
 * The functions call each other in all ways, recursion included: many are small enough to be inlined, within each other,
 * in arguments and conditions, with returns in the middle.  Each call that could go on for ever takes from a global
 * `fuel`, so that main() ends.  Calls and prints have effects on globals, so that an argument computed twice, or in the
 * wrong order, shows.  With MAY_FAIL some divide by zero, or look behind the end of an array.
 *
 * The same seed makes the same script.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FUNCTIONS = 9, LOCALS_MAX = 6, GLOBALS = 3, CELLS = 8, FUEL = 400 };

struct generator {
    uint64_t state;
    bool may_fail;
    int parameters[FUNCTIONS];
    int function; /* that is being written; FUNCTIONS: main */
    int locals;   /* of it that can be seen */
    int names;    /* of locals, so that none is declared twice */
    int seen[LOCALS_MAX];
    int indent;
};

/* ---- Chance ---- */

/* xorshift64* */
static unsigned below(struct generator *g, unsigned limit)
{
    g->state ^= g->state >> 12;
    g->state ^= g->state << 25;
    g->state ^= g->state >> 27;
    return (unsigned)(g->state * UINT64_C(2685821657736338717) >> 33) % limit;
}

static bool one_in(struct generator *g, unsigned times)
{
    return below(g, times) == 0;
}

/* ---- Expressions ---- */

static void expression(struct generator *g, int depth);

static void atom(struct generator *g)
{
    unsigned kind = below(g, 6);
    if (kind < 3 && g->locals)
        printf("x%d", g->seen[below(g, (unsigned)g->locals)]);
    else if (kind < 4)
        printf("g%u", below(g, GLOBALS));
    else if (kind < 5)
        printf("cells[%u]", below(g, CELLS));
    else
        printf("%u", one_in(g, 8) ? 3000000000u : below(g, 20));
}

static void call(struct generator *g, int depth)
{
    unsigned callee = below(g, FUNCTIONS);
    bool by_value = one_in(g, 6);
    printf(by_value ? "call(@f%u" : "f%u(", callee);
    for (int i = 0; i < g->parameters[callee]; i++) {
        fputs(i || by_value ? ", " : "", stdout);
        expression(g, depth - 1);
    }
    putchar(')');
}

static void subscript(struct generator *g, int depth)
{
    bool checked = g->may_fail && one_in(g, 6);
    fputs("cells[", stdout);
    expression(g, depth);
    fputs(checked ? " & 15]" : " & 7]", stdout);
}

static void binary(struct generator *g, int depth)
{
    static const char *const operators[] = {
        "+", "-", "*", "&", "|", "^", "<<", ">>", "==", "<", ">=", "+", "-", "&&", "||", "/", "%"};
    unsigned which = below(g, sizeof operators / sizeof operators[0]);
    bool divides = operators[which][0] == '/' || operators[which][0] == '%';
    bool checked = divides && !(g->may_fail && one_in(g, 4));
    putchar('(');
    expression(g, depth - 1);
    printf(" %s %s", operators[which], checked ? "(1 | " : "");
    expression(g, depth - 1);
    fputs(checked ? "))" : ")", stdout);
}

static void expression(struct generator *g, int depth)
{
    unsigned kind = depth > 0 ? below(g, 12) : 0;
    if (kind < 2) {
        atom(g);
    } else if (kind < 7) {
        binary(g, depth);
    } else if (kind < 10) {
        call(g, depth);
    } else if (kind < 11) {
        putchar("-!~"[below(g, 3)]);
        atom(g);
    } else if (one_in(g, 3)) {
        fputs(one_in(g, 2) ? "native_mix(" : "print(", stdout);
        expression(g, depth - 1);
        putchar(')');
    } else {
        subscript(g, depth - 1);
    }
}

/* ---- Statements ---- */

__attribute__((format(printf, 2, 3))) static void line(struct generator *g, const char *format, ...)
{
    va_list arguments;
    printf("%*s", g->indent * 4, "");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}

static void statements(struct generator *g, int depth);

static void block(struct generator *g, int depth)
{
    int locals = g->locals;
    puts("{");
    g->indent++;
    statements(g, depth - 1);
    g->indent--;
    g->locals = locals;
    line(g, "}");
}

static void declare(struct generator *g)
{
    line(g, "var x%d = ", g->names);
    expression(g, 2);
    puts(";");
    g->seen[g->locals++] = g->names++;
}

/* A few rounds: the counter is no variable that the body knows. */
static void loop(struct generator *g, int depth)
{
    int counter = g->names++;
    line(g, "var x%d = %u;\n", counter, below(g, 4));
    line(g, "while x%d > 0 && ", counter);
    expression(g, 2);
    fputs(" != 12345 {\n", stdout);
    g->indent++;
    line(g, "x%d = x%d - 1;\n", counter, counter);
    line(g, "if 1 ");
    block(g, depth);
    puts("");
    g->indent--;
    line(g, "}\n");
}

static void assign(struct generator *g)
{
    unsigned kind = below(g, 3);
    line(g, "%s", "");
    if (kind == 0 && g->locals)
        printf("x%d", g->seen[below(g, (unsigned)g->locals)]);
    else if (kind < 2)
        printf("g%u", below(g, GLOBALS));
    else
        subscript(g, 1);
    fputs(" = ", stdout);
    expression(g, 3);
    puts(";");
}

static void condition(struct generator *g, int depth)
{
    line(g, "if ");
    expression(g, 3);
    putchar(' ');
    block(g, depth);
    if (one_in(g, 2)) {
        fputs(" else ", stdout);
        block(g, depth);
    }
    puts("");
}

static void leave(struct generator *g)
{
    line(g, "return ");
    expression(g, 3);
    puts(";");
}

static void statement(struct generator *g, int depth)
{
    unsigned kind = below(g, 10);
    if (kind < 2 && g->locals < LOCALS_MAX)
        declare(g);
    else if (kind < 4 && depth > 0)
        condition(g, depth);
    else if (kind < 5 && depth > 0)
        loop(g, depth);
    else if (kind < 6 && depth < 2)
        leave(g);
    else if (kind < 7 && one_in(g, 3))
        line(g, "forget(@f%u);\n", below(g, FUNCTIONS));
    else
        assign(g);
}

static void statements(struct generator *g, int depth)
{
    for (unsigned count = 1 + below(g, 2); count > 0; count--)
        statement(g, depth);
}

/* ---- Functions ---- */

static void function(struct generator *g, int number)
{
    g->locals = g->names = g->parameters[number];
    printf("fn f%d(", number);
    for (int i = 0; i < g->parameters[number]; i++) {
        printf(i ? ", x%d" : "x%d", i);
        g->seen[i] = i;
    }
    puts(") {");
    g->indent = 1;
    line(g, "fuel = fuel - 1; if fuel < 0 { return fuel; }\n");
    statements(g, one_in(g, 3) ? 2 : 0);
    if (!one_in(g, 4))
        leave(g);
    puts("}");
}

int main(int argc, char **argv)
{
    struct generator g = {.may_fail = argc > 2};
    if (argc < 2) {
        fprintf(stderr, "usage: random_script SEED [MAY_FAIL]\n");
        return 2;
    }
    g.state = strtoull(argv[1], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (int i = 0; i < FUNCTIONS; i++)
        g.parameters[i] = (int)below(&g, 4);
    puts("global fuel = 0;");
    for (int i = 0; i < GLOBALS; i++)
        printf("global g%d = %u;\n", i, below(&g, 100));
    printf("array cells[%d];\n", CELLS);
    for (int i = 0; i < FUNCTIONS; i++)
        function(&g, i);
    printf("fn main() {\n    fuel = %d;\n", FUEL);
    g.indent = 1;
    g.locals = g.names = 0;
    for (int i = 0; i < 3; i++) {
        line(&g, "print(");
        call(&g, 3);
        puts(");");
    }
    puts("    print(g0); print(g1); print(g2); print(cells[3]);\n    return fuel;\n}");
    return EXIT_SUCCESS;
}
