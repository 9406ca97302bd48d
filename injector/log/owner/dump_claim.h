/* The claims of processes on dumps.  A process that mapped a file named jit-<n>.dump (dump_name.h
 * has other names), or one that begins as a dump does (dump_probe.h), claims it.
 *
 * Most often that is simple: n is the process's pid, the file is there, and no other process claims
 * it.  Otherwise evidence decides.  A dump without evidence is not used:
 *
 *   n is not the pid         The process lives in a container and n is its own pid there.  The
 *                            dump's header must have n as well.  One more source must confirm it;
 *                            the first of these that is there counts: /proc/<pid>/status, while the
 *                            process lives; a NAMESPACES record (is the process in another pid
 *                            namespace than others?); at last, that no other process mapped this
 *                            file and that the process n is not its parent.
 *   several lives claim one  The file belongs to the mapping with its device and inode.  Of several
 *   file                     such mappings, it belongs to the one life in which its records were
 *                            written.  One pid's later life overwrote the file of the earlier one.
 *                            If several have a copy there, it belongs to the one that mapped its
 *                            dump when the header was written.
 *   its records were all     Then it was overwritten after the recording.
 *   written outside the life
 *   its process began it     What was logged before is lost.  The process mapped another file at
 * the anew                     same path later, or the same file, and the header is of that time.
 *   it is another file       It is a copy if the header has the process's pid and a time just
 *                            before or after the mapping, and the records are of the process's
 *                            life.  Otherwise it was overwritten.
 *
 * And its owner must be trusted (enum dump_trust).
 */
#ifndef PERFJIT_DUMP_CLAIM_H
#define PERFJIT_DUMP_CLAIM_H

#include "injector/log/clock/clock_candidate.h"
#include "injector/log/code/code_log.h"
#include "injector/log/owner/dump_place.h"
#include "injector/log/owner/unwritten_source.h"

enum claim_state {
    CLAIM_OPEN,    /* nothing is known yet */
    CLAIM_FOUND,   /* there is a file, opened, that may be it */
    CLAIM_REFUSED, /* there is none; that has been reported */
    CLAIM_SETTLED, /* none is looked for: one given by hand stands for it, or nothing needs it */
};

struct dump_claim {
    uint32_t life;
    uint32_t number; /* the pid in the file's name; if it is not named like a dump, in its header */
    const struct recorded_map *map; /* the first of this file that was recorded, else synthesized */
    bool named;                     /* like a dump */
    bool chosen;                    /* for a dump that was given by hand */
    bool closed; /* its dump, or the one that was given, was closed by its process */
    enum claim_state state;
    enum finding_kind refusal; /* if REFUSED: why; for its times: FINDING_CLOCK_USELESS */
    uint64_t anew_ns;          /* when its process wrote it anew; 0: it did not */
    bool over;                 /* if REFUSED: the file is there, and holds nothing of its process */
    bool is_open;              /* if OPEN: its dump is, and is to be judged */
    struct dump_place place;   /* without its dump, which is the next */
    struct jit_dump dump;
    struct jit_clock clock;
    bool is_read;             /* log and findings are valid */
    struct code_log log;      /* of this dump only, with its own stamps for times */
    struct findings findings; /* about the log: findings only if it is used */
};

struct dump_marker {
    uint64_t offset; /* of the map record */
    size_t claim;
};

struct dump_claim_options {
    const char *root; /* where the processes' root file system is, or NULL */
    bool any_owner;   /* use other users' files, too */
    bool no_lines;    /* leave records about source lines alone */
    struct unwritten_source unwritten;
};

struct dump_claims {
    struct dump_claim_options options;
    const struct records *records;
    struct dump_origin origin;
    const struct process_lives *lives;
    struct dump_claim *items; /* by pid, then by time */
    size_t count, capacity;
    struct dump_marker *markers;
    size_t marker_count, marker_capacity;
    struct shared_clocks clocks; /* offsets of clocks that the dumps show together */
    bool are_told;               /* PROFILE has been injected: its refused dumps were reported
                                  * then */
};

/* Why the dump of a program is none any more. */
#define DUMP_WRITTEN_ANEW                                                                          \
    "a later program of the same process (exec) has overwritten the file: the earlier log is gone"

/* Collect the claims in PROFILE.  Returns 0, or -1 with the failure text set.  Release with
 * dump_claims_free in either case. */
int dump_claims_collect(struct dump_claims *claims, const struct dump_claim_options *options,
                        const struct records *records, const struct process_lives *lives,
                        struct findings *findings);

/* Find and open the files of the claims that are still open: each is CLAIM_FOUND or CLAIM_REFUSED
 * then, before dump_rivals_settle. */
int dump_claims_settle(struct dump_claims *claims, struct findings *findings);

/* No dump is used for CLAIM: report that, with its path, its process and WHY. */
void dump_claim_refuse(const struct dump_claims *claims, struct dump_claim *claim,
                       enum finding_kind kind, const char *why, struct findings *findings);

/* As dump_origin_distance, from the nearest of CLAIM's mappings. */
uint64_t dump_claim_distance(const struct dump_claims *claims, const struct dump_claim *claim,
                             const struct jit_dump *dump, const struct jit_clock *clock);

/* The life that CLAIM is of. */
const struct process_life *dump_claim_life(const struct dump_claims *claims,
                                           const struct dump_claim *claim);

/* Whether A and B map one file, by all facts in the recording. */
bool dump_claim_same_file(const struct perf_map *a, const struct perf_map *b);

void dump_claims_free(struct dump_claims *claims);

#endif
