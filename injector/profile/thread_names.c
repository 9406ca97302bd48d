/* See thread_names.h. */
#include "injector/profile/thread_names.h"

#include "injector/arrays/bisect.h"
#include "injector/recording/perf_data/perf_format.h"

#include <stdlib.h>
#include <string.h>

struct thread_naming {
    uint32_t pid, tid;
    uint64_t time_ns;
    size_t event; /* of the list */
};

enum { MOST_FORKS = 64 }; /* that a name is looked for behind */

static int compare(const void *left, const void *right)
{
    const struct thread_naming *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
}

int thread_names_begin(struct thread_names *names, const struct thread_list *list,
                       const struct process_lives *lives)
{
    *names = (struct thread_names){.list = list, .lives = lives};
    names->items = calloc(list->count + 1, sizeof *names->items);
    if (!names->items)
        return -1;
    for (size_t i = 0; i < list->count; i++)
        if (list->events[i].kind == THREAD_NAMED)
            names->items[names->count++] = (struct thread_naming){
                list->events[i].pid, list->events[i].tid, list->events[i].time_ns, i};
    qsort(names->items, names->count, sizeof *names->items, compare);
    return 0;
}

/* The name in RECORD, a COMM; "" if it has no end. */
static const char *comm_in(const struct perf_record *record)
{
    const char *name = (const char *)record->bytes + PERF_COMM_BYTES;
    return record->size > PERF_COMM_BYTES && memchr(name, '\0', record->size - PERF_COMM_BYTES)
               ? name
               : "";
}

/* The last naming of the thread up to TIME_NS; NULL: there is none. */
static const char *named(const struct thread_names *names, uint32_t pid, uint32_t tid,
                         uint64_t time_ns)
{
    const struct thread_naming wanted = {pid, tid, time_ns, SIZE_MAX};
    size_t behind;
    array_bisect(behind, names->count, compare(&names->items[behind], &wanted) <= 0);
    const struct thread_naming *found = behind ? &names->items[behind - 1] : NULL;
    return found && found->pid == pid && found->tid == tid
               ? comm_in(&names->list->events[found->event].record)
               : NULL;
}

const char *thread_names_at(const struct thread_names *names, uint32_t life, uint32_t pid,
                            uint32_t tid, uint64_t time_ns)
{
    const char *name = named(names, pid, tid, time_ns);
    if (!name && tid != pid)
        name = named(names, pid, pid, time_ns);
    for (unsigned i = 0; !name && life < names->lives->count && i < MOST_FORKS; i++) {
        const struct process_life *child = &names->lives->items[life];
        life = child->parent;
        if (life < names->lives->count)
            name = named(names, names->lives->items[life].pid, names->lives->items[life].pid,
                         child->begin.time_ns);
    }
    return name ? name : "";
}

void thread_names_free(struct thread_names *names)
{
    free(names->items);
    *names = (struct thread_names){0};
}
