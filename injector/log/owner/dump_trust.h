/* Whether what stands in a file may be read as a process's dump.
 *
 * Who owns it does not matter if it is the very file that the process mapped.  Anybody can put
 * another one in its place: that must be of somebody who is trusted (trusted_owner.h), or, where
 * the recording does not tell the file, of the process's own user.
 */
#ifndef PERFJIT_DUMP_TRUST_H
#define PERFJIT_DUMP_TRUST_H

#include "injector/log/owner/dump_place.h"

enum dump_trust {
    DUMP_UNTRUSTED,  /* its owner could have written anything that perfjit reads */
    DUMP_OF_PROCESS, /* its owner is the process's user, who could have written to it anyway:
                        trusted if it is what the process wrote */
    DUMP_TRUSTED     /* whatever it is */
};

/* Of DUMP, which stands for what LIFE mapped by MAP; IDENTITY: whether it is that file. */
enum dump_trust dump_trust_of(const struct dump_origin *origin, const struct process_life *life,
                              const struct perf_map *map, const struct jit_dump *dump,
                              enum file_identity identity);

#endif
