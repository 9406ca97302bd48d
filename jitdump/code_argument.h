/* struct jitdump_code as programs pass it, of any version, checked. */
#ifndef JITDUMP_CODE_ARGUMENT_H
#define JITDUMP_CODE_ARGUMENT_H

#include "jitdump/guest/first_error.h"
#include "jitdump/jitdump.h"

/* Keep, and return, what reading struct NAME by its size ended with: -E2BIG, or else what is
 * INVALID. */
int jd_struct_refuse(struct first_error *kept, int error, const char *name, const char *invalid);

/* Check *CODE.  Usually it is used in place: copying, in larger pieces, what has just been stored
 * would stall until the stores have reached the cache.  One of another size is copied to COPY
 * first.  Its inlines and pieces are not looked at.  Returns 0 or a negative errno. */
int jd_code_read(struct first_error *kept, const struct jitdump_code **code,
                 struct jitdump_code *copy);

#endif
