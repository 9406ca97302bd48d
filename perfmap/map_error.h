/* The text of a handle's first error: any thread may report one; the first is kept and never
 * changes. */
#ifndef PERFMAP_MAP_ERROR_H
#define PERFMAP_MAP_ERROR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MAP_ERROR_BYTES = 1024 };

struct map_error {
    atomic_flag taken; /* a thread is writing, or has written, the two below */
    _Atomic bool ready;
    int code;
    char text[MAP_ERROR_BYTES];
};

/* Keep CODE, a negative errno, and its text, if it is the first.  FORMAT may have %s, %ju, and %m,
 * the text of errno at the call.  A signal handler may call this.  Returns CODE, so that callers
 * can return this call. */
__attribute__((format(printf, 3, 4))) int pm_error_keep(struct map_error *error, int code,
                                                        const char *format, ...);

#endif
