/* perfjit diff reads runs that anybody may have written.  The input is a byte of options, then the
 * body of a run's file.  Its samples become eight or twelve runs, with different ones on each side.
 */
#include "injector/compare/diff_json.h"
#include "injector/compare/diff_markdown.h"
#include "injector/compare/diff_page.h"
#include "injector/compare/diff_text.h"
#include "injector/compare/two_programs.h"
#include "injector/profile/run_file.h"
#include "injector/text/printable_text.h"
#include "tests/fuzz/fuzz_target.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_PAIRED = 1, OPTION_LINES = 2, OPTION_ALIKE = 4, LIMIT = 2048 };

/* What a run of PROFILE has of a sample: runs differ, the new ones more. */
static void change_periods(struct call_profile *run, const struct call_profile *profile,
                           size_t number, uint8_t options)
{
    for (size_t i = 0; i < run->sample_count; i++) {
        uint64_t period = profile->samples[i].period;
        if (!(options & OPTION_ALIKE))
            period = period / 16 * (8 + (number * 5 + i) % 3) + (number % 2 ? i : number);
        run->samples[i].period = period;
    }
}

static uint64_t all_periods(const struct call_profile *profile)
{
    uint64_t all = 0;
    for (size_t i = 0; i < profile->sample_count; i++)
        all += profile->samples[i].event == 0 ? profile->samples[i].period : 0;
    return all;
}

/* Whether there is anything to compare: other runs are refused before. */
static bool fill(struct run_set *set, const struct call_profile *profile, uint8_t options)
{
    const struct profile_choice choice = {.weight = WEIGHT_PERIOD};
    const size_t runs = options & OPTION_PAIRED ? 12 : 8;
    bool any = true;
    struct call_profile run = *profile;
    run.samples = malloc((profile->sample_count + 1) * sizeof *run.samples);
    promise(run.samples, "there is memory");
    for (size_t i = 0; i < profile->sample_count; i++)
        run.samples[i] = profile->samples[i];
    for (size_t i = 0; i < runs && any; i++) {
        change_periods(&run, profile, i, options);
        any = all_periods(&run) > 0;
        promise(!any || run_set_add(set, i % 2, &run, &choice) == 0, "there is memory");
    }
    free(run.samples);
    return any;
}

static void check_row(const struct compared_row *row)
{
    promise(isfinite(row->base) && isfinite(row->new) && row->base >= 0 && row->new >= 0,
            "a mean is a number");
    promise(row->p > 0 && row->p <= 1 && row->q > 0 && row->q <= 1, "p and q are shares");
    promise(isfinite(row->least) && row->least >= 0, "a size is a number");
}

static void check_rows(const struct diff_report *report)
{
    const struct verdicts *verdicts = &report->verdicts;
    check_row(&verdicts->total);
    for (int table = 0; table < RUN_TABLES; table++) {
        double base = 0;
        for (size_t i = 0; i < verdicts->tables[table].count; i++) {
            check_row(&verdicts->tables[table].items[i]);
            base += verdicts->tables[table].items[i].base;
        }
        promise(table >= BY_STACK || fabs(base - verdicts->total.base) <= 1e-6 * base,
                "a table adds up to the total");
    }
}

static int put_text(FILE *stream, const struct diff_report *report)
{
    diff_text_put(stream, report);
    return 0;
}

static int put_json(FILE *stream, const struct diff_report *report)
{
    diff_json_put(stream, report);
    return 0;
}

static int put_markdown(FILE *stream, const struct diff_report *report)
{
    return diff_markdown_put(stream, report, LIMIT);
}

/* Each line of it can be printed, but in a page, whose browser does that. */
static size_t write_form(const struct diff_report *report, bool is_printed,
                         int (*put)(FILE *stream, const struct diff_report *report))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    promise(stream && put(stream, report) == 0 && fclose(stream) == 0, "there is memory");
    promise(bytes > 0 && text[bytes - 1] == '\n' && strlen(text) == bytes, "it is whole lines");
    for (size_t at = 0, next; at < bytes && is_printed; at += next) {
        next = text[at] == '\n' ? 1 : printable_bytes(text + at, bytes - at);
        promise(next, "all of it can be printed");
    }
    free(text);
    return bytes;
}

/* The name of the innermost function of the first sample. */
static const char *function_of(const struct call_profile *profile)
{
    const uint32_t node = profile->sample_count ? profile->samples[0].node : 0;
    return node ? call_profile_string(profile, profile->frames[profile->nodes[node].frame].name)
                : "[no stack]";
}

static void compare(const struct call_profile *profile, uint8_t options)
{
    struct run_set set;
    struct diff_report report = {0};
    promise(run_set_begin(&set) == 0, "there is memory");
    set.lines_of = options & OPTION_LINES ? function_of(profile) : NULL;
    if (fill(&set, profile, options)) {
        promise(two_programs_tell(&set) == 0, "there is memory");
        promise(diff_report_make(&report, &set, options & OPTION_PAIRED, 0.01) == 0,
                "there is memory");
        report.most_rows = 5;
        report.unit = options & OPTION_ALIKE ? "ns" : "cycles";
        check_rows(&report);
        write_form(&report, true, put_text);
        write_form(&report, true, put_json);
        promise(write_form(&report, true, put_markdown) < LIMIT, "it is below its limit");
        write_form(&report, false, diff_page_write);
        diff_report_free(&report);
    }
    run_set_free(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct call_profile profile = {0};
    struct findings findings = {.quiet = true};
    if (size == 0)
        return 0;
    if (call_profile_begin(&profile) == 0 &&
        run_file_parse_body(&profile, "fuzz.run", RUN_FILE_VERSION, bytes + 1, size - 1,
                            RUN_PERIODS, &findings) == 0 &&
        profile.event_count)
        compare(&profile, bytes[0]);
    call_profile_free(&profile);
    findings_free(&findings);
    return 0;
}
