/* Which samples of a profile are counted, and how.  Every view and every format asks this alone, so
 * that their sums agree. */
#ifndef PERFJIT_PROFILE_CHOICE_H
#define PERFJIT_PROFILE_CHOICE_H

#include "injector/findings/findings.h"
#include "injector/profile/profile_spans.h"

struct recording_host;

enum profile_weight {
    WEIGHT_SAMPLES,
    WEIGHT_PERIOD,
    WEIGHT_LATENCY /* the period, divided by how many threads ran: what a run's length is made of */
};

#define PROFILE_ALL UINT32_MAX

struct profile_choice {
    uint32_t event; /* or PROFILE_ALL */
    enum profile_weight weight;
    uint64_t from_ns, to_ns; /* a sample at to_ns is out, that ranges add up; 0, 0: all are in */
    bool *left_out;          /* by thread; NULL: none is */
    struct span_moments *moments; /* these alone; NULL: all */
};

/* A point of time as it is written: 1.25 (seconds from the recording's first sample), 10% (of the
 * time from the first sample to the last), 14:05:09.5 (the clock's, here). */
enum time_form { TIME_NONE, TIME_SECONDS, TIME_PERCENT, TIME_CLOCK };
struct time_point {
    enum time_form form;
    double value; /* seconds, percent; of the clock: seconds since midnight */
};

struct time_words {
    struct time_point from, to;
};

/* What a user asks for; NULL: all. */
struct profile_wish {
    const char *event, *thread, *process, *span;
    struct time_words time;
};

/* Read FROM-TO; either may be missing.  Returns whether it is right. */
bool time_words_read(struct time_words *words, const char *text);

/* Fill in the time and the threads of CHOICE for WISH; HOST is the recording's, or NULL if PROFILE
 * is of a kept run, which has neither times nor numbers.  PATH is for messages.  Returns 0, or -1
 * with the failure text set.  Release CHOICE with profile_choice_free in either case. */
int profile_choice_make(struct profile_choice *choice, const struct call_profile *profile,
                        const struct profile_wish *wish, const struct recording_host *host,
                        const char *path, struct findings *findings);

void profile_choice_free(struct profile_choice *choice);

/* Whether SAMPLE is counted.  Of a thread that waited, a part of the time may be. */
bool profile_choice_has(const struct profile_choice *choice, const struct call_sample *sample);

/* The earliest time of the samples that CHOICE, or with NULL PROFILE, has; 0: none is known. */
uint64_t profile_choice_first_ns(const struct profile_choice *choice,
                                 const struct call_profile *profile);

/* The latest time of PROFILE's samples; 0: none is known. */
uint64_t profile_choice_last_ns(const struct call_profile *profile);

/* How long after FIRST_NS SAMPLE was taken; 0 if that was before, or its time is not known. */
uint64_t call_sample_since(const struct call_sample *sample, uint64_t first_ns);

uint64_t profile_choice_weight(const struct profile_choice *choice,
                               const struct call_sample *sample);

/* SAMPLE's period, as far as it is in CHOICE's time. */
uint64_t profile_choice_period(const struct profile_choice *choice,
                               const struct call_sample *sample);

/* Whether weights are times, in ns: those of EVENT, a number of PROFILE's or PROFILE_ALL, by
 * WEIGHT. */
bool profile_weight_is_time(const struct call_profile *profile, uint32_t event,
                            enum profile_weight weight);

#endif
