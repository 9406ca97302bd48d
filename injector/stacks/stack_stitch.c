/* See stack_stitch.h. */
#include "injector/stacks/stack_stitch.h"

#include <stdlib.h>
#include <string.h>

static struct stitch_thread *find_thread(struct stitch_thread *threads, size_t size,
                                         uint64_t thread)
{
    size_t at = (size_t)(thread * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (size - 1);
    while (threads[at].used && threads[at].thread != thread)
        at = (at + 1) & (size - 1);
    return &threads[at];
}

static int enlarge(struct stack_stitches *stitches)
{
    size_t size = stitches->size ? stitches->size * 4 : 64;
    struct stitch_thread *threads = calloc(size, sizeof *threads);
    if (!threads)
        return -1;
    for (size_t i = 0; i < stitches->size; i++)
        if (stitches->threads[i].used)
            *find_thread(threads, size, stitches->threads[i].thread) = stitches->threads[i];
    free(stitches->threads);
    stitches->threads = threads;
    stitches->size = size;
    return 0;
}

/* The entry of THREAD, made if there is none.  NULL without memory. */
static struct stitch_thread *thread_of(struct stack_stitches *stitches, uint64_t thread)
{
    if (2 * (stitches->thread_count + 1) > stitches->size && enlarge(stitches))
        return NULL;
    struct stitch_thread *entry = find_thread(stitches->threads, stitches->size, thread);
    if (!entry->used) {
        entry->thread = thread;
        entry->used = true;
        stitches->thread_count++;
    }
    return entry;
}

static int keep(struct stitch_thread *entry, const struct stack_walker *walker)
{
    if (walker->ip_count > entry->capacity) {
        size_t capacity = walker->ip_count * 2;
        struct walked_frame *frames = realloc(entry->frames, capacity * sizeof *frames);
        if (frames)
            entry->frames = frames;
        uint64_t *ips = realloc(entry->ips, capacity * sizeof *ips);
        if (ips)
            entry->ips = ips;
        if (!frames || !ips)
            return -1;
        entry->capacity = capacity;
    }
    memcpy(entry->frames, walker->frames, walker->ip_count * sizeof *entry->frames);
    memcpy(entry->ips, walker->ips, walker->ip_count * sizeof *entry->ips);
    entry->count = walker->ip_count;
    return 0;
}

/* Add the callers of the frame of ENTRY that is WALKER's last one.  Returns false if there is
 * none. */
static bool add_callers(const struct stitch_thread *entry, struct stack_walker *walker)
{
    const struct walked_frame *last = &walker->frames[walker->ip_count - 1];
    for (size_t i = 0; i < entry->count; i++) {
        const struct walked_frame *frame = &entry->frames[i];
        if (frame->cfa != last->cfa || frame->what != last->what ||
            entry->ips[i] != walker->ips[walker->ip_count - 1])
            continue;
        size_t callers = entry->count - i - 1, room = walker->ip_most - walker->ip_count;
        if (callers == 0 || callers > room)
            return false;
        memcpy(walker->ips + walker->ip_count, entry->ips + i + 1, callers * sizeof *entry->ips);
        walker->ip_count += callers;
        return true;
    }
    return false;
}

enum stack_end stack_stitch(struct stack_stitches *stitches, struct stack_walker *walker,
                            uint64_t thread, enum stack_end end)
{
    bool ends_known = walker->ip_count && walker->frames[walker->ip_count - 1].cfa;
    if (end != STACK_WHOLE && ((end != STACK_CUT && end != STACK_OUTSIDE) || !ends_known))
        return end;
    struct stitch_thread *entry = thread_of(stitches, thread);
    if (!entry || (end == STACK_WHOLE && keep(entry, walker)))
        return STACK_ENDS;
    if (end == STACK_WHOLE || !add_callers(entry, walker))
        return end;
    return STACK_WHOLE;
}

void stack_stitches_free(struct stack_stitches *stitches)
{
    for (size_t i = 0; i < stitches->size; i++) {
        free(stitches->threads[i].frames);
        free(stitches->threads[i].ips);
    }
    free(stitches->threads);
    *stitches = (struct stack_stitches){0};
}
