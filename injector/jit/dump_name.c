/* See dump_name.h. */
#include "injector/jit/dump_name.h"

#include "injector/perf_data/perf_record.h"

#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool jit_dump_name_pid(const char *path, uint32_t *pid)
{
    const char *name = base_name(path);
    if (strncmp(name, "jit-", 4) != 0)
        return false;
    uint64_t number = 0;
    const char *digit = name + 4;
    for (; *digit >= '0' && *digit <= '9' && number <= UINT32_MAX; digit++)
        number = number * 10 + (uint64_t)(*digit - '0');
    bool named = digit > name + 4 && number <= UINT32_MAX &&
                 (strcmp(digit, ".dump") == 0 || strcmp(digit, ".dump (deleted)") == 0);
    if (named)
        *pid = (uint32_t)number;
    return named;
}

bool jit_dump_same_name(const char *path, const char *other)
{
    const char *a = base_name(path), *b = base_name(other);
    return perf_map_name_length(a) == perf_map_name_length(b) &&
           strncmp(a, b, perf_map_name_length(a)) == 0;
}
