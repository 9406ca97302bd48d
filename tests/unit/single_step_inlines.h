/* What tinyjit inlined, by its dump: a script in which tier 2 inlines, and how deep in inlined
 * calls a step is.
 *
 * The script has the two numbers of single_step_script.h to fill in: kind 0, 1 or 2, and when.
 * Compiled by tier 2 at once, each function that is inlined is so called that every path through
 * every copy of it is taken.
 */
#ifndef PERFJIT_TEST_SINGLE_STEP_INLINES_H
#define PERFJIT_TEST_SINGLE_STEP_INLINES_H

#include "injector/log/code/code_log.h"
#include "injector/log/jitdump/jit_dump.h"
#include "tests/unit/scratch.h"

static const char inlining_script_format[] =
    "global kind = %d;\n"
    "global when = %d;\n"
    "global round = 0;\n"
    "array cells[8];\n"
    "\n"
    "fn seven() { return 7; }\n"
    "fn nothing(a) { }\n"
    "fn early(x) {\n"
    "    if x < 0 { return -1; }\n"
    "    if x == 0 { return 0; } else { x = x + 1; }\n"
    "    while x > 3 { if x == 5 { return 50; } x = x - 1; }\n"
    "    return x;\n"
    "}\n"
    "fn divide(a, b) { return a / b; }\n"
    "fn element(i, v) { cells[i] = cells[i] + v; return cells[i]; }\n"
    "fn native(x) { return native_mix(x + 1) * 2 + native_mix(x); }\n"
    "fn drop(x) { forget(@nested); return x; }\n"
    "fn six(a, b, c, d, e, f) { return a + b - c * d ^ e & f | 1; }\n"
    "fn is_even(n) { if n <= 0 { return 1; } return is_odd(n - 1); }\n"
    "fn is_odd(n) { if n <= 0 { return 0; } return is_even(n - 1); }\n"
    "\n"
    /* Three deep, and the same function twice. */
    "fn third(x) { return early(x) + seven(); }\n"
    "fn second(x) { var y = third(x); return y - nothing(y); }\n"
    "fn nested(x) { return second(x) * 2 + early(x - 1); }\n"
    /* Values wait in registers, which an inlined call may need itself. */
    "fn held(x) {\n"
    "    return x * 3 + (2 * x - (3 ^ early(x)) * six(x, seven(), divide(x, 2 * x + 1), native(x), "
    "5, drop(x)));\n"
    "}\n"
    /* Compiled twice: in front of the loop and at its end. */
    "fn condition(n) { while early(n) > 2 && n < 12 { n = n - 3; } return n; }\n"
    "fn arguments(x) { return element(element(x & 7, 1) & 7, early(x) & 3) + native(third(x)); }\n"
    "fn truth(x) { if !early(x) || early(x + 1) == 50 { return 1; } return early(x + 2) < 0; }\n"
    "fn parity(x) { return is_even(x) * 2 + is_odd(x); }\n"
    "\n"
    "fn drive(f) { var x = -3; while x < 13 { call(f, x); x = x + 1; } }\n"
    "\n"
    /* By 1 and by -1, and then by 0; from 0 to 7, and then 8. */
    "fn trip(how, bad) {\n"
    "    var c = 3;\n"
    "    while how == 1 && c > 0 { c = c - 1; divide(1, (c == 2) - (c == 1) + !c * !bad); }\n"
    "    c = 0;\n"
    "    while how == 2 && c < 8 + bad { element(c, 1); c = c + 1; }\n"
    "    return 0;\n"
    "}\n"
    "\n"
    /* And all of them as they are: call() is never inlined. */
    "fn plainly() {\n"
    "    drive(@early); drive(@third); drive(@second); drive(@native); drive(@drop); "
    "drive(@nothing);\n"
    "    drive(@is_even); drive(@is_odd);\n"
    "    call(@seven); call(@six, 1, 2, 3, 4, 5, 6); call(@divide, 7, 2); call(@divide, 7, -1); "
    "call(@element, 1, 1);\n"
    "}\n"
    "\n"
    "fn exercise() {\n"
    "    drive(@nested); drive(@held); drive(@condition); drive(@arguments); drive(@truth); "
    "drive(@parity);\n"
    "    call(@plainly); call(@drive, @seven + (@nothing - @seven));\n"
    "}\n"
    "\n"
    "fn main() {\n"
    "    round = round + 1;\n"
    "    if kind == 0 { call(@exercise); }\n"
    "    return trip(kind, round == when);\n"
    "}\n";

/* Which record has the inlined calls of each function in DUMP, in the order of LOAD and MOVE
 * records; a nr_inline of 0 for those without.  To be freed. */
static inline struct jit_inline_info *inlines_of_functions(const struct jit_dump *dump,
                                                           size_t function_count)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_inline_info *infos = calloc(function_count, sizeof *infos), last = {0};
    struct jit_record record;
    size_t function = 0;
    assert_non_null(infos);
    while (jit_dump_next(&walk, &record) == JIT_DUMP_MORE) {
        assert_null(record.broken);
        if (record.id == JIT_CODE_INLINE_INFO)
            last = record.inline_info;
        if (record.id == JIT_CODE_MOVE)
            function++;
        if (record.id != JIT_CODE_LOAD)
            continue;
        assert_true(function < function_count);
        if (last.nr_inline)
            assert_int_equal(last.code_addr, record.load.code_addr);
        infos[function++] = last;
        last = (struct jit_inline_info){0};
    }
    assert_int_equal(function, function_count);
    return infos;
}

/* In how many inlined calls, in each other, the instruction at OFFSET is. */
static inline size_t inlines_at(const struct jit_inline_info *info, uint64_t offset)
{
    struct jit_inline_span span, last = {0, JIT_INLINE_NONE};
    struct jit_inline call;
    size_t depth = 0;
    for (uint32_t i = 0; i < info->nr_span; i++) {
        jit_inline_span_at(info, i, &span);
        if (span.code_offset > offset)
            break;
        last = span;
    }
    for (uint32_t i = last.inline_index; i != JIT_INLINE_NONE; i = call.parent) {
        jit_inline_at(info, i, &call);
        depth++;
    }
    return depth;
}

#endif
