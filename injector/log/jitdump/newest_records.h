/* Finds the newest records of a dump that was not closed: they are in libjitdump's stage beside it
 * (jitdump/dump/dump_place.h). */
#ifndef PERFJIT_NEWEST_RECORDS_H
#define PERFJIT_NEWEST_RECORDS_H

#include "injector/log/jitdump/jit_dump.h"

/* Print a line on stderr if there are any that are not in DUMP.  Returns the path of the file that
 * has them, to be freed, or NULL. */
char *newest_records_print(const struct jit_dump *dump);

#endif
