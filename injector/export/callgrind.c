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
 * A name stands where its number stands first.  A sampled profile does not count calls: COUNT is 1,
 * and says nothing.  Readers make a function's inclusive cost of its own and its calls': as
 * profile_calls.h has it these add up to its total, where functions call themselves, too. */
#include "injector/export/export_format.h"
#include "injector/profile/profile_calls.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdlib.h>

/* What is written, and which names were. */
struct callgrind_output {
    const struct export_request *request;
    FILE *stream;
    struct profile_calls calls;
    bool *modules, *files; /* by string */
    bool *functions;
};

/* Where NAME is of no bytes nothing is known. */
static void put_name(const struct callgrind_output *out, uint32_t number, const char *name,
                     bool *seen)
{
    fprintf(out->stream, *seen ? "(%" PRIu32 ")\n" : "(%" PRIu32 ") ", number);
    if (!*seen)
        fprintf(out->stream, "%s\n", *name ? name : "???");
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
    put_name(out, number + 1, call_profile_string(profile, function->name),
             &out->functions[number]);
}

static void put_calls(const struct callgrind_output *out, uint32_t caller)
{
    const struct profile_function *functions = out->request->functions->items;
    for (size_t i = profile_calls_of(&out->calls, caller, true);
         i < out->calls.count && out->calls.items[i].caller == caller; i++) {
        const struct profile_call *call = &out->calls.items[i];
        put_function(out, call->callee, "c");
        fprintf(out->stream, "calls=1 %" PRIu32 "\n%" PRIu32 " %" PRIu64 "\n",
                functions[call->callee].line, functions[caller].line, call->weight);
    }
}

static void put_all(const struct callgrind_output *out)
{
    const struct export_request *request = out->request;
    for (uint32_t i = 0; i < request->functions->count; i++) {
        if (!request->totals->function_total[i])
            continue;
        put_function(out, i, "");
        fprintf(out->stream, "%" PRIu32 " %" PRIu64 "\n", request->functions->items[i].line,
                request->totals->function_self[i]);
        put_calls(out, i);
        putc('\n', out->stream);
    }
}

static void put_head(const struct callgrind_output *out)
{
    const struct export_request *request = out->request;
    const struct call_profile *profile = request->profile;
    bool is_time = request->choice.weight == WEIGHT_PERIOD &&
                   request->choice.event < profile->event_count &&
                   profile->events[request->choice.event].counts_ns;
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
    int result =
        !out.modules || !out.files || !out.functions || profile_calls_out(&out.calls, &counted) ? -1
                                                                                                : 0;
    if (!result) {
        put_head(&out);
        put_all(&out);
        fprintf(stream, "totals: %" PRIu64 "\n", request->totals->all);
    }
    profile_calls_free(&out.calls);
    free(out.modules);
    free(out.files);
    free(out.functions);
    return result;
}
