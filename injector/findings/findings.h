/* The errors of a run, as printed on stderr.
 *
 * There are two kinds of errors.  A *finding* is a part of the input that could not be used, or not
 * completely.  It is counted by kind.  Its first case is reported with file, record and offset, and
 * the run continues.  A *failure* ends the run: one text with the reason and the remedy.  A
 * *repaired* quirk (findings/quirk.h) is no error, since nothing was lost; all of them are reported
 * in one line.
 *
 * Every module gets the same struct findings and reports into it; only the command prints.
 */
#ifndef PERFJIT_FINDINGS_H
#define PERFJIT_FINDINGS_H

#include "injector/findings/finding_kind.h"
#include "injector/findings/progress.h"
#include "injector/findings/quirk.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct findings {
    uint64_t count[FINDING_KINDS];
    char *first[FINDING_KINDS]; /* the first case of each kind, owned */
    uint64_t repaired[QUIRKS];
    char *first_repaired[QUIRKS]; /* owned, too */
    bool verbose;                 /* print each case as it is found */
    bool quiet;                   /* print failures only */
    char failure[1024];           /* why the run ended; "" while it goes on */
    bool is_misuse;               /* the failure is wrong usage: exit status 2 */
    struct progress progress;     /* here because it shares the terminal */
};

/* Count one case of KIND; the text has its place and details. */
void report_finding(struct findings *findings, enum finding_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Count one case of QUIRK, which has been repaired; the text says where. */
void report_quirk(struct findings *findings, enum quirk quirk, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Report something that lost nothing but helps to understand a run: with -v only. */
void report_note(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Set the failure text, if none is set yet, and return -1. */
int report_failure(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for wrong usage that shows while the run goes on. */
int report_misuse(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The cases of the kinds that lose something, together: exit status 3 if not 0. */
uint64_t findings_lost(const struct findings *findings);

/* Move all findings of FROM to TO. */
void findings_move(struct findings *to, struct findings *from);

/* A paragraph for each kind that occurred: how often, the first case, what it means.  Then what was
 * repaired, in one line, without what is usual; verbose, all in a paragraph for each quirk. */
void findings_print(const struct findings *findings, FILE *stream);

/* How many there were at some moment. */
struct findings_mark {
    uint64_t count[FINDING_KINDS], repaired[QUIRKS];
};

struct findings_mark findings_mark(const struct findings *findings);

/* Forget what was found since MARK, and the failure: that part of the run is done anew. */
void findings_return(struct findings *findings, const struct findings_mark *mark);

void findings_free(struct findings *findings);

#endif
