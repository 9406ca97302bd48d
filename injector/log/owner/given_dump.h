/* The dumps given by hand, with --jitdump: whose each is, and for which of the profile's claims it
 * stands.
 *
 * A given dump belongs to a process that mapped that very file, else to one that mapped a file of
 * its name, else to one that mapped a dump of the pid in its header, else to the process whose pid
 * is in its name or header.  Of several (containers have equal pids inside) to the one that mapped
 * its dump when the header was written; if the times don't tell, to that of several lives of one
 * pid in which most of it was loaded.  No two stand for one claim, and what could be of several
 * processes is left out. It stands for a dump of the same name in any directory, and under another
 * name for one that is missing.
 */
#ifndef PERFJIT_GIVEN_DUMP_H
#define PERFJIT_GIVEN_DUMP_H

#include "injector/log/owner/dump_claim.h"
#include "injector/recording/given_file.h"

struct given_dump {
    char *path;
    struct jit_dump dump;
    struct jit_clock clock;
    bool usable;
    uint32_t life;
    struct dump_claim *match; /* that it is chosen for; NULL: by its pid */
};

struct given_dumps {
    struct given_dump *items;
    size_t count;
};

/* Open the COUNT FILES.  One that can't be used is a finding if it is named like a dump, else
 * a failure.  Returns 0, or -1 with the failure text set.  Release with given_dumps_free in either
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
