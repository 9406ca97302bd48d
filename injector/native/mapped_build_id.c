/* See mapped_build_id.h. */
#include "injector/native/mapped_build_id.h"

#include "jitdump/format/byte_cursor.h"

#include <elf.h>
#include <string.h>

enum { PHOFF_AT = 32, PHENTSIZE_AT = 54, MOST_HEADERS = 64 };

bool elf_note_next(struct byte_cursor *cursor, struct elf_note *note)
{
    if (cursor_left(cursor) < 12)
        return false;
    note->name_bytes = cursor_u32(cursor);
    note->desc_bytes = cursor_u32(cursor);
    note->type = cursor_u32(cursor);
    note->name = cursor_bytes(cursor, note->name_bytes);
    size_t padding = (0 - (size_t)note->name_bytes) & 3;
    cursor_skip(cursor, padding);
    note->desc = cursor_bytes(cursor, note->desc_bytes);
    padding = (0 - (size_t)note->desc_bytes) & 3;
    if (cursor_left(cursor) < padding)
        padding = cursor_left(cursor);
    cursor_skip(cursor, padding);
    return !cursor->failed;
}

bool build_id_in_notes(struct build_id *id, const uint8_t *notes, size_t size)
{
    struct byte_cursor cursor = byte_cursor_over(notes, size, false);
    struct elf_note note;
    while (elf_note_next(&cursor, &note)) {
        if (note.type != NT_GNU_BUILD_ID || note.name_bytes != 4 ||
            memcmp(note.name, "GNU", 4) != 0 || !note.desc_bytes ||
            note.desc_bytes > BUILD_ID_BYTES)
            continue;
        id->size = note.desc_bytes;
        memcpy(id->bytes, note.desc, id->size);
        return true;
    }
    return false;
}

/* Whether it has the build-id among the notes of the program header at OFFSET. */
static bool take_of_header(struct build_id *id, const uint8_t *bytes, size_t size, uint64_t offset)
{
    if (offset > size || size - offset < sizeof(Elf64_Phdr))
        return false;
    struct byte_cursor header = byte_cursor_over(bytes + offset, sizeof(Elf64_Phdr), false);
    uint32_t type = cursor_u32(&header);
    cursor_skip(&header, 4);
    uint64_t at = cursor_u64(&header);
    cursor_skip(&header, 16);
    uint64_t count = cursor_u64(&header);
    if (type != PT_NOTE || at > size)
        return false;
    return build_id_in_notes(id, bytes + at, count < size - at ? (size_t)count : size - (size_t)at);
}

void mapped_build_id_read(struct build_id *id, const uint8_t *bytes, size_t size)
{
    id->size = 0;
    if (size < sizeof(Elf64_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) != 0 ||
        bytes[EI_CLASS] != ELFCLASS64 || bytes[EI_DATA] != ELFDATA2LSB)
        return;
    struct byte_cursor cursor = byte_cursor_over(bytes, size, false);
    cursor_skip(&cursor, PHOFF_AT);
    uint64_t at = cursor_u64(&cursor);
    cursor_skip(&cursor, PHENTSIZE_AT - PHOFF_AT - 8);
    uint16_t entry = cursor_u16(&cursor), count = cursor_u16(&cursor);
    for (uint16_t i = 0; i < count && i < MOST_HEADERS && at < size; i++, at += entry)
        if (take_of_header(id, bytes, size, at))
            return;
}
