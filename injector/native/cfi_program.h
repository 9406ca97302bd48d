/* Call frame instructions, run up to one address. */
#ifndef PERFJIT_CFI_PROGRAM_H
#define PERFJIT_CFI_PROGRAM_H

#include "injector/native/cfi_row.h"
#include "jitdump/format/eh_entry.h"

/* How much work may still be done for one sample: call frame instructions, operations, entries.  A
 * sample that has used it up gets no row. */
struct unwind_budget {
    uint32_t left;
};

static inline bool unwind_budget_take(struct unwind_budget *budget)
{
    return budget->left && budget->left--;
}

/* Find the row of ENTRY for address PC, which lies in it.  Returns false if it makes no sense. */
bool cfi_row_find(const struct cfi_entry *entry, uint64_t pc, const struct machine *machine,
                  struct unwind_budget *budget, struct cfi_row *row);

#endif
