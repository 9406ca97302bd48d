/* See kernel_ahead.h. */
#include "injector/backtrace/kernel_ahead.h"

#include "injector/files/interruption.h"

#include <stdlib.h>

struct kernel_ahead {
    const char *path;
    struct kernel_symbols symbols;
    pthread_t thread;
    bool runs; /* the thread has not been joined */
    int result;
};

static void *read_all(void *context)
{
    struct kernel_ahead *ahead = context;
    ahead->result = kernel_symbols_read(&ahead->symbols, ahead->path);
    return NULL;
}

struct kernel_ahead *kernel_ahead_begin(const char *path)
{
    struct kernel_ahead *ahead = calloc(1, sizeof *ahead);
    if (!ahead)
        return NULL;
    ahead->path = path;
    ahead->runs = interruption_thread(&ahead->thread, read_all, ahead) == 0;
    if (!ahead->runs)
        read_all(ahead);
    return ahead;
}

static void join(struct kernel_ahead *ahead)
{
    if (ahead->runs)
        pthread_join(ahead->thread, NULL);
    ahead->runs = false;
}

const struct kernel_symbols *kernel_ahead_wait(struct kernel_ahead *ahead)
{
    join(ahead);
    return ahead->result ? NULL : &ahead->symbols;
}

void kernel_ahead_free(struct kernel_ahead *ahead)
{
    if (!ahead)
        return;
    join(ahead);
    kernel_symbols_free(&ahead->symbols);
    free(ahead);
}
