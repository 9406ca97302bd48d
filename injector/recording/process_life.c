/* See process_life.h. */
#include "injector/recording/process_life.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/recording/injected_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sign that a record gives about a pid's lives. */
enum sign_kind {
    SIGN_OF_LIFE,     /* some thread of it is there */
    SIGN_OF_MAIN,     /* its main thread is */
    SIGN_FORK,        /* it begins, as a copy of another */
    SIGN_BEGIN,       /* it begins */
    SIGN_EXEC,        /* it becomes another program */
    SIGN_MAIN_EXIT,   /* its main thread ends */
    SIGN_THREAD_EXIT, /* another thread ends, perhaps the last */
};

struct sign {
    uint32_t pid;
    uint32_t kind;
    uint32_t parent; /* SIGN_FORK: pid */
    struct life_moment at;
};

struct signs {
    struct sign *items;
    size_t count;
};

static enum sign_kind kind_of(const struct recorded_task *task)
{
    switch (task->kind) {
    case TASK_FORK:
        if (task->pid == task->parent)
            return SIGN_OF_LIFE;
        return task->fresh ? SIGN_BEGIN : SIGN_FORK;
    case TASK_EXIT:
        return task->pid == task->tid ? SIGN_MAIN_EXIT : SIGN_THREAD_EXIT;
    case TASK_EXEC:
        return SIGN_EXEC;
    default:
        return SIGN_OF_MAIN;
    }
}

static int compare_signs(const void *left, const void *right)
{
    const struct sign *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return life_moment_compare(a->at, b->at);
}

/* All signs, by pid, then by time.  Returns -1 without memory. */
static int collect_signs(struct signs *signs, const struct records *records)
{
    size_t count = 0;
    signs->items =
        malloc((2 * records->task_count + records->map_count + 1) * sizeof *signs->items);
    if (!signs->items)
        return -1;
    for (size_t i = 0; i < records->task_count; i++) {
        const struct recorded_task *task = &records->tasks[i];
        struct life_moment at = {task->time_ns, task->record.number};
        signs->items[count++] = (struct sign){task->pid, kind_of(task), task->parent, at};
        if (task->kind == TASK_FORK && task->parent != task->pid)
            signs->items[count++] = (struct sign){task->parent, SIGN_OF_LIFE, 0, at};
    }
    /* The maps of an injected image, and of memory beside it, name the main thread without it. */
    bool injected = injected_image(records) != NULL;
    for (size_t i = 0; i < records->map_count; i++) {
        const struct recorded_map *map = &records->maps[i];
        bool of_main =
            map->map.pid == map->map.tid && !(injected && injected_image_or_memory(&map->map));
        enum sign_kind kind = of_main ? SIGN_OF_MAIN : SIGN_OF_LIFE;
        signs->items[count++] = (struct sign){map->map.pid, kind, 0, life_moment_of(map)};
    }
    qsort(signs->items, count, sizeof *signs->items, compare_signs);
    signs->count = count;
    return 0;
}

static int add_life(struct process_lives *lives, uint32_t pid, struct life_moment begin)
{
    if (array_reserve(lives->items, lives->count, lives->capacity) || lives->count >= NO_LIFE)
        return -1;
    lives->items[lives->count++] = (struct process_life){
        .pid = pid,
        .parent = NO_LIFE,
        .begin = begin,
        .next = {UINT64_MAX, UINT64_MAX},
        .end_ns = UINT64_MAX,
    };
    return 0;
}

/* Begin a life with SIGN, and with that end the pid's last one. */
static int begin_life(struct process_lives *lives, const struct sign *sign, bool first)
{
    if (!first) {
        struct process_life *last = &lives->items[lives->count - 1];
        last->next = sign->at;
        last->execed = sign->kind == SIGN_EXEC;
        if (last->end_ns == UINT64_MAX)
            last->end_ns = sign->at.time_ns;
    }
    bool known_before = sign->kind != SIGN_FORK && sign->kind != SIGN_BEGIN && first;
    return add_life(lives, sign->pid,
                    known_before && sign->kind != SIGN_EXEC ? (struct life_moment){0, 0}
                                                            : sign->at);
}

/* A main thread that is there after its EXIT is another one, whose FORK was lost; but an exec by
 * another thread of the process brings it back, too. */
static bool begins(const struct sign *sign, const struct process_life *last, bool main_exited)
{
    switch (sign->kind) {
    case SIGN_FORK:
    case SIGN_BEGIN:
    case SIGN_EXEC:
        return true;
    case SIGN_OF_MAIN:
        return main_exited && sign->at.time_ns > last->end_ns;
    default:
        return false;
    }
}

/* Read the signs of one pid, COUNT from SIGNS on. */
static int read_pid(struct process_lives *lives, const struct sign *signs, size_t count)
{
    bool main_exited = false;
    for (size_t i = 0; i < count; i++) {
        bool first = i == 0;
        if (first || begins(&signs[i], &lives->items[lives->count - 1], main_exited)) {
            main_exited = false;
            if (begin_life(lives, &signs[i], first))
                return -1;
        }
        struct process_life *life = &lives->items[lives->count - 1];
        if (signs[i].kind == SIGN_MAIN_EXIT)
            main_exited = true;
        if (signs[i].kind == SIGN_MAIN_EXIT || (signs[i].kind == SIGN_THREAD_EXIT && main_exited))
            life->end_ns = signs[i].at.time_ns;
        else if (main_exited) /* other threads go on without it */
            life->end_ns = life->end_ns > signs[i].at.time_ns ? life->end_ns : signs[i].at.time_ns;
    }
    return 0;
}

/* Find the parents, now that all lives are known. */
static void find_parents(struct process_lives *lives, const struct signs *signs)
{
    for (size_t i = 0; i < signs->count; i++) {
        const struct sign *sign = &signs->items[i];
        if (sign->kind != SIGN_FORK)
            continue;
        uint32_t child = process_life_at(lives, sign->pid, sign->at);
        uint32_t parent = process_life_at(lives, sign->parent, sign->at);
        if (parent != NO_LIFE && !life_moment_before(sign->at, lives->items[parent].begin))
            lives->items[child].parent = parent;
    }
}

int process_lives_read(struct process_lives *lives, const struct records *records,
                       struct findings *findings)
{
    struct signs signs;
    *lives = (struct process_lives){0};
    int result = collect_signs(&signs, records);
    for (size_t at = 0, count; !result && at < signs.count; at += count) {
        for (count = 1; at + count < signs.count; count++)
            if (signs.items[at + count].pid != signs.items[at].pid)
                break;
        result = read_pid(lives, signs.items + at, count);
    }
    if (!result)
        find_parents(lives, &signs);
    free(signs.items);
    return result ? report_failure(findings, "out of memory") : 0;
}

int process_lives_add(struct process_lives *lives, uint32_t pid, struct findings *findings)
{
    if (add_life(lives, pid, (struct life_moment){0, 0}))
        return report_failure(findings, "out of memory");
    size_t at = lives->count - 1;
    struct process_life added = lives->items[at];
    for (; at > 0 && lives->items[at - 1].pid > pid; at--)
        lives->items[at] = lives->items[at - 1];
    lives->items[at] = added;
    for (size_t i = 0; i < lives->count; i++)
        if (lives->items[i].parent != NO_LIFE && lives->items[i].parent >= at)
            lives->items[i].parent++;
    return 0;
}

uint32_t process_lives_of(const struct process_lives *lives, uint32_t pid, size_t *count)
{
    size_t first, end;
    array_bisect(first, lives->count, lives->items[first].pid < pid);
    array_bisect(end, lives->count, lives->items[end].pid <= pid);
    *count = end - first;
    return *count ? (uint32_t)first : NO_LIFE;
}

uint32_t process_life_at(const struct process_lives *lives, uint32_t pid, struct life_moment moment)
{
    size_t count;
    uint32_t first = process_lives_of(lives, pid, &count);
    if (first == NO_LIFE)
        return NO_LIFE;
    size_t next;
    array_bisect(next, count, !life_moment_before(moment, lives->items[first + next].begin));
    return first + (uint32_t)(next ? next - 1 : 0);
}

/* How many of the COUNT maps at MAPS, by time, come before MOMENT. */
static size_t maps_before(const struct recorded_map *maps, size_t count, struct life_moment moment)
{
    size_t first;
    array_bisect(first, count, life_moment_before(life_moment_of(&maps[first]), moment));
    return first;
}

const struct recorded_map *process_life_maps(const struct records *records, uint32_t pid,
                                             struct life_moment begin, struct life_moment next,
                                             size_t *count)
{
    const struct recorded_map *maps = records_maps_of(records, pid, count);
    size_t first = maps_before(maps, *count, begin), end = maps_before(maps, *count, next);
    *count = end > first ? end - first : 0;
    return maps + first;
}

void process_life_comm(const struct process_lives *lives, const struct records *records,
                       uint32_t index, char text[PROCESS_COMM_BYTES])
{
    const struct process_life *life = &lives->items[index];
    const char *name = thread_names_of_process(&records->names, life->pid, life->next);
    snprintf(text, PROCESS_COMM_BYTES, "%s", *name ? name : "?");
}

bool process_life_descends(const struct process_lives *lives, uint32_t life, uint32_t ancestor)
{
    while (life != NO_LIFE && life != ancestor)
        life = lives->items[life].parent;
    return life == ancestor && ancestor != NO_LIFE;
}

static int compare_lives(const void *left, const void *right, void *argument)
{
    const struct process_life *lives = argument;
    const uint32_t *a = left, *b = right;
    int order = life_moment_compare(lives[*a].begin, lives[*b].begin);
    return order ? order : *a < *b ? -1 : *a > *b;
}

uint32_t *process_lives_order(const struct process_lives *lives)
{
    uint32_t *order = malloc((lives->count + 1) * sizeof *order);
    for (size_t i = 0; order && i < lives->count; i++)
        order[i] = (uint32_t)i;
    if (order && lives->count)
        qsort_r(order, lives->count, sizeof *order, compare_lives, lives->items);
    return order;
}

void process_lives_free(struct process_lives *lives)
{
    free(lives->items);
    *lives = (struct process_lives){0};
}
