/* See trace_fields.h. */
#include "injector/recording/perf_data/trace_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 256, WORD_BYTES = 64 };

/* The format of EVENT, up to END; NULL: it is not told. */
static const char *find_format(const struct perf_feature *data, const char *event, const char **end)
{
    char head[WORD_BYTES];
    const int bytes = snprintf(head, sizeof head, "name: %s\n", event);
    if (bytes < 0 || (size_t)bytes >= sizeof head)
        return NULL;
    const char *at = memmem(data->bytes, data->size, head, (size_t)bytes);
    if (!at)
        return NULL;
    const size_t left = data->size - (size_t)(at - (const char *)data->bytes);
    const char *print = memmem(at, left, "\nprint fmt:", 11);
    *end = print ? print : at + left;
    return at;
}

/* The number behind WORD in LINE; SIZE_MAX: there is none. */
static size_t number_behind(const char *line, const char *word)
{
    const char *at = strstr(line, word);
    char *end;
    if (!at)
        return SIZE_MAX;
    at += strlen(word);
    const unsigned long number = strtoul(at, &end, 10);
    return end == at || *end != ';' ? SIZE_MAX : number;
}

struct trace_field trace_field_find(const struct perf_features *features, const char *event,
                                    const char *name)
{
    const struct perf_feature *data = perf_features_find(features, PERF_FEATURE_TRACING_DATA);
    const struct trace_field none = {0, 0};
    char declared[WORD_BYTES], line[LINE_BYTES];
    const char *end, *at = data ? find_format(data, event, &end) : NULL;
    const int bytes = snprintf(declared, sizeof declared, " %s;", name);
    if (!at || bytes < 0 || (size_t)bytes >= sizeof declared)
        return none;
    at = memmem(at, (size_t)(end - at), declared, (size_t)bytes);
    if (!at)
        return none;
    const size_t left = (size_t)(end - at) < sizeof line - 1 ? (size_t)(end - at) : sizeof line - 1;
    memcpy(line, at, left);
    line[left] = '\0';
    line[strcspn(line, "\n")] = '\0';
    const struct trace_field field = {number_behind(line, "offset:"), number_behind(line, "size:")};
    return field.offset > UINT16_MAX || field.bytes > UINT16_MAX ? none : field;
}

uint64_t trace_field_value(const struct trace_field *field, const uint8_t *raw, size_t size)
{
    if (!raw || size < field->offset || size - field->offset < field->bytes)
        return 0;
    struct byte_cursor cursor = byte_cursor_over(raw + field->offset, field->bytes, false);
    return field->bytes == 4 ? cursor_u32(&cursor) : field->bytes == 8 ? cursor_u64(&cursor) : 0;
}
