/* Where the newest records of a dump are that its process did not close: in libjitdump's stage
 * beside it (jitdump/dump/dump_place.h). */
#ifndef PERFJIT_NEWEST_RECORDS_H
#define PERFJIT_NEWEST_RECORDS_H

#include "injector/dump/jit_dump.h"

/* Say so on stderr, in a line, if there are any that are not in DUMP. */
void newest_records_tell(const struct jit_dump *dump);

#endif
