/* Code that HotSpot makes and tells nobody of: the handlers of native methods' signatures, say.
 *
 * Events tell of each stub.  Beside them the code heaps have pieces that no event has, and stubs
 * stand in larger pieces.  Walks through the heaps find what is left, and log it by the name that
 * the piece has there.  A piece is believed when two walks saw it: it may be half made at the
 * first one, or its event may be on the way. */
#ifndef PERFJIT_UNTOLD_CODE_H
#define PERFJIT_UNTOLD_CODE_H

#include "agents/java/told_code.h"
#include "jitdump/jitdump.h"

#include <pthread.h>

struct untold_code {
    pthread_mutex_t lock;
    struct told_code told; /* under LOCK, as WALKS */
    unsigned walks;
    struct vm_blobs now, before; /* of the last walk, and of the one before: the agent's thread's */
    struct vm_blobs next;        /* of a walk that may be cut short */
};

/* An event tells of code at [BEGIN, END): it is about to be logged. */
void untold_code_note(struct untold_code *untold, uint64_t begin, uint64_t end);

/* Walk, and log to DUMP what nobody told of.  IS_LAST: there is no walk to come. */
void untold_code_log(struct untold_code *untold, const struct vm_structs *structs,
                     struct jitdump *dump, bool is_last);

void untold_code_free(struct untold_code *untold);

#endif
