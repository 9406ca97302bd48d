/* One method of each class, by what its jmethodID points to.  When a class is redefined all its
 * methods are other ones, and no event of JVMTI says so. */
#ifndef PERFJIT_WATCHED_METHODS_H
#define PERFJIT_WATCHED_METHODS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watched_method {
    const uint64_t *place; /* what a jmethodID is: where HotSpot has the Method's address */
    uint64_t method;       /* as it was when it was seen last */
};

struct watched_methods {
    pthread_mutex_t lock;
    struct watched_method *items; /* owned */
    size_t count, capacity;
    size_t next; /* where the next look begins */
};

/* Watch PLACE, which HotSpot never frees.  Without memory it is not watched. */
void watched_methods_add(struct watched_methods *watched, const uint64_t *place);

/* Look at up to MOST of them, and take from there the next time.  Those that are other ones now are
 * put into CHANGED, which has room for MOST; returns how many.  Those that are gone are dropped. */
size_t watched_methods_look(struct watched_methods *watched, size_t most, const uint64_t **changed);

void watched_methods_free(struct watched_methods *watched);

#endif
