/* What perfjit check says about a recording. */
#ifndef PERFJIT_PROFILE_REPORT_H
#define PERFJIT_PROFILE_REPORT_H

#include "injector/census/sample_census.h"
#include "injector/check/report.h"

/* A member "profile" of the object that is open. */
void profile_report(struct report *report, const struct census_question *question,
                    const struct sample_census *census, const struct findings *findings);

#endif
