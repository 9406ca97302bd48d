/* See frame_section.h, which has the format. */
#include "injector/native/frame_section.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"

#include <stdlib.h>

enum { ADDRESS_BYTES = 8 };

/* ---- Entries ---- */

static bool open_entry(const struct frame_section *section, uint64_t offset, struct eh_entry *entry)
{
    struct byte_cursor cursor =
        byte_cursor_over(section->entries.bytes, section->entries.size, false);
    return eh_entry_open(&cursor, offset, section->debug, entry);
}

static bool read_cie(const struct frame_section *section, uint64_t offset, struct eh_cie *cie)
{
    struct eh_entry entry;
    return open_entry(section, offset, &entry) && !entry.is_end && entry.is_cie &&
           !eh_cie_read(&entry.cursor, ADDRESS_BYTES, cie);
}

/* Read the FDE at OFFSET. */
static bool read_fde(const struct frame_section *section, uint64_t offset, struct cfi_entry *entry)
{
    struct eh_entry view;
    struct eh_fde fde;
    if (!open_entry(section, offset, &view) || view.is_end || view.is_cie ||
        !read_cie(section, view.cie_at, &fde.cie) || eh_fde_read(&view.cursor, ADDRESS_BYTES, &fde))
        return false;
    uint64_t start = eh_fde_pc(&fde, section->entries.addr);
    *entry = cfi_entry_of(&fde.cie, start, fde.pc_range, fde.instructions, fde.instructions_bytes);
    return entry->start <= entry->end;
}

static bool covers(const struct cfi_entry *entry, uint64_t pc)
{
    return pc >= entry->start && pc < entry->end;
}

/* ---- By the search table ---- */

/* Returns false if there is no table that can be searched. */
static bool open_table(const struct frame_bytes *bytes, struct eh_frame_hdr *hdr)
{
    return bytes->size && eh_frame_hdr_read(bytes->bytes, bytes->size, bytes->addr, hdr);
}

/* Find the entry about PC by the table.  Returns false if that has none. */
static bool find_by_table(const struct frame_section *section, const struct eh_frame_hdr *hdr,
                          uint64_t pc, struct cfi_entry *entry)
{
    size_t behind;
    array_bisect(behind, hdr->count, eh_frame_hdr_code(hdr, behind) <= pc);
    return behind &&
           read_fde(section, eh_frame_hdr_fde(hdr, behind - 1) - section->entries.addr, entry) &&
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
    struct eh_entry view;
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
    struct eh_frame_hdr hdr;
    if (open_table(&section->hdr, &hdr))
        return find_by_table(section, &hdr, pc, entry);
    if (!section->indexed && read_all(section))
        return -1;
    return find_by_index(section, pc, entry);
}

void frame_section_free(struct frame_section *section)
{
    free(section->index);
    *section = (struct frame_section){0};
}
