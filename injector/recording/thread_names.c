/* See thread_names.h. */
#include "injector/recording/thread_names.h"

#include "injector/arrays/bisect.h"
#include "injector/recording/perf_data/perf_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_EVENT SIZE_MAX

/* From AT on, up to the thread's next one. */
struct thread_naming {
    uint32_t pid, tid;
    struct life_moment at;
    size_t event; /* of the list */
    size_t comm;  /* the event whose COMM has the name, or NO_EVENT */
    bool born;    /* what was known of the thread before is of another */
};

static int compare(const struct thread_naming *a, const struct thread_naming *b)
{
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return life_moment_compare(a->at, b->at);
}

static int compare_namings(const void *left, const void *right)
{
    return compare(left, right);
}

static bool same_thread(const struct thread_naming *a, const struct thread_naming *b)
{
    return a->pid == b->pid && a->tid == b->tid;
}

/* ---- Finding them ---- */

static bool is_birth(const struct thread_event *event)
{
    return event->kind == THREAD_BORN || event->kind == THREAD_FORKED;
}

/* All events that tell of a thread, by thread. */
static int collect(struct thread_names *names)
{
    const struct thread_list *list = names->list;
    names->items = calloc(list->count + 1, sizeof *names->items);
    if (!names->items)
        return -1;
    for (size_t i = 0; i < list->count; i++) {
        const struct thread_event *event = &list->events[i];
        if (event->kind == THREAD_SAMPLED || event->kind == THREAD_NAMESPACES)
            continue;
        names->items[names->count++] =
            (struct thread_naming){event->pid,
                                   event->tid,
                                   {event->time_ns, event->record.number},
                                   i,
                                   event->kind == THREAD_NAMED ? i : NO_EVENT,
                                   is_birth(event)};
    }
    if (names->count)
        qsort(names->items, names->count, sizeof *names->items, compare_namings);
    return 0;
}

/* Of the COUNT events of one thread keep the names and the births: a thread that maps memory after
 * its end is another, whose FORK was lost. */
static size_t keep_namings(struct thread_naming *items, size_t count,
                           const struct thread_list *list)
{
    size_t kept = 0;
    bool ended = false;
    for (size_t i = 0; i < count; i++) {
        uint32_t kind = list->events[items[i].event].kind;
        struct thread_naming naming = items[i];
        naming.born = naming.born || (ended && kind == THREAD_MAPPED);
        ended = kind == THREAD_ENDED;
        if (naming.born || naming.comm != NO_EVENT)
            items[kept++] = naming;
    }
    return kept;
}

/* Whether the COMM of NAMING says what the thread was called when the recording ended. */
static bool is_late(const struct thread_naming *naming, const struct thread_list *list)
{
    return naming->comm != NO_EVENT && list->events[naming->comm].late;
}

/* Whether the COMM of NAMING came when the thread got the name.  One without a time says only what
 * the thread was called at some moment, and a COMM that followed it may be lost. */
static bool is_timed(const struct thread_naming *naming)
{
    return naming->comm != NO_EVENT && naming->at.time_ns != 0;
}

/* The COUNT namings of one thread: late ones stand first, having no time.  Put the last of them
 * where the thread's last life begins, or leave it out if the life has a COMM with a time. */
static size_t place_late(struct thread_naming *items, size_t count, const struct thread_list *list)
{
    struct thread_naming late = {.comm = NO_EVENT};
    size_t kept = 0, birth = NO_EVENT;
    bool named = false;
    for (size_t i = 0; i < count; i++) {
        if (is_late(&items[i], list)) {
            late = items[i];
            continue;
        }
        named = is_timed(&items[i]) || (named && !items[i].born);
        birth = items[i].born ? kept : birth;
        items[kept++] = items[i];
    }
    if (late.comm == NO_EVENT || named)
        return kept;
    if (birth == NO_EVENT)
        items[kept++] = late;
    else
        items[birth].comm = late.comm;
    return kept;
}

static void reduce(struct thread_names *names)
{
    size_t kept = 0;
    for (size_t at = 0, count; at < names->count; at += count) {
        struct thread_naming *items = &names->items[at];
        for (count = 1; at + count < names->count && same_thread(items, &items[count]);)
            count++;
        size_t left = keep_namings(items, count, names->list);
        left = place_late(items, left, names->list);
        memmove(&names->items[kept], items, left * sizeof *items);
        kept += left;
    }
    names->count = kept;
}

/* The last naming of thread TID of PID before MOMENT, and in *NEXT its first one from then on;
 * NULL: there is none. */
static const struct thread_naming *before(const struct thread_names *names, uint32_t pid,
                                          uint32_t tid, struct life_moment moment,
                                          const struct thread_naming **next)
{
    const struct thread_naming wanted = {.pid = pid, .tid = tid, .at = moment};
    size_t first;
    array_bisect(first, names->count, compare(&names->items[first], &wanted) < 0);
    const struct thread_naming *at = names->items + first, *end = names->items + names->count;
    *next = at < end && same_thread(at, &wanted) ? at : NULL;
    return first && same_thread(at - 1, &wanted) ? at - 1 : NULL;
}

static int compare_moments(const void *left, const void *right, void *argument)
{
    const struct thread_names *names = argument;
    return life_moment_compare(names->items[*(const size_t *)left].at,
                               names->items[*(const size_t *)right].at);
}

/* Give those that were born the names of their creators, who were born earlier. */
static int inherit(struct thread_names *names)
{
    size_t *births = malloc((names->count + 1) * sizeof *births), count = 0;
    if (!births)
        return -1;
    for (size_t i = 0; i < names->count; i++)
        if (names->items[i].comm == NO_EVENT)
            births[count++] = i;
    if (count)
        qsort_r(births, count, sizeof *births, compare_moments, names);
    for (size_t i = 0; i < count; i++) {
        struct thread_naming *born = &names->items[births[i]];
        const struct thread_event *event = &names->list->events[born->event];
        const struct thread_naming *next, *creator = NULL;
        if (is_birth(event))
            creator = before(names, event->creator_pid, event->creator_tid, born->at, &next);
        born->comm = creator ? creator->comm : NO_EVENT;
    }
    free(births);
    return 0;
}

int thread_names_find(struct thread_names *names, const struct thread_list *list)
{
    *names = (struct thread_names){.list = list};
    if (collect(names))
        return -1;
    reduce(names);
    return inherit(names);
}

void thread_names_free(struct thread_names *names)
{
    free(names->items);
    *names = (struct thread_names){0};
}

/* ---- Looking them up ---- */

/* The event whose COMM names the thread before MOMENT, or the first after it if no other does. */
static size_t comm_before(const struct thread_names *names, uint32_t pid, uint32_t tid,
                          struct life_moment moment)
{
    const struct thread_naming *next, *naming = before(names, pid, tid, moment, &next);
    if (naming && naming->comm != NO_EVENT)
        return naming->comm;
    return next && !next->born ? next->comm : NO_EVENT;
}

static struct life_moment end_of(uint64_t time_ns)
{
    return (struct life_moment){time_ns, UINT64_MAX};
}

const struct perf_record *thread_names_comm(const struct thread_names *names, uint32_t pid,
                                            uint32_t tid, uint64_t time_ns)
{
    size_t comm = comm_before(names, pid, tid, end_of(time_ns));
    return comm == NO_EVENT ? NULL : &names->list->events[comm].record;
}

/* The name in the event COMM; NULL if it has no end. */
static const char *text_of(const struct thread_names *names, size_t comm)
{
    const struct perf_record *record = &names->list->events[comm].record;
    const char *text = (const char *)record->bytes + PERF_COMM_BYTES;
    return record->size > PERF_COMM_BYTES && memchr(text, '\0', record->size - PERF_COMM_BYTES)
               ? text
               : NULL;
}

static const char *name_before(const struct thread_names *names, uint32_t pid, uint32_t tid,
                               struct life_moment moment)
{
    size_t comm = comm_before(names, pid, tid, moment);
    const char *text = comm == NO_EVENT ? NULL : text_of(names, comm);
    return text ? text : pid == 0 ? "swapper" : "";
}

const char *thread_names_at(const struct thread_names *names, uint32_t pid, uint32_t tid,
                            uint64_t time_ns)
{
    return name_before(names, pid, tid, end_of(time_ns));
}

const char *thread_names_of_process(const struct thread_names *names, uint32_t pid,
                                    struct life_moment next)
{
    return name_before(names, pid, pid, next);
}

void thread_names_number(char text[THREAD_NUMBER_BYTES], uint32_t tid)
{
    snprintf(text, THREAD_NUMBER_BYTES, ":%" PRId32, (int32_t)tid);
}
