/* See mapped_build_id.h. */
#include "injector/native/mapped_build_id.h"

#include "jitdump/format/byte_cursor.h"

#include <elf.h>
#include <string.h>

enum { MOST_HEADERS = 64 };

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

/* The places of fields in headers of one class. */
struct elf_places {
    unsigned word; /* bytes of an address */
    unsigned header_bytes, phoff, phentsize;
    unsigned program_bytes, offset, filesz;
};

static const struct elf_places wide = {8, sizeof(Elf64_Ehdr), 32, 54, sizeof(Elf64_Phdr), 8, 32};
static const struct elf_places narrow = {4, sizeof(Elf32_Ehdr), 28, 42, sizeof(Elf32_Phdr), 4, 16};

static uint64_t word_at(const struct elf_places *places, const uint8_t *bytes, unsigned at)
{
    struct byte_cursor cursor = byte_cursor_over(bytes + at, places->word, false);
    return places->word == 8 ? cursor_u64(&cursor) : cursor_u32(&cursor);
}

/* Whether it has the build-id among the notes of the program header at OFFSET. */
static bool take_of_header(struct build_id *id, const struct elf_places *places,
                           const uint8_t *bytes, size_t size, uint64_t offset)
{
    if (offset > size || size - offset < places->program_bytes)
        return false;
    struct byte_cursor header = byte_cursor_over(bytes + offset, sizeof(uint32_t), false);
    uint64_t at = word_at(places, bytes + offset, places->offset);
    uint64_t count = word_at(places, bytes + offset, places->filesz);
    if (cursor_u32(&header) != PT_NOTE || at > size)
        return false;
    return build_id_in_notes(id, bytes + at, count < size - at ? (size_t)count : size - (size_t)at);
}

void mapped_build_id_read(struct build_id *id, const uint8_t *bytes, size_t size)
{
    id->size = 0;
    if (size < EI_NIDENT || memcmp(bytes, ELFMAG, SELFMAG) != 0 || bytes[EI_DATA] != ELFDATA2LSB)
        return;
    const struct elf_places *places = bytes[EI_CLASS] == ELFCLASS32 ? &narrow : &wide;
    if (size < places->header_bytes)
        return;
    uint64_t at = word_at(places, bytes, places->phoff);
    struct byte_cursor cursor = byte_cursor_over(bytes + places->phentsize, 4, false);
    uint16_t entry = cursor_u16(&cursor), count = cursor_u16(&cursor);
    for (uint16_t i = 0; i < count && i < MOST_HEADERS && at < size; i++, at += entry)
        if (take_of_header(id, places, bytes, size, at))
            return;
}
