/* How a call chain that was made of a sample's stack ends. */
#ifndef PERFJIT_CHAIN_END_H
#define PERFJIT_CHAIN_END_H

#include <stdbool.h>

enum chain_end {
    CHAIN_WHOLE,    /* where its thread began */
    CHAIN_CUT,      /* where the copy of the stack does */
    CHAIN_EMPTY,    /* at once: the kernel copied nothing, for the page was not present */
    CHAIN_UNPROVEN, /* where its thread began, but callers may be left out on the way there */
    CHAIN_TOO_LONG, /* no record can hold more of it */
    CHAIN_NOT_READ, /* of a 32-bit program, or without registers */
    CHAIN_NO_CODE,  /* a table leads to an address where no code is */
    CHAIN_NO_CALL,  /* a table leads to code in front of which is no call, and from there on nowhere
                     */
    CHAIN_NO_FRAME, /* the table describes an impossible frame of the caller */
    CHAIN_TABLE_BROKEN, /* a table can't be run */
    CHAIN_OUTSIDE,  /* the caller's frame is not in the stack that was copied, which is all of it */
    CHAIN_NO_TABLE, /* no table, and no frame pointer that leads on */
    CHAIN_NOT_LOGGED, /* memory without a file, where no function is known */
    CHAIN_NO_FILE,    /* a file that can't be read, or is another one now */
    CHAIN_ENDS
};

/* The same in short. */
enum stack_end {
    STACK_WHOLE,    /* where its thread began */
    STACK_CUT,      /* where the copy does */
    STACK_EMPTY,    /* at once: nothing was copied */
    STACK_UNPROVEN, /* where its thread began, but callers may be left out */
    STACK_OUTSIDE,  /* the caller's frame is in another stack than the copied one */
    STACK_NO_TABLE, /* at code that has no table, and whose frame could not be found without one */
    STACK_WRONG,    /* at code whose table leads to no code */
    STACK_NOT_READ, /* it is of a 32-bit program, or there are no registers */
    STACK_ENDS
};

enum stack_end stack_end_of(enum chain_end end);

/* In JSON, and as the end of a sentence. */
const char *chain_end_id(enum chain_end end);
const char *chain_end_what(enum chain_end end);

/* The advice for the user, for a chain that ends in JIT code, or elsewhere; NULL: none. */
const char *chain_end_remedy(enum chain_end end, bool jit);

/* Whether outer frames are missing for another reason than the copy's size, and whether that shows
 * that the table of the code where it ends is wrong. */
bool chain_end_is_early(enum chain_end end);
bool chain_end_is_wrong(enum chain_end end);

#endif
