/* Call frame instructions, run up to one address. */
#ifndef PERFJIT_CFI_PROGRAM_H
#define PERFJIT_CFI_PROGRAM_H

#include "injector/native/cfi_row.h"
#include "jitdump/format/eh_entry.h"

/* An FDE and its CIE, from any table. */
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

/* That of a CIE, and of an FDE about SIZE bytes from START on. */
static inline struct cfi_entry cfi_entry_of(const struct eh_cie *cie, uint64_t start, uint64_t size,
                                            const uint8_t *instructions, size_t instructions_bytes)
{
    return (struct cfi_entry){.start = start,
                              .end = start + size,
                              .code_align = cie->code_align,
                              .data_align = cie->data_align,
                              .return_register = cie->return_register,
                              .signal_frame = cie->signal_frame,
                              .initial = cie->instructions,
                              .initial_bytes = cie->instructions_bytes,
                              .instructions = instructions,
                              .instructions_bytes = instructions_bytes};
}

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
