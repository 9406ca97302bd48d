/* Call frame information by which another unwinder finds what a function table says.
 *
 * One FDE is about the whole arena, and its rules are expressions that search the table for the
 * program counter.  So what is added to the table or removed is known to that unwinder at once,
 * which has nothing of its own to keep in step.
 */
#ifndef JITUNWIND_TABLE_PROGRAM_H
#define JITUNWIND_TABLE_PROGRAM_H

#include "jitunwind/frames/function_table.h"

/* Write the CIE, its FDE and the zero that ends them, for TABLE, which does not move, to its piece
 * of memory for them.  Returns the FDE, or NULL where the machine is not known. */
uint8_t *ju_table_program_write(struct function_table *table);

#endif
