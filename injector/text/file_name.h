/* The names that runtimes give their files, and the numbers in them: jit-<pid>.dump,
 * perf-<pid>.map. */
#ifndef PERFJIT_FILE_NAME_H
#define PERFJIT_FILE_NAME_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The last part of PATH. */
static inline const char *file_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The directory of PATH, to be freed; NULL without memory. */
static inline char *file_directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Read a 32-bit number after a "-" at AT.  Returns where it ends; NULL: there is none. */
static inline const char *file_name_number(const char *at, uint32_t *number)
{
    uint64_t value = 0;
    if (*at != '-' || at[1] < '0' || at[1] > '9')
        return NULL;
    for (at++; *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    *number = (uint32_t)value;
    return value <= UINT32_MAX ? at : NULL;
}

#endif
