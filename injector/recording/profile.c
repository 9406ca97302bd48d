/* See profile.h. */
#include "injector/recording/profile.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/run_sort.h"
#include "injector/perf_data/perf_format.h"
#include "injector/perf_data/perf_time.h"
#include "jitdump/format/byte_cursor.h"

#include <stdlib.h>

struct life_moment life_moment_of(const struct profile_map *map)
{
    return (struct life_moment){map->time_ns, map->record.number};
}

static int add_map(struct profile *profile, const struct perf_record *record)
{
    if (array_reserve(profile->maps, profile->map_count, profile->map_capacity))
        return -1;
    struct profile_map *map = &profile->maps[profile->map_count];
    if (!perf_record_map(profile->file, record, &map->map))
        return 0;
    map->record = *record;
    map->time_ns = 0;
    perf_record_time(profile->file, record, &map->time_ns);
    map->synthesized = map->time_ns == 0;
    map->late = map->synthesized && profile->sample_count > 0;
    profile->map_count++;
    return 0;
}

static enum task_kind kind_of(const struct perf_record *record)
{
    if (record->type == PERF_RECORD_COMM)
        return record->misc & PERF_MISC_COMM_EXEC ? TASK_EXEC : TASK_RENAME;
    return record->type == PERF_RECORD_FORK ? TASK_FORK : TASK_EXIT;
}

static int add_task(struct profile *profile, const struct perf_record *record)
{
    struct perf_task task;
    if (!perf_record_task(profile->file, record, &task) ||
        (record->type == PERF_RECORD_COMM && task.pid != task.tid))
        return 0;
    if (array_reserve(profile->tasks, profile->task_count, profile->task_capacity))
        return -1;
    profile->tasks[profile->task_count++] = (struct profile_task){
        .time_ns = task.time_ns,
        .kind = kind_of(record),
        .pid = task.pid,
        .tid = task.tid,
        .parent = task.parent_pid,
        .fresh = record->type == PERF_RECORD_FORK && (record->misc & PERF_MISC_FORK_EXEC),
        .record = *record,
    };
    return 0;
}

static int add_namespaces(struct profile *profile, const struct perf_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    struct profile_namespace namespace = {0};
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    namespace.pid = cursor_u32(&cursor);
    cursor_u32(&cursor); /* tid */
    uint64_t links = cursor_u64(&cursor);
    cursor_skip(&cursor, PERF_NAMESPACE_PID * PERF_NAMESPACE_BYTES + 8);
    namespace.inode = cursor_u64(&cursor);
    if (cursor.failed || links <= PERF_NAMESPACE_PID)
        return 0;
    cursor_skip(&cursor, (PERF_NAMESPACE_MOUNT - PERF_NAMESPACE_PID) * PERF_NAMESPACE_BYTES - 8);
    uint64_t mount_inode = cursor_u64(&cursor);
    namespace.mount_inode = cursor.failed || links <= PERF_NAMESPACE_MOUNT ? 0 : mount_inode;
    if (array_reserve(profile->namespaces, profile->namespace_count, profile->namespace_capacity))
        return -1;
    perf_record_time(profile->file, record, &namespace.time_ns);
    profile->namespaces[profile->namespace_count++] = namespace;
    return 0;
}

static const struct profile_namespace *find_namespaces(const struct profile *profile, uint32_t pid,
                                                       uint64_t time_ns)
{
    const struct profile_namespace *best = NULL;
    for (size_t i = 0; i < profile->namespace_count; i++) {
        const struct profile_namespace *namespace = &profile->namespaces[i];
        if (namespace->pid == pid && namespace->time_ns <= time_ns &&
            (!best || namespace->time_ns >= best->time_ns))
            best = namespace;
    }
    return best;
}

uint64_t profile_namespace_of(const struct profile *profile, uint32_t pid, uint64_t time_ns)
{
    const struct profile_namespace *found = find_namespaces(profile, pid, time_ns);
    return found ? found->inode : 0;
}

uint64_t profile_mount_namespace_of(const struct profile *profile, uint32_t pid, uint64_t time_ns)
{
    const struct profile_namespace *found = find_namespaces(profile, pid, time_ns);
    return found ? found->mount_inode : 0;
}

bool profile_has_sample_of(const struct profile *profile, uint32_t pid)
{
    struct perf_walk walk = perf_walk_begin(profile->file);
    struct perf_record record;
    bool found = false;
    uint32_t other;
    while (!found && perf_walk_next(&walk, &record, NULL))
        found = perf_record_sample(profile->file, &record, &other, NULL) && other == pid;
    return found;
}

bool profile_has_samples(const struct profile *profile)
{
    struct perf_walk walk = perf_walk_begin(profile->file);
    struct perf_record record;
    bool found = profile->sample_count > 0;
    while (!found && perf_walk_next(&walk, &record, NULL))
        found = record.type == PERF_RECORD_SAMPLE;
    return found;
}

bool profile_any_trailer(const struct profile *profile, struct perf_record *record)
{
    struct perf_walk walk = perf_walk_begin(profile->file);
    struct perf_record next; /* after the last one, what is left of one that is cut */
    const struct sample_layout *layout;
    bool found = false;
    while (!found && perf_walk_next(&walk, &next, NULL))
        found = perf_record_trailer(profile->file, &next, &layout) != NULL;
    if (found)
        *record = next;
    return found;
}

static bool is_up_to(const struct profile_task *task, uint32_t pid, uint64_t time_ns)
{
    return task->pid < pid || (task->pid == pid && task->time_ns <= time_ns);
}

const struct perf_record *profile_comm_of(const struct profile *profile, uint32_t pid,
                                          uint64_t since_ns, uint64_t time_ns)
{
    size_t next;
    array_bisect(next, profile->name_count,
                 is_up_to(&profile->tasks[profile->names[next]], pid, time_ns));
    const struct profile_task *last = next ? &profile->tasks[profile->names[next - 1]] : NULL;
    return last && last->pid == pid && last->time_ns >= since_ns ? &last->record : NULL;
}

static int add_sample(struct profile *profile, uint64_t time_ns)
{
    if (array_reserve(profile->sample_times_ns, profile->sample_count, profile->sample_capacity))
        return -1;
    profile->sample_times_ns[profile->sample_count++] = time_ns;
    return 0;
}

static void read_time_conv(struct time_conv *conv, const struct perf_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    conv->shift = cursor_u64(&cursor);
    conv->mult = cursor_u64(&cursor);
    conv->zero_ns = cursor_u64(&cursor);
    conv->known = !cursor.failed && conv->mult != 0 && conv->shift < 64;
    conv->cycles = cursor_u64(&cursor);
    conv->mask = cursor_u64(&cursor);
    cursor_u8(&cursor);
    conv->short_counter = cursor_u8(&cursor) && !cursor.failed;
}

static int compare_maps(const void *left, const void *right)
{
    const struct profile_map *a = left, *b = right;
    if (a->map.pid != b->map.pid)
        return a->map.pid < b->map.pid ? -1 : 1;
    return life_moment_compare(life_moment_of(a), life_moment_of(b));
}

static int compare_tasks(const void *left, const void *right)
{
    const struct profile_task *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return life_moment_compare((struct life_moment){a->time_ns, a->record.number},
                               (struct life_moment){b->time_ns, b->record.number});
}

static int sort_times(struct profile *profile)
{
    uint64_t *times = profile->sample_times_ns, *room = malloc((profile->sample_count + 1) * 8);
    if (room)
        run_sort(times, room, profile->sample_count, sizeof *times);
    free(room);
    return room ? 0 : -1;
}

static int read_record(struct profile *profile, const struct perf_record *record)
{
    uint64_t time_ns = 0;
    bool timed = perf_record_time(profile->file, record, &time_ns);
    if (record_marks_take(&profile->marks, RECORDS_A_MARK, record, time_ns))
        return -1;
    switch (record->type) {
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return add_task(profile, record);
    case PERF_RECORD_NAMESPACES:
        return add_namespaces(profile, record);
    case PERF_RECORD_SAMPLE:
        return timed ? add_sample(profile, time_ns) : 0;
    case PERF_RECORD_TIME_CONV:
        read_time_conv(&profile->time_conv, record);
        return 0;
    default:
        return perf_record_is_map(record) ? add_map(profile, record) : 0;
    }
}

/* Bring the tasks into order, and find those that are names. */
static int order_tasks(struct profile *profile)
{
    if (profile->task_count == 0)
        return 0;
    qsort(profile->tasks, profile->task_count, sizeof *profile->tasks, compare_tasks);
    profile->names = malloc(profile->task_count * sizeof *profile->names);
    if (!profile->names || profile->task_count > UINT32_MAX)
        return -1;
    for (size_t i = 0; i < profile->task_count; i++)
        if (profile->tasks[i].kind == TASK_EXEC || profile->tasks[i].kind == TASK_RENAME)
            profile->names[profile->name_count++] = (uint32_t)i;
    return 0;
}

/* When process PID began last, by fork or exec; 0: before what was recorded.  *NEXT, which goes
 * through the tasks as calls do through the pids, is set to where the next pid's begin. */
static uint64_t began_last(const struct profile *profile, uint32_t pid, size_t *next)
{
    uint64_t began_ns = 0;
    for (; *next < profile->task_count && profile->tasks[*next].pid <= pid; ++*next) {
        const struct profile_task *task = &profile->tasks[*next];
        if (task->pid == pid &&
            (task->kind == TASK_EXEC || (task->kind == TASK_FORK && task->parent != pid)))
            began_ns = task->time_ns;
    }
    return began_ns;
}

/* The maps are in order of process: give those that were synthesized late their time.  Returns
 * whether there are any. */
static bool date_late_maps(struct profile *profile)
{
    uint64_t began_ns = 0;
    bool any = false;
    for (size_t i = 0, task = 0; i < profile->map_count; i++) {
        struct profile_map *map = &profile->maps[i];
        if (i == 0 || map->map.pid != map[-1].map.pid)
            began_ns = began_last(profile, map->map.pid, &task);
        if (map->late) {
            map->time_ns = began_ns;
            any = true;
        }
    }
    return any;
}

/* Bring the maps into order; the tasks are.  Most recordings have no late ones, and are sorted
 * once. */
static void order_maps(struct profile *profile)
{
    if (profile->map_count == 0)
        return;
    qsort(profile->maps, profile->map_count, sizeof *profile->maps, compare_maps);
    if (date_late_maps(profile))
        qsort(profile->maps, profile->map_count, sizeof *profile->maps, compare_maps);
}

int profile_read(struct profile *profile, const struct perf_file *file, struct findings *findings)
{
    *profile = (struct profile){.file = file};
    struct perf_walk walk = perf_walk_begin(file);
    struct perf_record record;
    while (perf_walk_next(&walk, &record, findings)) {
        if (read_record(profile, &record) || thread_list_take(&profile->threads, file, &record))
            return report_failure(findings, "out of memory");
    }
    if (order_tasks(profile) || thread_list_order(&profile->threads))
        return report_failure(findings, "out of memory");
    order_maps(profile);
    return sort_times(profile) ? report_failure(findings, "out of memory") : 0;
}

uint64_t profile_last_sample_ns(const struct profile *profile)
{
    size_t count = profile->sample_count;
    while (count && !perf_time_is_real(profile->sample_times_ns[count - 1]))
        count--;
    return count ? profile->sample_times_ns[count - 1] : 0;
}

const struct profile_map *profile_maps_of(const struct profile *profile, uint32_t pid,
                                          size_t *count)
{
    size_t first, end;
    array_bisect(first, profile->map_count, profile->maps[first].map.pid < pid);
    array_bisect(end, profile->map_count, profile->maps[end].map.pid <= pid);
    *count = end - first;
    return profile->maps + first;
}

const struct profile_task *profile_tasks_of(const struct profile *profile, uint32_t pid,
                                            size_t *count)
{
    size_t first, end;
    array_bisect(first, profile->task_count, profile->tasks[first].pid < pid);
    array_bisect(end, profile->task_count, profile->tasks[end].pid <= pid);
    *count = end - first;
    return profile->tasks + first;
}

void profile_free(struct profile *profile)
{
    thread_list_free(&profile->threads);
    record_marks_free(&profile->marks);
    free(profile->maps);
    free(profile->tasks);
    free(profile->names);
    free(profile->namespaces);
    free(profile->sample_times_ns);
}
