/* See dump_name.h. */
#include "injector/dump/dump_name.h"

#include "injector/perf_data/perf_record.h"

#include <ctype.h>
#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A number behind "-"; NULL: there is none. */
static const char *take_number(const char *at, uint32_t *number)
{
    uint64_t value = 0;
    if (!at || *at != '-' || at[1] < '0' || at[1] > '9')
        return NULL;
    for (at++; *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    *number = (uint32_t)value;
    return value <= UINT32_MAX ? at : NULL;
}

static bool is_end(const char *at, size_t left, const char *end)
{
    return left == strlen(end) && strncmp(at, end, left) == 0;
}

/* What mkstemp makes of "-XXXXXX". */
static bool is_made_up(const char *at, size_t left)
{
    enum { MADE_UP_BYTES = 6 };
    if (left != 1 + MADE_UP_BYTES || *at != '-')
        return false;
    for (size_t i = 1; i < left; i++)
        if (!isalnum((unsigned char)at[i]))
            return false;
    return true;
}

bool jit_dump_name_pid(const char *path, uint32_t *pid)
{
    const char *name = base_name(path), *end = name + perf_map_name_length(name);
    uint32_t first, second;
    if (strncmp(name, "jit", 3) != 0)
        return false;
    const char *behind = take_number(name + 3, &first);
    if (!behind)
        return false;
    const char *behind_second = take_number(behind, &second);
    if (is_end(behind, (size_t)(end - behind), ".dump"))
        *pid = first;
    else if (behind_second && (is_end(behind_second, (size_t)(end - behind_second), ".dump") ||
                               is_made_up(behind_second, (size_t)(end - behind_second))))
        *pid = second;
    else
        return false;
    return true;
}

bool jit_dump_same_name(const char *path, const char *other)
{
    const char *a = base_name(path), *b = base_name(other);
    return perf_map_name_length(a) == perf_map_name_length(b) &&
           strncmp(a, b, perf_map_name_length(a)) == 0;
}
