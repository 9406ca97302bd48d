/* See profile.h. */
#include "injector/recording/records.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/run_sort.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_sample.h"
#include "injector/recording/perf_data/perf_time.h"
#include "jitdump/format/byte_cursor.h"

#include <inttypes.h>
#include <stdlib.h>

struct life_moment life_moment_of(const struct recorded_map *map)
{
    return (struct life_moment){map->time_ns, map->record.number};
}

/* A guest's kernel has the pid of the process that runs the guest, and addresses of its own. */
static bool is_of_guest(const struct perf_record *record)
{
    unsigned mode = record->misc & PERF_MISC_CPUMODE_MASK;
    return mode == PERF_MISC_GUEST_KERNEL || mode == PERF_MISC_GUEST_USER;
}

static int add_map(struct records *records, const struct perf_record *record)
{
    if (is_of_guest(record))
        return 0;
    if (array_reserve(records->maps, records->map_count, records->map_capacity))
        return -1;
    struct recorded_map *map = &records->maps[records->map_count];
    if (!perf_record_map(records->file, record, &map->map))
        return 0;
    map->record = *record;
    map->text = NULL;
    map->text_gap = map->text_stays = false;
    map->time_ns = 0;
    perf_record_time(records->file, record, &map->time_ns);
    map->synthesized = map->time_ns == 0;
    map->late = map->synthesized && records->sample_count > 0;
    records->map_count++;
    return 0;
}

static enum task_kind kind_of(const struct perf_record *record)
{
    if (record->type == PERF_RECORD_COMM)
        return record->misc & PERF_MISC_COMM_EXEC ? TASK_EXEC : TASK_RENAME;
    return record->type == PERF_RECORD_FORK ? TASK_FORK : TASK_EXIT;
}

static int add_task(struct records *records, const struct perf_record *record)
{
    struct perf_task task;
    if (!perf_record_task(records->file, record, &task) ||
        (record->type == PERF_RECORD_COMM && task.pid != task.tid))
        return 0;
    if (array_reserve(records->tasks, records->task_count, records->task_capacity))
        return -1;
    records->tasks[records->task_count++] = (struct recorded_task){
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

static int add_namespaces(struct records *records, const struct perf_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    struct recorded_namespace namespace = {0};
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
    if (array_reserve(records->namespaces, records->namespace_count, records->namespace_capacity))
        return -1;
    perf_record_time(records->file, record, &namespace.time_ns);
    records->namespaces[records->namespace_count++] = namespace;
    return 0;
}

static const struct recorded_namespace *find_namespaces(const struct records *records, uint32_t pid,
                                                        uint64_t time_ns)
{
    const struct recorded_namespace *best = NULL;
    for (size_t i = 0; i < records->namespace_count; i++) {
        const struct recorded_namespace *namespace = &records->namespaces[i];
        if (namespace->pid == pid && namespace->time_ns <= time_ns &&
            (!best || namespace->time_ns >= best->time_ns))
            best = namespace;
    }
    return best;
}

uint64_t records_namespace_of(const struct records *records, uint32_t pid, uint64_t time_ns)
{
    const struct recorded_namespace *found = find_namespaces(records, pid, time_ns);
    return found ? found->inode : 0;
}

uint64_t records_mount_namespace_of(const struct records *records, uint32_t pid, uint64_t time_ns)
{
    const struct recorded_namespace *found = find_namespaces(records, pid, time_ns);
    return found ? found->mount_inode : 0;
}

bool records_has_sample_of(const struct records *records, uint32_t pid)
{
    struct perf_walk walk = perf_walk_begin(records->file);
    struct perf_record record;
    bool found = false;
    uint32_t other;
    while (!found && perf_walk_next(&walk, &record, NULL))
        found = perf_record_sample(records->file, &record, &other, NULL) && other == pid;
    return found;
}

bool records_has_samples(const struct records *records)
{
    struct perf_walk walk = perf_walk_begin(records->file);
    struct perf_record record;
    bool found = records->sample_count > 0;
    while (!found && perf_walk_next(&walk, &record, NULL))
        found = record.type == PERF_RECORD_SAMPLE;
    return found;
}

bool records_any_trailer(const struct records *records, struct perf_record *record)
{
    struct perf_walk walk = perf_walk_begin(records->file);
    struct perf_record next; /* after the last one, the rest of one that is cut */
    const struct sample_format *format;
    bool found = false;
    while (!found && perf_walk_next(&walk, &next, NULL))
        found = perf_record_trailer(records->file, &next, &format) != NULL;
    if (found)
        *record = next;
    return found;
}

/* perf reads no further than to a sample whose fields are longer than its record. */
static void report_broken(const struct records *records, const struct perf_record *record,
                          struct findings *findings)
{
    const struct perf_file *file = records->file;
    if (perf_sample_is_broken(&file->events[perf_sample_event(file, record)].format, record))
        report_finding(findings, FINDING_SAMPLE_BROKEN, "%s: record at 0x%" PRIx64, file->path,
                       record->offset);
}

static int add_sample(struct records *records, uint64_t time_ns)
{
    if (array_reserve(records->sample_times_ns, records->sample_count, records->sample_capacity))
        return -1;
    records->sample_times_ns[records->sample_count++] = time_ns;
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
    const struct recorded_map *a = left, *b = right;
    if (a->map.pid != b->map.pid)
        return a->map.pid < b->map.pid ? -1 : 1;
    return life_moment_compare(life_moment_of(a), life_moment_of(b));
}

static int compare_tasks(const void *left, const void *right)
{
    const struct recorded_task *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return life_moment_compare((struct life_moment){a->time_ns, a->record.number},
                               (struct life_moment){b->time_ns, b->record.number});
}

static int sort_times(struct records *records)
{
    uint64_t *times = records->sample_times_ns, *room = malloc((records->sample_count + 1) * 8);
    if (room)
        run_sort(times, room, records->sample_count, sizeof *times);
    free(room);
    return room ? 0 : -1;
}

static int read_record(struct records *records, const struct perf_record *record,
                       struct findings *findings)
{
    uint64_t time_ns = 0;
    bool timed = perf_record_time(records->file, record, &time_ns);
    if (record_marks_take(&records->marks, RECORDS_A_MARK, record, time_ns))
        return -1;
    losses_take(&records->losses, record->type, record->misc,
                record->bytes + PERF_RECORD_HEADER_BYTES, record->size - PERF_RECORD_HEADER_BYTES);
    switch (record->type) {
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return add_task(records, record);
    case PERF_RECORD_NAMESPACES:
        return add_namespaces(records, record);
    case PERF_RECORD_KSYMBOL:
        return kernel_code_take(&records->kernel_code, records->file, record);
    case PERF_RECORD_SAMPLE:
        report_broken(records, record, findings);
        return timed ? add_sample(records, time_ns) : 0;
    case PERF_RECORD_TIME_CONV:
        read_time_conv(&records->time_conv, record);
        return 0;
    default:
        return perf_record_is_map(record) ? add_map(records, record) : 0;
    }
}

/* When process PID began last, by fork or exec; 0: before the recorded part.  *NEXT, which goes
 * through the tasks as calls do through the pids, is set to where the next pid's begin. */
static uint64_t began_last(const struct records *records, uint32_t pid, size_t *next)
{
    uint64_t began_ns = 0;
    for (; *next < records->task_count && records->tasks[*next].pid <= pid; ++*next) {
        const struct recorded_task *task = &records->tasks[*next];
        if (task->pid == pid &&
            (task->kind == TASK_EXEC || (task->kind == TASK_FORK && task->parent != pid)))
            began_ns = task->time_ns;
    }
    return began_ns;
}

/* The maps are in order of process: give those that were synthesized late their time.  Returns
 * whether there are any. */
static bool date_late_maps(struct records *records)
{
    uint64_t began_ns = 0;
    bool any = false;
    for (size_t i = 0, task = 0; i < records->map_count; i++) {
        struct recorded_map *map = &records->maps[i];
        if (i == 0 || map->map.pid != map[-1].map.pid)
            began_ns = began_last(records, map->map.pid, &task);
        if (map->late) {
            map->time_ns = began_ns;
            any = true;
        }
    }
    return any;
}

/* Bring the maps into order; the tasks are.  Most recordings have no late ones, and are sorted
 * once. */
static void order_maps(struct records *records)
{
    if (records->map_count == 0)
        return;
    qsort(records->maps, records->map_count, sizeof *records->maps, compare_maps);
    if (date_late_maps(records))
        qsort(records->maps, records->map_count, sizeof *records->maps, compare_maps);
}

int records_read(struct records *records, const struct perf_file *file, struct findings *findings)
{
    *records = (struct records){.file = file};
    struct perf_walk walk = perf_walk_begin(file);
    struct perf_record record;
    while (perf_walk_next(&walk, &record, findings)) {
        if (read_record(records, &record, findings) ||
            thread_list_take(&records->threads, file, &record))
            return report_failure(findings, "out of memory");
    }
    if (records->task_count)
        qsort(records->tasks, records->task_count, sizeof *records->tasks, compare_tasks);
    if (thread_list_order(&records->threads) ||
        thread_names_find(&records->names, &records->threads))
        return report_failure(findings, "out of memory");
    order_maps(records);
    kernel_code_order(&records->kernel_code);
    return sort_times(records) ? report_failure(findings, "out of memory") : 0;
}

uint64_t records_last_sample_ns(const struct records *records)
{
    size_t count = records->sample_count;
    while (count && !perf_time_is_real(records->sample_times_ns[count - 1]))
        count--;
    return count ? records->sample_times_ns[count - 1] : 0;
}

const struct recorded_map *records_maps_of(const struct records *records, uint32_t pid,
                                           size_t *count)
{
    size_t first, end;
    array_bisect(first, records->map_count, records->maps[first].map.pid < pid);
    array_bisect(end, records->map_count, records->maps[end].map.pid <= pid);
    *count = end - first;
    return records->maps + first;
}

const struct recorded_task *records_tasks_of(const struct records *records, uint32_t pid,
                                             size_t *count)
{
    size_t first, end;
    array_bisect(first, records->task_count, records->tasks[first].pid < pid);
    array_bisect(end, records->task_count, records->tasks[end].pid <= pid);
    *count = end - first;
    return records->tasks + first;
}

void records_free(struct records *records)
{
    thread_names_free(&records->names);
    kernel_code_free(&records->kernel_code);
    thread_list_free(&records->threads);
    record_marks_free(&records->marks);
    free(records->maps);
    free(records->tasks);
    free(records->namespaces);
    free(records->sample_times_ns);
}
