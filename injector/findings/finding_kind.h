/* The kinds of findings and their texts: all that a user reads about errors in the input, except
 * for the place.  The errors of producers are in quirk.h. */
#ifndef PERFJIT_FINDING_KIND_H
#define PERFJIT_FINDING_KIND_H

#include <stdbool.h>

enum finding_kind {
    FINDING_PROFILE_TRUNCATED, /* perf.data ends inside a record */
    FINDING_DUMP_MISSING,      /* a dump that the profile names is not there */
    FINDING_DUMP_UNUSABLE,     /* a dump whose header or clock can't be used */
    FINDING_DUMP_NOT_OURS,     /* jit-<number>.dump whose number is not the process's pid */
    FINDING_DUMP_TRUNCATED,    /* a dump ends inside a record, or is empty */
    FINDING_RECORD_UNKNOWN,    /* a record id that this version does not know */
    FINDING_RECORD_BROKEN,     /* a record that contradicts itself */
    FINDING_CODE_LOST,         /* a move or unload of code that was never loaded */
    FINDING_UNWIND_BROKEN,     /* an unwind table that contradicts itself */
    FINDING_UNWIND_UNMATCHED,  /* an unwind table for code that no load record covers */
    FINDING_UNWIND_NO_ROOM,    /* no free addresses near the code for its unwind tables */
    FINDING_LINES_BROKEN,      /* source lines that contradict themselves */
    FINDING_LINES_OUTSIDE,     /* source lines at addresses outside of their function */
    FINDING_LINES_UNMATCHED,   /* source lines of code that no load record covers */
    FINDING_INLINES_BROKEN,    /* inlined calls that contradict themselves or their function */
    FINDING_INLINES_ABSENT,    /* V8 told no inlined calls, in a process that others told them of */
    FINDING_SOURCE_MAP,        /* a script's source map that is not there, or no source map */
    FINDING_SCRIPT_CHANGED,    /* a script's file is not the text that ran */
    FINDING_BYTES_ABSENT,      /* a load without its code bytes: named, but no disassembly */
    FINDING_DUMP_TORN,         /* bytes among a dump's records that are no records */
    FINDING_DUMP_FOREIGN,      /* a part of a dump that another process wrote */
    FINDING_CLOCK_CONVERTED,   /* a dump on another clock than the profile, converted */
    FINDING_CLOCK_UNSURE,      /* the same, but not well enough for addresses that are used again */
    FINDING_CLOCK_FLAG,        /* a dump whose flags name another clock than the one it has */
    FINDING_CLOCK_USELESS,     /* a dump whose timestamps are unusable */
    FINDING_DUMP_REPLACED,     /* the file with the dump's name is no longer the dump */
    FINDING_DUMP_ANEW,         /* a process began its dump anew, at the same path */
    FINDING_DUMP_OWNER,        /* a dump that belongs to a user who may not be the profiled one */
    FINDING_DUMP_AMBIGUOUS,    /* a dump that could be that of several processes */
    FINDING_FEATURE_BROKEN,    /* a section of perf.data about the whole recording that is not all
                                  there */
    FINDING_KCORE_LEFT,        /* the copy of the kernel's code in a recording made with --kcore */
    FINDING_MAP_NOT_OURS,      /* /tmp/perf-<pid>.map that may not be the process's own */
    FINDING_MAP_STALE,       /* a perf map that an earlier process with the same pid left behind */
    FINDING_MAP_UNUSABLE,    /* a perf map that can't be read */
    FINDING_MAP_LINES,       /* a perf map with lines that can't be read */
    FINDING_MAP_NAMES,       /* a perf map in which names have line breaks */
    FINDING_MAP_ELSEWHERE,   /* a perf map, named by hand, that has no code of its process */
    FINDING_INHERITANCE_CUT, /* too many functions have been copied to forked processes */
    FINDING_SAMPLE_BROKEN,   /* a sample whose fields are longer than its record */
    FINDING_IMAGE_CACHED,    /* a live process that does not see the ELF files, which are in perf's
                                cache */
    FINDING_IMAGE_HIDDEN,    /* the same, and they could not be put there */
    FINDING_RECORDS_UNWRITTEN, /* records that were only in the memory of the process */
    FINDING_HISTORY_CUT,       /* a dump whose old records made room for new ones */
    FINDING_CALLERS_MISSING,   /* a sample whose deferred call chain is not there */
    FINDING_FILE_CHANGED,      /* a program or library that is not the one that was mapped */
    FINDING_TIMES_ABSENT,      /* a recording in which nothing has a time */
    FINDING_TIMES_GUESSED,     /* samples without a time among others that have one */
    FINDING_MACHINE_UNKNOWN,   /* a recording of a machine that this version does not know */
    FINDING_KINDS
};

/* The name of a finding of KIND, printed after its count, and whether it makes the exit status 3.
 */
const char *finding_what(enum finding_kind kind);
const char *finding_means(enum finding_kind kind); /* how perfjit handled it, and what the user can
                                                    * do */
bool finding_is_lost(enum finding_kind kind);

/* If no dump and no map could be used, the first of these kinds that occurred is the reason: the
 * text of its first case, followed by REMEDY. */
struct no_dump_reason {
    enum finding_kind kind;
    const char *remedy;
};
enum { NO_DUMP_REASONS = 11 };
extern const struct no_dump_reason no_dump_reasons[NO_DUMP_REASONS];

#endif
