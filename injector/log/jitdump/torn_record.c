/* See torn_record.h. */
#include "injector/log/jitdump/torn_record.h"

enum {
    CHAIN_RECORDS = 8,     /* so many are a chain wherever they end */
    MIN_CHAIN_RECORDS = 2, /* fewer are chance */
    MAX_GAP_BYTES = 64,    /* between name and code: alignment */
    UNKNOWN_RECORDS = 8,   /* so many of unknown ids may stand between two sound ones */
};

/* 52 days in ns: JITs compile late, but chance hits one value in 2000. */
#define NEAR_NS (UINT64_C(1) << 52)

static bool is_near(const struct record_reader *reader, const struct jit_record *record)
{
    uint64_t a = reader->time, b = record->timestamp;
    if (a == 0 || !jit_record_has_time(record->id))
        return true;
    if (reader->history && b <= reader->history)
        return true; /* a function that has been alive for any time */
    if (reader->history && a < reader->history)
        a = reader->history;
    return (a < b ? b - a : a - b) < NEAR_NS;
}

/* A LOAD that is read from a wrong offset has a gap of any size after its name. */
static bool has_large_gap(const struct jit_record *record)
{
    const struct jit_load *load = &record->load;
    return record->id == JIT_CODE_LOAD && load->code && load->name_bytes &&
           load->code - (const uint8_t *)load->name > (ptrdiff_t)load->name_bytes + MAX_GAP_BYTES;
}

static bool is_sound(const struct record_reader *reader, const struct jit_record *record)
{
    return !record->broken && jit_record_name(record->id) && is_near(reader, record) &&
           !has_large_gap(record);
}

bool jit_record_is_sound(const struct record_reader *reader, uint64_t offset)
{
    struct jit_record record;
    return offset < reader->size && jit_record_at(reader, offset, &record) &&
           is_sound(reader, &record);
}

bool jit_dump_unused_from(const struct record_reader *reader, uint64_t offset)
{
    return offset >= reader->used_bytes;
}

/* As jit_record_following; READ is jit_record_at or jit_record_outline_at. */
static bool follows(const struct record_reader *reader, uint64_t offset,
                    bool (*read)(const struct record_reader *, uint64_t, struct jit_record *),
                    struct jit_record *next, bool *is_read)
{
    struct jit_record later, *record = next;
    *is_read = false;
    for (int i = 0; i < UNKNOWN_RECORDS; i++, record = &later) {
        if (offset > reader->size)
            return false;
        if (jit_dump_unused_from(reader, offset))
            return true;
        if (!read(reader, offset, record))
            return false;
        *is_read = true;
        if (jit_record_name(record->id))
            return is_sound(reader, record);
        offset += record->total_size;
    }
    return true;
}

bool jit_record_follows(const struct record_reader *reader, uint64_t offset)
{
    struct jit_record next;
    bool is_read;
    return follows(reader, offset, jit_record_outline_at, &next, &is_read);
}

bool jit_record_following(const struct record_reader *reader, uint64_t offset,
                          struct jit_record *next, bool *is_read)
{
    return follows(reader, offset, jit_record_at, next, is_read);
}

/* Whether a chain begins at OFFSET that leads after PAST.  A LOAD of another pid than the last
 * one's is not believed to begin one on its own word. */
static bool chain_at(const struct record_reader *reader, uint64_t offset, uint64_t past)
{
    struct jit_record record;
    size_t needed = MIN_CHAIN_RECORDS;
    for (size_t count = 0; count < CHAIN_RECORDS; count++) {
        if (jit_dump_unused_from(reader, offset))
            return count > 0;
        if (offset > past && count >= needed)
            return true;
        if (!jit_record_outline_at(reader, offset, &record) || !is_sound(reader, &record))
            return false;
        if (record.id == JIT_CODE_LOAD && record.load.pid != reader->pid)
            needed = MIN_CHAIN_RECORDS + 1;
        offset += record.extent;
    }
    return true;
}

/* The ids that a chain can begin with, in the file's byte order. */
static bool may_begin(const struct record_reader *reader, uint64_t offset)
{
    struct byte_cursor cursor =
        byte_cursor_over(reader->data + offset, reader->size - (size_t)offset, reader->big_endian);
    uint32_t id = cursor_u32(&cursor), total_size = cursor_u32(&cursor);
    if (cursor.failed)
        return false;
    return id == JITDUMP_MAGIC || id == JITDUMP_MAGIC_SWAPPED ||
           (total_size >= JR_PREFIX_BYTES && jit_record_name(id));
}

static bool find_chain(const struct record_reader *reader, uint64_t from, uint64_t to,
                       uint64_t past, uint64_t *next)
{
    for (*next = from; *next < to; ++*next)
        if (may_begin(reader, *next) && chain_at(reader, *next, past))
            return true;
    return false;
}

bool torn_record_end(const struct record_reader *reader, uint64_t offset, uint64_t *next)
{
    return find_chain(reader, offset + 1, reader->size, 0, next);
}

bool torn_record_inside(const struct record_reader *reader, uint64_t offset, uint64_t extent,
                        uint64_t *next)
{
    uint64_t end = offset + extent;
    return find_chain(reader, offset + 1, end, end, next);
}
