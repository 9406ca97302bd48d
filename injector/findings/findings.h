/* What went wrong in a run, for the people who read stderr.
 *
 * Two kinds of bad news.  A *finding* is a part of the input that could not be used, or not wholly:
 * it is counted by kind, its first case is told with file, record and offset, and the run goes on.
 * A *failure* ends the run: one text that gives the reason and what to do. And one kind of news: a
 * *repaired* quirk (findings/quirk.h) cost nothing; all of them are told in one line.
 *
 * Every module gets the same struct findings and reports into it; only the command prints.
 */
#ifndef PERFJIT_FINDINGS_H
#define PERFJIT_FINDINGS_H

#include "injector/findings/progress.h"
#include "injector/findings/quirk.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum finding_kind {
    FINDING_PROFILE_TRUNCATED, /* perf.data ends inside a record */
    FINDING_DUMP_MISSING,      /* a dump that the profile names is not there */
    FINDING_DUMP_UNUSABLE,     /* a dump whose header or clock can't be used */
    FINDING_DUMP_NOT_OURS,     /* jit-<number>.dump whose number is not the process's pid */
    FINDING_DUMP_TRUNCATED,    /* a dump ends inside a record */
    FINDING_RECORD_UNKNOWN,    /* a record id that this version does not know */
    FINDING_RECORD_BROKEN,     /* a record that contradicts itself */
    FINDING_CODE_LOST,         /* a move or unload of code that was never loaded */
    FINDING_UNWIND_BROKEN,     /* an unwind table that contradicts itself */
    FINDING_UNWIND_HOMELESS,   /* an unwind table for code that no load record speaks of */
    FINDING_UNWIND_NO_ROOM,    /* no free addresses near the code for its unwind tables */
    FINDING_LINES_BROKEN,      /* source lines that contradict themselves */
    FINDING_LINES_OUTSIDE,     /* source lines at addresses outside of their function */
    FINDING_LINES_HOMELESS,    /* source lines of code that no load record speaks of */
    FINDING_INLINES_BROKEN,    /* inlined calls that contradict themselves or their function */
    FINDING_BYTES_ABSENT,      /* a load without its code bytes: named, but no disassembly */
    FINDING_DUMP_TORN,         /* bytes among a dump's records that are no records */
    FINDING_DUMP_FOREIGN,      /* a part of a dump that another process wrote */
    FINDING_CLOCK_CONVERTED,   /* a dump on another clock than the profile, converted */
    FINDING_CLOCK_UNSURE,      /* the same, but not well enough for addresses that are used again */
    FINDING_CLOCK_FLAG,        /* a dump whose flags name another clock than the one it has */
    FINDING_CLOCK_USELESS,     /* a dump whose stamps are no times */
    FINDING_DUMP_REPLACED,     /* the file that has a dump's name is another one by now */
    FINDING_DUMP_OWNER,        /* a dump that belongs to a user who need not be the profiled one */
    FINDING_DUMP_AMBIGUOUS,    /* a dump that could be that of several processes */
    FINDING_DUMP_UNPLACED,     /* the same of one that was given by hand */
    FINDING_FEATURE_BROKEN,    /* a section of perf.data about the whole recording that is not all
                                  there */
    FINDING_KCORE_LEFT,        /* the copy of the kernel's code in a recording made with --kcore */
    FINDING_MAP_NOT_OURS,      /* /tmp/perf-<pid>.map that need not be the process's own */
    FINDING_MAP_STALE,     /* a perf map that an earlier process with the same pid left behind */
    FINDING_MAP_UNUSABLE,  /* a perf map that can't be read */
    FINDING_MAP_LINES,     /* a perf map with lines that can't be read */
    FINDING_MAP_ELSEWHERE, /* a perf map of addresses where its process has no code */
    FINDING_HERITAGE_LEFT, /* a forked process with too much code that it has inherited and touches
                            */
    FINDING_KINDS
};

struct findings {
    uint64_t count[FINDING_KINDS];
    char *first[FINDING_KINDS]; /* the first case of each kind, owned */
    uint64_t repaired[QUIRKS];
    char *first_repaired[QUIRKS]; /* owned, too */
    bool verbose;                 /* print each case as it is found */
    bool quiet;                   /* print failures only */
    char failure[1024];           /* why the run ended; "" while it goes on */
    struct progress progress;     /* told on the same terminal: hence here */
};

/* Count one case of KIND; the text says where and what. */
void finding(struct findings *findings, enum finding_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Count one case of QUIRK, which has been repaired; the text says where. */
void repaired(struct findings *findings, enum quirk quirk, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Say what cost nothing, and is of use to who looks into a run: with -v only. */
void noted(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Set the failure text, if none is set yet, and return -1. */
int failure(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The cases of the kinds that lose something, together: exit status 3 if not 0. */
uint64_t findings_lost(const struct findings *findings);

/* What a finding of KIND is called, behind its count, and whether it makes the exit status 3. */
const char *finding_what(enum finding_kind kind);
const char *finding_means(enum finding_kind kind); /* what was done about it, and what to do */
bool finding_is_lost(enum finding_kind kind);

/* Add what FROM found to TO, and leave nothing in it. */
void findings_move(struct findings *to, struct findings *from);

/* A paragraph for each kind that occurred: how often, the first case, what it means.  Then what was
 * repaired, in one line; verbose, in a paragraph for each quirk. */
void findings_print(const struct findings *findings, FILE *stream);

void findings_free(struct findings *findings);

#endif
