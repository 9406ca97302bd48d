/* Finds where a function's time went, or came from: another tier, the interpreter, its caller. */
#ifndef PERFJIT_MOVE_H
#define PERFJIT_MOVE_H

#include "injector/compare/verdict.h"

struct moves {
    const struct run_set *set;
    const struct verdicts *verdicts;
    struct compared_row *states; /* those of a function together, the largest change first */
    size_t state_count;
    const struct compared_row **rows; /* by function; or NULL */
};

/* Returns 0, or -1 without memory.  Release with moves_free in either case. */
int moves_find(struct moves *moves, const struct run_set *set, const struct verdicts *verdicts);

/* The states that FUNCTION was in, *COUNT of them. */
const struct compared_row *moves_states(const struct moves *moves, uint32_t function,
                                        size_t *count);

/* The name of STATE's frame for people: "TurboFan", "bytecode", "JIT code, inlined". */
char *move_state_text(const struct run_set *set, const struct compared_row *state);

/* The text about a function that differs: "TurboFan, then bytecode: deoptimised", "inlined into
 * main a.js"; "" if its time did not move.  NULL without memory; to be freed. */
char *move_text(const struct moves *moves, const struct compared_row *function);

void moves_free(struct moves *moves);

#endif
