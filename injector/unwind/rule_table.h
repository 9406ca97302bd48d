/* The rules of addresses that have been met, so that each is made once. */
#ifndef PERFJIT_RULE_TABLE_H
#define PERFJIT_RULE_TABLE_H

#include "injector/unwind/unwind_rule.h"

#include <stddef.h>

struct rule_entry {
    uint64_t addr;  /* in its owner */
    uint32_t owner; /* a number that the user gives files and functions; 0: no entry */
    struct unwind_rule rule;
};

struct rule_table {
    struct rule_entry *entries;
    size_t count, size; /* a power of 2 */
    struct cfi_row *rows;
    size_t row_count, row_capacity;
};

/* The entry of ADDR in OWNER, or, with an owner of 0, its place: the caller that fills it adds 1 to
 * table->count.  Valid until the next call.  NULL without memory. */
struct rule_entry *rule_table_at(struct rule_table *table, uint32_t owner, uint64_t addr);

/* Keep ROW, and make *RULE one that is of it.  Returns 0, or -1 without memory. */
int rule_table_keep_row(struct rule_table *table, const struct cfi_row *row,
                        struct unwind_rule *rule);

void rule_table_free(struct rule_table *table);

#endif
