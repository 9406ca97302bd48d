/* See gprof_text.h.
 *
 *     Flat profile:    %time, cumulative, self, calls (not known of samples), name
 *     Call graph:      for each function its callers, itself with [index], what it calls; of these
 *                      the time that went through that call, itself and below */
#include "injector/report/gprof_text.h"

#include "injector/report/function_table.h"

#include <inttypes.h>
#include <stdlib.h>

/* Time through a call, by itself and below that. */
struct gprof_arc {
    uint32_t caller, callee;
    uint64_t self, below;
};

static double seconds(const struct report_view *view, uint64_t value)
{
    bool is_time = view->choice.weight == WEIGHT_PERIOD &&
                   view->choice.event < view->profile->event_count &&
                   view->profile->events[view->choice.event].counts_ns;
    return is_time ? (double)value / 1e9 : (double)value;
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

static int compare_by_callee(const void *left, const void *right)
{
    const struct gprof_arc *a = left, *b = right;
    if (a->callee != b->callee)
        return a->callee < b->callee ? -1 : 1;
    return a->caller < b->caller ? -1 : a->caller > b->caller;
}

static int compare_by_caller(const void *left, const void *right)
{
    const struct gprof_arc *a = left, *b = right;
    if (a->caller != b->caller)
        return a->caller < b->caller ? -1 : 1;
    return a->callee < b->callee ? -1 : a->callee > b->callee;
}

static size_t collect(const struct report_view *view, struct gprof_arc *arcs)
{
    const struct call_profile *profile = view->profile;
    size_t count = 0, kept = 0;
    for (uint32_t i = 1; i < profile->node_count; i++) {
        uint32_t parent = profile->nodes[i].parent;
        if (!parent || !view->totals->below_node[i])
            continue;
        arcs[count++] = (struct gprof_arc){view->functions->of_frame[profile->nodes[parent].frame],
                                           view->functions->of_frame[profile->nodes[i].frame],
                                           view->totals->of_node[i],
                                           view->totals->below_node[i] - view->totals->of_node[i]};
    }
    qsort(arcs, count, sizeof *arcs, compare_by_callee);
    for (size_t i = 0; i < count; i++)
        if (kept && compare_by_callee(&arcs[kept - 1], &arcs[i]) == 0) {
            arcs[kept - 1].self += arcs[i].self;
            arcs[kept - 1].below += arcs[i].below;
        } else {
            arcs[kept++] = arcs[i];
        }
    return kept;
}

/* The first of the COUNT arcs whose caller (or callee) is not below NUMBER. */
static size_t first_of(const struct gprof_arc *arcs, size_t count, uint32_t number, bool by_caller)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((by_caller ? arcs[middle].caller : arcs[middle].callee) < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void put_arc(const struct report_view *view, const struct gprof_arc *arc, uint32_t number,
                    const uint32_t *index)
{
    fprintf(view->stream, "                %8.2f %8.2f                  ", seconds(view, arc->self),
            seconds(view, arc->below));
    report_put_function(view, number);
    fprintf(view->stream, " [%" PRIu32 "]\n", index[number]);
}

/* Arcs by callee and by caller, and the functions' numbers in the graph. */
struct gprof_graph {
    struct gprof_arc *to, *from;
    size_t count;
    uint32_t *index;
};

static void put_entry(const struct report_view *view, const struct gprof_graph *graph,
                      uint32_t number)
{
    uint64_t total = view->totals->function_total[number],
             self = view->totals->function_self[number];
    for (size_t i = first_of(graph->to, graph->count, number, false);
         i < graph->count && graph->to[i].callee == number; i++)
        if (graph->to[i].caller != number)
            put_arc(view, &graph->to[i], graph->to[i].caller, graph->index);
    fprintf(view->stream, "[%-5" PRIu32 "] %6.1f %8.2f %8.2f              ", graph->index[number],
            share(view, total), seconds(view, self), seconds(view, total - self));
    report_put_function(view, number);
    fprintf(view->stream, " [%" PRIu32 "]\n", graph->index[number]);
    for (size_t i = first_of(graph->from, graph->count, number, true);
         i < graph->count && graph->from[i].caller == number; i++)
        if (graph->from[i].callee != number)
            put_arc(view, &graph->from[i], graph->from[i].callee, graph->index);
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
    struct gprof_graph graph = {.count = 0};
    size_t most = view->profile->node_count + 1;
    graph.to = calloc(most, sizeof *graph.to);
    graph.from = calloc(most, sizeof *graph.from);
    graph.index = calloc(view->functions->count + 1, sizeof *graph.index);
    int result = graph.to && graph.from && graph.index ? 0 : -1;
    if (!result) {
        qsort_r(order, count, sizeof *order, compare_totals, view->totals->function_total);
        for (uint32_t i = 0; i < count; i++)
            graph.index[order[i]] = i + 1;
        graph.count = collect(view, graph.to);
        for (size_t i = 0; i < graph.count; i++)
            graph.from[i] = graph.to[i];
        qsort(graph.from, graph.count, sizeof *graph.from, compare_by_caller);
        fprintf(view->stream, "\n\t\t     Call graph\n\n"
                              "index %% time     self  children    called     name\n");
        for (size_t i = 0; i < count; i++)
            put_entry(view, &graph, order[i]);
    }
    free(graph.to);
    free(graph.from);
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
