/* See packed_data.h. */
#include "injector/profile/flamegraph/packed_data.h"

#include "injector/text/base64.h"

#include <stdint.h>
#include <stdlib.h>
#define ZLIB_CONST
#include <zlib.h>

/* Of 1 to 9.  zlib's usual 6 makes a page of 4.4 MB 0.3 MB smaller, and takes twice as long. */
enum { PACK_LEVEL = 4 };

enum { GROUP_BYTES = 3, GROUP_DIGITS = 4, CHUNK_BYTES = 3 << 12 };

struct packed_data {
    FILE *stream;
    z_stream packer;
    uint8_t group[GROUP_BYTES]; /* that is not whole yet */
    size_t group_bytes;
};

/* The group as four digits, as far as it has bytes, in TO. */
static void take_group(struct packed_data *data, char *to)
{
    enum { BITS = 6 };
    const size_t count = data->group_bytes;
    uint32_t bits = 0;
    for (size_t i = 0; i < GROUP_BYTES; i++)
        bits = bits << 8 | (i < count ? data->group[i] : 0U);
    for (unsigned i = 0; i < GROUP_DIGITS; i++)
        to[i] = i <= count
                    ? base64_digits[bits >> (GROUP_DIGITS - 1 - i) * BITS & ((1 << BITS) - 1)]
                    : '=';
    data->group_bytes = 0;
}

static void put_digits(struct packed_data *data, const uint8_t *bytes, size_t count)
{
    char digits[(CHUNK_BYTES / GROUP_BYTES + 1) * GROUP_DIGITS];
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        data->group[data->group_bytes++] = bytes[i];
        if (data->group_bytes == GROUP_BYTES) {
            take_group(data, digits + length);
            length += GROUP_DIGITS;
        }
    }
    fwrite(digits, 1, length, data->stream);
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
        put_digits(data, packed, sizeof packed - data->packer.avail_out);
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
    char last[GROUP_DIGITS];
    if (data->group_bytes) {
        take_group(data, last);
        fwrite(last, 1, sizeof last, data->stream);
    }
    putc('\n', data->stream);
    deflateEnd(&data->packer);
    free(data);
    return 0;
}

FILE *packed_data_open(FILE *stream)
{
    struct packed_data *data = calloc(1, sizeof *data);
    if (!data || deflateInit(&data->packer, PACK_LEVEL) != Z_OK) {
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
