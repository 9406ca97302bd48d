/* The compiled code that is in the dump, by its address: the JVM names a piece that is unloaded by
 * its address alone. */
#ifndef PERFJIT_CODE_TABLE_H
#define PERFJIT_CODE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct known_code {
    uint64_t key; /* the address that events have; 0: the slot is empty */
    uint64_t addr, bytes;
    uint64_t code_index;
    uint64_t compile_id; /* which compilation it is; 0: not known */
};

struct code_table {
    struct known_code *slots; /* owned */
    size_t capacity, count;   /* a power of two, or 0 */
};

/* Add CODE.  One of the same key is replaced, unless its index is larger.  False: no memory. */
bool code_table_put(struct code_table *table, const struct known_code *code);

/* Whether KEY has the code of that compilation. */
bool code_table_has(const struct code_table *table, uint64_t key, uint64_t compile_id);

/* Take the code of KEY out.  False: there is none. */
bool code_table_take(struct code_table *table, uint64_t key, struct known_code *code);

void code_table_free(struct code_table *table);

#endif
