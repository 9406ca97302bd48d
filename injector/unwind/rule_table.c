/* See rule_table.h. */
#include "injector/unwind/rule_table.h"

#include "injector/arrays/array.h"

#include <stdlib.h>

int rule_table_keep_row(struct rule_table *table, const struct cfi_row *row,
                        struct unwind_rule *rule)
{
    struct cfi_row *rows =
        array_room(table->rows, table->row_count, &table->row_capacity, sizeof *rows);
    if (!rows)
        return -1;
    table->rows = rows;
    rule->kind = RULE_ROW;
    rule->row = (uint32_t)table->row_count;
    rows[table->row_count++] = *row;
    return 0;
}

static size_t place_of(const struct rule_table *table, uint32_t owner, uint64_t addr)
{
    uint64_t mixed = (addr ^ (uint64_t)owner << 36) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(mixed >> 20) & (table->size - 1);
    while (table->entries[at].owner &&
           (table->entries[at].owner != owner || table->entries[at].addr != addr))
        at = (at + 1) & (table->size - 1);
    return at;
}

static int enlarge(struct rule_table *table)
{
    struct rule_table larger = *table;
    larger.size = table->size ? table->size * 4 : 1024;
    larger.entries = calloc(larger.size, sizeof *larger.entries);
    if (!larger.entries)
        return -1;
    for (size_t i = 0; i < table->size; i++)
        if (table->entries[i].owner)
            larger.entries[place_of(&larger, table->entries[i].owner, table->entries[i].addr)] =
                table->entries[i];
    free(table->entries);
    *table = larger;
    return 0;
}

struct rule_entry *rule_table_at(struct rule_table *table, uint32_t owner, uint64_t addr)
{
    if (2 * (table->count + 1) > table->size && enlarge(table))
        return NULL;
    return &table->entries[place_of(table, owner, addr)];
}

void rule_table_free(struct rule_table *table)
{
    free(table->entries);
    free(table->rows);
    *table = (struct rule_table){0};
}
