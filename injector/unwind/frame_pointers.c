/* See frame_pointers.h. */
#include "injector/unwind/frame_pointers.h"

#include "injector/native/cfi_program.h"
#include "injector/unwind/code_shape.h"

enum { BUDGET = 10000 }; /* for a function */

/* The row in the middle of FUNCTION.  Returns false if there is none. */
static bool middle_row(const struct code_log *log, const struct jit_function *function,
                       const struct machine *machine, struct cfi_row *row)
{
    struct unwind_budget budget = {BUDGET};
    const uint64_t middle = function->size / 2;
    for (uint32_t i = 0; i < function->fde_count; i++) {
        const struct code_fde *fde = &log->fdes[function->first_fde + i];
        if (middle < fde->start || middle - fde->start >= fde->size)
            continue;
        const struct cfi_entry entry = cfi_entry_of(&log->cies[fde->cie], fde->start, fde->size,
                                                    fde->instructions, fde->instructions_bytes);
        return cfi_row_find(&entry, middle, machine, &budget, row);
    }
    return false;
}

/* Tables of HotSpot's code find each frame by its size, and with -XX:+PreserveFramePointer the code
 * keeps the pointer, too. */
static bool sets_pointer(const struct jit_function *function, const struct machine *machine)
{
    return code_place_of(machine, function->code, function->size, function->size / 2, false) ==
           PLACE_IN_FRAME;
}

void frame_pointers_count(struct frame_pointers *counts, const struct code_log *log,
                          const struct machine *machine)
{
    struct cfi_row row;
    for (size_t i = 0; i < log->function_count; i++)
        if (middle_row(log, &log->functions[i], machine, &row)) {
            counts->with_tables++;
            counts->without_pointer += row.cfa.kind == REGISTER_IS_OFFSET &&
                                       row.cfa_register != machine->fp &&
                                       !sets_pointer(&log->functions[i], machine);
        }
}
