/* See kernel_ahead.h. */
#include "injector/native/symbols/kernel_ahead.h"

#include "injector/files/side_thread.h"

#include <stdlib.h>

struct kernel_ahead {
    const char *path;
    struct kernel_symbols symbols;
    struct side_thread thread;
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
    if (!side_thread_begin(&ahead->thread, read_all, ahead))
        read_all(ahead);
    return ahead;
}

const struct kernel_symbols *kernel_ahead_wait(struct kernel_ahead *ahead)
{
    side_thread_join(&ahead->thread);
    return ahead->result ? NULL : &ahead->symbols;
}

void kernel_ahead_free(struct kernel_ahead *ahead)
{
    if (!ahead)
        return;
    side_thread_join(&ahead->thread);
    kernel_symbols_free(&ahead->symbols);
    free(ahead);
}
