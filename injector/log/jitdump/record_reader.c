/* See record_reader.h. */
#include "injector/log/jitdump/record_reader.h"

struct jit_header jit_header_read(struct byte_cursor *cursor)
{
    struct jit_header header = {.big_endian = cursor->big_endian};
    cursor_skip(cursor, 4); /* the magic */
    header.version = cursor_u32(cursor);
    header.total_size = cursor_u32(cursor);
    header.elf_mach = cursor_u32(cursor);
    cursor_skip(cursor, 4);
    header.pid = cursor_u32(cursor);
    header.timestamp = cursor_u64(cursor);
    header.flags = cursor_u64(cursor);
    return header;
}

/* The magic of a header, in either byte order, stands at OFFSET. */
static bool header_at(const struct record_reader *reader, uint64_t offset,
                      struct jit_record *record)
{
    size_t left = reader->size - (size_t)offset;
    bool swapped = record->id == JITDUMP_MAGIC_SWAPPED;
    struct byte_cursor cursor =
        byte_cursor_over(reader->data + offset, left, reader->big_endian != swapped);
    struct jit_header header = jit_header_read(&cursor);
    *record = (struct jit_record){.id = JIT_HEADER,
                                  .total_size = header.total_size,
                                  .extent = header.total_size,
                                  .timestamp = header.timestamp,
                                  .offset = offset,
                                  .number = reader->number,
                                  .header = header};
    return !cursor.failed && header.version <= 2 && header.total_size >= JITHEADER_BYTES &&
           header.total_size <= left;
}

bool jit_record_outline_at(const struct record_reader *reader, uint64_t offset,
                           struct jit_record *record)
{
    size_t left = reader->size - (size_t)offset;
    struct byte_cursor cursor = byte_cursor_over(reader->data + offset, left, reader->big_endian);
    record->id = cursor_u32(&cursor);
    if (record->id == JITDUMP_MAGIC || record->id == JITDUMP_MAGIC_SWAPPED)
        return header_at(reader, offset, record);
    record->total_size = cursor_u32(&cursor);
    record->timestamp = cursor_u64(&cursor);
    record->offset = offset;
    record->number = reader->number;
    record->extent = record->total_size;
    record->quirks = 0;
    record->broken = NULL;
    if (cursor.failed || record->total_size < JR_PREFIX_BYTES || record->total_size > left)
        return false;
    cursor.size = record->total_size;
    record->broken = jit_record_read_fields(&cursor, record);
    return true;
}

bool jit_record_at(const struct record_reader *reader, uint64_t offset, struct jit_record *record)
{
    if (!jit_record_outline_at(reader, offset, record))
        return false;
    if (record->id != JIT_HEADER && !record->broken)
        record->broken = jit_record_check(record);
    return true;
}
