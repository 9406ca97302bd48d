/* See repeated_part.h. */
#include "injector/log/jitdump/repeated_part.h"

#include "injector/log/jitdump/torn_record.h"

#include <string.h>

enum {
    MIN_BYTES = 8,       /* fewer are alike by chance */
    NEEDLE_BYTES = 256,  /* compared first, where so many are alike */
    MAX_BYTES = 4 << 20, /* the largest buffer known, V8's, has 2 MiB */
    STEP_BYTES = 256,    /* compared at once */
    START_BYTES = 2048,  /* the cost of beginning a search, in bytes searched */
};

/* For all searches in a dump together: a tenth of a second. */
#define MAX_SEARCHED_BYTES (UINT64_C(256) << 20)

struct search {
    const struct record_reader *reader;
    uint64_t *searched_bytes;
};

/* Whether the BYTES at OFFSET are those in front of it. */
static bool are_same(const struct search *search, uint64_t offset, uint64_t bytes)
{
    const uint8_t *at = search->reader->data + offset, *end = at + bytes;
    while (at < end && *search->searched_bytes < MAX_SEARCHED_BYTES) {
        size_t step = end - at < STEP_BYTES ? (size_t)(end - at) : STEP_BYTES;
        *search->searched_bytes += step;
        if (memcmp(at - bytes, at, step) != 0)
            return false;
        at += step;
    }
    return at == end;
}

/* Each child of several has written the buffer's contents. */
static bool is_repeated(const struct search *search, uint64_t offset, uint64_t bytes,
                        uint64_t *next)
{
    const struct record_reader *reader = search->reader;
    *next = offset;
    while (bytes <= *next && bytes <= reader->size - *next && are_same(search, *next, bytes)) {
        *next += bytes;
        if (jit_record_follows(reader, *next))
            return true;
    }
    return false;
}

/* NEEDLE_BYTES or more, the most first. */
static bool many_are_repeated(const struct search *search, uint64_t offset, uint64_t *next)
{
    const uint8_t *end = search->reader->data + offset;
    const uint8_t *from = end - (offset < MAX_BYTES ? (size_t)offset : MAX_BYTES);
    *search->searched_bytes += (uint64_t)(end - from);
    for (; from < end && *search->searched_bytes < MAX_SEARCHED_BYTES; from++) {
        *search->searched_bytes += START_BYTES;
        from = memmem(from, (size_t)(end - from), end, NEEDLE_BYTES);
        if (!from)
            return false;
        if (is_repeated(search, offset, (uint64_t)(end - from), next))
            return true;
    }
    return false;
}

/* If a file has a hole, or was cut while it was read, zeros are found in zeros at each byte. */
static bool is_one_byte(const uint8_t *bytes, size_t count)
{
    return memcmp(bytes, bytes + 1, count - 1) == 0;
}

bool repeated_part_end(const struct record_reader *reader, uint64_t offset,
                       uint64_t *searched_bytes, uint64_t *next)
{
    const struct search search = {reader, searched_bytes};
    bool many = reader->size - offset >= NEEDLE_BYTES;
    if (many && is_one_byte(reader->data + offset, NEEDLE_BYTES))
        return false;
    if (many && many_are_repeated(&search, offset, next))
        return true;
    for (uint64_t bytes = NEEDLE_BYTES - 1; bytes >= MIN_BYTES; bytes--)
        if (is_repeated(&search, offset, bytes, next))
            return true;
    return false;
}
