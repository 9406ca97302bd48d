/* The script that single_step_test runs.  It has two numbers to fill in, which decide what main()
 * does:
 *
 *     kind  SCRIPT_EXERCISE   call every function along every path through it
 *           1 to 5            fail, each time in another way
 *           SCRIPT_WARM       make each loop hot in its first call
 *           SCRIPT_CONSTANTS  divide by constants: tier 1 has code for a divisor of -1 there, which
 * nothing can reach when  in which run of main() to fail: in the first ones all is tier 1, later
 * tier 2
 *
 * They are only values of global variables, so that the code is the same whatever they are.
 */
#ifndef PERFJIT_TEST_SINGLE_STEP_SCRIPT_H
#define PERFJIT_TEST_SINGLE_STEP_SCRIPT_H

enum { SCRIPT_EXERCISE = 0, SCRIPT_FULL_STACK = 5, SCRIPT_WARM = 6, SCRIPT_CONSTANTS = 7 };

static const char script_format[] =
    "global kind = %d;\n"
    "global when = %d;\n"
    "global round = 0;\n"
    "array cells[8];\n"
    "\n"
    "fn leaf() { return 7; }\n"
    "fn nothing(a) { }\n"
    "fn six(a, b, c, d, e, f) { return a + b - c * d ^ e & f | 1; }\n"
    "fn deep(n) { if n == 0 { return leaf(); } return 1 + deep(n - 1); }\n"
    "fn divide(a, b) { return a / b + a %% b; }\n"
    "fn early(x) {\n"
    "    if x < 0 { return -1; }\n"
    "    if x == 0 { return 0; } else { x = x + 1; }\n"
    "    while x > 3 { if x == 5 { return 50; } x = x - 1; }\n"
    "    return x;\n"
    "}\n"
    "fn busy(a, b, c) {\n"
    "    var d = leaf(); var e = d + a; var f = e * b; var g = f - c; var i = 0;\n"
    "    while i < c {\n"
    "        d = d + leaf(); e = e ^ d; f = f + e; i = i + 1;\n"
    "        if i > 20 { g = 0; } else { g = g + six(a, b, c, d, e, f); }\n"
    "    }\n"
    "    return a + b + c + d + e + f + g;\n"
    "}\n"
    "fn nested(a, b) {\n"
    "    return a * 3 + (b * 5 + (a * 7 - (b * 9 ^ (a * 2 + (b * 4 - (a * 8 + (b & (a ^ "
    "b))))))));\n"
    "}\n"
    "fn held(x) {\n"
    "    return x * 3 + (2 * x - (3 ^ deep(x)) * six(x, leaf(), x * 2, deep(1), 5, x));\n"
    "}\n"
    "fn truth(a, b) {\n"
    "    var r = (a < b && b != 3) + (a == 1 || !b);\n"
    "    if !(a && b) || a > 5 { r = r + 10; }\n"
    "    return r + (a <= b) + (a >= b) + (a > b);\n"
    "}\n"
    "fn element(i) { cells[i] = cells[i] + i; cells[i + 1 & 7] = 3; return cells[i]; }\n"
    "fn shift(a, b) { return (a << b) + (a >> 2) - -a + ~b + (a << 3) * 8; }\n"
    "fn indirect(f, x) {\n"
    "    return call(f) + call(@six, x, 1, 2, 3, 4, x + 1) + call(@early, call(@deep, 1));\n"
    "}\n"
    "fn native(x) { return native_mix(x + 1) * 2 + native_mix(print(x)); }\n"
    "\n"
    "fn constants() {\n"
    "    var a = round - 100;\n"
    "    return a / 4 + a %% 16 + a / 3 + a %% 5;\n"
    "}\n"
    "\n"
    "fn trip(how, bad) {\n"
    "    if how == 1 { return divide(1, !bad); }\n"
    "    if how == 2 { return element(8 * bad); }\n"
    "    if how == 3 { return call(@leaf + 1000 * bad); }\n"
    "    if how == 4 { return 3 * indirect(@leaf + (@nothing - @leaf) * bad, how); }\n"
    "    if how == 5 { return deep(bad << 40); }\n"
    "    return nothing(how);\n"
    "}\n"
    "\n"
    "fn exercise() {\n"
    "    deep(0); deep(9); divide(7, 2); divide(-9, -1);\n"
    "    early(-1); early(0); early(1); early(9);\n"
    "    busy(1, 2, 3); busy(1, 2, 22); nested(1, 2); held(2);\n"
    "    truth(1, 2); truth(2, 3); truth(3, 0); truth(9, 1);\n"
    "    element(1); element(7); shift(-100, 3); indirect(@leaf, 2); native(5);\n"
    "}\n"
    "\n"
    "fn warm(first) {\n"
    "    if first { forget(@early); early(150); forget(@busy); busy(1, 2, 140); }\n"
    "}\n"
    "\n"
    "fn main() {\n"
    "    round = round + 1;\n"
    "    if kind == 6 { warm(round == 1); }\n"
    "    if kind == 0 { exercise(); }\n"
    "    call(@leaf + (@constants - @leaf) * (kind == 7));\n"
    "    return trip(kind, round == when);\n"
    "}\n";

#endif
