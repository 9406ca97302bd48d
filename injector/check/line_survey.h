/* The lines and inlined calls in a dump, record by record: a DEBUG_INFO or INLINE_INFO stands before the LOAD that it speaks of,
 * and is matched to it by address. */
#ifndef PERFJIT_LINE_SURVEY_H
#define PERFJIT_LINE_SURVEY_H

#include "injector/check/dump_survey.h"
#include "injector/timeline/address_map.h"

struct line_survey {
    struct dump_survey *survey;     /* what is counted */
    struct jit_debug_info *pending; /* whose LOAD has not come yet */
    size_t pending_count, pending_capacity;
    struct jit_inline_info *inlines;
    size_t inline_count, inline_capacity;
    uint64_t begin_late, outside_less_bias; /* tables, and their entries: see line_survey.c */
    struct address_map debug_at, inline_at; /* address to the index of the newest */
};

/* Returns 0, or -1 without memory. */
int line_survey_add(struct line_survey *lines, const struct jit_record *record);

/* What is still pending has no home.  Releases. */
void line_survey_end(struct line_survey *lines);

#endif
