/* The output of perfjit check about a recording. */
#ifndef PERFJIT_RECORDING_REPORT_H
#define PERFJIT_RECORDING_REPORT_H

#include "injector/check/census/chain_census.h"
#include "injector/check/census/sample_census.h"
#include "injector/check/findings_report.h"
#include "injector/recording/cut_chains.h"
#include "injector/unwind/stacks/user_stacks.h"

/* The options of the report on call chains. */
struct chain_question {
    bool asked, verbose;
    const struct user_stacks *stacks; /* NULL: there are none */
    const struct chain_census *census;
    uint64_t misled; /* see chain_census_misled */
    struct cut_chains cuts;
};

/* A member "profile" of the object that is open.  Returns 0, or -1 without memory. */
int recording_report(struct report *report, const struct census_question *question,
                     const struct sample_census *census, const struct chain_question *chains,
                     const struct findings *findings);

#endif
