/* Statistics about one dump without a recording. */
#ifndef PERFJIT_DUMP_SURVEY_H
#define PERFJIT_DUMP_SURVEY_H

#include "injector/check/frame_survey.h"
#include "injector/findings/findings.h"
#include "injector/log/code/code_log.h"
#include "injector/log/jitdump/jit_dump.h"

enum record_kind {
    RECORD_LOAD,
    RECORD_MOVE,
    RECORD_UNLOAD,
    RECORD_DEBUG_INFO,
    RECORD_INLINE_INFO,
    RECORD_PIECE,
    RECORD_INTERPRETED,
    RECORD_UNWINDING_INFO,
    RECORD_CLOSE,
    RECORD_OTHER, /* headers, fillers, other tools' */
    RECORD_UNKNOWN,
    RECORD_BROKEN,
    RECORD_KINDS
};

struct dump_survey {
    /* structure */
    uint64_t records[RECORD_KINDS], record_count;
    uint64_t torn_parts, torn_bytes;
    uint64_t repeated_bytes; /* of parts that stand there twice */
    uint64_t cut_bytes;      /* of a record that the file's end cuts */
    uint64_t unused_bytes;   /* zeros at the end */
    uint64_t largest_bytes;  /* of one record that is no filler */
    /* times, of records that have one */
    uint64_t first_time, last_time; /* the least and the greatest */
    uint64_t backwards;             /* records older than the one before */
    bool timed;
    bool header_agrees; /* its time is not well after the first record's, nor more than a day before
                         */
    bool header_is_wall; /* it does not, because it is the wall clock's, in microseconds */
    bool stands_still;   /* there are many records, all of one time */
    /* addresses, in the order of times */
    uint64_t overlaps;  /* loads and moves over live code */
    uint64_t repeated;  /* loads that repeat a live function */
    uint64_t strangers; /* moves and unloads of code that is not this dump's: inherited by fork, or
                           its load was lost */
    /* names */
    uint64_t functions, named_alike; /* functions whose name another address has as well */
    /* unwind tables, lines, inlined calls */
    uint64_t with_cfi;
    struct frame_survey frames;
    uint64_t with_lines, lines;
    uint64_t with_inlines, inlines, spans;
    struct findings
        findings; /* the findings of perfjit inject's reader, lines and tables included */
};

/* Read all of DUMP.  Returns 0, or -1 with the failure text set in SURVEY's findings.  Release with
 * dump_survey_free in either case. */
int dump_survey_take(struct dump_survey *survey, const struct jit_dump *dump);

/* How many parts of the dump any reader would lose, stacks through functions whose unwind tables do
 * not fit their code among them. */
uint64_t dump_survey_lost(const struct dump_survey *survey);

void dump_survey_free(struct dump_survey *survey);

#endif
