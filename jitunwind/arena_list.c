/* See arena_list.h. */
#include "jitunwind/arena_list.h"

#include "jitunwind/frames/native_tables.h"
#include "jitunwind/frames/read_marks.h"

#include <errno.h>
#include <stdlib.h>

_Atomic uint32_t ju_readers[2];
_Atomic uint32_t ju_epoch;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct jitunwind *) first_arena;
static struct jitunwind *first_closed; /* that somebody may still read */

static void free_arena(struct jitunwind *arena)
{
    ju_function_table_close(&arena->table);
    pthread_mutex_destroy(&arena->lock);
    free(arena->drafts);
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

static bool overlap(const struct jitunwind *left, const struct jitunwind *right)
{
    return left->table.start - right->table.start < right->table.bytes ||
           right->table.start - left->table.start < left->table.bytes;
}

int ju_arena_list_add(struct jitunwind *arena)
{
    int error = 0;
    pthread_mutex_lock(&list_lock);
    free_closed();
    ju_native_list();
    for (const struct jitunwind *other = first_arena; other && !error; other = other->next)
        error = overlap(arena, other) ? -EEXIST : 0;
    if (!error) {
        arena->next = atomic_load(&first_arena);
        atomic_store(&first_arena, arena);
    }
    pthread_mutex_unlock(&list_lock);
    return error;
}

void ju_arena_list_drop(struct jitunwind *arena)
{
    pthread_mutex_lock(&list_lock);
    _Atomic(struct jitunwind *) *link = &first_arena;
    while (*link != arena)
        link = &(*link)->next;
    *link = arena->next;
    arena->closed_in = read_epoch();
    arena->next_closed = first_closed;
    first_closed = arena;
    free_closed();
    pthread_mutex_unlock(&list_lock);
}

const struct jitunwind *ju_arena_list_find(uint64_t addr)
{
    const struct jitunwind *arena = atomic_load_explicit(&first_arena, memory_order_acquire);
    while (arena && addr - arena->table.start >= arena->table.bytes)
        arena = atomic_load_explicit(&arena->next, memory_order_acquire);
    return arena;
}
