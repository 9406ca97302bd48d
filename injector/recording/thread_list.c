/* See thread_list.h. */
#include "injector/recording/thread_list.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/recording/life_moment.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_sample.h"
#include "jitdump/format/byte_cursor.h"

#include <stdbool.h>
#include <stdlib.h>

static bool same_thread(const struct thread_sighting *a, const struct thread_sighting *b)
{
    return a->pid == b->pid && a->tid == b->tid;
}

int thread_sightings_add(struct thread_sightings *sightings, uint32_t pid, uint32_t tid,
                         uint64_t time_ns)
{
    const struct thread_sighting added = {time_ns, pid, tid};
    const struct thread_sighting *last =
        sightings->count ? &sightings->items[sightings->count - 1] : NULL;
    if (last && same_thread(last, &added) && last->time_ns <= time_ns)
        return 0;
    if (array_reserve(sightings->items, sightings->count, sightings->capacity))
        return -1;
    sightings->items[sightings->count++] = added;
    return 0;
}

static int compare_sightings(const void *left, const void *right)
{
    const struct thread_sighting *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

void thread_sightings_reduce(struct thread_sightings *sightings)
{
    struct thread_sighting *items = sightings->items;
    size_t kept = 0;
    if (sightings->count)
        qsort(items, sightings->count, sizeof *items, compare_sightings);
    for (size_t i = 0; i < sightings->count; i++)
        if (kept == 0 || !same_thread(&items[kept - 1], &items[i]))
            items[kept++] = items[i];
    sightings->count = kept;
}

void thread_sightings_free(struct thread_sightings *sightings)
{
    free(sightings->items);
}

/* ---- Reading ---- */

size_t thread_namespaces_bytes(const struct perf_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES + 8); /* pid, tid */
    uint64_t links = cursor_u64(&cursor);
    if (cursor.failed || links > PERF_NAMESPACES_MOST)
        return 0;
    cursor_skip(&cursor, links * PERF_NAMESPACE_BYTES);
    return cursor.failed ? 0 : 8 + links * PERF_NAMESPACE_BYTES;
}

/* Read a COMM, FORK or EXIT about a thread of its own process.  Returns false if it says nothing of
 * that kind. */
static bool read_task(struct thread_event *event, const struct perf_file *file,
                      const struct perf_record *record)
{
    struct perf_task task;
    if (!perf_record_task(file, record, &task))
        return false;
    event->kind = record->type == PERF_RECORD_COMM   ? THREAD_NAMED
                  : record->type == PERF_RECORD_EXIT ? THREAD_ENDED
                  : task.parent_pid == task.pid      ? THREAD_BORN
                                                     : THREAD_FORKED;
    event->exec = event->kind == THREAD_NAMED && (record->misc & PERF_MISC_COMM_EXEC);
    event->time_ns = task.time_ns;
    event->pid = task.pid;
    event->tid = task.tid;
    event->creator_pid = task.parent_pid;
    event->creator_tid = task.parent_tid;
    return event->kind != THREAD_FORKED || event->tid == event->pid;
}

/* The thread that a MMAP, MMAP2 or NAMESPACES is of.  Returns false if it is damaged. */
static bool read_thread(struct thread_event *event, const struct perf_file *file,
                        const struct perf_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    event->kind = record->type == PERF_RECORD_NAMESPACES ? THREAD_NAMESPACES : THREAD_MAPPED;
    event->pid = cursor_u32(&cursor);
    event->tid = cursor_u32(&cursor);
    perf_record_time(file, record, &event->time_ns);
    return !cursor.failed && (event->kind == THREAD_MAPPED || thread_namespaces_bytes(record));
}

static int add_event(struct thread_list *list, const struct thread_event *event)
{
    if (array_reserve(list->events, list->count, list->capacity))
        return -1;
    list->events[list->count++] = *event;
    return 0;
}

int thread_list_take(struct thread_list *list, const struct perf_file *file,
                     const struct perf_record *record)
{
    struct thread_event event = {.record = *record};
    struct sample_place place;
    switch (record->type) {
    case PERF_RECORD_SAMPLE:
        /* One without TID is of no thread for perf either. */
        if (!perf_record_sample_place(file, record, &place))
            return 0;
        return thread_sightings_add(&list->sightings, place.pid, place.tid, place.time_ns);
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        if (!read_task(&event, file, record))
            return 0;
        event.late = event.kind == THREAD_NAMED && event.time_ns == 0 && list->sightings.count > 0;
        return add_event(list, &event);
    default:
        if (!perf_record_is_map(record) && record->type != PERF_RECORD_NAMESPACES)
            return 0;
        return read_thread(&event, file, record) ? add_event(list, &event) : 0;
    }
}

static int add_sightings(struct thread_list *list)
{
    struct thread_sightings *sightings = &list->sightings;
    thread_sightings_reduce(sightings);
    for (size_t i = 0; i < sightings->count; i++) {
        const struct thread_sighting *seen = &sightings->items[i];
        const struct thread_event event = {.time_ns = seen->time_ns,
                                           .kind = THREAD_SAMPLED,
                                           .pid = seen->pid,
                                           .tid = seen->tid,
                                           .record = {.number = UINT64_MAX}};
        if (add_event(list, &event))
            return -1;
    }
    return 0;
}

static int compare_events(const void *left, const void *right)
{
    const struct thread_event *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return life_moment_compare((struct life_moment){a->time_ns, a->record.number},
                               (struct life_moment){b->time_ns, b->record.number});
}

int thread_list_order(struct thread_list *list)
{
    int result = add_sightings(list);
    thread_sightings_free(&list->sightings);
    list->sightings = (struct thread_sightings){0};
    if (list->count)
        qsort(list->events, list->count, sizeof *list->events, compare_events);
    return result;
}

int thread_list_read(struct thread_list *list, const struct perf_file *file)
{
    struct perf_walk walk = perf_walk_begin(file);
    struct perf_record record;
    int result = 0;
    *list = (struct thread_list){0};
    while (!result && perf_walk_next(&walk, &record, NULL))
        result = thread_list_take(list, file, &record);
    return result ? result : thread_list_order(list);
}

void thread_list_free(struct thread_list *list)
{
    thread_sightings_free(&list->sightings);
    free(list->events);
}

/* ---- Going through time ---- */

struct thread_sweep thread_sweep_begin(const struct thread_list *list, uint32_t pid)
{
    size_t first, end;
    array_bisect(first, list->count, list->events[first].pid < pid);
    array_bisect(end, list->count, list->events[end].pid <= pid);
    return (struct thread_sweep){.list = list, .pid = pid, .next = first, .end = end};
}

static struct live_thread *find(const struct thread_sweep *sweep, uint32_t tid)
{
    const struct address_range *range = address_map_at(&sweep->numbers, tid);
    return range ? &sweep->threads[range->value] : NULL;
}

static int set_number(struct thread_sweep *sweep, size_t number)
{
    uint64_t tid = sweep->threads[number].tid;
    return address_map_set(&sweep->numbers, tid, tid + 1, (uint32_t)number);
}

/* THREAD is known from now on, or anew. */
static int begin_age(struct thread_sweep *sweep, const struct live_thread *thread)
{
    if (thread->tid == sweep->pid)
        return 0;
    if (array_reserve(sweep->ages, sweep->age_count, sweep->age_capacity))
        return -1;
    sweep->ages[sweep->age_count++] = (struct thread_age){thread->since_ns, thread->tid};
    return 0;
}

static struct live_thread *find_or_add(struct thread_sweep *sweep, uint32_t tid, uint64_t time_ns)
{
    struct live_thread *thread = find(sweep, tid);
    if (thread)
        return thread;
    if (array_reserve(sweep->threads, sweep->count, sweep->capacity) || sweep->count >= UINT32_MAX)
        return NULL;
    thread = &sweep->threads[sweep->count];
    *thread = (struct live_thread){tid, time_ns, THREAD_NO_NAMESPACES};
    return begin_age(sweep, thread) || set_number(sweep, sweep->count++) ? NULL : thread;
}

/* The last one takes its number. */
static int remove_thread(struct thread_sweep *sweep, struct live_thread *thread)
{
    size_t number = (size_t)(thread - sweep->threads);
    if (address_map_clear(&sweep->numbers, thread->tid, thread->tid + UINT64_C(1)))
        return -1;
    *thread = sweep->threads[--sweep->count];
    return number < sweep->count ? set_number(sweep, number) : 0;
}

static int end_thread(struct thread_sweep *sweep, const struct thread_event *event)
{
    struct live_thread *thread = find(sweep, event->tid);
    if (event->tid == sweep->pid) {
        sweep->main_ended = true;
        sweep->main_end_ns = event->time_ns;
    }
    return thread ? remove_thread(sweep, thread) : 0;
}

/* The kernel's last samples in a main thread may come after its EXIT. */
static void note_main(struct thread_sweep *sweep, const struct thread_event *event, bool new)
{
    if (event->tid == event->pid && event->kind != THREAD_SAMPLED)
        sweep->main_ended = sweep->late = false;
    else if (event->tid != event->pid && new)
        sweep->late = sweep->main_ended;
}

static void forget_all(struct thread_sweep *sweep)
{
    address_map_free(&sweep->numbers);
    sweep->count = 0;
}

/* No other thread survives an exec. */
static int keep_main(struct thread_sweep *sweep)
{
    const struct live_thread *main_thread = find(sweep, sweep->pid);
    bool lives = main_thread != NULL;
    if (lives)
        sweep->threads[0] = *main_thread;
    forget_all(sweep);
    sweep->count = lives;
    return lives ? set_number(sweep, 0) : 0;
}

static int play(struct thread_sweep *sweep, size_t index)
{
    const struct thread_event *event = &sweep->list->events[index];
    if (event->kind == THREAD_ENDED)
        return end_thread(sweep, event);
    if (event->exec && keep_main(sweep))
        return -1;
    if (event->kind == THREAD_FORKED)
        forget_all(sweep);
    size_t count = sweep->count;
    struct live_thread *thread = find_or_add(sweep, event->tid, event->time_ns);
    if (!thread)
        return -1;
    if (event->kind == THREAD_BORN) {
        bool again = sweep->count == count && thread->since_ns != event->time_ns;
        *thread = (struct live_thread){event->tid, event->time_ns, THREAD_NO_NAMESPACES};
        if (again && begin_age(sweep, thread))
            return -1;
    }
    if (event->kind == THREAD_NAMESPACES)
        thread->namespaces = index;
    note_main(sweep, event, event->kind == THREAD_BORN || sweep->count > count);
    return 0;
}

int thread_sweep_to(struct thread_sweep *sweep, uint64_t time_ns)
{
    while (sweep->next < sweep->end && sweep->list->events[sweep->next].time_ns <= time_ns)
        if (play(sweep, sweep->next++))
            return -1;
    return 0;
}

uint32_t thread_sweep_speaker(struct thread_sweep *sweep)
{
    if (!sweep->main_ended)
        return sweep->pid;
    for (; sweep->oldest < sweep->age_count; sweep->oldest++) {
        const struct thread_age *age = &sweep->ages[sweep->oldest];
        const struct live_thread *thread = find(sweep, age->tid);
        if (thread && thread->since_ns == age->since_ns)
            return age->tid;
    }
    return sweep->pid;
}

void thread_sweep_end(struct thread_sweep *sweep)
{
    address_map_free(&sweep->numbers);
    free(sweep->ages);
    free(sweep->threads);
}
