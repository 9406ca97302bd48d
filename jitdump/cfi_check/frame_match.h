/* One row against one state. */
#ifndef JITDUMP_FRAME_MATCH_H
#define JITDUMP_FRAME_MATCH_H

#include "jitdump/cfi_check/frame_rows.h"

enum frame_match { MATCH_FITS, MATCH_UNKNOWN, MATCH_WRONG };

enum { MATCH_TEXT_BYTES = 120 };

/* Whether STATE, before an instruction, can be what ROW says.  REASON, MATCH_TEXT_BYTES of it, gets
 * why it can't.  STATE takes note if the row proves a stack pointer that was in doubt, or the
 * reverse.  It also takes note of a register that differs from the row for now. */
enum frame_match jd_frame_match(const struct code_machine *machine, const struct frame_row *row,
                                struct code_state *state, char *reason);

/* The registers that the function, about to return, has restored although the row did not say where
 * they were: a bit each. */
uint64_t jd_frame_given_back(const struct code_machine *machine, const struct code_state *state);

/* Whether the ROW is that of a function's first instruction, right after a call. */
bool jd_frame_is_entry(const struct code_machine *machine, const struct frame_row *row);

/* The state that ROW describes. */
void jd_frame_entry_state(const struct code_machine *machine, const struct frame_row *row,
                          struct code_state *state);

/* Whether two rows say the same. */
bool jd_frame_rows_equal(const struct code_machine *machine, const struct frame_row *a,
                         const struct frame_row *b);

#endif
