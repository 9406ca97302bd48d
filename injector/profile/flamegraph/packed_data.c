/* See packed_data.h. */
#include "injector/profile/flamegraph/packed_data.h"

#include "injector/text/base64.h"

#include <stdint.h>
#include <stdlib.h>
#define ZLIB_CONST
#include <zlib.h>

enum { GROUP_BYTES = 3, CHUNK_BYTES = 1 << 14 };

struct packed_data {
    FILE *stream;
    z_stream packer;
    uint8_t group[GROUP_BYTES]; /* that is not whole yet */
    size_t group_bytes;
};

/* Put the group as four digits, as far as it has bytes. */
static void put_group(struct packed_data *data)
{
    enum { DIGITS = 4, BITS = 6 };
    const size_t count = data->group_bytes;
    uint32_t bits = 0;
    for (size_t i = 0; i < GROUP_BYTES; i++)
        bits = bits << 8 | (i < count ? data->group[i] : 0U);
    for (unsigned i = 0; i < DIGITS; i++)
        putc(i <= count ? base64_digits[bits >> (DIGITS - 1 - i) * BITS & ((1 << BITS) - 1)] : '=',
             data->stream);
    data->group_bytes = 0;
}

/* Pack COUNT BYTES; with Z_FINISH all that is left. */
static void pack(struct packed_data *data, const char *bytes, size_t count, int flush)
{
    uint8_t packed[CHUNK_BYTES];
    data->packer.next_in = (const Bytef *)bytes;
    data->packer.avail_in = (uInt)count;
    do {
        data->packer.next_out = packed;
        data->packer.avail_out = sizeof packed;
        deflate(&data->packer, flush);
        for (size_t i = 0; i < sizeof packed - data->packer.avail_out; i++) {
            data->group[data->group_bytes++] = packed[i];
            if (data->group_bytes == GROUP_BYTES)
                put_group(data);
        }
    } while (data->packer.avail_out == 0);
}

static ssize_t put_bytes(void *cookie, const char *bytes, size_t count)
{
    pack(cookie, bytes, count, Z_NO_FLUSH);
    return (ssize_t)count;
}

static int end(void *cookie)
{
    struct packed_data *data = cookie;
    pack(data, NULL, 0, Z_FINISH);
    if (data->group_bytes)
        put_group(data);
    putc('\n', data->stream);
    deflateEnd(&data->packer);
    free(data);
    return 0;
}

FILE *packed_data_open(FILE *stream)
{
    struct packed_data *data = calloc(1, sizeof *data);
    if (!data || deflateInit(&data->packer, Z_DEFAULT_COMPRESSION) != Z_OK) {
        free(data);
        return NULL;
    }
    data->stream = stream;
    FILE *packed =
        fopencookie(data, "w", (cookie_io_functions_t){.write = put_bytes, .close = end});
    if (!packed) {
        deflateEnd(&data->packer);
        free(data);
    }
    return packed;
}
