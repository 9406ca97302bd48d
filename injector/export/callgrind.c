/* callgrind's format, as kcachegrind and callgrind_annotate read it:
 *
 *     # callgrind format
 *     events: EVENT
 *     fl=(file) NAME          where the function is; ob= its module
 *     fn=(number) NAME
 *     LINE COST               of itself
 *     cfi=, cob=, cfn=        what it calls
 *     calls=COUNT LINE
 *     LINE COST               of that, inclusive
 *
 * A sampled profile does not count calls: COUNT is 1, and says nothing.  Inclusive costs of
 * functions that call themselves are counted once a stack. */
#include "injector/export/export_format.h"

#include <inttypes.h>
#include <stdlib.h>

/* A call between two functions. */
struct call_sum {
    uint32_t caller, callee;
    uint64_t weight;
};

static int compare(const void *left, const void *right)
{
    const struct call_sum *a = left, *b = right;
    if (a->caller != b->caller)
        return a->caller < b->caller ? -1 : 1;
    return a->callee < b->callee ? -1 : a->callee > b->callee;
}

/* Whether the call into NODE stands further out in its stack, too. */
static bool is_repeated(const struct export_request *request, uint32_t node)
{
    const struct call_node *nodes = request->profile->nodes;
    const uint32_t *of_frame = request->functions->of_frame;
    uint32_t callee = of_frame[nodes[node].frame],
             caller = of_frame[nodes[nodes[node].parent].frame];
    for (node = nodes[node].parent; nodes[node].parent; node = nodes[node].parent)
        if (of_frame[nodes[node].frame] == callee &&
            of_frame[nodes[nodes[node].parent].frame] == caller)
            return true;
    return false;
}

static size_t collect(const struct export_request *request, struct call_sum *sums)
{
    const struct call_profile *profile = request->profile;
    size_t count = 0, kept = 0;
    for (uint32_t i = 1; i < profile->node_count; i++) {
        uint32_t parent = profile->nodes[i].parent;
        if (parent && request->totals->below_node[i] && !is_repeated(request, i))
            sums[count++] =
                (struct call_sum){request->functions->of_frame[profile->nodes[parent].frame],
                                  request->functions->of_frame[profile->nodes[i].frame],
                                  request->totals->below_node[i]};
    }
    qsort(sums, count, sizeof *sums, compare);
    for (size_t i = 0; i < count; i++)
        if (kept && compare(&sums[kept - 1], &sums[i]) == 0)
            sums[kept - 1].weight += sums[i].weight;
        else
            sums[kept++] = sums[i];
    return kept;
}

/* The names of FUNCTION, by fields that begin with PREFIX ("" or "c"). */
static void put_function(const struct export_request *request, FILE *stream, uint32_t number,
                         const char *prefix)
{
    const struct profile_function *function = &request->functions->items[number];
    const char *file = call_profile_string(request->profile, function->file);
    const char *module = call_profile_string(request->profile, function->module);
    fprintf(stream, "%sob=(%" PRIu32 ") %s\n", prefix, function->module, *module ? module : "???");
    fprintf(stream, "%s=(%" PRIu32 ") %s\n", *prefix ? "cfi" : "fl", function->file,
            *file ? file : "???");
    fprintf(stream, "%sfn=(%" PRIu32 ") %s\n", prefix, number + 1,
            call_profile_string(request->profile, function->name));
}

static void put_calls(const struct export_request *request, FILE *stream,
                      const struct call_sum *sums, size_t count)
{
    const struct profile_function *caller = &request->functions->items[sums->caller];
    for (size_t i = 0; i < count; i++) {
        put_function(request, stream, sums[i].callee, "c");
        fprintf(stream, "calls=1 %" PRIu32 "\n%" PRIu32 " %" PRIu64 "\n",
                request->functions->items[sums[i].callee].line, caller->line, sums[i].weight);
    }
}

static void put_all(const struct export_request *request, FILE *stream, const struct call_sum *sums,
                    size_t count)
{
    const struct profile_totals *totals = request->totals;
    size_t at = 0;
    for (uint32_t i = 0; i < request->functions->count; i++) {
        size_t first = at;
        while (at < count && sums[at].caller == i)
            at++;
        if (!totals->function_total[i])
            continue;
        put_function(request, stream, i, "");
        fprintf(stream, "%" PRIu32 " %" PRIu64 "\n", request->functions->items[i].line,
                totals->function_self[i]);
        if (at > first)
            put_calls(request, stream, sums + first, at - first);
        putc('\n', stream);
    }
}

int export_callgrind(const struct export_request *request, FILE *stream)
{
    const struct call_profile *profile = request->profile;
    struct call_sum *sums = calloc(profile->node_count + 1, sizeof *sums);
    if (!sums)
        return -1;
    size_t count = collect(request, sums);
    bool is_time = request->choice.weight == WEIGHT_PERIOD &&
                   request->choice.event < profile->event_count &&
                   profile->events[request->choice.event].counts_ns;
    fprintf(stream,
            "# callgrind format\nversion: 1\ncreator: perfjit\n"
            "desc: Trigger: sampled by perf; the counts of calls say nothing\ncmd: %s\n"
            "positions: line\nevents: %s\nsummary: %" PRIu64 "\n\n",
            request->title,
            request->choice.weight == WEIGHT_SAMPLES ? "Samples"
            : is_time                                ? "ns"
                                                     : "Period",
            request->totals->all);
    put_all(request, stream, sums, count);
    fprintf(stream, "totals: %" PRIu64 "\n", request->totals->all);
    free(sums);
    return 0;
}
