/* See scope_index.h. */
#include "injector/native/symbols/scope_index.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_OVERLAPS = 16,    /* ranges before an address that may reach over it */
    MOST_DEPTH = 256,      /* entries in each other */
    MOST_RANGES = 1 << 22, /* a hostile file can name one long list in each of its units */
    TOMBSTONE = 1          /* linkers put functions that they threw away at 0 or 1 */
};

/* The owner of these addresses: a unit by its number, or a function by its entry. */
struct scope_range {
    Dwarf_Addr start, end;
    size_t unit;
    Dwarf_Die function;
};

/* What a function, type or namespace is in.  Those in functions are not listed, but looked for when
 * they are asked for. */
struct scope_owner {
    Dwarf_Off entry, owner;
};

struct range_list {
    struct scope_range *items;
    size_t count, capacity;
    bool no_memory;
};

static void add_ranges(struct range_list *list, Dwarf_Die *die, size_t unit)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    while (!list->no_memory && list->count < MOST_RANGES &&
           (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
        if (start <= TOMBSTONE || end <= start)
            continue;
        if (array_reserve(list->items, list->count, list->capacity))
            list->no_memory = true;
        else
            list->items[list->count++] = (struct scope_range){start, end, unit, *die};
    }
}

static int compare(const void *left, const void *right)
{
    const struct scope_range *a = left, *b = right;
    return a->start != b->start ? (a->start < b->start ? -1 : 1)
                                : (a->end > b->end ? -1 : a->end < b->end);
}

/* The innermost of COUNT that has ADDR; NULL: none. */
static const struct scope_range *find(const struct scope_range *ranges, size_t count,
                                      Dwarf_Addr addr)
{
    size_t behind;
    array_bisect(behind, count, ranges[behind].start <= addr);
    for (size_t i = behind; i-- && behind - i <= MOST_OVERLAPS;)
        if (addr < ranges[i].end)
            return &ranges[i];
    return NULL;
}

/* ---- Units ---- */

int scope_index_read(struct scope_index *index, Dwarf *dwarf)
{
    struct range_list list = {.count = 0};
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t type;
    *index = (struct scope_index){0};
    while (!list.no_memory && dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, NULL) == 0) {
        if (type == DW_UT_type || type == DW_UT_split_type)
            continue;
        if (array_reserve(index->units, index->unit_count, index->unit_capacity)) {
            list.no_memory = true;
            break;
        }
        index->units[index->unit_count++] = (struct scope_unit){.die = die};
        add_ranges(&list, &die, index->unit_count - 1);
    }
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, compare);
    index->ranges = list.items;
    index->range_count = list.count;
    return list.no_memory ? -1 : 0;
}

struct scope_unit *scope_index_unit(struct scope_index *index, Dwarf_Addr addr)
{
    const struct scope_range *range = find(index->ranges, index->range_count, addr);
    return range ? &index->units[range->unit] : NULL;
}

/* ---- Functions ---- */

/* The next entry of DIE's parent.  A damaged one may lead back. */
static bool next_entry(Dwarf_Die *die)
{
    Dwarf_Die next;
    if (dwarf_siblingof(die, &next) || dwarf_dieoffset(&next) <= dwarf_dieoffset(die))
        return false;
    *die = next;
    return true;
}

/* Note that the entry at OFFSET is in that at OWNER, of UNIT.  Without memory names are shorter. */
static void add_owner(struct scope_unit *unit, Dwarf_Off offset, Dwarf_Off owner)
{
    size_t at;
    if (array_reserve(unit->owners, unit->owner_count, unit->owner_capacity))
        return;
    array_bisect(at, unit->owner_count, unit->owners[at].entry < offset);
    if (at < unit->owner_count && unit->owners[at].entry == offset)
        return;
    memmove(unit->owners + at + 1, unit->owners + at,
            (unit->owner_count++ - at) * sizeof *unit->owners);
    unit->owners[at] = (struct scope_owner){offset, owner};
}

/* List the functions in PARENT: clang has them in their namespaces. */
static void list_functions(struct range_list *list, struct scope_unit *unit, Dwarf_Die *parent,
                           unsigned depth)
{
    Dwarf_Die die;
    if (depth == MOST_DEPTH || dwarf_child(parent, &die))
        return;
    do
        switch (dwarf_tag(&die)) {
        case DW_TAG_subprogram:
            add_owner(unit, dwarf_dieoffset(&die), dwarf_dieoffset(parent));
            add_ranges(list, &die, 0);
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_enumeration_type:
            add_owner(unit, dwarf_dieoffset(&die), dwarf_dieoffset(parent));
            list_functions(list, unit, &die, depth + 1);
            break;
        default:
            break;
        }
    while (!list->no_memory && next_entry(&die));
}

static void read_unit(struct scope_unit *unit)
{
    struct range_list list = {.count = 0};
    unit->is_read = true;
    list_functions(&list, unit, &unit->die, 0);
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, compare);
    unit->functions = list.items;
    unit->function_count = list.count;
}

/* The child of PARENT that has ADDR, a block or an inlined call, into *CHILD. */
static bool find_child(Dwarf_Die *parent, Dwarf_Addr addr, Dwarf_Die *child)
{
    if (dwarf_child(parent, child))
        return false;
    do {
        int tag = dwarf_tag(child);
        if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
            dwarf_haspc(child, addr) > 0)
            return true;
    } while (next_entry(child));
    return false;
}

size_t scope_index_at(struct scope_unit *unit, Dwarf_Addr addr, Dwarf_Die *scopes, size_t most)
{
    Dwarf_Die chain[MOST_DEPTH], die, child;
    size_t count = 0;
    if (!unit->is_read)
        read_unit(unit);
    const struct scope_range *function = find(unit->functions, unit->function_count, addr);
    if (!function)
        return 0;
    chain[count++] = die = function->function;
    for (unsigned depth = 0; depth < MOST_DEPTH && count < MOST_DEPTH; depth++) {
        if (!find_child(&die, addr, &child))
            break;
        if (dwarf_tag(&child) == DW_TAG_inlined_subroutine)
            chain[count++] = child;
        die = child;
    }
    count = count < most ? count : most; /* the outermost ones: they stand whole */
    for (size_t i = 0; i < count; i++)
        scopes[i] = chain[count - 1 - i];
    return count;
}

/* ---- Namespaces ---- */

/* The unit that the entry DIE is in: those of a file ascend, and an entry may be another unit's. */
static struct scope_unit *unit_of(struct scope_index *index, Dwarf_Die *die)
{
    Dwarf_Die unit;
    size_t behind;
    if (!dwarf_diecu(die, &unit, NULL, NULL))
        return NULL;
    array_bisect(behind, index->unit_count,
                 dwarf_dieoffset(&index->units[behind].die) <= dwarf_dieoffset(&unit));
    struct scope_unit *found = behind ? &index->units[behind - 1] : NULL;
    return found && found->die.addr == unit.addr ? found : NULL;
}

/* What was noted of the entry at OFFSET; NULL: it is in the unit itself. */
static const struct scope_owner *owner_of(const struct scope_unit *unit, Dwarf_Off offset)
{
    size_t behind;
    array_bisect(behind, unit->owner_count, unit->owners[behind].entry <= offset);
    const struct scope_owner *found = behind ? &unit->owners[behind - 1] : NULL;
    return found && found->entry == offset ? found : NULL;
}

/* Look for what FUNCTION is in, which stands in another function, as a lambda does: libdw goes over
 * the unit, and so what it finds is noted. */
static void look_for_owners(struct scope_unit *unit, Dwarf_Die *function)
{
    Dwarf_Die *scopes = NULL;
    int count = dwarf_getscopes_die(function, &scopes);
    for (int i = 0, outer; i + 1 < count; i = outer) {
        for (outer = i + 1; dwarf_tag(&scopes[outer]) == DW_TAG_lexical_block && outer + 1 < count;)
            outer++;
        add_owner(unit, dwarf_dieoffset(&scopes[i]), dwarf_dieoffset(&scopes[outer]));
    }
    if (count > 0)
        free(scopes);
}

size_t scope_index_spaces(struct scope_index *index, Dwarf_Die *function, Dwarf_Die *spaces,
                          size_t most)
{
    struct scope_unit *unit = unit_of(index, function);
    Dwarf *file = dwarf_cu_getdwarf(function->cu);
    size_t count = 0;
    if (!unit || !file)
        return 0;
    if (!unit->is_read)
        read_unit(unit);
    if (!owner_of(unit, dwarf_dieoffset(function)))
        look_for_owners(unit, function);
    const struct scope_owner *owner = owner_of(unit, dwarf_dieoffset(function));
    for (; owner && owner->owner != dwarf_dieoffset(&unit->die) && count < most;
         owner = owner_of(unit, owner->owner))
        if (dwarf_offdie(file, owner->owner, &spaces[count]))
            count++;
        else
            break;
    return count;
}

void scope_index_free(struct scope_index *index)
{
    for (size_t i = 0; i < index->unit_count; i++) {
        free(index->units[i].functions);
        free(index->units[i].owners);
    }
    free(index->units);
    free(index->ranges);
    *index = (struct scope_index){0};
}
