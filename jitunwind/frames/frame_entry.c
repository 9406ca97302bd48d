/* See frame_entry.h. */
#include "jitunwind/frames/frame_entry.h"

enum { ADDRESS_BYTES = 8 };

static struct byte_cursor bytes_of(const struct frame_section *section)
{
    return byte_cursor_over(section->bytes, section->size, false);
}

static bool read_cie(const struct frame_section *section, uint64_t offset, struct eh_cie *cie)
{
    struct byte_cursor bytes = bytes_of(section);
    struct eh_entry entry;
    return eh_entry_open(&bytes, offset, false, &entry) && !entry.is_end && entry.is_cie &&
           !eh_cie_read(&entry.cursor, ADDRESS_BYTES, cie);
}

static bool read_fde(const struct frame_section *section, struct eh_entry *view,
                     struct cfi_entry *entry)
{
    struct eh_fde fde;
    if (!read_cie(section, view->cie_at, &fde.cie) ||
        eh_fde_read(&view->cursor, ADDRESS_BYTES, &fde))
        return false;
    *entry = cfi_entry_of(&fde.cie, eh_fde_pc(&fde, section->addr), fde.pc_range, fde.instructions,
                          fde.instructions_bytes);
    return entry->end >= entry->start;
}

enum frame_entry_kind ju_frame_entry_read(const struct frame_section *section, size_t *offset,
                                          struct cfi_entry *entry)
{
    struct byte_cursor bytes = bytes_of(section);
    struct eh_entry view;
    if (*offset >= section->size)
        return ENTRY_END;
    if (!eh_entry_open(&bytes, *offset, false, &view))
        return ENTRY_BROKEN;
    *offset = view.next;
    if (view.is_end)
        return ENTRY_END;
    if (view.is_cie)
        return ENTRY_CIE;
    return read_fde(section, &view, entry) ? ENTRY_FDE : ENTRY_BROKEN;
}
