/* The dumps given by hand, with --jitdump [PID:]FILE: whose each is, and which of the profile's
 * claims it stands for.
 *
 * With a PID it is that process's: of its newest life in which any of the dump was logged.  Without
 * a PID it is of a process that mapped that very file, or else of one that mapped a file of its
 * name.  If there is none, and its name has no pid, it is of a process that mapped a dump with the
 * pid in its header.  Otherwise it is of the process that has the pid in its name or header.  Lives
 * in which none of its records were logged are left aside, unless no other life is left.  If
 * several are left, or two dumps could be the same one of a process, nothing is guessed.  The
 * failure text names them.
 *
 * A dump stands for one of the same name in any directory, and under another name for one that is
 * missing.
 */
#ifndef PERFJIT_GIVEN_DUMP_H
#define PERFJIT_GIVEN_DUMP_H

#include "injector/log/owner/dump_claim.h"
#include "injector/recording/given_file.h"

enum claim_match {
    MATCH_FILE, /* it is the very file that was mapped */
    MATCH_NAME,
    MATCH_HEADER, /* the number is the pid in its header */
    CLAIM_MATCHES /* it does not match */
};

struct given_dump {
    char *path;
    uint32_t pid; /* as it was given; 0: it was not */
    struct jit_dump dump;
    struct jit_clock clock;
    bool usable;
    enum claim_match how; /* the claims that match best do */
    uint32_t life;
    struct dump_claim *match; /* of its life, that it may stand for, or NULL */
};

struct given_dumps {
    struct given_dump *items;
    size_t count;
};

/* Open the COUNT FILES.  One that can't be used is a finding if it is named like a dump, else a
 * failure.  Returns 0, or -1 with the failure text set.  Release with given_dumps_free in either
 * case. */
int given_dumps_open(struct given_dumps *given, const struct given_file *files, size_t count,
                     struct findings *findings);

/* Add to LIVES those processes that they name and of which PROFILE has only samples: a piece of a
 * recording, whose records of the process's start are in an earlier one.  Returns 0, or -1 with the
 * failure text set. */
int given_dumps_add_lives(const struct given_dumps *given, struct process_lives *lives,
                          const struct records *records, struct findings *findings);

/* Find out whose each is, and mark the CLAIMS that they stand for.  Returns 0, or -1 with the
 * failure text set. */
int given_dumps_assign(struct given_dumps *given, struct dump_claims *claims,
                       struct findings *findings);

void given_dumps_free(struct given_dumps *given);

#endif
