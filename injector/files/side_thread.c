/* See side_thread.h. */
#include "injector/files/side_thread.h"

#include <signal.h>
#include <unistd.h>

bool side_thread_pays(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

bool side_thread_begin(struct side_thread *side, void *(*run)(void *context), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    side->runs = pthread_create(&side->thread, NULL, run, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return side->runs;
}

bool side_thread_join(struct side_thread *side)
{
    if (!side->runs)
        return false;
    side->runs = false;
    return pthread_join(side->thread, NULL) == 0;
}
