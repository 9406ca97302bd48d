/* A thread that does a part of the work beside the one that runs the command, until it is joined.
 * It receives no signal but SIGBUS, which goes to who hits the end of a truncated file: the others
 * go to the thread that checks for them.  What becomes of the work where no thread can be had is
 * its owner's to say: it is left out, done at once, or done when it is waited for. */
#ifndef PERFJIT_SIDE_THREAD_H
#define PERFJIT_SIDE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

struct side_thread {
    bool runs; /* it has not been joined; all zeros is none */
    pthread_t thread;
};

/* Whether there is a processor for one while this thread goes on. */
bool side_thread_pays(void);

/* Have RUN(CONTEXT) done by a thread.  Returns whether there is one. */
bool side_thread_begin(struct side_thread *side, void *(*run)(void *context), void *context);

/* Wait for its end.  Returns false, at once, if there is none, or none any more. */
bool side_thread_join(struct side_thread *side);

#endif
