/* Call frame instructions, run up to one address. */
#ifndef PERFJIT_CFI_PROGRAM_H
#define PERFJIT_CFI_PROGRAM_H

#include "injector/native/cfi_row.h"

/* An FDE and its CIE, whatever table they stand in. */
struct cfi_entry {
    uint64_t start, end; /* the addresses that it is about */
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_register;
    bool signal_frame;
    const uint8_t *initial; /* the CIE's instructions */
    size_t initial_bytes;
    const uint8_t *instructions;
    size_t instructions_bytes;
};

/* How much work may still be done for one sample: call frame instructions, operations, entries.
 * What runs out of it gives no row. */
struct unwind_budget {
    uint32_t left;
};

static inline bool unwind_budget_take(struct unwind_budget *budget)
{
    return budget->left && budget->left--;
}

/* Find what ENTRY says of address PC, which lies in it.  Returns false if it makes no sense. */
bool cfi_row_find(const struct cfi_entry *entry, uint64_t pc, const struct machine *machine,
                  struct unwind_budget *budget, struct cfi_row *row);

#endif
