/* See dump_ahead.h. */
#include "injector/log/jitdump/dump_ahead.h"

#include "jitdump/format/byte_cursor.h"

enum { LARGE_BYTES = 4 << 20, LINE_BYTES = 64 };

static void touch(const uint8_t *bytes, size_t count)
{
    uint8_t sum = 0;
    for (size_t at = 0; at < count; at += LINE_BYTES)
        sum = (uint8_t)(sum + *(const volatile uint8_t *)(bytes + at));
    (void)sum;
}

/* Record by record.  Where there is none this ends, and the walk goes on without it. */
static void *go_through(void *context)
{
    struct dump_ahead *ahead = context;
    const struct jit_dump *dump = ahead->dump;
    for (size_t at = dump->header_bytes; at < dump->used_bytes;) {
        struct byte_cursor cursor =
            byte_cursor_over(dump->data + at, dump->size - at, dump->big_endian);
        uint32_t id = cursor_u32(&cursor);
        size_t bytes = cursor_u32(&cursor);
        if (cursor.failed || bytes < JR_PREFIX_BYTES || bytes > dump->size - at ||
            atomic_load_explicit(&ahead->ended, memory_order_relaxed))
            break;
        if (id != JIT_FILLER)
            touch(dump->data + at, bytes);
        at += bytes;
    }
    return NULL;
}

void dump_ahead_begin(struct dump_ahead *ahead, const struct jit_dump *dump)
{
    *ahead = (struct dump_ahead){.dump = dump};
    if (dump->used_bytes >= LARGE_BYTES && side_thread_pays())
        side_thread_begin(&ahead->thread, go_through, ahead);
}

void dump_ahead_end(struct dump_ahead *ahead)
{
    atomic_store_explicit(&ahead->ended, true, memory_order_relaxed);
    side_thread_join(&ahead->thread);
}
