/* See event_names.h. */
#include "injector/recording/perf_data/event_names.h"

#include "injector/recording/perf_data/perf_format.h"
#include "injector/text/code_name.h"

#include <stdio.h>
#include <string.h>

struct event_names event_names_begin(const struct perf_features *features)
{
    const struct perf_feature *feature = perf_features_find(features, PERF_FEATURE_EVENT_DESC);
    struct event_names names = {.left = 0};
    if (!feature)
        return names;
    names.cursor = byte_cursor_over(feature->bytes, feature->size, false);
    names.left = cursor_u32(&names.cursor);
    names.attr_bytes = cursor_u32(&names.cursor);
    return names;
}

bool event_names_entry(struct event_names *names, struct event_entry *entry)
{
    if (names->left == 0)
        return false;
    names->left--;
    entry->attr = cursor_bytes(&names->cursor, names->attr_bytes);
    uint32_t ids = cursor_u32(&names->cursor), size = cursor_u32(&names->cursor);
    entry->name = (const char *)cursor_bytes(&names->cursor, size);
    cursor_bytes(&names->cursor, (size_t)ids * 8);
    if (names->cursor.failed)
        names->left = 0;
    entry->name_bytes = names->cursor.failed ? 0 : strnlen(entry->name, size);
    return !names->cursor.failed;
}

const char *event_names_next(struct event_names *names, size_t *bytes)
{
    struct event_entry entry;
    bool found = event_names_entry(names, &entry);
    *bytes = found ? entry.name_bytes : 0;
    return *bytes && code_name_is_printable(entry.name, *bytes) ? entry.name : NULL;
}

void event_name_of_attr(char name[EVENT_NAME_BYTES], const uint8_t *attr, size_t bytes)
{
    /* By type and config: Linux, perf_event.h. */
    static const char *const words[2][10] = {
        {"cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses",
         "bus-cycles", "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"},
        {"cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations",
         "minor-faults", "major-faults", "alignment-faults", "emulation-faults", "dummy"}};
    struct byte_cursor cursor = byte_cursor_over(attr, bytes, false);
    uint32_t type = cursor_u32(&cursor);
    cursor_u32(&cursor);
    uint64_t config = cursor_u64(&cursor);
    cursor_skip(&cursor, PERF_ATTR_FLAGS - PERF_ATTR_PERIOD);
    uint64_t left_out = cursor_u64(&cursor) & (PERF_ATTR_NO_USER | PERF_ATTR_NO_KERNEL);
    bool known = !cursor.failed && type < 2 && config < 10;
    snprintf(name, EVENT_NAME_BYTES, "%s%s", known ? words[type][config] : "",
             !known                            ? ""
             : left_out == PERF_ATTR_NO_KERNEL ? ":u"
             : left_out == PERF_ATTR_NO_USER   ? ":k"
                                               : "");
}

bool event_name_is(const char *name, size_t bytes, const char *word)
{
    const size_t length = strlen(word);
    return name && bytes >= length && memcmp(name, word, length) == 0 &&
           (bytes == length || name[length] == ':' || name[length] == '/');
}
