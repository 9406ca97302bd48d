/* callgrind's format, as kcachegrind and callgrind_annotate read it:
 *
 *     # callgrind format
 *     events: EVENT
 *     fl=(file) NAME          where the function is; ob= its module
 *     fn=(number) NAME
 *     LINE COST               of itself, for each line that ran
 *     cfi=, cob=, cfn=        what it calls
 *     calls=COUNT LINE        where that begins
 *     LINE COST               from where, and what it costs, inclusive
 *
 * Readers know a function by its name and file: with others in its line its place is behind the
 * name.
 *
 * A name stands where its number stands first.  A sampled profile does not count calls: COUNT is 1,
 * and says nothing.  Readers make a function's inclusive cost of its own and its calls': as
 * profile_calls.h has it these add up to its total, where functions call themselves, too. */
#include "injector/profile/export/export_format.h"
#include "injector/profile/profile_calls.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdlib.h>

struct line_cost {
    uint32_t function, line;
    uint64_t cost;
};

/* The text to write, and the names that were written already. */
struct callgrind_output {
    const struct export_request *request;
    FILE *stream;
    struct profile_calls calls;
    struct line_cost *costs; /* by function and line */
    size_t cost_count;
    bool *modules, *files; /* by string */
    bool *functions;
};

/* A NAME of no bytes is unknown. */
static void put_name(const struct callgrind_output *out, uint32_t number, const char *name,
                     bool *seen)
{
    fprintf(out->stream, *seen ? "(%" PRIu32 ")\n" : "(%" PRIu32 ") ", number);
    if (!*seen) {
        printable_put(out->stream, *name ? name : "???");
        putc('\n', out->stream);
    }
    *seen = true;
}

/* The names of function NUMBER, by fields that begin with PREFIX ("" or "c"). */
static void put_function(const struct callgrind_output *out, uint32_t number, const char *prefix)
{
    const struct call_profile *profile = out->request->profile;
    const struct profile_function *function = &out->request->functions->items[number];
    fprintf(out->stream, "%sob=", prefix);
    put_name(out, function->module, call_profile_string(profile, function->module),
             &out->modules[function->module]);
    fputs(*prefix ? "cfi=" : "fl=", out->stream);
    put_name(out, function->file, call_profile_string(profile, function->file),
             &out->files[function->file]);
    fprintf(out->stream, "%sfn=", prefix);
    fprintf(out->stream, "(%" PRIu32 ")", number + 1);
    if (!out->functions[number]) {
        fputs(" ", out->stream);
        printable_put(out->stream, call_profile_string(profile, function->name));
        profile_functions_put_place(out->request->functions, profile, number, out->stream);
    }
    putc('\n', out->stream);
    out->functions[number] = true;
}

/* ---- Costs by line ---- */

static int compare_costs(const void *left, const void *right)
{
    const struct line_cost *a = left, *b = right;
    if (a->function != b->function)
        return a->function < b->function ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

/* LINE of FUNCTION; where none is known, that in which it begins. */
static uint32_t line_of(const struct callgrind_output *out, uint32_t function, uint32_t line)
{
    return line ? line : out->request->functions->items[function].line;
}

static int find_costs(struct callgrind_output *out)
{
    const struct export_request *request = out->request;
    const struct call_profile *profile = request->profile;
    size_t count = 0, kept = 0;
    struct line_cost *costs = out->costs = calloc(profile->node_count + 1, sizeof *costs);
    if (!costs)
        return -1;
    for (size_t i = 1; i < profile->node_count; i++) {
        const struct call_node *node = &profile->nodes[i];
        uint32_t function = request->functions->of_frame[node->frame];
        if (request->totals->of_node[i])
            costs[count++] = (struct line_cost){function, line_of(out, function, node->line),
                                                request->totals->of_node[i]};
    }
    qsort(costs, count, sizeof *costs, compare_costs);
    for (size_t i = 0; i < count; i++)
        if (kept && compare_costs(&costs[kept - 1], &costs[i]) == 0)
            costs[kept - 1].cost += costs[i].cost;
        else
            costs[kept++] = costs[i];
    out->cost_count = kept;
    return 0;
}

/* Put the costs of FUNCTION, of which *AT is the first. */
static void put_costs(const struct callgrind_output *out, uint32_t function, size_t *at)
{
    for (; *at < out->cost_count && out->costs[*at].function == function; ++*at)
        fprintf(out->stream, "%" PRIu32 " %" PRIu64 "\n", out->costs[*at].line,
                out->costs[*at].cost);
}

/* ---- Functions ---- */

static void put_calls(const struct callgrind_output *out, uint32_t caller)
{
    const struct profile_function *functions = out->request->functions->items;
    for (size_t i = profile_calls_of(&out->calls, caller, true);
         i < out->calls.count && out->calls.items[i].caller == caller; i++) {
        const struct profile_call *call = &out->calls.items[i];
        put_function(out, call->callee, "c");
        fprintf(out->stream, "calls=1 %" PRIu32 "\n%" PRIu32 " %" PRIu64 "\n",
                functions[call->callee].line, line_of(out, caller, call->line), call->weight);
    }
}

static void put_all(const struct callgrind_output *out)
{
    const struct export_request *request = out->request;
    size_t cost = 0;
    for (uint32_t i = 0; i < request->functions->count; i++) {
        if (!request->totals->function_total[i])
            continue;
        put_function(out, i, "");
        put_costs(out, i, &cost);
        put_calls(out, i);
        putc('\n', out->stream);
    }
}

static void put_head(const struct callgrind_output *out)
{
    const struct export_request *request = out->request;
    const struct call_profile *profile = request->profile;
    const bool is_time =
        profile_weight_is_time(profile, request->choice.event, request->choice.weight);
    fputs("# callgrind format\nversion: 1\ncreator: perfjit\n"
          "desc: Trigger: sampled by perf; the counts of calls say nothing\ncmd: ",
          out->stream);
    printable_put(out->stream, request->title);
    fprintf(out->stream, "\npositions: line\nevents: %s\nsummary: %" PRIu64 "\n\n",
            request->choice.weight == WEIGHT_SAMPLES ? "Samples"
            : is_time                                ? "ns"
                                                     : "Period",
            request->totals->all);
}

int export_callgrind(const struct export_request *request, FILE *stream)
{
    const struct call_profile *profile = request->profile;
    const struct profile_counted counted = {profile, request->functions, request->totals};
    struct callgrind_output out = {.request = request,
                                   .stream = stream,
                                   .modules = calloc(profile->string_count, sizeof(bool)),
                                   .files = calloc(profile->string_count, sizeof(bool)),
                                   .functions =
                                       calloc(request->functions->count + 1, sizeof(bool))};
    int result = !out.modules || !out.files || !out.functions || find_costs(&out) ||
                         profile_calls_out(&out.calls, &counted)
                     ? -1
                     : 0;
    if (!result) {
        put_head(&out);
        put_all(&out);
        fprintf(stream, "totals: %" PRIu64 "\n", request->totals->all);
    }
    profile_calls_free(&out.calls);
    free(out.costs);
    free(out.modules);
    free(out.files);
    free(out.functions);
    return result;
}
