/* .debug_abbrev: the shapes of the entries in .debug_info (debug_tree.h). */
#ifndef PERFJIT_DEBUG_ABBREV_H
#define PERFJIT_DEBUG_ABBREV_H

#include "jitdump/format/byte_sink.h"

enum {
    ABBREV_UNIT = 1,
    ABBREV_FUNCTION,
    ABBREV_FUNCTION_PARENT, /* has calls that were inlined */
    ABBREV_CALLEE,
    ABBREV_CALLEE_UNDECLARED, /* where it is defined is not known */
    ABBREV_CALL,
    ABBREV_CALL_PARENT,
    ABBREV_CALL_PIECES, /* in several ranges */
    ABBREV_CALL_PIECES_PARENT,
    ABBREVS
};

void debug_abbrev_put(struct byte_sink *sink);

#endif
