/* See census_ahead.h. */
#include "injector/check/census/census_ahead.h"

enum { MANY_SAMPLES = 20000 }; /* fewer take less time than a thread does to start */

static void *take(void *context)
{
    struct census_ahead *ahead = context;
    ahead->result = sample_census_take(ahead->census, &ahead->question, &ahead->findings);
    return NULL;
}

void census_ahead_begin(struct census_ahead *ahead, struct sample_census *census,
                        const struct census_question *question)
{
    *ahead = (struct census_ahead){.census = census, .question = *question, .begun = true};
    if (question->records->sample_count >= MANY_SAMPLES && side_thread_pays())
        side_thread_begin(&ahead->thread, take, ahead);
}

int census_ahead_end(struct census_ahead *ahead, struct findings *findings)
{
    if (!ahead->begun)
        return 0;
    if (!side_thread_join(&ahead->thread))
        take(ahead);
    ahead->begun = false;
    return ahead->result ? report_failure(findings, "%s", ahead->findings.failure) : 0;
}

void census_ahead_drop(struct census_ahead *ahead)
{
    if (ahead->begun)
        side_thread_join(&ahead->thread);
    ahead->begun = false;
}
