/* See event_names.h. */
#include "injector/recording/perf_data/event_names.h"

#include "injector/text/code_name.h"

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

bool event_name_is(const char *name, size_t bytes, const char *word)
{
    const size_t length = strlen(word);
    return name && bytes >= length && memcmp(name, word, length) == 0 &&
           (bytes == length || name[length] == ':' || name[length] == '/');
}
