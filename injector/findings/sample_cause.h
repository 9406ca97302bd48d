/* Why a sample in JIT code stays [unknown]. */
#ifndef PERFJIT_SAMPLE_CAUSE_H
#define PERFJIT_SAMPLE_CAUSE_H

#include "injector/findings/finding_kind.h"

enum sample_cause {
    CAUSE_NO_DUMP,       /* executable memory, but no dump and no perf map */
    CAUSE_NO_MEANS,      /* the same, of a runtime that can't write one */
    CAUSE_NO_MARKER,     /* there is a dump, but the recording does not name it */
    CAUSE_DUMP_MISSING,  /* the recording names a dump that is not there */
    CAUSE_DUMP_OWNER,    /* it belongs to another user, and is not proven to be the mapped file */
    CAUSE_DUMP_REFUSED,  /* it can't be read */
    CAUSE_DUMP_REPLACED, /* it is another process's, or could be */
    CAUSE_DUMP_ANEW,     /* its process wrote its dump anew after the sample */
    CAUSE_WRONG_CLOCK,   /* its times can't be brought onto the profile's clock */
    CAUSE_PID_NAMESPACE, /* its name has another pid */
    CAUSE_MAP_REFUSED,   /* there is a perf map that was not used */
    CAUSE_DROPPED,       /* older than the history that its dump has kept */
    CAUSE_NOT_WRITTEN,   /* later than all that is left of its dump, which was cut short */
    CAUSE_STUBS_UNREAD,  /* the same, and its runtime stopped there by itself */
    CAUSE_NO_TIMES,      /* several functions had the address, and the recording has no times */
    CAUSE_BEFORE_LOAD,   /* the function was logged after the sample */
    CAUSE_FREED,         /* the function was unloaded or moved before the sample */
    CAUSE_REMAPPED,      /* something else was mapped over the function */
    CAUSE_NOT_LOGGED,    /* no function ever covered the address */
    CAUSE_NOT_IN_MAP,    /* the process's perf map does not cover it, and there is no dump */
    CAUSE_INJECTED,      /* it was injected by a program that keeps no causes */
    CAUSES
};

const char *sample_cause_id(enum sample_cause cause);     /* in lower case, with hyphens */
const char *sample_cause_what(enum sample_cause cause);   /* follows "process 7:" */
const char *sample_cause_remedy(enum sample_cause cause); /* a sentence */

/* The cause for samples of a process whose dump was refused for WHY (dump_claim.h). */
enum sample_cause sample_cause_of_refusal(enum finding_kind why);

#endif
