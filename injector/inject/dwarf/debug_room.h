/* Room at the end of a debug section that is being made: a byte_sink whose memory grows.
 *
 * Without memory the sink overflows, which is sticky: its owner looks once, at the end.
 */
#ifndef PERFJIT_DEBUG_ROOM_H
#define PERFJIT_DEBUG_ROOM_H

#include "jitdump/format/byte_sink.h"

#include <stdlib.h>

/* The longest number in LEB128. */
enum { LEB_BYTES = 10 };

static inline void debug_room(struct byte_sink *sink, size_t bytes)
{
    if (sink->overflow || bytes <= sink->capacity - sink->size)
        return;
    size_t capacity = sink->capacity < 4096 ? 4096 : sink->capacity * 2;
    while (capacity - sink->size < bytes)
        capacity *= 2;
    uint8_t *data = realloc(sink->data, capacity);
    if (!data) {
        sink->overflow = true;
        return;
    }
    sink->data = data;
    sink->capacity = capacity;
}

/* Set the 4 bytes at OFFSET, put earlier, to VALUE. */
static inline void debug_patch_u32(struct byte_sink *sink, size_t offset, uint32_t value)
{
    if (sink->overflow)
        return;
    struct byte_sink patch = byte_sink_over(sink->data + offset, 4);
    patch.big_endian = sink->big_endian;
    sink_u32(&patch, value);
}

#endif
