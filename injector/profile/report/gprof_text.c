/* See gprof_text.h.
 *
 *     Flat profile:    %time, cumulative, self, calls (not known of samples), name
 *     Call graph:      for each function its callers, itself with [index], what it calls; of these
 *                      the time that went through that call, itself and below */
#include "injector/profile/report/gprof_text.h"

#include "injector/profile/profile_calls.h"
#include "injector/profile/report/function_table.h"

#include <inttypes.h>
#include <stdlib.h>

static double seconds(const struct report_view *view, uint64_t value)
{
    return profile_weight_is_time(view->profile, view->choice.event, view->choice.weight)
               ? (double)value / 1e9
               : (double)value;
}

static double share(const struct report_view *view, uint64_t value)
{
    return view->totals->all ? 100.0 * (double)value / (double)view->totals->all : 0;
}

static void put_flat(const struct report_view *view, const uint32_t *order, size_t count)
{
    uint64_t sum = 0;
    fprintf(view->stream,
            "Flat profile:\n\n  %%   cumulative   self              self     total\n"
            " time   %-8s  %-8s    calls  Ts/call  Ts/call  name\n",
            report_unit(view), report_unit(view));
    for (size_t i = 0; i < count; i++) {
        sum += view->totals->function_self[order[i]];
        fprintf(view->stream, "%6.2f %10.2f %8.2f                             ",
                share(view, view->totals->function_self[order[i]]), seconds(view, sum),
                seconds(view, view->totals->function_self[order[i]]));
        report_put_function(view, order[i]);
        putc('\n', view->stream);
    }
}

static void put_call(const struct report_view *view, const struct profile_call *call,
                     uint32_t number, const uint32_t *index)
{
    fprintf(view->stream, "                %8.2f %8.2f                  ",
            seconds(view, call->self), seconds(view, call->weight - call->self));
    if (number == PROFILE_NOTHING) {
        fputs("<spontaneous>\n", view->stream);
        return;
    }
    report_put_function(view, number);
    fprintf(view->stream, " [%" PRIu32 "]\n", index[number]);
}

/* Calls to functions and from them, and the functions' numbers in the graph. */
struct gprof_graph {
    struct profile_calls in, out;
    uint32_t *index;
};

static void put_entry(const struct report_view *view, const struct gprof_graph *graph,
                      uint32_t number)
{
    const struct profile_calls *in = &graph->in, *out = &graph->out;
    uint64_t total = view->totals->function_total[number],
             self = view->totals->function_self[number];
    for (size_t i = profile_calls_of(in, number, false);
         i < in->count && in->items[i].callee == number; i++)
        put_call(view, &in->items[i], in->items[i].caller, graph->index);
    fprintf(view->stream, "[%-5" PRIu32 "] %6.1f %8.2f %8.2f              ", graph->index[number],
            share(view, total), seconds(view, self), seconds(view, total - self));
    report_put_function(view, number);
    fprintf(view->stream, " [%" PRIu32 "]\n", graph->index[number]);
    for (size_t i = profile_calls_of(out, number, true);
         i < out->count && out->items[i].caller == number; i++)
        put_call(view, &out->items[i], out->items[i].callee, graph->index);
    fputs("-----------------------------------------------\n", view->stream);
}

static int compare_totals(const void *left, const void *right, void *context)
{
    const uint64_t *total = context;
    const uint32_t *a = left, *b = right;
    if (total[*a] != total[*b])
        return total[*a] > total[*b] ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

static int put_graph(const struct report_view *view, uint32_t *order, size_t count)
{
    const struct profile_counted counted = {view->profile, view->functions, view->totals};
    struct gprof_graph graph = {.index = calloc(view->functions->count + 1, sizeof *graph.index)};
    int result = !graph.index || profile_calls_in(&graph.in, &counted) ||
                         profile_calls_out(&graph.out, &counted)
                     ? -1
                     : 0;
    if (!result) {
        qsort_r(order, count, sizeof *order, compare_totals, view->totals->function_total);
        for (uint32_t i = 0; i < count; i++)
            graph.index[order[i]] = i + 1;
        fprintf(view->stream, "\n\t\t     Call graph\n\n"
                              "index %% time     self  children    called     name\n");
        for (size_t i = 0; i < count; i++)
            put_entry(view, &graph, order[i]);
    }
    profile_calls_free(&graph.in);
    profile_calls_free(&graph.out);
    free(graph.index);
    return result;
}

int gprof_text_put(const struct report_view *view)
{
    size_t count;
    uint32_t *order = function_table_order(view, &count);
    if (!order)
        return -1;
    put_flat(view, order, count);
    int result = put_graph(view, order, count);
    free(order);
    return result;
}
