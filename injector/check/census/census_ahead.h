/* The census of an injection, taken by a thread of its own while the profile is written: it reads
 * the whole recording once more and changes nothing, so that what would be the third of a run's
 * time costs none where there is a second processor.
 */
#ifndef PERFJIT_CENSUS_AHEAD_H
#define PERFJIT_CENSUS_AHEAD_H

#include "injector/check/census/sample_census.h"
#include "injector/files/side_thread.h"

struct census_ahead {
    struct sample_census *census;
    struct census_question question;
    struct findings findings; /* of the thread */
    struct side_thread thread;
    bool begun;
    int result;
};

/* Begin with the census of QUESTION.  What it points to is not changed until census_ahead_end. */
void census_ahead_begin(struct census_ahead *ahead, struct sample_census *census,
                        const struct census_question *question);

/* Wait for it.  Returns 0, also where none was begun, or -1 with the failure text set. */
int census_ahead_end(struct census_ahead *ahead, struct findings *findings);

/* For a run that failed: nothing of it is read any more.  After census_ahead_end it does nothing.
 */
void census_ahead_drop(struct census_ahead *ahead);

#endif
