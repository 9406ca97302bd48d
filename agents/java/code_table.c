/* See code_table.h.  Open addressing; what stands behind a slot that is emptied moves up. */
#include "agents/java/code_table.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 1024 };

static size_t home(const struct code_table *table, uint64_t key)
{
    return (size_t)((key >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (table->capacity - 1);
}

/* The slot of KEY, or the empty one where it would be. */
static size_t slot_of(const struct code_table *table, uint64_t key)
{
    size_t at = home(table, key);
    while (table->slots[at].key && table->slots[at].key != key)
        at = (at + 1) & (table->capacity - 1);
    return at;
}

static bool grow(struct code_table *table)
{
    struct code_table larger = {.capacity = table->capacity ? 2 * table->capacity : FIRST_CAPACITY,
                                .count = table->count};
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->slots[i].key)
            larger.slots[slot_of(&larger, table->slots[i].key)] = table->slots[i];
    free(table->slots);
    *table = larger;
    return true;
}

bool code_table_put(struct code_table *table, const struct known_code *code)
{
    if (2 * table->count >= table->capacity && !grow(table))
        return false;
    struct known_code *slot = &table->slots[slot_of(table, code->key)];
    if (!slot->key)
        table->count++;
    else if (slot->code_index > code->code_index)
        return true;
    *slot = *code;
    return true;
}

bool code_table_has(const struct code_table *table, uint64_t key, uint64_t compile_id)
{
    if (!table->count || !compile_id)
        return false;
    const struct known_code *slot = &table->slots[slot_of(table, key)];
    return slot->key == key && slot->compile_id == compile_id;
}

bool code_table_take(struct code_table *table, uint64_t key, struct known_code *code)
{
    if (!table->count)
        return false;
    const size_t mask = table->capacity - 1;
    size_t hole = slot_of(table, key);
    if (!table->slots[hole].key)
        return false;
    *code = table->slots[hole];
    for (size_t at = (hole + 1) & mask; table->slots[at].key; at = (at + 1) & mask) {
        size_t way = (at - home(table, table->slots[at].key)) & mask;
        if (way >= ((at - hole) & mask)) {
            table->slots[hole] = table->slots[at];
            hole = at;
        }
    }
    table->slots[hole] = (struct known_code){0};
    table->count--;
    return true;
}

void code_table_free(struct code_table *table)
{
    free(table->slots);
    *table = (struct code_table){0};
}
