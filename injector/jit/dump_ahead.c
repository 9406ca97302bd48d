/* See dump_ahead.h. */
#include "injector/jit/dump_ahead.h"

#include "injector/interruption.h"

#include <unistd.h>

enum { LARGE_BYTES = 4 << 20, LINE_BYTES = 64 };

static void *go_through(void *context)
{
    const struct jit_dump *dump = context;
    uint8_t sum = 0;
    for (size_t at = 0; at < dump->used_bytes; at += LINE_BYTES)
        sum = (uint8_t)(sum + *(const volatile uint8_t *)(dump->data + at));
    (void)sum;
    return NULL;
}

void dump_ahead_begin(struct dump_ahead *ahead, const struct jit_dump *dump)
{
    *ahead = (struct dump_ahead){.dump = dump};
    if (dump->used_bytes >= LARGE_BYTES && sysconf(_SC_NPROCESSORS_ONLN) > 1)
        ahead->started =
            interruption_thread(&ahead->thread, go_through, (void *)(uintptr_t)dump) == 0;
}

void dump_ahead_end(struct dump_ahead *ahead)
{
    if (ahead->started)
        pthread_join(ahead->thread, NULL);
}
