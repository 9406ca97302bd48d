/* See mini_debug.h.  Source: GDB manual, "Debugging information in a special section". */
#include "injector/native/mini_debug.h"

#include <lzma.h>
#include <stdlib.h>

enum { FIRST_GUESS = 8, MOST_BYTES = 64 << 20, MOST_MEMORY = 128 << 20 };

/* The .xz file of SIZE bytes at PACKED, unpacked into ROOM bytes: how many it has; 0: it is
 * damaged; SIZE_MAX: there is too little room. */
static size_t unpack_into(const uint8_t *packed, size_t size, uint8_t *bytes, size_t room)
{
    uint64_t memory = MOST_MEMORY;
    size_t read = 0, written = 0;
    lzma_ret result =
        lzma_stream_buffer_decode(&memory, 0, NULL, packed, &read, size, bytes, &written, room);
    if (result == LZMA_BUF_ERROR && written == room)
        return SIZE_MAX;
    return result == LZMA_OK ? written : 0;
}

/* *UNPACKED bytes to be freed, or NULL.  The file tells its size at its end only, and is small. */
static uint8_t *unpack(const uint8_t *packed, size_t size, size_t *unpacked)
{
    for (size_t room = size * FIRST_GUESS; room && room <= MOST_BYTES; room *= 2) {
        uint8_t *bytes = malloc(room);
        *unpacked = bytes ? unpack_into(packed, size, bytes, room) : 0;
        if (*unpacked && *unpacked != SIZE_MAX)
            return bytes;
        free(bytes);
        if (*unpacked == 0)
            return NULL;
    }
    return NULL;
}

void mini_debug_open(struct elf_view *debug, const struct elf_view *view)
{
    size_t size = 0, unpacked;
    uint64_t addr;
    const uint8_t *packed = elf_view_section(view, ".gnu_debugdata", &size, &addr);
    uint8_t *bytes = packed && size <= MOST_BYTES ? unpack(packed, size, &unpacked) : NULL;
    *debug = (struct elf_view){0};
    if (bytes)
        elf_view_of(debug, bytes, unpacked);
    debug->unpacked = bytes;
}
