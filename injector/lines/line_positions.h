/* The lines and inlined calls that samply's record (jit_debug_info2.h) tells, as a line_table has
 * them. */
#ifndef PERFJIT_LINE_POSITIONS_H
#define PERFJIT_LINE_POSITIONS_H

#include "injector/dump/jit_debug_info2.h"
#include "injector/lines/line_table.h"

/* Whether each position's callers come to an end within LINE_MAX_DEPTH calls; *SOUND receives the
 * answer.  TABLE lends its scratch.  Returns 0, or -1 without memory. */
int line_positions_check(const struct jit_debug_info2 *info, struct line_table *table, bool *sound);

/* One more than the highest code_offset; 0 if there is none. */
uint64_t line_positions_reach(const struct jit_debug_info2 *info);

/* Add the rows, inlines and spans that INFO, which is sound, gives for the first SIZE bytes of its
 * function.  Offsets stay in the record's order.  Returns 0, or -1 without memory. */
int line_positions_take(const struct jit_debug_info2 *info, uint64_t size,
                        struct line_table *table);

#endif
