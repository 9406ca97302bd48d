/* See frame_entry.h. */
#include "jitunwind/frames/frame_entry.h"

#include "jitdump/format/eh_frame.h"

enum {
    FORMAT = 0x0f,
    APPLICATION = 0x70,
    LENGTH_BYTES = 4,
    ID_BYTES = 4,
};

static uint64_t read_value(struct byte_cursor *cursor, uint8_t format, bool *known)
{
    switch (format) {
    case 0x00:
    case 0x04:
    case 0x0c:
        return cursor_u64(cursor);
    case 0x02:
        return cursor_u16(cursor);
    case DW_EH_PE_udata4:
        return cursor_u32(cursor);
    case 0x0a:
        return (uint64_t)(int16_t)cursor_u16(cursor);
    case DW_EH_PE_sdata4:
        return (uint64_t)(int32_t)cursor_u32(cursor);
    default:
        *known = false;
        return 0;
    }
}

bool ju_frame_pointer_read(struct byte_cursor *cursor, uint8_t encoding, uint64_t addr,
                           uint64_t *value)
{
    bool known = true;
    *value = read_value(cursor, encoding & FORMAT, &known);
    if (encoding == (DW_EH_PE_pcrel | (encoding & FORMAT)))
        *value += addr;
    else
        known &= encoding == (encoding & FORMAT);
    return known && !cursor->failed;
}

/* The bytes of the entry at OFFSET, behind its length.  Returns false if it is not in SECTION. */
static bool open_entry(const struct frame_section *section, size_t offset,
                       struct byte_cursor *entry)
{
    struct byte_cursor cursor = byte_cursor_over(section->bytes, section->size, false);
    cursor_skip(&cursor, offset);
    uint32_t length = cursor_u32(&cursor);
    if (cursor.failed || length > cursor_left(&cursor))
        return false;
    *entry = cursor;
    entry->size = cursor.offset + length;
    return true;
}

static void skip_personality(struct byte_cursor *cursor)
{
    uint8_t encoding = cursor_u8(cursor);
    bool known = true;
    if (encoding != DW_EH_PE_omit)
        read_value(cursor, encoding & FORMAT, &known);
    if (!known)
        cursor_skip(cursor, SIZE_MAX);
}

/* Returns false for a letter that is not known. */
static bool read_letter(struct byte_cursor *data, char letter, struct frame_entry *entry,
                        uint8_t *encoding)
{
    if (letter == 'R')
        *encoding = cursor_u8(data);
    else if (letter == 'L')
        cursor_skip(data, 1);
    else if (letter == 'P')
        skip_personality(data);
    else if (letter == 'S')
        entry->signal_frame = true;
    else
        return letter == 'B' || letter == 'G';
    return true;
}

/* *SIZED: FDEs have augmentation data, too. */
static bool read_augmentation(struct byte_cursor *cursor, const char *letters,
                              struct frame_entry *entry, uint8_t *encoding, bool *sized)
{
    *encoding = DW_EH_PE_absptr;
    *sized = *letters == 'z';
    if (!*sized)
        return *letters == '\0';
    uint64_t size = cursor_uleb(cursor);
    const uint8_t *bytes =
        cursor_bytes(cursor, size <= cursor_left(cursor) ? (size_t)size : SIZE_MAX);
    if (!bytes)
        return false;
    struct byte_cursor data = byte_cursor_over(bytes, (size_t)size, false);
    while (*++letters)
        if (!read_letter(&data, *letters, entry, encoding))
            return false;
    return !data.failed;
}

static bool read_cie(const struct frame_section *section, size_t offset, struct frame_entry *entry,
                     uint8_t *encoding, bool *sized)
{
    struct byte_cursor cursor;
    if (!open_entry(section, offset, &cursor) || cursor_u32(&cursor) != 0)
        return false;
    uint8_t version = cursor_u8(&cursor);
    const char *letters = cursor_cstr(&cursor);
    entry->signal_frame = false;
    entry->code_align = cursor_uleb(&cursor);
    entry->data_align = cursor_sleb(&cursor);
    entry->return_register = version == 1 ? cursor_u8(&cursor) : cursor_uleb(&cursor);
    if (cursor.failed || (version != 1 && version != 3) ||
        !read_augmentation(&cursor, letters, entry, encoding, sized))
        return false;
    entry->initial_bytes = cursor_left(&cursor);
    entry->initial = cursor_bytes(&cursor, entry->initial_bytes);
    return true;
}

/* CURSOR stands behind the FDE's id. */
static bool read_fde(const struct frame_section *section, struct byte_cursor *cursor,
                     size_t cie_offset, struct frame_entry *entry)
{
    uint8_t encoding;
    bool sized;
    uint64_t bytes;
    if (!read_cie(section, cie_offset, entry, &encoding, &sized))
        return false;
    if (!ju_frame_pointer_read(cursor, encoding, section->addr + cursor->offset, &entry->start) ||
        !ju_frame_pointer_read(cursor, encoding & FORMAT, 0, &bytes))
        return false;
    entry->end = entry->start + bytes;
    if (sized) {
        uint64_t size = cursor_uleb(cursor);
        cursor_skip(cursor, size <= cursor_left(cursor) ? (size_t)size : SIZE_MAX);
    }
    entry->instructions_bytes = cursor_left(cursor);
    entry->instructions = cursor_bytes(cursor, entry->instructions_bytes);
    return !cursor->failed && entry->end >= entry->start;
}

enum frame_entry_kind ju_frame_entry_read(const struct frame_section *section, size_t *offset,
                                          struct frame_entry *entry)
{
    struct byte_cursor cursor;
    if (*offset >= section->size)
        return ENTRY_END;
    if (!open_entry(section, *offset, &cursor))
        return ENTRY_BROKEN;
    size_t id_offset = *offset + LENGTH_BYTES;
    *offset = cursor.size;
    if (cursor.size == id_offset)
        return ENTRY_END;
    uint32_t id = cursor_u32(&cursor);
    if (id == 0)
        return cursor.failed ? ENTRY_BROKEN : ENTRY_CIE;
    if (cursor.failed || id > id_offset || !read_fde(section, &cursor, id_offset - id, entry))
        return ENTRY_BROKEN;
    return ENTRY_FDE;
}
