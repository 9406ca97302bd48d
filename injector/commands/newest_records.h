/* Where the newest records of a dump that was not closed are: in libjitdump's stage
 * beside it (jitdump/dump/dump_place.h). */
#ifndef PERFJIT_NEWEST_RECORDS_H
#define PERFJIT_NEWEST_RECORDS_H

#include "injector/dump/jit_dump.h"

/* Print a line on stderr if there are any that are not in DUMP. */
void newest_records_print(const struct jit_dump *dump);

#endif
