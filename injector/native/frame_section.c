/* See frame_section.h, which has the format. */
#include "injector/native/frame_section.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/eh_frame.h"

#include <stdlib.h>

enum {
    FORMAT_MASK = 0x0f,
    APPLICATION_MASK = 0x70,
    INDIRECT = 0x80,
    DW_EH_PE_uleb = 0x01,
    DW_EH_PE_sleb = 0x09,
    HDR_TABLE_ENCODING = DW_EH_PE_datarel | DW_EH_PE_sdata4,
};

/* One entry, opened: CURSOR stands behind its id, and ends where it does. */
struct entry_view {
    struct byte_cursor cursor;
    size_t next; /* offset of the entry behind it */
    bool is_cie;
    uint64_t cie_at; /* of an FDE */
    bool is_end;     /* a length of zero */
};

struct cie_fields {
    struct cfi_entry entry; /* what an FDE has of it */
    uint8_t encoding;
    bool sized;
};

/* ---- Entries ---- */

static bool open_entry(const struct frame_section *section, uint64_t offset,
                       struct entry_view *view)
{
    struct byte_cursor cursor =
        byte_cursor_over(section->entries.bytes, section->entries.size, false);
    if (offset >= section->entries.size)
        return false;
    cursor.offset = (size_t)offset;
    uint64_t length = cursor_u32(&cursor);
    bool wide = length == UINT32_MAX;
    if (wide)
        length = cursor_u64(&cursor);
    *view = (struct entry_view){.is_end = length == 0};
    if (cursor.failed || length > cursor_left(&cursor))
        return false;
    cursor.size = cursor.offset + (size_t)length;
    view->next = cursor.size;
    if (view->is_end)
        return true;
    uint64_t id_at = cursor.offset;
    uint64_t id = wide && section->debug ? cursor_u64(&cursor) : cursor_u32(&cursor);
    uint64_t cie_id = !section->debug ? 0 : wide ? UINT64_MAX : UINT32_MAX;
    view->is_cie = id == cie_id;
    view->cie_at = section->debug ? id : id_at - id;
    view->cursor = cursor;
    return !cursor.failed;
}

static uint64_t get_value(struct byte_cursor *cursor, uint8_t encoding)
{
    switch (encoding & FORMAT_MASK) {
    case DW_EH_PE_uleb:
        return cursor_uleb(cursor);
    case DW_EH_PE_sleb:
        return (uint64_t)cursor_sleb(cursor);
    case 0x02:
        return cursor_u16(cursor);
    case DW_EH_PE_udata4:
        return cursor_u32(cursor);
    case 0x0a:
        return (uint64_t)(int16_t)cursor_u16(cursor);
    case DW_EH_PE_sdata4:
        return (uint64_t)(int32_t)cursor_u32(cursor);
    default:
        return cursor_u64(cursor);
    }
}

/* A pointer; what the dynamic linker would have to fill in is none. */
static uint64_t get_pointer(const struct frame_bytes *bytes, struct byte_cursor *cursor,
                            uint8_t encoding)
{
    uint64_t place = bytes->addr + cursor->offset;
    uint64_t value = get_value(cursor, encoding);
    uint8_t application = encoding & APPLICATION_MASK;
    return application == DW_EH_PE_pcrel ? place + value : value;
}

/* The augmentation data, letter by letter; what serves exceptions is stepped over. */
static bool read_augmentation(struct byte_cursor *cursor, const char *letters,
                              struct cie_fields *cie)
{
    if (*letters == '\0')
        return true;
    if (*letters != 'z')
        return false;
    cie->sized = true;
    cursor_uleb(cursor);
    while (*++letters && !cursor->failed) {
        uint8_t encoding;
        if (*letters == 'R') {
            cie->encoding = cursor_u8(cursor);
        } else if (*letters == 'L') {
            cursor_skip(cursor, 1);
        } else if (*letters == 'P') {
            encoding = cursor_u8(cursor);
            get_value(cursor, encoding);
        } else if (*letters == 'S') {
            cie->entry.signal_frame = true;
        } else if (*letters != 'B' && *letters != 'G') {
            return false;
        }
    }
    return !(cie->encoding & INDIRECT);
}

static bool read_cie(const struct frame_section *section, uint64_t offset, struct cie_fields *cie)
{
    struct entry_view view;
    if (!open_entry(section, offset, &view) || view.is_end || !view.is_cie)
        return false;
    struct byte_cursor *cursor = &view.cursor;
    *cie = (struct cie_fields){.encoding = DW_EH_PE_absptr};
    uint8_t version = cursor_u8(cursor);
    const char *letters = cursor_cstr(cursor);
    if (version == 4)
        cursor_skip(cursor, 2);
    cie->entry.code_align = cursor_uleb(cursor);
    cie->entry.data_align = cursor_sleb(cursor);
    cie->entry.return_register = version == 1 ? cursor_u8(cursor) : cursor_uleb(cursor);
    if (cursor->failed || (version != 1 && version != 3 && version != 4))
        return false;
    size_t sized_at = cursor->offset;
    if (!read_augmentation(cursor, letters, cie))
        return false;
    if (cie->sized) {
        cursor->offset = sized_at;
        uint64_t size = cursor_uleb(cursor);
        cursor_skip(cursor, size <= cursor_left(cursor) ? (size_t)size : SIZE_MAX);
    }
    cie->entry.initial_bytes = cursor_left(cursor);
    cie->entry.initial = cursor_bytes(cursor, cie->entry.initial_bytes);
    return !cursor->failed;
}

/* Read the FDE at OFFSET. */
static bool read_fde(const struct frame_section *section, uint64_t offset, struct cfi_entry *entry)
{
    struct entry_view view;
    struct cie_fields cie;
    if (!open_entry(section, offset, &view) || view.is_end || view.is_cie ||
        !read_cie(section, view.cie_at, &cie))
        return false;
    struct byte_cursor *cursor = &view.cursor;
    *entry = cie.entry;
    entry->start = get_pointer(&section->entries, cursor, cie.encoding);
    entry->end = entry->start + get_value(cursor, cie.encoding & FORMAT_MASK);
    if (cie.sized) {
        uint64_t size = cursor_uleb(cursor);
        cursor_skip(cursor, size <= cursor_left(cursor) ? (size_t)size : SIZE_MAX);
    }
    entry->instructions_bytes = cursor_left(cursor);
    entry->instructions = cursor_bytes(cursor, entry->instructions_bytes);
    return !cursor->failed && entry->start <= entry->end;
}

static bool covers(const struct cfi_entry *entry, uint64_t pc)
{
    return pc >= entry->start && pc < entry->end;
}

/* ---- By the search table ---- */

/* The table of HDR, if it is one that can be searched; *COUNT its entries. */
static const uint8_t *open_table(const struct frame_bytes *hdr, size_t *count)
{
    struct byte_cursor cursor = byte_cursor_over(hdr->bytes, hdr->size, false);
    uint8_t version = cursor_u8(&cursor), pointer = cursor_u8(&cursor);
    uint8_t count_encoding = cursor_u8(&cursor), table = cursor_u8(&cursor);
    if (version != 1 || table != HDR_TABLE_ENCODING || pointer == DW_EH_PE_omit ||
        count_encoding == DW_EH_PE_omit)
        return NULL;
    get_value(&cursor, pointer);
    *count = (size_t)get_value(&cursor, count_encoding);
    if (*count > cursor_left(&cursor) / EH_FRAME_HDR_ENTRY_BYTES)
        return NULL;
    return cursor_bytes(&cursor, *count * EH_FRAME_HDR_ENTRY_BYTES);
}

static uint64_t table_value(const struct frame_bytes *hdr, const uint8_t *table, size_t word)
{
    struct byte_cursor cursor = byte_cursor_over(table + word * 4, 4, false);
    return hdr->addr + (uint64_t)(int32_t)cursor_u32(&cursor);
}

/* Find the entry about PC by the table.  Returns false if that has none. */
static bool find_by_table(const struct frame_section *section, uint64_t pc, struct cfi_entry *entry)
{
    const struct frame_bytes *hdr = &section->hdr;
    size_t count, behind;
    const uint8_t *table = hdr->size ? open_table(hdr, &count) : NULL;
    if (!table)
        return false;
    array_bisect(behind, count, table_value(hdr, table, 2 * behind) <= pc);
    return behind &&
           read_fde(section, table_value(hdr, table, 2 * behind - 1) - section->entries.addr,
                    entry) &&
           covers(entry, pc);
}

/* ---- By reading all ---- */

static int compare_places(const void *left, const void *right)
{
    const struct frame_place *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int add_place(struct frame_section *section, const struct cfi_entry *entry, uint64_t offset)
{
    struct frame_place *index =
        array_room(section->index, section->index_count, &section->index_capacity, sizeof *index);
    if (!index)
        return -1;
    section->index = index;
    index[section->index_count++] = (struct frame_place){entry->start, entry->end, offset};
    return 0;
}

static int read_all(struct frame_section *section)
{
    struct entry_view view;
    struct cfi_entry entry;
    section->indexed = true;
    for (uint64_t at = 0; open_entry(section, at, &view) && (!view.is_end || section->debug);
         at = view.next)
        if (!view.is_end && !view.is_cie && read_fde(section, at, &entry) &&
            entry.start < entry.end && add_place(section, &entry, at))
            return -1;
    if (section->index_count)
        qsort(section->index, section->index_count, sizeof *section->index, compare_places);
    return 0;
}

static bool find_by_index(const struct frame_section *section, uint64_t pc, struct cfi_entry *entry)
{
    size_t behind;
    array_bisect(behind, section->index_count, section->index[behind].start <= pc);
    return behind && pc < section->index[behind - 1].end &&
           read_fde(section, section->index[behind - 1].offset, entry);
}

int frame_section_find(struct frame_section *section, uint64_t pc, struct unwind_budget *budget,
                       struct cfi_entry *entry)
{
    if (section->entries.size == 0 || !unwind_budget_take(budget))
        return 0;
    if (find_by_table(section, pc, entry))
        return 1;
    size_t count;
    if (section->hdr.size && open_table(&section->hdr, &count))
        return 0;
    if (!section->indexed && read_all(section))
        return -1;
    return find_by_index(section, pc, entry);
}

void frame_section_free(struct frame_section *section)
{
    free(section->index);
    *section = (struct frame_section){0};
}
