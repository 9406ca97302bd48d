/* See tracepoints.h. */
#include "injector/recording/tracepoints.h"

#include "injector/recording/perf_data/event_names.h"

#include <string.h>

static bool is_counted(const char *name, size_t bytes)
{
    static const char *const systems[] = {"raw_syscalls:", "syscalls:", "sched:", "lock:", "kvm"};
    if (!memchr(name, ':', bytes))
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

/* How many tracepoints have a name and are those that no perf command counts. */
static size_t count_harmless(const struct perf_file *file)
{
    struct event_names names = event_names_begin(&file->features);
    struct event_entry entry;
    size_t harmless = 0;
    while (event_names_entry(&names, &entry)) {
        struct byte_cursor attr = byte_cursor_over(entry.attr, names.attr_bytes, false);
        harmless +=
            cursor_u32(&attr) == PERF_TYPE_TRACEPOINT && !is_counted(entry.name, entry.name_bytes);
    }
    return harmless;
}

bool tracepoints_are_counted(const struct perf_file *file)
{
    size_t tracepoints = count_tracepoints(file);
    return tracepoints && count_harmless(file) != tracepoints;
}
