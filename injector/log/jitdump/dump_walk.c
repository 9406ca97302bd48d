/* See dump_walk.h. */
#include "injector/log/jitdump/dump_walk.h"

#include "injector/findings/quirk.h"
#include "injector/log/jitdump/repeated_part.h"
#include "injector/log/jitdump/torn_record.h"

/* QUIRK_CODE_BEHIND: the code of a LOAD without code bytes follows the record if the file ends
 * code_size bytes after it, or a record begins there and none right after the LOAD. */
static void take_code_after(const struct jit_dump_walk *walk, struct jit_record *record)
{
    const struct record_reader *reader = &walk->reader;
    uint64_t end = record->offset + record->total_size;
    if (record->id != JIT_CODE_LOAD || record->broken || record->load.code ||
        record->load.code_size > reader->size - end)
        return;
    bool last = record->load.code_size == reader->size - end;
    if (!last && (jit_record_follows(reader, end) ||
                  !jit_record_follows(reader, end + record->load.code_size)))
        return;
    record->load.code = reader->data + end;
    record->extent += record->load.code_size;
    record->quirks &= ~quirk_bit(QUIRK_CODE_ABSENT);
    record->quirks |= quirk_bit(QUIRK_CODE_BEHIND);
}

/* Update the values with which the reader compares later records. */
static void remember(struct jit_dump_walk *walk, const struct jit_record *record)
{
    walk->reader.number++;
    if (record->id == JIT_HEADER)
        walk->reader.big_endian = record->header.big_endian;
    if (!record->broken && record->id == JIT_CODE_HISTORY)
        walk->reader.history = record->timestamp;
    if (record->broken || !jit_record_name(record->id) || !jit_record_has_time(record->id))
        return;
    walk->reader.time = record->timestamp;
    if (record->id == JIT_CODE_LOAD)
        walk->reader.pid = record->load.pid;
}

static enum jit_dump_end step_over(struct jit_dump_walk *walk, struct jit_record *record,
                                   uint64_t next, enum jit_dump_end why)
{
    *record = (struct jit_record){
        .offset = walk->offset, .number = walk->reader.number, .extent = next - walk->offset};
    walk->offset = next;
    return why;
}

/* A LOAD whose code was cut short by a record at NEXT, as a write that fails with EFAULT leaves it,
 * still names its addresses. */
static bool keep_named_load(struct jit_record *record, const uint8_t *next)
{
    const struct jit_load *load = &record->load;
    if (record->id != JIT_CODE_LOAD || record->broken || load->name_bytes == 0 ||
        record->quirks & quirk_bit(QUIRK_NAME_OPEN) ||
        (const uint8_t *)load->name + load->name_bytes >= next)
        return false;
    record->load.code = NULL;
    record->quirks &= quirk_bit(QUIRK_NAME_UNPRINTABLE);
    record->quirks |= quirk_bit(QUIRK_RECORD_TORN);
    return true;
}

/* As .NET names a block of memory for stubs: "stub TYPE<OWNER>", or "stub<NUMBER> TYPE<OWNER>". */
static bool names_stubs(const struct jit_load *load)
{
    static const char word[] = "stub";
    const size_t word_bytes = sizeof word - 1;
    const char *name = load->name, *end = name + load->name_bytes, *at = name + word_bytes;
    if (load->name_bytes <= word_bytes || memcmp(name, word, word_bytes) != 0 || end[-1] != '>')
        return false;
    if (*at == '<') {
        for (at++; *at >= '0' && *at <= '9'; at++)
            continue;
        if (*at++ != '>')
            return false;
    }
    return at < end && *at == ' ' && memchr(at, '<', (size_t)(end - at));
}

/* A LOAD that the end of the file cut short still names its addresses, if its name is whole. */
static void keep_cut_name(const struct jit_dump_walk *walk, struct jit_record *record)
{
    const struct record_reader *reader = &walk->reader;
    size_t left = reader->size - (size_t)walk->offset;
    struct byte_cursor cursor =
        byte_cursor_over(reader->data + walk->offset, left, reader->big_endian);
    if (record->id != JIT_CODE_LOAD || record->total_size <= left || left <= JR_CODE_LOAD_BYTES)
        return;
    record->load = (struct jit_load){0};
    cursor_skip(&cursor, JR_PREFIX_BYTES);
    jit_record_read_fields(&cursor, record);
    if (keep_named_load(record, reader->data + reader->size))
        record->quirks |= quirk_bit(QUIRK_DUMP_CUT) |
                          (names_stubs(&record->load) ? quirk_bit(QUIRK_STUBS_UNREAD) : 0);
}

/* As jit_record_at, at the walk's offset.  Mostly it has been read already, as the record ahead. */
static bool read_next(const struct jit_dump_walk *walk, struct jit_record *record)
{
    if (!walk->has_ahead || walk->ahead_offset != walk->offset ||
        walk->ahead_big_endian != walk->reader.big_endian)
        return jit_record_at(&walk->reader, walk->offset, record);
    *record = walk->ahead;
    record->number = walk->reader.number;
    return true;
}

/* Fetch the bytes behind the record ahead while the one before is processed.  A prefetch past the
 * end of the file does no harm. */
static void fetch_following(const struct jit_dump_walk *walk)
{
    enum { LINE_BYTES = 64, LINES = 3 }; /* mostly a LOAD with its name */
    uintptr_t at = (uintptr_t)walk->reader.data + walk->ahead_offset + walk->ahead.total_size;
    for (uintptr_t line = 0; line < LINES; line++)
        __builtin_prefetch((const void *)(at + line * LINE_BYTES));
}

static bool look_ahead(struct jit_dump_walk *walk, uint64_t offset)
{
    walk->ahead_offset = offset;
    walk->ahead_big_endian = walk->reader.big_endian;
    bool follows = jit_record_following(&walk->reader, offset, &walk->ahead, &walk->has_ahead);
    if (walk->has_ahead)
        fetch_following(walk);
    return follows;
}

/* Whether RECORD, where the one before has shown that none is, is one of unknown id by chance:
 * records go on elsewhere, at *NEXT. */
static bool is_chance(struct jit_dump_walk *walk, const struct jit_record *record, uint64_t *next)
{
    if (jit_record_name(record->id) || walk->no_chain)
        return false;
    walk->no_chain = !torn_record_end(&walk->reader, walk->offset, next);
    return !walk->no_chain;
}

enum jit_dump_end jit_dump_next(struct jit_dump_walk *walk, struct jit_record *record)
{
    const struct record_reader *reader = &walk->reader;
    size_t left = reader->size - (size_t)walk->offset;
    uint64_t next;
    if (left == 0)
        return JIT_DUMP_WHOLE;
    bool astray = walk->astray;
    walk->astray = false;
    if (astray && repeated_part_end(reader, walk->offset, &walk->searched_bytes, &next))
        return step_over(walk, record, next, JIT_DUMP_TWICE);
    if (!read_next(walk, record)) {
        if (jit_dump_unused_from(reader, walk->offset))
            return JIT_DUMP_WHOLE;
        if (torn_record_end(reader, walk->offset, &next))
            return step_over(walk, record, next, JIT_DUMP_TORN);
        keep_cut_name(walk, record);
        return JIT_DUMP_CUT;
    }
    if (astray && is_chance(walk, record, &next))
        return step_over(walk, record, next, JIT_DUMP_TORN);
    take_code_after(walk, record);
    walk->astray = !look_ahead(walk, walk->offset + record->extent);
    if (walk->astray && torn_record_inside(reader, walk->offset, record->extent, &next)) {
        walk->astray = false;
        if (!keep_named_load(record, reader->data + next))
            return step_over(walk, record, next, JIT_DUMP_TORN);
        record->extent = next - walk->offset;
    }
    walk->offset += record->extent;
    remember(walk, record);
    return JIT_DUMP_MORE;
}
