/* See equal_bodies.h. */
#include "injector/inject/layout/equal_bodies.h"

#include "injector/arrays/hash.h"

#include <stdlib.h>
#include <string.h>

/* A thousand bodies may be equal in their bytes, and each from other lines: of those only some are
 * compared. */
enum { MAX_COMPARED = 16 };

static int make_room(struct equal_bodies *equal, size_t count)
{
    if (count > equal->capacity) {
        free(equal->hashes);
        equal->hashes = malloc(count * sizeof *equal->hashes);
        equal->capacity = equal->hashes ? count : 0;
    }
    for (equal->slot_count = 16; equal->slot_count < 2 * count;)
        equal->slot_count *= 2;
    if (equal->slot_count > equal->slot_capacity) {
        free(equal->slots);
        equal->slots = malloc(equal->slot_count * sizeof *equal->slots);
        equal->slot_capacity = equal->slots ? equal->slot_count : 0;
    }
    if (equal->slots)
        memset(equal->slots, 0, equal->slot_count * sizeof *equal->slots);
    return equal->hashes && equal->slots ? 0 : -1;
}

/* Bodies without bytes, of perf maps, have the hash of no bytes. */
static uint64_t hash_body(const struct jit_function *function)
{
    return XXH3_64bits_withSeed(function->code ? function->code : (const uint8_t *)"",
                                function->code ? (size_t)function->size : 0, function->size);
}

static bool bytes_are_equal(const struct jit_function *a, const struct jit_function *b)
{
    return a->size == b->size && !a->code == !b->code && a->name_bytes == b->name_bytes &&
           (!a->code || a->code == b->code || memcmp(a->code, b->code, (size_t)a->size) == 0) &&
           memcmp(a->name, b->name, a->name_bytes) == 0;
}

/* Returns -1 without memory. */
static int lines_are_equal(struct equal_bodies *equal, const struct jit_function *a,
                           const struct jit_function *b)
{
    if (a->lines == b->lines)
        return true;
    if (!a->lines || !b->lines)
        return false;
    if (equal->in_left != a && code_lines_decode(a->lines, a->size, &equal->left))
        return -1;
    equal->in_left = a;
    if (code_lines_decode(b->lines, b->size, &equal->right))
        return -1;
    return line_tables_are_equal(&equal->left, &equal->right);
}

/* The number of the first body of GROUP that is equal to number I, which is taken in if it is none.
 * Returns -1 without memory. */
static int64_t find(struct equal_bodies *equal, const struct name_groups *groups,
                    const struct name_group *group, uint32_t i)
{
    const struct image_body *bodies = groups->bodies + group->first;
    const struct jit_function *function = bodies[i].function;
    size_t compared = 0, mask = equal->slot_count - 1, slot = equal->hashes[i] & mask;
    for (; equal->slots[slot]; slot = (slot + 1) & mask) {
        uint32_t other = equal->slots[slot] - 1;
        const struct jit_function *candidate = bodies[other].function;
        if (equal->hashes[other] != equal->hashes[i] || !bytes_are_equal(candidate, function) ||
            compared++ >= MAX_COMPARED)
            continue;
        int same = lines_are_equal(equal, candidate, function);
        if (same < 0)
            return -1;
        if (same)
            return other;
    }
    equal->slots[slot] = i + 1;
    return i;
}

int equal_bodies_find(struct equal_bodies *equal, const struct name_groups *groups,
                      const struct name_group *group, uint32_t *first)
{
    *first = 0;
    if (group->count == 1)
        return 0;
    if (make_room(equal, group->count))
        return -1;
    for (uint32_t i = 0; i < group->count; i++) {
        equal->hashes[i] = hash_body(groups->bodies[group->first + i].function);
        int64_t found = find(equal, groups, group, i);
        if (found < 0)
            return -1;
        first[i] = (uint32_t)found;
    }
    return 0;
}

void equal_bodies_free(struct equal_bodies *equal)
{
    free(equal->hashes);
    free(equal->slots);
    line_table_free(&equal->left);
    line_table_free(&equal->right);
}
