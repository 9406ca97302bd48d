/* See arena_list.h. */
#include "jitunwind/arena_list.h"

#include "jitunwind/frames/native_tables.h"
#include "jitunwind/frames/read_marks.h"
#include "jitunwind/frames/rule_cache.h"

#include <errno.h>
#include <stdlib.h>

_Atomic uint32_t ju_readers[2];
_Atomic uint32_t ju_epoch;

/* A thread that is gone in the middle of a change of the list leaves the list valid.  Each change
 * publishes one pointer, and at worst the memory of a removed arena is lost. */
static struct brief_lock list_lock;
static _Atomic(struct jitunwind *) first_arena;
static struct jitunwind *first_closed; /* closed arenas that may still have readers */

static void free_arena(struct jitunwind *arena)
{
    ju_function_table_close(&arena->table);
    free(arena);
}

static void free_closed(void)
{
    struct jitunwind **link = &first_closed;
    while (*link) {
        struct jitunwind *closed = *link;
        if (read_is_over(closed->closed_in)) {
            *link = closed->next_closed;
            free_arena(closed);
        } else {
            link = &closed->next_closed;
        }
    }
}

/* Take out those that were closed. */
static void unlink_closed(void)
{
    _Atomic(struct jitunwind *) *link = &first_arena;
    while (*link) {
        struct jitunwind *arena = *link;
        if (!atomic_load(&arena->closed)) {
            link = &arena->next;
            continue;
        }
        *link = arena->next;
        arena->closed_in = read_epoch();
        arena->next_closed = first_closed;
        first_closed = arena;
    }
    free_closed();
}

static bool overlap(const struct jitunwind *left, const struct jitunwind *right)
{
    return left->table.start - right->table.start < right->table.bytes ||
           right->table.start - left->table.start < left->table.bytes;
}

int ju_arena_list_add(struct jitunwind *arena)
{
    ju_native_list();
    int error = ju_lock(&list_lock);
    if (error)
        return error;
    ju_remember_threads();
    unlink_closed();
    for (const struct jitunwind *other = first_arena; other && !error; other = other->next)
        error = !atomic_load(&other->closed) && overlap(arena, other) ? -EEXIST : 0;
    if (!error) {
        arena->next = atomic_load(&first_arena);
        atomic_store(&first_arena, arena);
    }
    jd_unlock(&list_lock);
    return error;
}

void ju_arena_list_drop(struct jitunwind *arena)
{
    atomic_store(&arena->closed, true);
    atomic_fetch_add(&ju_removed, 1);
    if (ju_lock(&list_lock))
        return;
    unlink_closed();
    jd_unlock(&list_lock);
}

const struct jitunwind *ju_arena_list_find(uint64_t addr)
{
    const struct jitunwind *arena = atomic_load_explicit(&first_arena, memory_order_acquire);
    while (arena && (addr - arena->table.start >= arena->table.bytes ||
                     atomic_load_explicit(&arena->closed, memory_order_acquire)))
        arena = atomic_load_explicit(&arena->next, memory_order_acquire);
    return arena;
}
