/* A file in memory, cut at each of its bytes, and with each of its bits flipped. */
#ifndef PERFJIT_TEST_DAMAGE_H
#define PERFJIT_TEST_DAMAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Where the file's records start. */
static size_t starts[32], record_count;

static inline size_t record_of(size_t offset)
{
    size_t record = 0;
    while (record + 1 < record_count && starts[record + 1] <= offset)
        record++;
    return record;
}

/* Give JUDGE what each cut leaves, in a block of that size: ASan sees a byte read behind it. */
static inline void cut_everywhere(const uint8_t *file, size_t size,
                                  void (*judge)(const uint8_t *left, size_t cut))
{
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *left = malloc(cut ? cut : 1);
        assert_non_null(left);
        memcpy(left, file, cut);
        judge(left, cut);
        free(left);
    }
}

static inline void flip_everywhere(const uint8_t *file, size_t size,
                                   void (*judge)(const uint8_t *bytes, size_t offset, unsigned bit))
{
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    memcpy(bytes, file, size);
    for (size_t offset = 0; offset < size; offset++)
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[offset] ^= (uint8_t)(1u << bit);
            judge(bytes, offset, bit);
            bytes[offset] ^= (uint8_t)(1u << bit);
        }
    free(bytes);
}

#endif
