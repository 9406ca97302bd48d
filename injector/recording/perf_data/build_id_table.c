/* See build_id_table.h. */
#include "injector/recording/perf_data/build_id_table.h"

enum { HAS_SIZE = 1 << 15, SIZE_AT = 6 };

static void read_fields(struct build_id_entry *entry)
{
    struct byte_cursor fields = byte_cursor_over(entry->bytes, entry->size, false);
    cursor_skip(&fields, 4);
    entry->misc = cursor_u16(&fields);
    cursor_skip(&fields, 2 + 4);
    entry->build_id = cursor_bytes(&fields, PERF_BUILD_ID_BYTES);
    const uint8_t size = cursor_u8(&fields);
    entry->build_id_bytes = entry->misc & HAS_SIZE && size && size <= PERF_BUILD_ID_BYTES
                                ? size
                                : (size_t)PERF_BUILD_ID_BYTES;
    cursor_skip(&fields, 3);
    entry->name = cursor_cstr(&fields);
}

bool build_id_table_next(struct byte_cursor *entries, struct build_id_entry *entry)
{
    struct byte_cursor ahead = *entries;
    cursor_skip(&ahead, SIZE_AT);
    const size_t size = cursor_u16(&ahead);
    if (ahead.failed || size < PERF_RECORD_HEADER_BYTES || size > cursor_left(entries))
        return false;
    *entry = (struct build_id_entry){.bytes = cursor_bytes(entries, size), .size = size};
    read_fields(entry);
    return true;
}
