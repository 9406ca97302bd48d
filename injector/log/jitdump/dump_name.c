/* See dump_name.h. */
#include "injector/log/jitdump/dump_name.h"

#include "injector/recording/perf_data/perf_record.h"
#include "injector/text/file_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_end(const char *at, size_t left, const char *end)
{
    return left == strlen(end) && strncmp(at, end, left) == 0;
}

/* Whether AT is a result of mkstemp for "-XXXXXX". */
static bool is_random_suffix(const char *at, size_t left)
{
    enum { SUFFIX_BYTES = 6 };
    if (left != 1 + SUFFIX_BYTES || *at != '-')
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
    const char *after_first = file_name_number(name + 3, &first);
    if (!after_first)
        return false;
    const char *after_second = file_name_number(after_first, &second);
    if (is_end(after_first, (size_t)(end - after_first), ".dump"))
        *pid = first;
    else if (after_second && (is_end(after_second, (size_t)(end - after_second), ".dump") ||
                              is_random_suffix(after_second, (size_t)(end - after_second))))
        *pid = second;
    else
        return false;
    return true;
}

bool jit_dump_has_name(const char *path)
{
    uint32_t pid;
    return jit_dump_name_pid(path, &pid);
}

static const char folder[] = "stage/";

enum { FOLDER_LENGTH = sizeof folder - 1 };

/* The length of PATH's directories, with the last slash. */
static size_t directory_length(const char *path)
{
    return (size_t)(file_name_of(path) - path);
}

bool jit_dump_name_is_stage(const char *path)
{
    uint32_t pid;
    size_t length = directory_length(path);
    return length > FOLDER_LENGTH && path[length - FOLDER_LENGTH - 1] == '/' &&
           strncmp(path + length - FOLDER_LENGTH, folder, FOLDER_LENGTH) == 0 &&
           jit_dump_name_pid(path, &pid);
}

bool jit_dump_name_is_stage_of(const char *stage, const char *body)
{
    size_t length = directory_length(body);
    return directory_length(stage) == length + FOLDER_LENGTH && strncmp(stage, body, length) == 0 &&
           strncmp(stage + length, folder, FOLDER_LENGTH) == 0 && perf_map_same_name(stage, body);
}

char *jit_dump_name_stage(const char *body)
{
    char *stage;
    size_t length = directory_length(body);
    int bytes = asprintf(&stage, "%.*s%s%s", (int)length, body, folder, body + length);
    return bytes < 0 ? NULL : stage;
}
