/* See function_table.h. */
#include "injector/profile/report/function_table.h"

#include "injector/profile/profile_calls.h"
#include "injector/text/plural.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct ordered_function {
    uint64_t self, total;
    uint32_t number;
};

static int compare(const void *left, const void *right)
{
    const struct ordered_function *a = left, *b = right;
    if (a->self != b->self)
        return a->self > b->self ? -1 : 1;
    if (a->total != b->total)
        return a->total > b->total ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int compare_totals(const void *left, const void *right)
{
    const struct ordered_function *a = left, *b = right;
    if (a->total != b->total)
        return a->total > b->total ? -1 : 1;
    return compare(left, right);
}

/* Whether some frame of FUNCTION is JIT code, or an interpreter's that stands for it. */
static bool is_jit(const struct report_view *view, uint32_t function)
{
    const struct profile_functions *functions = view->functions;
    for (uint32_t i = functions->first[function]; i < functions->first[function + 1]; i++) {
        const struct call_frame *frame = &view->profile->frames[functions->frames[i]];
        if (frame->kind == FRAME_JIT || (frame->kind == FRAME_INTERPRETER && frame->tier))
            return true;
    }
    return false;
}

static bool is_shown(const struct report_view *view, uint32_t function)
{
    return view->totals->function_total[function] && (!view->jit_only || is_jit(view, function));
}

uint32_t *function_table_order(const struct report_view *view, size_t *count)
{
    struct ordered_function *order = calloc(view->functions->count + 1, sizeof *order);
    uint32_t *numbers = calloc(view->functions->count + 1, sizeof *numbers);
    *count = 0;
    for (uint32_t i = 0; order && i < view->functions->count; i++)
        if (is_shown(view, i))
            order[(*count)++] = (struct ordered_function){view->totals->function_self[i],
                                                          view->totals->function_total[i], i};
    if (order)
        qsort(order, *count, sizeof *order, view->by_total ? compare_totals : compare);
    for (size_t i = 0; order && numbers && i < *count; i++)
        numbers[i] = order[i].number;
    if (!order) {
        free(numbers);
        numbers = NULL;
    }
    free(order);
    return numbers;
}

static void put_row(const struct report_view *view, uint32_t number)
{
    char kinds[96];
    report_put_kinds(view, number, kinds, sizeof kinds);
    report_put_share(view, view->totals->function_self[number]);
    putc(' ', view->stream);
    report_put_share(view, view->totals->function_total[number]);
    report_put_value(view, view->totals->function_self[number]);
    report_put_value(view, view->totals->function_total[number]);
    fprintf(view->stream, "  %-20s ", kinds);
    report_put_function(view, number);
    putc('\n', view->stream);
}

int function_table_put(const struct report_view *view)
{
    size_t count;
    uint32_t *order = function_table_order(view, &count);
    if (!order)
        return -1;
    fprintf(view->stream, "%7s %7s%10s%10s  %-20s %s\n", "self", "total", report_unit(view), "",
            "kind, tier", "function");
    for (size_t i = 0; i < count && i < view->most_rows; i++)
        put_row(view, order[i]);
    if (count > view->most_rows)
        fprintf(view->stream, "... and %zu more function%s (--rows N)\n", count - view->most_rows,
                plural(count - view->most_rows));
    free(order);
    return 0;
}

/* ---- Callers and callees ---- */

static void put_neighbour(const struct report_view *view, uint64_t weight, const char *how)
{
    fputs("    ", view->stream);
    report_put_share(view, weight);
    report_put_value(view, weight);
    fputs(how, view->stream);
}

/* The other side of CALL. */
static uint32_t neighbour_of(const struct profile_call *call, bool callees)
{
    return callees ? call->callee : call->caller;
}

/* Pick those of CALLS that FUNCTION has, the heaviest first, into ORDER, which has room for them.
 * Returns how many; *NOBODY is the part without a caller. */
static size_t pick(const struct profile_calls *calls, uint32_t function, bool callees,
                   struct ordered_function *order, uint64_t *nobody)
{
    size_t count = 0;
    for (size_t i = profile_calls_of(calls, function, callees);
         i < calls->count && neighbour_of(&calls->items[i], !callees) == function; i++) {
        uint32_t other = neighbour_of(&calls->items[i], callees);
        if (other == PROFILE_NOTHING)
            *nobody = calls->items[i].weight;
        else
            order[count++] = (struct ordered_function){calls->items[i].weight, 0, other};
    }
    qsort(order, count, sizeof *order, compare);
    return count;
}

static void put_neighbours(const struct report_view *view, const struct profile_calls *calls,
                           uint32_t function, bool callees, struct ordered_function *order)
{
    uint64_t nobody = 0, rest = 0, self = view->totals->function_self[function];
    size_t count = pick(calls, function, callees, order, &nobody);
    for (size_t i = 0; i < count; i++)
        if (i < view->most_rows) {
            put_neighbour(view, order[i].self, callees ? "  calls " : "  called by ");
            report_put_function(view, order[i].number);
            putc('\n', view->stream);
        } else {
            rest += order[i].self;
        }
    if (rest) {
        put_neighbour(view, rest, callees ? "  calls " : "  called by ");
        fprintf(view->stream, "%zu other%s (--rows N)\n", count - view->most_rows,
                plural(count - view->most_rows));
    }
    if (nobody)
        put_neighbour(view, nobody, "  called by nobody that the stack shows\n");
    if (callees && self)
        put_neighbour(view, self, "  in itself\n");
}

/* Whether some function is called NAME, and nothing else. */
static bool is_a_name(const struct report_view *view, const char *name)
{
    for (size_t i = 0; i < view->functions->count; i++)
        if (view->totals->function_total[i] &&
            strcmp(call_profile_string(view->profile, view->functions->items[i].name), name) == 0)
            return true;
    return false;
}

/* The deopts of FUNCTION into ORDER, which has room for all; returns how many. */
static size_t find_deopts(const struct report_view *view, uint32_t function,
                          const struct profile_deopt **order)
{
    const struct call_profile *profile = view->profile;
    size_t count = 0;
    for (size_t i = 0; i < profile->deopt_count; i++)
        if (report_has_deopt(view, &profile->deopts[i], function))
            order[count++] = &profile->deopts[i];
    return count;
}

static int compare_reasons(const void *left, const void *right)
{
    const struct profile_deopt *a = *(const struct profile_deopt *const *)left;
    const struct profile_deopt *b = *(const struct profile_deopt *const *)right;
    if (a->reason != b->reason)
        return a->reason < b->reason ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* "deoptimised 3 times: wrong map, at /a.js:1:29", a line for each reason and place. */
static int put_deopts(const struct report_view *view, uint32_t function)
{
    const struct call_profile *profile = view->profile;
    if (!profile->deopt_count)
        return 0;
    const struct profile_deopt **deopts = calloc(profile->deopt_count, sizeof(void *));
    if (!deopts)
        return -1;
    const size_t count = find_deopts(view, function, deopts);
    if (count)
        qsort(deopts, count, sizeof(void *), compare_reasons);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && compare_reasons(&deopts[i], &deopts[next]) == 0; next++)
            ;
        fprintf(view->stream, "    deoptimised %zu time%s: ", next - i, plural(next - i));
        printable_put(view->stream, call_profile_string(profile, deopts[i]->reason));
        fputs(", at ", view->stream);
        printable_put(view->stream, call_profile_string(profile, deopts[i]->place));
        putc('\n', view->stream);
    }
    free(deopts);
    return 0;
}

static int put_function_calls(const struct report_view *view, const struct profile_calls *calls,
                              uint32_t function, bool callees, struct ordered_function *order)
{
    report_put_share(view, view->totals->function_total[function]);
    report_put_value(view, view->totals->function_total[function]);
    fputs("  ", view->stream);
    report_put_function(view, function);
    putc('\n', view->stream);
    put_neighbours(view, calls, function, callees, order);
    return put_deopts(view, function);
}

int function_table_put_calls(const struct report_view *view, const char *name, bool callees)
{
    const struct profile_counted counted = {view->profile, view->functions, view->totals};
    struct ordered_function *room = calloc(view->functions->count + 1, sizeof *room);
    struct profile_calls calls = {0};
    size_t count, found = 0;
    const bool exact = is_a_name(view, name);
    uint32_t *order = function_table_order(view, &count);
    int result =
        room && order && (callees ? profile_calls_out : profile_calls_in)(&calls, &counted) == 0
            ? 0
            : -1;
    for (size_t i = 0; !result && i < count; i++) {
        const struct profile_function *function = &view->functions->items[order[i]];
        const char *text = call_profile_string(view->profile, function->name);
        if ((exact ? strcmp(text, name) != 0 : !strstr(text, name)) || found++ >= view->most_rows)
            continue;
        result = put_function_calls(view, &calls, order[i], callees, room);
    }
    if (!result && found > view->most_rows)
        fprintf(view->stream, "... and %zu more function%s (--rows N)\n", found - view->most_rows,
                plural(found - view->most_rows));
    profile_calls_free(&calls);
    free(room);
    free(order);
    return result ? -1 : found > INT_MAX ? INT_MAX : (int)found;
}
