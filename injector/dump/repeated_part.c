/* See repeated_part.h. */
#include "injector/dump/repeated_part.h"

#include "injector/dump/torn_record.h"

#include <string.h>

enum {
    MIN_BYTES = 8,       /* fewer are alike by chance */
    NEEDLE_BYTES = 32,   /* compared first, where so many are alike */
    MAX_BYTES = 4 << 20, /* the largest buffer known, V8's, has 2 MiB */
    MAX_COMPARED = 64,   /* places where the first bytes are alike, as zeros are */
};

/* For all searches in a dump together: a tenth of a second. */
#define MAX_SEARCHED_BYTES (UINT64_C(256) << 20)

static bool is_repeated(const struct record_reader *reader, uint64_t offset, uint64_t bytes,
                        uint64_t *next)
{
    *next = offset + bytes;
    return bytes <= offset && bytes <= reader->size - offset &&
           memcmp(reader->data + offset - bytes, reader->data + offset, (size_t)bytes) == 0 &&
           jit_record_follows(reader, *next);
}

/* NEEDLE_BYTES or more, the most first. */
static bool many_are_repeated(const struct record_reader *reader, uint64_t offset, uint64_t *next)
{
    const uint8_t *end = reader->data + offset;
    const uint8_t *from = end - (offset < MAX_BYTES ? (size_t)offset : MAX_BYTES);
    for (size_t i = 0; i < MAX_COMPARED && from < end; i++, from++) {
        from = memmem(from, (size_t)(end - from), end, NEEDLE_BYTES);
        if (!from)
            return false;
        if (is_repeated(reader, offset, (uint64_t)(end - from), next))
            return true;
    }
    return false;
}

bool repeated_part_end(const struct record_reader *reader, uint64_t offset,
                       uint64_t *searched_bytes, uint64_t *next)
{
    if (reader->size - offset >= NEEDLE_BYTES && *searched_bytes < MAX_SEARCHED_BYTES) {
        *searched_bytes += offset < MAX_BYTES ? offset : MAX_BYTES;
        if (many_are_repeated(reader, offset, next))
            return true;
    }
    for (uint64_t bytes = NEEDLE_BYTES - 1; bytes >= MIN_BYTES; bytes--)
        if (is_repeated(reader, offset, bytes, next))
            return true;
    return false;
}
