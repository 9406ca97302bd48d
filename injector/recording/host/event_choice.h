/* The event that is sampled if the user names none.  It is cycles if the CPU has a counter for
 * them, else the CPU's clock.  The kernel is sampled too if that is permitted. */
#ifndef PERFJIT_EVENT_CHOICE_H
#define PERFJIT_EVENT_CHOICE_H

#include "injector/findings/findings.h"

struct event_choice {
    const char *event; /* as perf's -e takes it */
    const char *note;  /* a note for the user; or NULL */
};

/* Try which events this user may sample on this machine.  Returns 0, or -1 with the failure text
 * set: nothing. */
int event_choose(struct event_choice *choice, struct findings *findings);

/* Whether this user may sample each switch of a thread, which happens in the kernel. */
bool event_can_sample_switches(void);

/* The result of event_choose if perf_event_open(2) ended with ERROR (0 for success).  The four
 * errors are of cycles and of the clock, with the kernel and (USER) without it. */
int event_choose_by(struct event_choice *choice, const int errors[4], int paranoid,
                    struct findings *findings);

enum { TRY_CYCLES, TRY_CYCLES_USER, TRY_CLOCK, TRY_CLOCK_USER, TRIES };

#endif
