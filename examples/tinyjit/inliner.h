/* The inliner: makes, of a function's syntax tree, one in which small functions stand where they are called.
 *
 *     f(x) = g(x + 1) * 2          NODE_CALL g                NODE_INLINED g
 *     g(a) = { return a - 3; }       items: x + 1     ──▶       items: local 1 = x + 1
 *                                                               other: { return local 1 - 3; }
 *
 * The function that is called is copied; its variables become further variables of the caller, so that each copy has its
 * own.  A return in the copy ends the copy alone, which is the compiler's business.  Copies may hold copies.
 *
 * A call is left alone if the function is large, calls itself, is being copied already (a calls b, b calls a), or if
 * there are too many copies within each other or altogether.  What a script does is the same either way: functions
 * never change, and forget() drops what was compiled for a function, not the copies of it in others. */
#ifndef TINYJIT_INLINER_H
#define TINYJIT_INLINER_H

#include "examples/tinyjit/syntax.h"

struct expansion {
    struct function function; /* its name belongs to the program */
    struct node_list *nodes;  /* where its nodes live */
};

/* Expand function NUMBER of PROGRAM, which must live as long as EXPANSION. */
void inliner_expand(struct expansion *expansion, const struct program *program, uint32_t number);

void inliner_free(struct expansion *expansion);

#endif
