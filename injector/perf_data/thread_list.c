/* See thread_list.h. */
#include "injector/perf_data/thread_list.h"

#include "injector/array.h"
#include "injector/perf_data/perf_format.h"
#include "jitdump/byte_cursor.h"

#include <stdlib.h>

/* ---- Reading ---- */

/* What RECORD says of a thread of its own process.  Returns false if it says nothing of that kind. */
static bool read_event(struct thread_event *event, const struct perf_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    *event = (struct thread_event){.record = *record, .pid = cursor_u32(&cursor)};
    if (record->type == PERF_RECORD_COMM) {
        event->kind = THREAD_NAMED;
        event->tid = cursor_u32(&cursor);
        return !cursor.failed;
    }
    uint32_t parent = cursor_u32(&cursor);
    event->kind = record->type == PERF_RECORD_FORK ? THREAD_BORN : THREAD_ENDED;
    event->tid = cursor_u32(&cursor);
    event->creator = cursor_u32(&cursor);
    event->time_ns = cursor_u64(&cursor);
    return !cursor.failed && (event->kind == THREAD_ENDED || parent == event->pid);
}

static int add_event(struct thread_list *list, const struct perf_file *file,
                     const struct perf_record *record)
{
    struct thread_event *events =
        array_room(list->events, list->count, &list->capacity, sizeof *events);
    if (!events)
        return -1;
    list->events = events;
    if (!read_event(&events[list->count], record))
        return 0;
    perf_record_time(file, record, &events[list->count].time_ns);
    list->count++;
    return 0;
}

static int compare_events(const void *left, const void *right)
{
    const struct thread_event *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->record.number < b->record.number ? -1 : a->record.number > b->record.number;
}

int thread_list_read(struct thread_list *list, const struct perf_file *file)
{
    struct findings told = {
        .quiet = true}; /* whoever read the profile first said what is wrong with it */
    struct perf_walk walk = perf_walk_begin(file);
    struct perf_record record;
    int result = 0;
    *list = (struct thread_list){0};
    while (!result && perf_walk_next(&walk, &record, &told))
        if (record.type == PERF_RECORD_COMM || record.type == PERF_RECORD_FORK ||
            record.type == PERF_RECORD_EXIT)
            result = add_event(list, file, &record);
    if (list->count)
        qsort(list->events, list->count, sizeof *list->events, compare_events);
    findings_free(&told);
    return result;
}

void thread_list_free(struct thread_list *list)
{
    free(list->events);
}

/* ---- Going through time ---- */

struct thread_sweep thread_sweep_begin(const struct thread_list *list, uint32_t pid)
{
    size_t first = 0, end = list->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (list->events[middle].pid < pid)
            first = middle + 1;
        else
            end = middle;
    }
    for (end = first; end < list->count && list->events[end].pid == pid;)
        end++;
    return (struct thread_sweep){.list = list, .next = first, .end = end};
}

static struct live_thread *find(const struct thread_sweep *sweep, uint32_t tid)
{
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->threads[i].tid == tid)
            return &sweep->threads[i];
    return NULL;
}

static struct live_thread *find_or_add(struct thread_sweep *sweep, uint32_t tid)
{
    struct live_thread *thread = find(sweep, tid);
    if (thread)
        return thread;
    struct live_thread *threads =
        array_room(sweep->threads, sweep->count, &sweep->capacity, sizeof *threads);
    if (!threads)
        return NULL;
    sweep->threads = threads;
    threads[sweep->count] = (struct live_thread){tid, THREAD_NO_NAME};
    return &threads[sweep->count++];
}

static int play(struct thread_sweep *sweep, size_t index)
{
    const struct thread_event *event = &sweep->list->events[index];
    struct live_thread *thread = find(sweep, event->tid);
    if (event->kind == THREAD_ENDED) {
        if (thread)
            *thread = sweep->threads[--sweep->count];
        return 0;
    }
    const struct live_thread *creator =
        event->kind == THREAD_BORN ? find(sweep, event->creator) : NULL;
    size_t name = event->kind == THREAD_NAMED ? index : creator ? creator->name : THREAD_NO_NAME;
    thread = find_or_add(sweep, event->tid);
    if (!thread)
        return -1;
    thread->name = name;
    return 0;
}

int thread_sweep_to(struct thread_sweep *sweep, uint64_t time_ns)
{
    while (sweep->next < sweep->end && sweep->list->events[sweep->next].time_ns <= time_ns)
        if (play(sweep, sweep->next++))
            return -1;
    return 0;
}

void thread_sweep_end(struct thread_sweep *sweep)
{
    free(sweep->threads);
}
