/* A sound copy of a damaged dump.
 *
 * Every complete record is kept, byte for byte and in order.  A reader could fail on some parts,
 * and these are left out.  They are torn parts, a record that the end cuts, broken records, records
 * of unknown ids, fillers and further headers.  Records that belong to a LOAD that was lost are
 * left out, too (perf would assign them to the next LOAD).  The header is rewritten where
 * necessary: version 1, 40 bytes, no undefined flags.  Machine, pid, time and byte order stay.  One
 * CLOSE ends the file.
 *
 * A further header ends the code logged before it; in the copy, which has only one header,
 * CODE_UNLOADs do.
 *
 * One thing is corrected: a LOAD whose total_size leaves out its code (QUIRK_CODE_BEHIND) gets the
 * size that it has.
 */
#ifndef PERFJIT_DUMP_REPAIR_H
#define PERFJIT_DUMP_REPAIR_H

#include "injector/findings/findings.h"
#include "injector/log/jitdump/jit_dump.h"

struct dump_repair {
    uint64_t kept, functions;
    uint64_t torn_parts, torn_bytes; /* a record that the end cuts is one */
    uint64_t repeated_bytes;         /* of parts that stand there twice; one copy is kept */
    uint64_t broken, unknown, fillers, orphans, headers, foreign;
    uint64_t sizes_corrected;
    uint64_t unloads; /* written in place of a header */
    bool header_corrected;
};

/* Write the copy of DUMP to PATH, which must not exist yet.  Returns 0, or -1 with the failure text
 * set and nothing written. */
int dump_repair_write(struct dump_repair *repair, const struct jit_dump *dump, const char *path,
                      struct findings *findings);

/* Whether the content of some record is missing in the copy. */
bool dump_repair_lost(const struct dump_repair *repair);

#endif
