/* perfjit diff reads what perfjit bench keeps.  The first byte is 0 for the list of a bench, 1 for
 * a run's file, 2 for the body of one, which zstd's checksum would hide from most inputs. */
#include "injector/compare/kept_runs/bench_balance.h"
#include "injector/profile/profile_totals.h"
#include "injector/profile/run_file.h"
#include "tests/fuzz/fuzz_target.h"

#include <string.h>

static int take_sentence(void *context, const char *text)
{
    (void)context;
    promise(strlen(text) < 1000, "a sentence is one");
    return 0;
}

static void try_list(const uint8_t *bytes, size_t size)
{
    struct bench_list list;
    struct findings findings = {.quiet = true};
    if (bench_list_parse(&list, "fuzz.bench", (const char *)bytes, size, &findings) == 0) {
        const struct balance_side base = {&list, BENCH_BASE}, new = {&list, BENCH_NEW};
        for (size_t i = 0; i < list.run_count; i++)
            promise(!strchr(list.runs[i].file, '/') && list.runs[i].file[0] != '.',
                    "a run's file is in the bench's directory");
        bench_balance_tell(&base, &new, list.order, take_sentence, NULL);
    } else {
        promise(findings.failure[0] != '\0', "it is said what is wrong");
    }
    bench_list_free(&list);
    findings_free(&findings);
}

static void check_profile(const struct call_profile *profile)
{
    const struct profile_choice choice = {.event = PROFILE_ALL, .weight = WEIGHT_PERIOD};
    struct profile_functions functions = {0};
    struct profile_totals totals = {0};
    for (uint32_t i = 1; i < profile->node_count; i++)
        promise(profile->nodes[i].parent < i && profile->nodes[i].frame < profile->frame_count,
                "callers stand before what they call");
    for (size_t i = 0; i < profile->sample_count; i++)
        promise(profile->samples[i].node < profile->node_count &&
                    profile->samples[i].thread < profile->thread_count &&
                    profile->samples[i].event < profile->event_count,
                "a sample has a stack, a thread and an event");
    promise(profile_functions_find(&functions, profile) == 0 &&
                profile_totals_count(&totals, profile, &functions, &choice) == 0,
            "there is memory");
    uint64_t self = totals.of_node[0];
    for (size_t i = 0; i < functions.count; i++)
        self += totals.function_self[i];
    promise(self == totals.all, "self times add up to all");
    profile_totals_free(&totals);
    profile_functions_free(&functions);
}

static void try_run(const uint8_t *bytes, size_t size, bool is_body)
{
    struct call_profile profile = {0};
    struct findings findings = {.quiet = true};
    int result;
    if (is_body)
        result = call_profile_begin(&profile) ||
                 run_file_parse_body(&profile, "fuzz.run", RUN_FILE_VERSION, bytes, size,
                                     size % 2 ? RUN_PERIODS : RUN_EACH, &findings);
    else
        result = run_file_parse(&profile, "fuzz.run", bytes, size, RUN_COUNTS, &findings);
    if (result == 0)
        check_profile(&profile);
    promise((result != 0) == (findings.failure[0] != '\0'), "it is said what is wrong");
    call_profile_free(&profile);
    findings_free(&findings);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    if (bytes[0] == 0)
        try_list(bytes + 1, size - 1);
    else
        try_run(bytes + 1, size - 1, bytes[0] == 2);
    return 0;
}
