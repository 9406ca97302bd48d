/* Deviations of real producers from the specification, or from the input that perf accepts.  Each
 * is a quirk with a name.
 *
 * A quirk is detected from the data, never from the name of its producer, and is repaired where it
 * is found: grep for QUIRK_ and its name.  The table in quirk.c has for each quirk the error, the
 * producers and the repair.  docs/quirks.md is made from the table.
 */
#ifndef PERFJIT_QUIRK_H
#define PERFJIT_QUIRK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum quirk {
    /* the header */
    QUIRK_HEADER_VERSION,
    QUIRK_HEADER_LONGER,
    QUIRK_HEADER_SIZE,
    QUIRK_HEADER_FLAGS,
    QUIRK_HEADER_AGAIN,
    QUIRK_HEADER_FOREIGN,
    QUIRK_ELF_MACHINE,
    QUIRK_ELF_CLASS,
    /* loads */
    QUIRK_THREAD_ID_64,
    QUIRK_PID_DIFFERS,
    QUIRK_TID_IMPOSSIBLE,
    QUIRK_NAME_ABSENT,
    QUIRK_NAME_EMPTY,
    QUIRK_NAME_OPEN,
    QUIRK_NAME_PADDED,
    QUIRK_NAME_UNPRINTABLE,
    QUIRK_CODE_EMPTY,
    QUIRK_CODE_ABSENT,
    QUIRK_CODE_BEHIND,
    QUIRK_INDEX_REUSED,
    /* unwind tables */
    QUIRK_HDR_FIRST,
    QUIRK_HDR_ABSENT,
    QUIRK_HDR_NO_TABLE,
    QUIRK_FRAME_NO_END,
    QUIRK_FRAME_ELSEWHERE,
    QUIRK_MAPPED_SIZE_0,
    QUIRK_UNWIND_EMPTY,
    QUIRK_UNWIND_SHARED,
    QUIRK_UNWIND_FAR,
    /* source lines */
    QUIRK_LINES_BIASED,
    QUIRK_FILES_OVERWRITTEN,
    QUIRK_LINES_OUTSIDE,
    /* the order of records, and bytes that are no record */
    QUIRK_TIME_BACKWARDS,
    QUIRK_AFTER_CLOSE,
    QUIRK_RECORD_UNKNOWN,
    QUIRK_PART_TWICE,
    QUIRK_RECORD_TORN,
    QUIRK_DUMP_CUT,
    QUIRK_STUBS_UNREAD,
    QUIRKS
};

_Static_assert(QUIRKS <= 64, "a set of quirks is a uint64_t");

/* A set of only QUIRK. */
static inline uint64_t quirk_bit(enum quirk quirk)
{
    return UINT64_C(1) << quirk;
}

struct quirk_text {
    const char *id;        /* in lower case, with hyphens */
    const char *symptom;   /* a sentence without its full stop */
    const char *producers; /* the producers and their versions */
    const char *remedy;    /* how perfjit handles it */
    int finding; /* the kind that reports it, if something may be lost; else NOT_A_FINDING: repaired
                  */
};

enum { NOT_A_FINDING = -1 };

const struct quirk_text *quirk_text(enum quirk quirk);

/* Whether every dump of some runtime has it: that it was repaired again is no news. */
bool quirk_is_usual(enum quirk quirk);

/* All quirks, as docs/quirks.md has them. */
void quirk_print_all(FILE *stream);

#endif
