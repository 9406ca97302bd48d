/* A bounded place to put bytes: every byte that this project writes into a format goes through
 * here.
 *
 * The memory belongs to the caller.  A put that does not fit writes nothing, and neither does any
 * put after it: `overflow` stays set, so that a writer checks once, at its end.  `size` goes on
 * counting what would have been written, which lets a first pass with no memory at all (capacity 0)
 * measure a record.
 */
#ifndef BYTE_SINK_H
#define BYTE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct byte_sink {
    uint8_t *data;
    size_t capacity;
    size_t size;     /* bytes put so far, or that would have been put */
    bool overflow;   /* a put did not fit */
    bool big_endian; /* byte order of the multi-byte puts */
};

static inline struct byte_sink byte_sink_over(void *data, size_t capacity)
{
    struct byte_sink sink = {data, capacity, 0, false, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
    return sink;
}

/* The next COUNT bytes to fill in, or NULL if they do not fit. */
static inline uint8_t *sink_room(struct byte_sink *sink, size_t count)
{
    size_t at = sink->size;
    sink->size += count;
    if (sink->overflow || at > sink->capacity || count > sink->capacity - at) {
        sink->overflow = true;
        return NULL;
    }
    return sink->data + at;
}

static inline void sink_bytes(struct byte_sink *sink, const void *bytes, size_t count)
{
    uint8_t *room = sink_room(sink, count);
    if (room && count)
        memcpy(room, bytes, count);
}

static inline void sink_zeros(struct byte_sink *sink, size_t count)
{
    uint8_t *room = sink_room(sink, count);
    if (room && count)
        memset(room, 0, count);
}

static inline bool sink_swaps(const struct byte_sink *sink)
{
    return sink->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static inline void sink_u8(struct byte_sink *sink, uint8_t value)
{
    sink_bytes(sink, &value, sizeof value);
}

static inline void sink_u16(struct byte_sink *sink, uint16_t value)
{
    if (sink_swaps(sink))
        value = __builtin_bswap16(value);
    sink_bytes(sink, &value, sizeof value);
}

static inline void sink_u32(struct byte_sink *sink, uint32_t value)
{
    if (sink_swaps(sink))
        value = __builtin_bswap32(value);
    sink_bytes(sink, &value, sizeof value);
}

static inline void sink_u64(struct byte_sink *sink, uint64_t value)
{
    if (sink_swaps(sink))
        value = __builtin_bswap64(value);
    sink_bytes(sink, &value, sizeof value);
}

/* TEXT with its NUL. */
static inline void sink_cstr(struct byte_sink *sink, const char *text)
{
    sink_bytes(sink, text, strlen(text) + 1);
}

static inline void sink_uleb(struct byte_sink *sink, uint64_t value)
{
    do {
        uint8_t low = value & 0x7f;
        value >>= 7;
        sink_u8(sink, value ? low | 0x80 : low);
    } while (value);
}

static inline void sink_sleb(struct byte_sink *sink, int64_t value)
{
    for (bool more = true; more;) {
        uint8_t low = value & 0x7f;
        /* An arithmetic shift, in terms that C defines for negative numbers. */
        value = value < 0 ? -((-(value + 1)) >> 7) - 1 : value >> 7;
        more = !(value == 0 && !(low & 0x40)) && !(value == -1 && (low & 0x40));
        sink_u8(sink, more ? low | 0x80 : low);
    }
}

/* Zeros up to the next multiple of ALIGNMENT (a power of two) from the sink's start. */
static inline void sink_align(struct byte_sink *sink, size_t alignment)
{
    sink_zeros(sink, (alignment - sink->size % alignment) % alignment);
}

#endif
