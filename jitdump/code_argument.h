/* Read and check a struct jitdump_code of any version. */
#ifndef JITDUMP_CODE_ARGUMENT_H
#define JITDUMP_CODE_ARGUMENT_H

#include "jitdump/guest/first_error.h"
#include "jitdump/jitdump.h"

/* Keep and return the ERROR of reading struct NAME by its size: -E2BIG, or another one, whose text
 * is INVALID. */
int jd_struct_refuse(struct first_error *kept, int error, const char *name, const char *invalid);

/* Check *CODE.  Usually it is used in place: the caller has just stored its members, and a copy in
 * larger pieces would wait until the stores have reached the cache.  A struct of another size is
 * copied to COPY first.  Inlines and pieces are not checked.  Returns 0 or a negative errno. */
int jd_code_read(struct first_error *kept, const struct jitdump_code **code,
                 struct jitdump_code *copy);

#endif
