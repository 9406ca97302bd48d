/* Arrays that grow. */
#ifndef PERFJIT_ARRAY_ROOM_H
#define PERFJIT_ARRAY_ROOM_H

#include <stddef.h>
#include <stdlib.h>

/* ITEMS of ITEM_BYTES each, moved if need be, with room for MORE behind COUNT, and *CAPACITY; NULL
 * without memory: ITEMS are as they were then. */
static inline void *array_with_room(void *items, size_t count, size_t more, size_t *capacity,
                                    size_t item_bytes)
{
    enum { FIRST = 16 };
    size_t wanted = *capacity ? *capacity : FIRST;
    if (items && count + more <= *capacity)
        return items;
    while (wanted < count + more)
        wanted *= 2;
    void *moved = realloc(items, wanted * item_bytes);
    if (moved)
        *capacity = wanted;
    return moved;
}

#endif
