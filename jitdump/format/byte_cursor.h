/* A bounded place to take bytes from: every byte that this project reads out of a format comes from
 * here.
 *
 * The memory belongs to the caller.  A get that reaches past the end returns 0, and so does every
 * later get.  `failed_at` keeps the offset of the first one.  So a parser reads a whole structure
 * and checks once.  No value is ever an error value.
 */
#ifndef BYTE_CURSOR_H
#define BYTE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct byte_cursor {
    const uint8_t *data;
    size_t size;
    size_t offset;    /* of the next get */
    size_t failed_at; /* valid when failed */
    bool failed;
    bool big_endian; /* byte order of the multi-byte gets */
};

static inline struct byte_cursor byte_cursor_over(const void *data, size_t size, bool big_endian)
{
    struct byte_cursor cursor = {data, size, 0, 0, false, big_endian};
    return cursor;
}

static inline size_t cursor_left(const struct byte_cursor *cursor)
{
    return cursor->failed ? 0 : cursor->size - cursor->offset;
}

/* The next COUNT bytes in place, or NULL past the end. */
static inline const uint8_t *cursor_bytes(struct byte_cursor *cursor, size_t count)
{
    if (count > cursor_left(cursor)) {
        if (!cursor->failed)
            cursor->failed_at = cursor->offset;
        cursor->failed = true;
        return NULL;
    }
    const uint8_t *bytes = cursor->data + cursor->offset;
    cursor->offset += count;
    return bytes;
}

static inline void cursor_skip(struct byte_cursor *cursor, size_t count)
{
    (void)cursor_bytes(cursor, count);
}

static inline uint16_t cursor_u16(struct byte_cursor *cursor)
{
    uint16_t value = 0;
    const uint8_t *bytes = cursor_bytes(cursor, sizeof value);
    if (!bytes)
        return 0;
    memcpy(&value, bytes, sizeof value);
    return cursor->big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
               ? value
               : __builtin_bswap16(value);
}

static inline uint32_t cursor_u32(struct byte_cursor *cursor)
{
    uint32_t value = 0;
    const uint8_t *bytes = cursor_bytes(cursor, sizeof value);
    if (!bytes)
        return 0;
    memcpy(&value, bytes, sizeof value);
    return cursor->big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
               ? value
               : __builtin_bswap32(value);
}

static inline uint64_t cursor_u64(struct byte_cursor *cursor)
{
    uint64_t value = 0;
    const uint8_t *bytes = cursor_bytes(cursor, sizeof value);
    if (!bytes)
        return 0;
    memcpy(&value, bytes, sizeof value);
    return cursor->big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
               ? value
               : __builtin_bswap64(value);
}

static inline uint8_t cursor_u8(struct byte_cursor *cursor)
{
    const uint8_t *bytes = cursor_bytes(cursor, 1);
    return bytes ? *bytes : 0;
}

/* A number in LEB128; more than 64 bits is a failure, like a missing byte. */
static inline uint64_t cursor_uleb(struct byte_cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        if (shift > 63 || (shift == 63 && (byte & 0x7e)))
            cursor_bytes(cursor, cursor_left(cursor) + 1);
        if (cursor->failed)
            return 0;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

static inline int64_t cursor_sleb(struct byte_cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        if (shift > 63)
            cursor_bytes(cursor, cursor_left(cursor) + 1);
        if (cursor->failed)
            return 0;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if ((byte & 0x40) && shift + 7 < 64)
            value |= ~UINT64_C(0) << (shift + 7);
        return (int64_t)value;
    }
}

/* The next NUL-terminated string in place, or NULL (and failed) if no NUL follows. */
static inline const char *cursor_cstr(struct byte_cursor *cursor)
{
    const uint8_t *start = cursor->data + cursor->offset;
    const uint8_t *end = cursor_left(cursor) ? memchr(start, 0, cursor_left(cursor)) : NULL;
    return (const char *)cursor_bytes(cursor,
                                      end ? (size_t)(end - start) + 1 : cursor_left(cursor) + 1);
}

#endif
