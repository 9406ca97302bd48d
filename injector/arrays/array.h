/* Arrays that grow: room for one more item at the end, the capacity doubled when it runs out.
 * And whether one needs sorting. */
#ifndef PERFJIT_ARRAY_H
#define PERFJIT_ARRAY_H

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARRAY_GUARDED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARRAY_GUARDED 1
#endif
#endif

/* Under AddressSanitizer the room after the last item that was asked for is poisoned: otherwise an
 * index that belongs to another array would be caught only past the capacity. */
#ifdef ARRAY_GUARDED
#include <sanitizer/asan_interface.h>
#define array_close(start, bytes) ASAN_POISON_MEMORY_REGION(start, bytes)
#define array_open(start, bytes)  ASAN_UNPOISON_MEMORY_REGION(start, bytes)
#else
#define array_close(start, bytes) ((void)(start), (void)(bytes))
#define array_open(start, bytes)  ((void)(start), (void)(bytes))
#endif

/* Make room for item COUNT in ITEMS (of *CAPACITY items of ITEM_BYTES).  Returns the array, perhaps
 * moved, or NULL without memory; ITEMS is still valid then. */
static inline void *array_room(void *items, size_t count, size_t *capacity, size_t item_bytes)
{
    if (count < *capacity) {
        array_open((unsigned char *)items + count * item_bytes, item_bytes);
        return items;
    }
    size_t wanted = *capacity ? *capacity * 2 : 64;
    if (wanted > SIZE_MAX / 2 / item_bytes)
        return NULL;
    void *moved = realloc(items, wanted * item_bytes);
    if (!moved)
        return NULL;
    *capacity = wanted;
    array_close((unsigned char *)moved + (count + 1) * item_bytes,
                (wanted - count - 1) * item_bytes);
    return moved;
}

/* Make room for one more item after the COUNT ITEMS, an lvalue that follows where the array moves.
 * COUNT and CAPACITY are lvalues too: each is read more than once.  Returns 0, or -1 without
 * memory; ITEMS is still valid then. */
#define array_reserve(items, count, capacity)                                                      \
    ((items) = array_room_or_same(items, count, &(capacity), sizeof *(items)),                     \
     (count) < (capacity) ? 0 : -1)

static inline void *array_room_or_same(void *items, size_t count, size_t *capacity,
                                       size_t item_bytes)
{
    void *moved = array_room(items, count, capacity, item_bytes);
    return moved ? moved : items;
}

/* Large pages for a large array: the kernel clears and maps a few instead of thousands. For speed
 * only. */
static inline void array_in_large_pages(void *items, size_t bytes)
{
    enum { LARGE_PAGE_BYTES = 2 << 20 };
    uintptr_t start = ((uintptr_t)items + LARGE_PAGE_BYTES - 1) / LARGE_PAGE_BYTES;
    uintptr_t end = ((uintptr_t)items + bytes) / LARGE_PAGE_BYTES;
    if (start < end)
        madvise((void *)(start * LARGE_PAGE_BYTES), (end - start) * LARGE_PAGE_BYTES,
                MADV_HUGEPAGE);
}

/* Blocks that are larger are mappings of their own, and go back to the system when they are
 * freed. */
enum { HEAP_BLOCK_BYTES = 8 << 20 };

/* The same for arrays still to be allocated, BYTES in all, none of them larger than a heap's block.
 * It prepares free heap memory for them; for that moment this memory is one block. */
static inline void arrays_expect(size_t bytes)
{
    /* musl has no such choice: there a large block is always a mapping. */
#ifdef M_MMAP_THRESHOLD
    enum { MAX_BYTES = 31 << 20 }; /* the largest threshold of glibc is 32 MB */
    size_t expected = bytes < MAX_BYTES ? bytes : MAX_BYTES;
    mallopt(M_MMAP_THRESHOLD, MAX_BYTES + 1);
    void *room = malloc(expected);
    mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_BYTES);
    if (room)
        array_in_large_pages(room, expected);
    free(room);
#else
    (void)bytes;
#endif
}

/* Room for WANTED items in all, where the number is roughly known: no copying while the array
 * grows. */
static inline void *array_expect(void *items, size_t wanted, size_t *capacity, size_t item_bytes)
{
    if (wanted <= *capacity || wanted > SIZE_MAX / 2 / item_bytes)
        return items;
    void *moved = realloc(items, wanted * item_bytes);
    if (!moved)
        return items;
    *capacity = wanted;
    array_in_large_pages(moved, wanted * item_bytes);
    return moved;
}

/* Whether the COUNT ITEMS of ITEM_BYTES are in order.  Items from runtimes mostly are in order, by
 * time and by address, and checking costs little. */
static inline bool array_in_order(const void *items, size_t count, size_t item_bytes,
                                  int (*compare)(const void *, const void *))
{
    const unsigned char *bytes = items;
    for (size_t i = 1; i < count; i++)
        if (compare(bytes + (i - 1) * item_bytes, bytes + i * item_bytes) > 0)
            return false;
    return true;
}

#endif
