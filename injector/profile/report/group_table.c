/* See group_table.h. */
#include "injector/profile/report/group_table.h"

#include "injector/text/plural.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TITLE_BYTES = 160 };

struct report_row {
    char title[TITLE_BYTES];
    uint64_t weight, samples;
};

enum report_group report_group_named(const char *word)
{
    static const char *const words[REPORT_GROUPS] = {[GROUP_PROCESS] = "process",
                                                     [GROUP_THREAD] = "thread",
                                                     [GROUP_TIER] = "tier",
                                                     [GROUP_RUNTIME] = "runtime",
                                                     [GROUP_KIND] = "kind"};
    unsigned i = 0;
    while (i < REPORT_GROUPS && strcmp(words[i], word))
        i++;
    return (enum report_group)i;
}

/* The kind of the frame, in words. */
static const char *kind_of(const struct report_view *view, const struct call_sample *sample)
{
    if (!sample->node)
        return frame_kind_name(FRAME_UNKNOWN);
    const struct call_frame *frame =
        &view->profile->frames[view->profile->nodes[sample->node].frame];
    return frame_kind_name(frame->kind);
}

static const char *tier_of(const struct report_view *view, const struct call_sample *sample)
{
    if (!sample->node)
        return frame_kind_name(FRAME_UNKNOWN);
    const struct call_frame *frame =
        &view->profile->frames[view->profile->nodes[sample->node].frame];
    const char *tier = call_profile_string(view->profile, frame->tier);
    return *tier ? tier : frame_kind_name(frame->kind);
}

static void title_of(const struct report_view *view, enum report_group group,
                     const struct call_sample *sample, char title[TITLE_BYTES])
{
    const struct profile_thread *thread = &view->profile->threads[sample->thread];
    const char *process = call_profile_string(view->profile, thread->process);
    switch (group) {
    case GROUP_PROCESS:
        snprintf(title, TITLE_BYTES, "%s %" PRId32, process, (int32_t)thread->pid);
        return;
    case GROUP_THREAD:
        snprintf(title, TITLE_BYTES, "%s %" PRId32 "/%" PRId32,
                 call_profile_string(view->profile, thread->name), (int32_t)thread->pid,
                 (int32_t)thread->tid);
        return;
    case GROUP_TIER:
        snprintf(title, TITLE_BYTES, "%s", tier_of(view, sample));
        return;
    case GROUP_RUNTIME:
        snprintf(title, TITLE_BYTES, "%s: %s", process, kind_of(view, sample));
        return;
    default:
        snprintf(title, TITLE_BYTES, "%s", kind_of(view, sample));
        return;
    }
}

static int compare_titles(const void *left, const void *right)
{
    return strcmp(((const struct report_row *)left)->title,
                  ((const struct report_row *)right)->title);
}

static int compare_weights(const void *left, const void *right)
{
    const struct report_row *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return compare_titles(left, right);
}

/* Rows of single samples, merged whenever there are many. */
static size_t merge(struct report_row *rows, size_t count)
{
    size_t kept = 0;
    qsort(rows, count, sizeof *rows, compare_titles);
    for (size_t i = 0; i < count; i++)
        if (kept && compare_titles(&rows[kept - 1], &rows[i]) == 0) {
            rows[kept - 1].weight += rows[i].weight;
            rows[kept - 1].samples += rows[i].samples;
        } else {
            rows[kept++] = rows[i];
        }
    return kept;
}

static struct report_row *collect(const struct report_view *view, enum report_group group,
                                  size_t *count)
{
    const struct call_profile *profile = view->profile;
    size_t capacity = 1 << 14, used = 0;
    struct report_row *rows = malloc(capacity * sizeof *rows);
    for (size_t i = 0; rows && i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        if (!profile_choice_has(&view->choice, sample))
            continue;
        if (used == capacity && (used = merge(rows, used)) > capacity / 2) {
            struct report_row *grown = realloc(rows, capacity * 2 * sizeof *rows);
            if (!grown)
                free(rows);
            rows = grown;
            capacity *= 2;
            if (!rows)
                break;
        }
        title_of(view, group, sample, rows[used].title);
        rows[used].samples = 1;
        rows[used++].weight = profile_choice_weight(&view->choice, sample);
    }
    *count = rows ? merge(rows, used) : 0;
    if (rows)
        qsort(rows, *count, sizeof *rows, compare_weights);
    return rows;
}

int group_table_put(const struct report_view *view, enum report_group group,
                    struct json_writer *json)
{
    size_t count;
    struct report_row *rows = collect(view, group, &count);
    if (!rows)
        return -1;
    for (size_t i = 0; i < count && (json || i < view->most_rows); i++)
        if (json) {
            json_begin_object(json, NULL);
            json_text(json, "name", rows[i].title);
            json_number(json, "samples", rows[i].samples);
            json_number(json, "weight", rows[i].weight);
            json_end_object(json);
        } else {
            report_put_share(view, rows[i].weight);
            report_put_value(view, rows[i].weight);
            fprintf(view->stream, "%9" PRIu64 " sample%s  ", rows[i].samples,
                    plural(rows[i].samples));
            printable_put(view->stream, rows[i].title);
            putc('\n', view->stream);
        }
    if (!json && count > view->most_rows)
        fprintf(view->stream, "... and %zu more (--rows N)\n", count - view->most_rows);
    free(rows);
    return 0;
}
