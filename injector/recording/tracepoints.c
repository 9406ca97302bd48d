/* See tracepoints.h. */
#include "injector/recording/tracepoints.h"

#include "jitdump/format/byte_cursor.h"

#include <string.h>

/* The feature is {u32 count, u32 attribute's size}, and then an entry for each event.  An entry is
 * {the attribute, which begins with u32 type; u32 count of ids; u32 size, the name with its NULs;
 * u64 ids}. */

enum { ID_BYTES = 8 };

static bool is_counted(const char *name, size_t size)
{
    static const char *const systems[] = {"raw_syscalls:", "syscalls:", "sched:", "lock:", "kvm"};
    if (!memchr(name, ':', strnlen(name, size)))
        return true;
    for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++)
        if (strncmp(name, systems[i], strlen(systems[i])) == 0)
            return true;
    return false;
}

static size_t count_tracepoints(const struct perf_file *file)
{
    size_t count = 0;
    for (size_t i = 0; i < file->event_count; i++)
        count += file->events[i].type == PERF_TYPE_TRACEPOINT;
    return count;
}

/* How many tracepoints the feature names that no perf command counts. */
static size_t count_harmless(const struct perf_feature *feature)
{
    struct byte_cursor cursor = byte_cursor_over(feature->bytes, feature->size, false);
    uint32_t events = cursor_u32(&cursor), attr_bytes = cursor_u32(&cursor);
    size_t harmless = 0;
    for (uint32_t i = 0; i < events && !cursor.failed && attr_bytes >= sizeof(uint32_t); i++) {
        uint32_t type = cursor_u32(&cursor);
        cursor_bytes(&cursor, attr_bytes - sizeof type);
        uint32_t ids = cursor_u32(&cursor), name_bytes = cursor_u32(&cursor);
        const char *name = (const char *)cursor_bytes(&cursor, name_bytes);
        cursor_bytes(&cursor, (size_t)ids * ID_BYTES);
        harmless +=
            !cursor.failed && name && type == PERF_TYPE_TRACEPOINT && !is_counted(name, name_bytes);
    }
    return harmless;
}

bool tracepoints_are_counted(const struct perf_file *file)
{
    size_t tracepoints = count_tracepoints(file);
    if (!tracepoints)
        return false;
    const struct perf_feature *feature =
        perf_features_find(&file->features, PERF_FEATURE_EVENT_DESC);
    return !feature || count_harmless(feature) != tracepoints;
}
