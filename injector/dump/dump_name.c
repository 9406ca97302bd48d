/* See dump_name.h. */
#include "injector/dump/dump_name.h"

#include "injector/perf_data/perf_record.h"
#include "injector/text/file_name.h"

#include <ctype.h>
#include <string.h>

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
    const char *name = file_name_of(path), *end = name + perf_map_name_length(name);
    uint32_t first, second;
    if (strncmp(name, "jit", 3) != 0)
        return false;
    const char *behind = file_name_number(name + 3, &first);
    if (!behind)
        return false;
    const char *behind_second = file_name_number(behind, &second);
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
    const char *a = file_name_of(path), *b = file_name_of(other);
    return perf_map_name_length(a) == perf_map_name_length(b) &&
           strncmp(a, b, perf_map_name_length(a)) == 0;
}
