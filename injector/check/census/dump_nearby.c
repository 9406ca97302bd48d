/* See dump_nearby.h. */
#include "injector/check/census/dump_nearby.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096 };

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* LENGTH bytes of DIRECTORY are its name; 0: the current one.  libjitdump makes a directory for
 * each process. */
static bool is_in(const char *directory, size_t length, uint32_t pid)
{
    char path[PATH_BYTES];
    const char *slash = length ? "/" : "";
    int written = snprintf(path, sizeof path, "%.*s%sjit-%" PRIu32 ".dump", (int)length, directory,
                           slash, pid);
    if (written < PATH_BYTES && is_file(path))
        return true;
    written = snprintf(path, sizeof path, "%.*s%sjitdump-%" PRIu32 "/jit-%" PRIu32 ".dump",
                       (int)length, directory, slash, pid, pid);
    return written < PATH_BYTES && is_file(path);
}

bool dump_is_nearby(const char *profile, uint32_t pid)
{
    const char *slash = strrchr(profile, '/'), *directory = getenv("JITDUMPDIR");
    return (slash && is_in(profile, (size_t)(slash - profile), pid)) || is_in("", 0, pid) ||
           (directory && is_in(directory, strlen(directory), pid)) || is_in("/tmp", 4, pid);
}
