/* Call frame information that lets another unwinder read a function table.
 *
 * One FDE is about the whole arena, and its rules are expressions that search the table for the
 * program counter.  So changes of the table take effect for that unwinder at once.  It has no copy
 * that must be updated.
 */
#ifndef JITUNWIND_TABLE_PROGRAM_H
#define JITUNWIND_TABLE_PROGRAM_H

#include "jitunwind/frames/function_table.h"

/* Write the CIE, its FDE and the zero that ends them to the memory that TABLE has for them.  TABLE
 * must not move afterwards.  Returns the FDE, or NULL on an unknown machine. */
uint8_t *ju_table_program_write(struct function_table *table);

#endif
