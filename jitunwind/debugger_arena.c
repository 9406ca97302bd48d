/* See debugger_arena.h. */
#include "jitunwind/debugger_arena.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define MOST_BYTES (UINT32_MAX / 4)

struct debugger_arena {
    const struct function_table *table;
    uint32_t *records;      /* by functions' numbers: in the object for their addresses */
    uint32_t *next_removed; /* so is this */
    struct grown_memory record_memory, removed_memory;
    uint32_t removed;                 /* the first that is not buried yet */
    struct debugger_object **objects; /* ascending */
    size_t count, room;
    bool is_lost; /* a change of the list was not finished: shown objects stay */
};

/* ---- Opening and closing ---- */

static void close_numbers(struct debugger_arena *arena)
{
    if (arena->records)
        munmap(arena->records, 2 * arena->record_memory.bytes);
}

static int open_numbers(struct debugger_arena *arena)
{
    const size_t bytes = ju_grown_bytes(arena->table->function_max * sizeof *arena->records);
    uint8_t *memory = ju_grown_reserve(2 * bytes);
    if (!memory)
        return -ENOMEM;
    arena->record_memory = (struct grown_memory){memory, bytes, 0};
    arena->removed_memory = (struct grown_memory){memory + bytes, bytes, 0};
    arena->records = (void *)arena->record_memory.base;
    arena->next_removed = (void *)arena->removed_memory.base;
    return 0;
}

/* For the next function. */
static int reach_numbers(struct debugger_arena *arena)
{
    const size_t bytes = (arena->table->function_count + (size_t)1) * sizeof *arena->records;
    return bytes > arena->record_memory.bytes || (ju_grown_reach(&arena->record_memory, bytes) &&
                                                  ju_grown_reach(&arena->removed_memory, bytes))
               ? 0
               : -ENOMEM;
}

/* For another object. */
static int make_room(struct debugger_arena *arena)
{
    if (arena->count < arena->room)
        return 0;
    size_t room = arena->room * 2 + 16;
    void *grown = realloc(arena->objects, room * sizeof(struct debugger_object *));
    if (!grown)
        return -ENOMEM;
    arena->objects = grown;
    arena->room = room;
    return 0;
}

static void insert(struct debugger_arena *arena, size_t at, struct debugger_object *object)
{
    memmove(arena->objects + at + 1, arena->objects + at,
            (arena->count - at) * sizeof(struct debugger_object *));
    arena->objects[at] = object;
    arena->count++;
}

/* A new object at the place AT.  Returns 0 or -ENOMEM. */
static int insert_new(struct debugger_arena *arena, size_t at, uint64_t start, uint64_t end,
                      struct object_sizes sizes)
{
    struct debugger_object *new =
        make_room(arena) ? NULL : ju_debugger_object_new(start, end, sizes);
    if (!new)
        return -ENOMEM;
    insert(arena, at, new);
    return 0;
}

struct debugger_arena *ju_debugger_arena_open(const struct function_table *table)
{
    struct debugger_arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        return NULL;
    arena->table = table;
    if (open_numbers(arena) == 0 && insert_new(arena, 0, table->start, table->start + table->bytes,
                                               (struct object_sizes){0}) == 0)
        return arena;
    close_numbers(arena);
    free(arena->objects);
    free(arena);
    return NULL;
}

/* An object that can't be removed from the list stays, and its memory is lost. */
void ju_debugger_arena_close(struct debugger_arena *arena)
{
    if (!arena)
        return;
    bool is_ours = ju_debugger_list_begin() == 0;
    for (size_t i = 0; is_ours && i < arena->count; i++) {
        ju_debugger_object_hide(arena->objects[i]);
        ju_debugger_object_free(arena->objects[i]);
    }
    if (is_ours)
        ju_debugger_list_end();
    close_numbers(arena);
    free(arena->objects);
    free(arena);
}

/* ---- Finding ---- */

static size_t find(const struct debugger_arena *arena, uint64_t addr)
{
    size_t low = 0, high = arena->count - 1;
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (arena->objects[middle]->start <= addr)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* ---- Halving ---- */

/* Returns false if that can't be done. */
static bool halve(struct debugger_arena *arena, size_t at)
{
    struct debugger_object *from = arena->objects[at];
    const struct object_sizes sizes = {.names = from->used.names / 2,
                                       .frames = from->used.frames / 2,
                                       .records = from->used.records / 2};
    uint64_t middle = ju_debugger_object_middle(from, arena->table);
    if (middle == from->start)
        return false;
    struct debugger_object *left = ju_debugger_object_new(from->start, middle, sizes);
    struct debugger_object *right = ju_debugger_object_new(middle, from->end, sizes);
    if (!left || !right || make_room(arena)) {
        ju_debugger_object_free(left);
        ju_debugger_object_free(right);
        return false;
    }
    insert(arena, at + 1, right);
    ju_debugger_object_add_own(left, from, arena->table, arena->records);
    ju_debugger_object_add_own(right, from, arena->table, arena->records);
    left->sealed = right->sealed = true;
    left->level = right->level = from->level ? from->level - 1 : 0;
    ju_debugger_object_show(left);
    ju_debugger_object_show(right);
    ju_debugger_object_hide(from);
    ju_debugger_object_free(from);
    arena->objects[at] = left;
    return true;
}

/* ---- Removing ---- */

void ju_debugger_arena_remove(struct debugger_arena *arena, uint32_t number)
{
    if (arena->is_lost)
        return;
    arena->next_removed[number] = arena->removed;
    arena->removed = number;
}

/* Halve the object with ADDR as long as it is too large to be changed.  If that is not possible,
 * the object stays large. */
static void make_small(struct debugger_arena *arena, uint64_t addr)
{
    size_t at = find(arena, addr);
    while (arena->objects[at]->live > MOST_CHANGED && halve(arena, at))
        at = find(arena, addr);
}

static void make_removed_small(struct debugger_arena *arena)
{
    for (uint32_t number = arena->removed; number; number = arena->next_removed[number])
        make_small(arena, arena->table->functions[number].start);
}

/* Returns the objects that are hidden for it. */
static struct debugger_object *bury_removed(struct debugger_arena *arena)
{
    struct debugger_object *first = NULL;
    while (arena->removed) {
        uint32_t number = arena->removed;
        size_t at = find(arena, arena->table->functions[number].start);
        struct debugger_object *object = arena->objects[at];
        if (object->shown) {
            ju_debugger_object_hide(object);
            object->next_hidden = first;
            first = object;
        }
        ju_debugger_object_bury(object, arena->records[number]);
        arena->removed = arena->next_removed[number];
    }
    return first;
}

static void show_all(struct debugger_object *hidden)
{
    for (; hidden; hidden = hidden->next_hidden)
        ju_debugger_object_show(hidden);
}

/* ---- Ranges ---- */

/* Set SIZES to half of the contents of the COUNT objects FROM: an object has room for twice as
 * much. Returns false if that is too much for one. */
static bool add_sizes(struct debugger_object *const *from, size_t count, struct object_sizes *sizes)
{
    uint64_t names = 0, frames = 0, records = 0;
    for (size_t i = 0; i < count; i++) {
        names += from[i]->used.names;
        frames += from[i]->used.frames;
        records += from[i]->used.records;
    }
    *sizes = (struct object_sizes){.names = (uint32_t)(names / 2),
                                   .frames = (uint32_t)(frames / 2),
                                   .records = (uint32_t)(records / 2)};
    return names < MOST_BYTES && frames < MOST_BYTES && records < MOST_BYTES;
}

static void merge(struct debugger_arena *arena, size_t first)
{
    struct debugger_object **from = arena->objects + first;
    struct object_sizes sizes;
    if (!add_sizes(from, MERGED, &sizes))
        return;
    struct debugger_object *object =
        ju_debugger_object_new(from[0]->start, from[MERGED - 1]->end, sizes);
    if (!object)
        return; /* they stay as they are */
    for (size_t i = 0; i < MERGED; i++)
        ju_debugger_object_add_all(object, from[i], arena->table, arena->records);
    object->sealed = true;
    object->level = from[0]->level + 1;
    ju_debugger_object_show(object);
    for (size_t i = 0; i < MERGED; i++) {
        ju_debugger_object_hide(from[i]);
        ju_debugger_object_free(from[i]);
    }
    from[0] = object;
    memmove(from + 1, from + MERGED,
            (arena->count - first - MERGED) * sizeof(struct debugger_object *));
    arena->count -= MERGED - 1;
}

/* Merge the objects around AT with their equals, and the result with its equals. */
static void merge_around(struct debugger_arena *arena, size_t at)
{
    for (;;) {
        unsigned level = arena->objects[at]->level;
        size_t first = at, end = at + 1;
        while (first > 0 && arena->objects[first - 1]->sealed &&
               arena->objects[first - 1]->level == level)
            first--;
        while (end < arena->count && arena->objects[end]->sealed &&
               arena->objects[end]->level == level)
            end++;
        if (end - first < MERGED)
            return;
        size_t count = arena->count;
        merge(arena, first);
        if (arena->count == count)
            return;
        at = first;
    }
}

/* Room is twice as much. */
static const struct object_sizes tail_sizes = {
    .names = TAIL_NAMES_BYTES / 2, .frames = TAIL_FRAMES_BYTES / 2, .records = TAIL_FUNCTIONS / 2};

/* Let a second object begin at SPLIT, inside the object AT.  It is for functions in front of SPLIT,
 * or behind it. */
static int split(struct debugger_arena *arena, size_t at, uint64_t split_at, bool behind)
{
    struct debugger_object *full = arena->objects[at];
    int error = insert_new(arena, behind ? at + 1 : at, behind ? split_at : full->start,
                           behind ? full->end : split_at, tail_sizes);
    if (error)
        return error;
    if (behind)
        ju_debugger_object_range(full, full->start, split_at);
    else
        ju_debugger_object_range(full, split_at, full->end);
    full->sealed = true;
    ju_debugger_object_show(full);
    merge_around(arena, behind ? at : at + 1);
    return 0;
}

/* Let the object AT reach to END, because a function of it does.  So the objects behind it have
 * none there. */
static void stretch(struct debugger_arena *arena, size_t at, uint64_t end)
{
    struct debugger_object *object = arena->objects[at];
    while (object->end < end) {
        struct debugger_object *next = arena->objects[at + 1];
        bool is_over = next->end <= end;
        ju_debugger_object_range(object, object->start, is_over ? next->end : end);
        if (!is_over) {
            ju_debugger_object_range(next, end, next->end);
            ju_debugger_object_show(next);
            return;
        }
        ju_debugger_object_hide(next);
        ju_debugger_object_free(next);
        arena->count--;
        memmove(arena->objects + at + 1, arena->objects + at + 2,
                (arena->count - at - 1) * sizeof(struct debugger_object *));
    }
}

/* The object for the function, which has room for it. */
static int prepare(struct debugger_arena *arena, const struct object_addition *addition)
{
    size_t at = find(arena, addition->start);
    struct debugger_object *object = arena->objects[at];
    const uint64_t end = addition->start + addition->bytes;
    int error = 0;
    if (object->live >= TAIL_FUNCTIONS && addition->start >= object->top)
        error = split(arena, at, addition->start, true);
    else if (object->live >= TAIL_FUNCTIONS && end <= object->bottom)
        error = split(arena, at, end, false);
    else
        make_small(arena, addition->start);
    if (error)
        return error;
    object = arena->objects[find(arena, addition->start)];
    return ju_debugger_object_reserve(object, ju_debugger_object_needs(addition), arena->table,
                                      arena->records);
}

/* ---- Adding ---- */

int ju_debugger_arena_begin(struct debugger_arena *arena, const struct object_addition *addition)
{
    if (arena->is_lost)
        return 0;
    int error = reach_numbers(arena);
    if (error)
        return error;
    error = ju_debugger_list_begin();
    arena->is_lost = error == -EOWNERDEAD;
    if (error)
        return arena->is_lost ? 0 : error;
    make_removed_small(arena);
    show_all(bury_removed(arena));
    error = prepare(arena, addition);
    if (error)
        ju_debugger_list_end();
    return error;
}

void ju_debugger_arena_end(struct debugger_arena *arena, const struct object_addition *addition)
{
    if (arena->is_lost)
        return;
    size_t at = find(arena, addition->start);
    struct debugger_object *object = arena->objects[at];
    if (addition->number) {
        stretch(arena, at, addition->start + addition->bytes);
        arena->records[addition->number] = ju_debugger_object_add(object, addition);
    }
    ju_debugger_object_show(object);
    ju_debugger_list_end();
}
