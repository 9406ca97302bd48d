/* See profile_choice.h. */
#include "injector/profile/profile_choice.h"

#include "injector/recording/host/recording_host.h"
#include "injector/text/name_pattern.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_IN_S 1000000000.0

enum { HALF_DAY_S = 12 * 3600, DAY_S = 24 * 3600, LIST_BYTES = 512 };

/* ---- Samples ---- */

/* perf writes what is left of --off-cpu with a time behind all others, ~0 << 32. */
static bool has_time(const struct call_sample *sample)
{
    return sample->time_ns && sample->time_ns <= INT64_MAX;
}

/* How much of the time that SAMPLE's thread waited is counted. */
static uint64_t waited_ns(const struct profile_choice *choice, const struct call_sample *sample)
{
    uint64_t from = sample->time_ns, to = sample->time_ns + sample->period;
    if (choice->to_ns) {
        from = from < choice->from_ns ? choice->from_ns : from;
        to = to > choice->to_ns ? choice->to_ns : to;
    }
    if (to <= from)
        return 0;
    return choice->moments ? span_moments_within(choice->moments, sample->thread, from, to)
                           : to - from;
}

static bool is_in_time(const struct profile_choice *choice, const struct call_sample *sample)
{
    if (!choice->to_ns && !choice->moments)
        return true;
    if (!has_time(sample))
        return false;
    if (sample->waits)
        return waited_ns(choice, sample) != 0;
    return (!choice->to_ns ||
            (sample->time_ns >= choice->from_ns && sample->time_ns < choice->to_ns)) &&
           (!choice->moments ||
            span_moments_have(choice->moments, sample->thread, sample->time_ns));
}

bool profile_choice_has(const struct profile_choice *choice, const struct call_sample *sample)
{
    const bool in_time = is_in_time(choice, sample);
    return (choice->event == PROFILE_ALL || choice->event == sample->event) && in_time &&
           !(choice->left_out && choice->left_out[sample->thread]);
}

/* The earliest time of the samples of CHOICE, or with NULL of PROFILE, that are WAITS or not. */
static uint64_t first_ns(const struct profile_choice *choice, const struct call_profile *profile,
                         bool waits)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        if (sample->waits == waits && has_time(sample) && sample->time_ns < first &&
            (!choice || profile_choice_has(choice, sample)))
            first = sample->time_ns;
    }
    return first == UINT64_MAX ? 0 : first;
}

/* A wait may have begun before anything ran. */
uint64_t profile_choice_first_ns(const struct profile_choice *choice,
                                 const struct call_profile *profile)
{
    const uint64_t first = first_ns(choice, profile, false);
    return first ? first : first_ns(choice, profile, true);
}

uint64_t call_sample_since(const struct call_sample *sample, uint64_t first_ns)
{
    return has_time(sample) && sample->time_ns > first_ns ? sample->time_ns - first_ns : 0;
}

uint64_t profile_choice_period(const struct profile_choice *choice,
                               const struct call_sample *sample)
{
    return sample->waits ? waited_ns(choice, sample) : sample->period;
}

/* Rounded: counts of single things are small. */
static uint64_t latency_of(uint64_t period, uint32_t running)
{
    return running > 1 ? period / running + (2 * (period % running) >= running) : period;
}

uint64_t profile_choice_weight(const struct profile_choice *choice,
                               const struct call_sample *sample)
{
    switch (choice->weight) {
    case WEIGHT_SAMPLES:
        break;
    case WEIGHT_PERIOD:
        return profile_choice_period(choice, sample);
    case WEIGHT_LATENCY:
        return latency_of(profile_choice_period(choice, sample), sample->running);
    }
    return 1;
}

bool profile_weight_is_time(const struct call_profile *profile, uint32_t event,
                            enum profile_weight weight)
{
    return weight != WEIGHT_SAMPLES && event < profile->event_count &&
           profile->events[event].counts_ns;
}

void profile_choice_free(struct profile_choice *choice)
{
    free(choice->left_out);
    choice->left_out = NULL;
    if (choice->moments)
        span_moments_free(choice->moments);
    free(choice->moments);
    choice->moments = NULL;
}

/* ---- Times as they are written ---- */

/* A decimal number at *AT, which moves behind it: no sign, no exponent, no "inf". */
static bool read_number(const char **at, double *value)
{
    size_t bytes = strspn(*at, "0123456789.");
    char *end, number[32];
    if (!bytes || bytes >= sizeof number)
        return false;
    memcpy(number, *at, bytes);
    number[bytes] = '\0';
    *at += bytes;
    *value = strtod(number, &end);
    return !*end && isdigit((unsigned char)number[0]);
}

static bool read_point(const char **at, struct time_point *point)
{
    double minutes, seconds = 0;
    point->form = TIME_SECONDS;
    if (!read_number(at, &point->value))
        return false;
    if (**at == '%') {
        (*at)++;
        point->form = TIME_PERCENT;
        return point->value <= 100;
    }
    if (**at != ':')
        return true;
    (*at)++;
    point->form = TIME_CLOCK;
    if (!read_number(at, &minutes) || (**at == ':' && ((*at)++, !read_number(at, &seconds))))
        return false;
    const bool is_time = point->value < 24 && minutes < 60 && seconds < 61;
    point->value = point->value * 3600 + minutes * 60 + seconds;
    return is_time;
}

bool time_words_read(struct time_words *words, const char *text)
{
    *words = (struct time_words){.from = {.form = TIME_NONE}};
    if (*text != '-' && !read_point(&text, &words->from))
        return false;
    if (*text++ != '-')
        return false;
    if (*text && (!read_point(&text, &words->to) || *text))
        return false;
    if (words->from.form == TIME_NONE || words->to.form == TIME_NONE)
        return words->from.form != words->to.form;
    /* "10-20%" would be taken for 10 seconds to 20 %; the clock may pass midnight. */
    return words->from.form == words->to.form &&
           (words->from.form == TIME_CLOCK || words->from.value < words->to.value);
}

/* ---- Times of a recording ---- */

/* The samples' times that are known. */
struct time_extent {
    uint64_t first_ns, last_ns;
    const struct recording_host *host;
};

static uint64_t last_ns(const struct call_profile *profile, bool waits)
{
    uint64_t last = 0;
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        if (sample->waits == waits && has_time(sample) && sample->time_ns > last)
            last = sample->time_ns;
    }
    return last;
}

uint64_t profile_choice_last_ns(const struct call_profile *profile)
{
    const uint64_t last = last_ns(profile, false);
    return last ? last : last_ns(profile, true);
}

/* VALUE in seconds from FIRST_NS on, which may be more than there can be. */
static uint64_t after(uint64_t first_ns, double seconds)
{
    const double ns = round(seconds * NS_IN_S);
    if (ns <= -(double)first_ns)
        return 1;
    return ns >= (double)(INT64_MAX - 1) - (double)first_ns ? INT64_MAX
                                                            : first_ns + (uint64_t)(int64_t)ns;
}

/* The time of perf's clock at which the wall clock is SECONDS behind midnight, nearest to the
 * recording's begin. */
static uint64_t at_clock(const struct time_extent *extent, double seconds)
{
    const uint64_t wall_ns = recording_host_wall_ns(extent->host, extent->first_ns);
    const time_t wall = (time_t)(wall_ns / (uint64_t)NS_IN_S);
    struct tm day;
    if (!localtime_r(&wall, &day))
        return extent->first_ns;
    const double begun = (double)day.tm_hour * 3600 + day.tm_min * 60.0 + day.tm_sec +
                         (double)(wall_ns % (uint64_t)NS_IN_S) / NS_IN_S;
    double since = seconds - begun;
    if (since < -HALF_DAY_S)
        since += DAY_S;
    else if (since > HALF_DAY_S)
        since -= DAY_S;
    return after(extent->first_ns, since);
}

/* WITHOUT is what a point that is not given means. */
static uint64_t resolve(const struct time_extent *extent, const struct time_point *point,
                        uint64_t without)
{
    const double length = (double)(extent->last_ns - extent->first_ns) / NS_IN_S;
    switch (point->form) {
    case TIME_NONE:
        break;
    case TIME_SECONDS:
        return after(extent->first_ns, point->value);
    case TIME_PERCENT: /* the last sample is in the last percent */
        return point->value >= 100 ? INT64_MAX
                                   : after(extent->first_ns, length * point->value / 100);
    case TIME_CLOCK:
        return at_clock(extent, point->value);
    }
    return without;
}

static int choose_time(struct profile_choice *choice, const struct call_profile *profile,
                       const struct time_words *words, const struct recording_host *host,
                       const char *path, struct findings *findings)
{
    const struct time_extent extent = {profile_choice_first_ns(NULL, profile),
                                       profile_choice_last_ns(profile), host};
    if (!host)
        return report_failure(findings, "%s: --time: a bench does not keep the times of samples",
                              path);
    if (!extent.first_ns)
        return report_failure(
            findings, "%s: --time: the samples have no times (perf record -T records them)", path);
    if ((words->from.form == TIME_CLOCK || words->to.form == TIME_CLOCK) && !host->has_wall_clock)
        return report_failure(
            findings,
            "%s: --time: the recording does not tell the time of day (perf record "
            "-k mono does); give seconds or percent",
            path);
    choice->from_ns = resolve(&extent, &words->from, 1);
    choice->to_ns = resolve(&extent, &words->to, INT64_MAX);
    if (words->to.form == TIME_CLOCK && choice->to_ns <= choice->from_ns)
        choice->to_ns = after(choice->to_ns, DAY_S);
    return 0;
}

/* ---- Threads ---- */

/* Whether WORD names what has this NUMBER and this NAME; a kept run has no numbers. */
static bool is_named(const char *word, uint32_t number, const char *name)
{
    char *end;
    const unsigned long wanted = strtoul(word, &end, 10);
    if (isdigit((unsigned char)*word) && !*end)
        return number && wanted == number;
    return name_is_as(name, word);
}

/* Add up to MOST characters of NAME, and NUMBER unless it is 0, to the list TEXT, which has room
 * for BYTES.  Returns false if it is full: then it ends in dots. */
static bool list_add(char *text, size_t bytes, const char *name, int most, uint32_t number)
{
    enum { ENTRY_BYTES = 64 };
    const size_t used = strlen(text);
    if (used + ENTRY_BYTES > bytes) {
        snprintf(text + used, bytes - used, ", ...");
        return false;
    }
    snprintf(text + used, bytes - used, number ? "%s%.*s %" PRIu32 : "%s%.*s", used ? ", " : "",
             most, name, number);
    return true;
}

/* The names and numbers of the threads, or processes, for a person, without those that were listed
 * just before. */
static void list_names(const struct call_profile *profile, bool processes, char *text, size_t bytes)
{
    text[0] = '\0';
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        const struct profile_thread *before = i ? thread - 1 : NULL;
        const uint32_t number = processes ? thread->pid : thread->tid;
        if (before && processes && before->pid == number && before->process == thread->process)
            continue;
        if (!list_add(text, bytes,
                      call_profile_string(profile, processes ? thread->process : thread->name), 32,
                      number))
            return;
    }
}

/* Leave out what WORD does not name. */
static int choose_threads(struct profile_choice *choice, const struct call_profile *profile,
                          const char *word, bool processes, const char *path,
                          struct findings *findings)
{
    char names[LIST_BYTES];
    bool any = false;
    if (!choice->left_out)
        choice->left_out = calloc(profile->thread_count + 1, sizeof *choice->left_out);
    if (!choice->left_out)
        return report_failure(findings, "out of memory");
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        const uint32_t name = processes ? thread->process : thread->name;
        if (is_named(word, processes ? thread->pid : thread->tid,
                     call_profile_string(profile, name)))
            any = true;
        else
            choice->left_out[i] = true;
    }
    if (any)
        return 0;
    list_names(profile, processes, names, sizeof names);
    return report_failure(findings, "%s: has no samples of that %s: '%s'; it has: %s", path,
                          processes ? "process" : "thread", word, names);
}

/* ---- Spans ---- */

/* The names of spans, for a person, each once. */
static void list_spans(const struct call_profile *profile, char *text, size_t bytes)
{
    bool *listed = calloc(profile->string_count + 1, sizeof *listed);
    text[0] = '\0';
    for (size_t i = 0; listed && i < profile->span_count; i++) {
        const uint32_t name = profile->spans[i].name;
        if (listed[name])
            continue;
        listed[name] = true;
        if (!list_add(text, bytes, call_profile_string(profile, name), 48, 0))
            break;
    }
    free(listed);
}

static int choose_spans(struct profile_choice *choice, const struct call_profile *profile,
                        const char *word, const char *path, struct findings *findings)
{
    char names[LIST_BYTES];
    bool found;
    choice->moments = calloc(1, sizeof *choice->moments);
    if (!choice->moments || span_moments_find(choice->moments, profile, word, &found))
        return report_failure(findings, "out of memory");
    if (found)
        return 0;
    if (profile->timeless)
        return report_failure(
            findings, "%s: --span: the samples have no times (perf record -T records them)", path);
    if (!profile->span_count)
        return report_failure(findings,
                              "%s: has no spans: no process mapped a marker-PID.txt that is there; "
                              "--spans FILE names one",
                              path);
    list_spans(profile, names, sizeof names);
    return report_failure(findings, "%s: has no span '%s'; it has: %s", path, word, names);
}

int profile_choice_make(struct profile_choice *choice, const struct call_profile *profile,
                        const struct profile_wish *wish, const struct recording_host *host,
                        const char *path, struct findings *findings)
{
    const bool has_time = wish->time.from.form != TIME_NONE || wish->time.to.form != TIME_NONE;
    if (has_time && choose_time(choice, profile, &wish->time, host, path, findings))
        return -1;
    if (wish->process && choose_threads(choice, profile, wish->process, true, path, findings))
        return -1;
    if (wish->thread && choose_threads(choice, profile, wish->thread, false, path, findings))
        return -1;
    return wish->span ? choose_spans(choice, profile, wish->span, path, findings) : 0;
}
