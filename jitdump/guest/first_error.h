/* The text of a handle's first error.
 *
 * Any thread may report an error; the first text is kept, never changes, and may be read at any
 * time without a lock.
 */
#ifndef JITDUMP_FIRST_ERROR_H
#define JITDUMP_FIRST_ERROR_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { FIRST_ERROR_BYTES = PATH_MAX + 512 };

struct first_error {
    atomic_flag taken; /* a thread is writing, or has written, the rest */
    atomic_bool ready; /* and has finished */
    int code;
    char text[FIRST_ERROR_BYTES];
};

void jd_error_init(struct first_error *error);

/* Keep CODE, a negative errno, and its text, unless there is one already.  %m in FORMAT is the text
 * of errno at the call.  Returns CODE, so that callers can return this call. */
__attribute__((format(printf, 3, 4))) int jd_error_keep(struct first_error *error, int code,
                                                        const char *format, ...);

/* The text, or "". */
const char *jd_error_text(const struct first_error *error);

/* The negative errno, or 0. */
int jd_error_code(const struct first_error *error);

#endif
