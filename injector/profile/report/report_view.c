/* See report_view.h. */
#include "injector/profile/report/report_view.h"

#include "injector/profile/profile_moments.h"
#include "injector/profile/report/short_name.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_KINDS = 2, NAME_BYTES = 4096 };

void report_put_share(const struct report_view *view, uint64_t value)
{
    double share = view->totals->all ? 100.0 * (double)value / (double)view->totals->all : 0;
    fprintf(view->stream, "%6.2f%%", share);
}

static bool counts_time(const struct report_view *view)
{
    return profile_weight_is_time(view->profile, view->choice.event, view->choice.weight);
}

bool report_has_deopt(const struct report_view *view, const struct profile_deopt *deopt,
                      uint32_t function)
{
    return view->functions->of_frame[deopt->frame] == function &&
           profile_deopt_thread(deopt, view->profile, &view->choice) != PROFILE_NOTHING;
}

const char *report_unit(const struct report_view *view)
{
    return counts_time(view)                       ? "seconds"
           : view->choice.weight != WEIGHT_SAMPLES ? "count"
                                                   : "samples";
}

void report_put_value(const struct report_view *view, uint64_t value)
{
    if (counts_time(view))
        fprintf(view->stream, "%10.3f", (double)value / 1e9);
    else
        fprintf(view->stream, "%10" PRIu64, value);
}

void report_put_function(const struct report_view *view, uint32_t number)
{
    const struct profile_function *function = &view->functions->items[number];
    const char *file = call_profile_string(view->profile, function->file);
    const char *module = call_profile_string(view->profile, function->module);
    const char *name = call_profile_string(view->profile, function->name);
    char text[NAME_BYTES];
    printable_put(view->stream, view->full_names ? name : short_name(name, text, sizeof text));
    if (!*file && !*module)
        return;
    fputs(" (", view->stream);
    printable_put(view->stream, *file ? file : module);
    if (*file)
        profile_functions_put_line(view->functions, number, view->stream);
    putc(')', view->stream);
}

/* A kind of frame, with its time. */
struct kind_share {
    const char *text;
    bool inlined;
    uint64_t weight;
};

static void add_kind(struct kind_share *kinds, size_t *count, struct kind_share kind)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(kinds[i].text, kind.text) == 0 && kinds[i].inlined == kind.inlined) {
            kinds[i].weight += kind.weight;
            return;
        }
    if (*count < 8)
        kinds[(*count)++] = kind;
}

void report_put_kinds(const struct report_view *view, uint32_t function, char *text, size_t bytes)
{
    struct kind_share kinds[8];
    size_t count = 0;
    text[0] = '\0';
    for (uint32_t i = view->functions->first[function]; i < view->functions->first[function + 1];
         i++) {
        const uint32_t number = view->functions->frames[i];
        const struct call_frame *frame = &view->profile->frames[number];
        const char *tier = call_profile_string(view->profile, frame->tier);
        if (!view->totals->stood[number]) /* in what is chosen */
            continue;
        add_kind(kinds, &count,
                 (struct kind_share){*tier ? tier : frame_kind_name(frame->kind), frame->inlined,
                                     view->totals->self[number]});
    }
    for (size_t shown = 0; shown < SHOWN_KINDS && shown < count; shown++) {
        size_t best = shown, used = strlen(text);
        for (size_t i = shown + 1; i < count; i++)
            if (kinds[i].weight > kinds[best].weight)
                best = i;
        const struct kind_share one = kinds[best];
        kinds[best] = kinds[shown];
        snprintf(text + used, bytes - used, "%s%s%s", used ? "+" : "", one.text,
                 one.inlined ? " inlined" : "");
    }
}
