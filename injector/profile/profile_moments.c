/* See profile_moments.h. */
#include "injector/profile/profile_moments.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/digit_sort.h"
#include "injector/arrays/number_sort.h"
#include "injector/log/code/tier_mark.h"
#include "injector/profile/activity.h"

#include <stdlib.h>
#include <string.h>

enum { USUAL_GAP_NS = 1000000, LEAST_GAP_NS = 1000, GAPS_OF_ONE = 2 };

/* A function in the thread at hand. */
struct seen_function {
    uint32_t lane;   /* + 1, that it was seen in last */
    uint32_t sample; /* + 1: the last that it was seen in */
    uint32_t frame;  /* as it ran; PROFILE_NOTHING: another call of it ran */
    uint32_t lower;  /* as a sample has it in a lower tier since; or PROFILE_NOTHING */
    uint64_t since_ns, lower_ns;
};

struct lane_sample {
    uint32_t lane, number;
    uint64_t time_ns;
};

struct search {
    struct profile_moments *moments;
    const struct call_profile *profile;
    const struct profile_functions *functions;
    const struct profile_choice *choice;
    uint32_t *lane_of;           /* by thread: the last thread of its pid and tid */
    struct lane_sample *samples; /* by lane and time */
    size_t sample_count;
    uint64_t usual_ns; /* how long a sample stands for */
    int *ranks;        /* by frame */
    bool *several;     /* by function: it ran in several tiers */
    bool *ran;         /* by function: it is in a stack */
    struct seen_function *seen;
};

static int add(struct search *search, struct profile_moment moment)
{
    struct profile_moments *moments = search->moments;
    if (array_reserve(moments->items, moments->count, moments->capacity))
        return -1;
    moments->items[moments->count++] = moment;
    return 0;
}

/* ---- Threads, each with its samples in order ---- */

static int compare_threads(const void *left, const void *right, void *context)
{
    const uint32_t *a = left, *b = right;
    const struct profile_thread *threads = context, *one = &threads[*a], *other = &threads[*b];
    if (one->pid != other->pid)
        return one->pid < other->pid ? -1 : 1;
    if (one->tid != other->tid)
        return one->tid < other->tid ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

/* By thread: whether CHOICE has samples of it.  NULL without memory. */
static bool *find_used(const struct search *search)
{
    const struct call_profile *profile = search->profile;
    bool *used = calloc(profile->thread_count + 1, sizeof *used);
    for (size_t i = 0; used && i < profile->sample_count; i++)
        if (profile_choice_has(search->choice, &profile->samples[i]))
            used[profile->samples[i].thread] = true;
    return used;
}

/* A thread of several names is one, the last of those that are used. */
static void number_lanes(struct search *search, uint32_t *order, const bool *used)
{
    const struct profile_thread *threads = search->profile->threads;
    const size_t count = search->profile->thread_count;
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    if (count)
        qsort_r(order, count, sizeof *order, compare_threads, search->profile->threads);
    for (size_t i = count; i--;) {
        const uint32_t own = order[i], next = i + 1 < count ? order[i + 1] : own;
        const uint32_t later = next == own ? own : search->lane_of[next];
        const bool is_one =
            threads[next].pid == threads[own].pid && threads[next].tid == threads[own].tid;
        search->lane_of[own] = is_one && (used[later] || !used[own]) ? later : own;
    }
}

static int find_lanes(struct search *search)
{
    const size_t count = search->profile->thread_count;
    uint32_t *order = malloc((count + 1) * sizeof *order);
    bool *used = find_used(search);
    search->lane_of = malloc((count + 1) * sizeof *search->lane_of);
    const bool has_memory = order && used && search->lane_of;
    if (has_memory)
        number_lanes(search, order, used);
    free(order);
    free(used);
    return has_memory ? 0 : -1;
}

static int compare_samples(const void *left, const void *right)
{
    const struct lane_sample *a = left, *b = right;
    if (a->lane != b->lane)
        return a->lane < b->lane ? -1 : 1;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int sort_samples(struct search *search)
{
    const struct call_profile *profile = search->profile;
    search->samples = malloc((profile->sample_count + 1) * sizeof *search->samples);
    if (!search->samples || find_lanes(search))
        return -1;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        if (sample->time_ns && profile_choice_has(search->choice, sample))
            search->samples[search->sample_count++] =
                (struct lane_sample){search->lane_of[sample->thread], i, sample->time_ns};
    }
    if (!array_in_order(search->samples, search->sample_count, sizeof *search->samples,
                        compare_samples))
        qsort(search->samples, search->sample_count, sizeof *search->samples, compare_samples);
    return 0;
}

/* The end of the lane that begins at FIRST. */
static size_t lane_end(const struct search *search, size_t first)
{
    size_t end = first;
    while (end < search->sample_count && search->samples[end].lane == search->samples[first].lane)
        end++;
    return end;
}

/* The usual distance of samples in the thread that has most. */
static int find_usual(struct search *search)
{
    size_t first = 0, count = 0;
    for (size_t i = 0, next; i < search->sample_count; i = next) {
        next = lane_end(search, i);
        if (next - i > count) {
            first = i;
            count = next - i;
        }
    }
    search->usual_ns = USUAL_GAP_NS;
    if (count < 2)
        return 0;
    uint64_t *gaps_ns = malloc(count * sizeof *gaps_ns);
    if (!gaps_ns)
        return -1;
    for (size_t i = 1; i < count; i++)
        gaps_ns[i - 1] =
            search->samples[first + i].time_ns - search->samples[first + i - 1].time_ns;
    const int result = digit_sort(gaps_ns, count - 1, sizeof *gaps_ns);
    const uint64_t middle_ns = gaps_ns[(count - 1) / 2];
    search->usual_ns = middle_ns > LEAST_GAP_NS ? middle_ns : LEAST_GAP_NS;
    free(gaps_ns);
    return result;
}

/* ---- Tiers ---- */

/* Whether FUNCTION has frames of several tiers. */
static bool has_several(const struct search *search, size_t function)
{
    const struct profile_functions *functions = search->functions;
    uint32_t tier = 0;
    for (uint32_t i = functions->first[function]; i < functions->first[function + 1]; i++) {
        const uint32_t own = search->profile->frames[functions->frames[i]].tier;
        if (own && tier && own != tier)
            return true;
        tier = own ? own : tier;
    }
    return false;
}

static int begin_tiers(struct search *search)
{
    const struct call_profile *profile = search->profile;
    const size_t count = search->functions->count;
    search->ranks = malloc((profile->frame_count + 1) * sizeof *search->ranks);
    search->several = calloc(count + 1, sizeof *search->several);
    search->ran = calloc(count + 1, sizeof *search->ran);
    search->seen = calloc(count + 1, sizeof *search->seen);
    if (!search->ranks || !search->several || !search->ran || !search->seen)
        return -1;
    for (size_t i = 0; i < profile->frame_count; i++)
        search->ranks[i] = tier_rank(call_profile_string(profile, profile->frames[i].tier));
    for (size_t i = 0; i < count; i++)
        search->several[i] = has_several(search, i);
    return 0;
}

/* Whether the runtime told of a deopt of FUNCTION in process PID between FROM_NS and TO_NS. */
static bool is_told(const struct search *search, uint32_t function, uint32_t pid, uint64_t from_ns,
                    uint64_t to_ns)
{
    const struct profile_deopt *deopts = search->profile->deopts;
    const size_t count = search->profile->deopt_count;
    size_t at;
    array_bisect(at, count, deopts[at].time_ns < from_ns);
    for (; at < count && deopts[at].time_ns <= to_ns; at++)
        if (deopts[at].pid == pid && search->functions->of_frame[deopts[at].frame] == function)
            return true;
    return false;
}

/* Of FUNCTION, which SEEN is of, FRAME runs now: in LANE, since AT_NS. */
static int change_tier(struct search *search, uint32_t function, struct seen_function *seen,
                       struct profile_moment moment)
{
    const uint32_t pid = search->profile->threads[moment.thread].pid;
    const bool is_known =
        moment.kind == MOMENT_DEOPT && is_told(search, function, pid, seen->since_ns, moment.at_ns);
    moment.before = seen->frame;
    moment.to_ns = moment.at_ns;
    seen->frame = moment.frame;
    seen->lower = PROFILE_NOTHING;
    seen->since_ns = moment.at_ns;
    return is_known ? 0 : add(search, moment);
}

/* In a thread a function's tier is that of its innermost call.  Calls that began before it was
 * compiled anew go on in the lower tier, so two samples in that, and none in the higher one
 * between, say that it was given up. */
static int see(struct search *search, const struct lane_sample *sample, uint32_t frame)
{
    const uint32_t function = search->functions->of_frame[frame];
    struct seen_function *seen = &search->seen[function];
    const uint32_t number = sample->number + 1;
    search->ran[function] = true;
    if (!search->several[function] || search->ranks[frame] < 0 ||
        (seen->lane == sample->lane + 1 && seen->sample == number))
        return 0;
    struct profile_moment moment = {
        .at_ns = sample->time_ns, .thread = sample->lane, .frame = frame};
    seen->sample = number;
    if (seen->lane != sample->lane + 1) {
        *seen = (struct seen_function){sample->lane + 1, number,          frame,
                                       PROFILE_NOTHING,  sample->time_ns, 0};
        return 0;
    }
    const int before = search->ranks[seen->frame], now = search->ranks[frame];
    if (now == before) {
        seen->lower = PROFILE_NOTHING;
        return 0;
    }
    if (now < before && seen->lower == PROFILE_NOTHING) {
        seen->lower = frame;
        seen->lower_ns = sample->time_ns;
        return 0;
    }
    if (now < before) {
        moment.kind = MOMENT_DEOPT;
        moment.at_ns = seen->lower_ns;
        moment.frame = seen->lower;
    }
    return change_tier(search, function, seen, moment);
}

static int add_tiers(struct search *search)
{
    const struct call_profile *profile = search->profile;
    for (size_t i = 0; i < search->sample_count; i++) {
        const struct lane_sample *sample = &search->samples[i];
        for (uint32_t node = profile->samples[sample->number].node; node;
             node = profile->nodes[node].parent)
            if (see(search, sample, profile->nodes[node].frame))
                return -1;
    }
    return 0;
}

/* ---- What the runtime told ---- */

static bool has_thread(const struct profile_choice *choice, uint32_t thread, uint64_t time_ns)
{
    return !(choice->left_out && choice->left_out[thread]) &&
           (!choice->moments || span_moments_have(choice->moments, thread, time_ns));
}

uint32_t profile_deopt_thread(const struct profile_deopt *deopt, const struct call_profile *profile,
                              const struct profile_choice *choice)
{
    uint32_t found = PROFILE_NOTHING;
    if (choice->to_ns && (deopt->time_ns < choice->from_ns || deopt->time_ns >= choice->to_ns))
        return PROFILE_NOTHING;
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        if (thread->pid == deopt->pid && has_thread(choice, i, deopt->time_ns) &&
            (found == PROFILE_NOTHING || thread->tid == thread->pid))
            found = i;
    }
    return found;
}

/* Of functions that samples show: of others there is nothing to look at. */
static int add_deopts(struct search *search)
{
    const struct call_profile *profile = search->profile;
    for (size_t i = 0; i < profile->deopt_count; i++) {
        const struct profile_deopt *deopt = &profile->deopts[i];
        const uint32_t thread = profile_deopt_thread(deopt, profile, search->choice);
        if (thread == PROFILE_NOTHING || !search->ran[search->functions->of_frame[deopt->frame]])
            continue;
        if (add(search, (struct profile_moment){.kind = MOMENT_DEOPT,
                                                .at_ns = deopt->time_ns,
                                                .to_ns = deopt->time_ns,
                                                .thread = search->lane_of[thread],
                                                .before = deopt->frame,
                                                .frame = PROFILE_NOTHING,
                                                .deopt = deopt}))
            return -1;
    }
    return 0;
}

/* ---- Collections ---- */

/* Samples of collectors in any thread that are no further apart than samples usually are belong to
 * one collection. */
static int join_collections(struct search *search, uint64_t *times_ns, size_t count)
{
    const uint64_t usual_ns = search->usual_ns;
    number_sort(times_ns, count, sizeof *times_ns);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count &&
                           times_ns[next] <= times_ns[next - 1] + usual_ns + GAPS_OF_ONE * usual_ns;
             next++)
            ;
        if (add(search, (struct profile_moment){.kind = MOMENT_COLLECTION,
                                                .at_ns = times_ns[i],
                                                .to_ns = times_ns[next - 1] + usual_ns,
                                                .thread = PROFILE_NOTHING,
                                                .before = PROFILE_NOTHING,
                                                .frame = PROFILE_NOTHING}))
            return -1;
    }
    return 0;
}

static int add_collections(struct search *search)
{
    uint64_t *times_ns = malloc((search->sample_count + 1) * sizeof *times_ns);
    struct activity_map activities;
    size_t count = 0;
    int result = activity_map_make(&activities, search->profile) || !times_ns ? -1 : 0;
    for (size_t i = 0; !result && i < search->sample_count; i++)
        if (activity_of(&activities, &search->profile->samples[search->samples[i].number]) ==
            ACTIVITY_COLLECTOR)
            times_ns[count++] = search->samples[i].time_ns;
    result = result ? -1 : join_collections(search, times_ns, count);
    activity_map_free(&activities);
    free(times_ns);
    return result;
}

/* ---- All ---- */

static int compare_moments(const void *left, const void *right)
{
    const struct profile_moment *a = left, *b = right;
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->before < b->before ? -1 : a->before > b->before;
}

int profile_moments_find(struct profile_moments *moments, const struct call_profile *profile,
                         const struct profile_functions *functions,
                         const struct profile_choice *choice)
{
    struct search search = {
        .moments = moments, .profile = profile, .functions = functions, .choice = choice};
    *moments = (struct profile_moments){.items = NULL};
    int result = sort_samples(&search) || find_usual(&search) || begin_tiers(&search) ||
                         add_tiers(&search) || add_deopts(&search) || add_collections(&search)
                     ? -1
                     : 0;
    if (moments->count)
        qsort(moments->items, moments->count, sizeof *moments->items, compare_moments);
    free(search.lane_of);
    free(search.samples);
    free(search.ranks);
    free(search.several);
    free(search.ran);
    free(search.seen);
    return result;
}

void profile_moments_free(struct profile_moments *moments)
{
    free(moments->items);
    *moments = (struct profile_moments){.items = NULL};
}
