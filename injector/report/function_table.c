/* See function_table.h. */
#include "injector/report/function_table.h"

#include <inttypes.h>
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

uint32_t *function_table_order(const struct report_view *view, size_t *count)
{
    struct ordered_function *order = calloc(view->functions->count + 1, sizeof *order);
    uint32_t *numbers = calloc(view->functions->count + 1, sizeof *numbers);
    *count = 0;
    for (uint32_t i = 0; order && i < view->functions->count; i++)
        if (view->totals->function_total[i])
            order[(*count)++] = (struct ordered_function){view->totals->function_self[i],
                                                          view->totals->function_total[i], i};
    if (order)
        qsort(order, *count, sizeof *order, compare);
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
        fprintf(view->stream, "... and %zu more functions (--rows N)\n", count - view->most_rows);
    free(order);
    return 0;
}

/* ---- Callers and callees ---- */

/* The neighbour of NODE in the direction that is asked for: its caller's function, or UINT32_MAX
 * for none. */
static uint32_t caller_of(const struct report_view *view, uint32_t node)
{
    uint32_t parent = view->profile->nodes[node].parent;
    return parent ? view->functions->of_frame[view->profile->nodes[parent].frame] : UINT32_MAX;
}

static void count_neighbours(const struct report_view *view, uint32_t function, bool callees,
                             uint64_t *weights, uint64_t *ends)
{
    const struct call_profile *profile = view->profile;
    for (uint32_t i = 1; i < profile->node_count; i++) {
        uint32_t own = view->functions->of_frame[profile->nodes[i].frame];
        uint32_t caller = caller_of(view, i);
        if (callees && caller == function && own != function)
            weights[own] += view->totals->below_node[i];
        else if (!callees && own == function && caller != function) {
            if (caller == UINT32_MAX)
                *ends += view->totals->below_node[i];
            else
                weights[caller] += view->totals->below_node[i];
        }
    }
    if (callees)
        *ends = view->totals->function_self[function];
}

static int put_neighbours(const struct report_view *view, uint32_t function, bool callees)
{
    struct ordered_function *order = calloc(view->functions->count + 1, sizeof *order);
    uint64_t *weights = calloc(view->functions->count + 1, sizeof *weights), ends = 0;
    size_t count = 0;
    if (!order || !weights) {
        free(order);
        free(weights);
        return -1;
    }
    count_neighbours(view, function, callees, weights, &ends);
    for (uint32_t i = 0; i < view->functions->count; i++)
        if (weights[i])
            order[count++] = (struct ordered_function){weights[i], 0, i};
    qsort(order, count, sizeof *order, compare);
    for (size_t i = 0; i < count && i < view->most_rows; i++) {
        fputs("    ", view->stream);
        report_put_share(view, order[i].self);
        report_put_value(view, order[i].self);
        fputs(callees ? "  calls " : "  called by ", view->stream);
        report_put_function(view, order[i].number);
        putc('\n', view->stream);
    }
    if (ends) {
        fputs("    ", view->stream);
        report_put_share(view, ends);
        report_put_value(view, ends);
        fputs(callees ? "  in itself\n" : "  called by nobody that the stack shows\n",
              view->stream);
    }
    free(order);
    free(weights);
    return 0;
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

int function_table_put_calls(const struct report_view *view, const char *name, bool callees)
{
    size_t count;
    int found = 0;
    const bool exact = is_a_name(view, name);
    uint32_t *order = function_table_order(view, &count);
    for (size_t i = 0; order && i < count; i++) {
        const struct profile_function *function = &view->functions->items[order[i]];
        const char *text = call_profile_string(view->profile, function->name);
        if (exact ? strcmp(text, name) != 0 : !strstr(text, name))
            continue;
        found++;
        report_put_share(view, view->totals->function_total[order[i]]);
        report_put_value(view, view->totals->function_total[order[i]]);
        fputs("  ", view->stream);
        report_put_function(view, order[i]);
        putc('\n', view->stream);
        if (put_neighbours(view, order[i], callees)) {
            found = -1;
            break;
        }
    }
    if (!order)
        found = -1;
    free(order);
    return found;
}
