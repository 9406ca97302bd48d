/* Finds the function of the debug information that contains an address, and the calls inlined
 * there.
 *
 * libdw goes over a unit's entries for each address, and finds units by .debug_aranges alone, which
 * clang and rustc leave out.  Here units are found by their own ranges, and a unit's functions are
 * listed at its first use. */
#ifndef PERFJIT_SCOPE_INDEX_H
#define PERFJIT_SCOPE_INDEX_H

#include <elfutils/libdw.h>
#include <stdbool.h>

struct scope_range;
struct scope_owner;

struct scope_unit {
    Dwarf_Die die;
    struct scope_range *functions; /* by address; of the last unit in use */
    size_t function_count;
    struct scope_owner *owners; /* of its functions and namespaces, by entry */
    size_t owner_count, owner_capacity;
    bool is_read;
};

struct scope_index {
    struct scope_unit *units;
    size_t unit_count, unit_capacity;
    struct scope_range *ranges; /* of units, by address */
    size_t range_count;
};

/* All units of DWARF, which outlives INDEX.  Returns 0, or -1 without memory.  Release with
 * scope_index_free in either case. */
int scope_index_read(struct scope_index *index, Dwarf *dwarf);

/* The unit that ADDR is in; NULL: none. */
struct scope_unit *scope_index_unit(struct scope_index *index, Dwarf_Addr addr);

/* Put the entries that ADDR is in, of UNIT, into SCOPES, which has room for MOST: inlined calls,
 * the innermost first, and last the function.  Returns how many; 0: none is known. */
size_t scope_index_at(struct scope_unit *unit, Dwarf_Addr addr, Dwarf_Die *scopes, size_t most);

/* Put the namespaces, types and functions that the entry FUNCTION is in into SPACES, which has room
 * for MOST, the innermost first.  Returns how many. */
size_t scope_index_spaces(struct scope_index *index, Dwarf_Die *function, Dwarf_Die *spaces,
                          size_t most);

void scope_index_free(struct scope_index *index);

#endif
