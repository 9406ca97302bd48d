/* .debug_info and its sections: units, functions, and the calls that were inlined in them.
 *
 *     DW_TAG_compile_unit
 *         DW_TAG_subprogram              of a callee that was inlined somewhere: DW_AT_inline
 *         DW_TAG_subprogram              a function
 *             DW_TAG_inlined_subroutine  a call in it, and in that its calls
 *
 * .debug_abbrev has a declaration for each shape of these entries.  .debug_ranges has the addresses
 * of entries in several pieces.  .debug_aranges has the unit of each address (libdw looks nowhere
 * else).
 *
 * DWARF 4: perf 6.1, binutils 2.40, elfutils 0.188, LLVM 14 and gdb 13 read it, and older ones.
 * docs/decisions/source-lines.md.
 */
#ifndef PERFJIT_DEBUG_TREE_H
#define PERFJIT_DEBUG_TREE_H

#include "injector/inject/dwarf/debug_line.h"
#include "injector/inject/dwarf/source_path.h"
#include "injector/log/lines/line_table.h"

/* Addresses of a function, a unit, or an inlined call: virtual ones. */
struct debug_range {
    uint64_t start, end;
    uint32_t next; /* of the same inlined call: number + 1; 0: none */
};

/* Facts about an inlined call, collected before its entry is put. */
struct debug_call {
    uint64_t open_at;                 /* where its present range began, while it is open */
    uint32_t first_range, last_range; /* numbers + 1 */
    uint32_t first_child, last_child,
        next_sibling; /* numbers + 1, in the order of their addresses */
    uint32_t origin;  /* offset in the unit of its callee's entry */
    bool open;
};

/* A callee's entry. */
struct debug_callee {
    uint32_t name, decl_file, decl_line; /* numbers of strings; decl_file + 1, 0: not known */
    uint32_t unit;
    uint32_t offset; /* from the unit's start */
};

struct debug_tree {
    struct byte_sink info, abbrev, ranges, aranges;
    struct debug_lines lines;
    struct debug_strings strings;
    struct source_path path;
    uint8_t address_bytes;
    struct debug_call *calls;
    size_t call_capacity;
    struct debug_range *call_ranges;
    size_t call_range_count, call_range_capacity;
    struct debug_call root;       /* its children were inlined straight into the function */
    struct debug_callee *callees; /* by hash; unit 0: free */
    size_t callee_count, callee_slots;
    struct debug_row *rows;
    size_t row_capacity;
    struct debug_range *unit_ranges;
    size_t unit_range_count, unit_range_capacity;
    size_t unit_start;   /* in .debug_info */
    size_t patch_ranges; /* where the unit's DW_AT_ranges stands, or its low_pc */
    bool failed;         /* without memory */
};

/* Begin: sections in the byte order BIG_ENDIAN, with addresses of ADDRESS_BYTES. */
void debug_tree_open(struct debug_tree *tree, uint8_t address_bytes, bool big_endian);

/* Begin a unit that is called NAME. */
void debug_tree_begin_unit(struct debug_tree *tree, const char *name);

/* Add the function NAME, SIZE bytes at ADDR, with TABLE's lines and calls.  Functions come by
 * address; FOLLOWS: no other function lies between the one before and this one. */
void debug_tree_put_function(struct debug_tree *tree, const char *name, uint64_t addr,
                             uint64_t size, const struct line_table *table, bool follows);

void debug_tree_end_unit(struct debug_tree *tree);

/* Returns 0, or -1 if memory ran out somewhere, or a section is larger than DWARF's offsets of 32
 * bits. */
int debug_tree_close(struct debug_tree *tree);

void debug_tree_free(struct debug_tree *tree);

#endif
