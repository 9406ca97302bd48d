/* See plain_frames.h.  The format stands in jitdump/format/eh_entry.h; addresses are absolute, so
 * that an FDE can be copied to another place. */
#include "jitunwind/frames/plain_frames.h"

#include "jitdump/format/cfa_opcode.h"

enum {
    WORD = 8,
    ENTRY_ALIGN = 8,
    ID_AT = 4,
    BEGIN_AT = 8,
    HEAD_BYTES = 24, /* length, id, begin, range */
    ROW_BYTES_MOST = 5 + 12 + MACHINE_SAVED * 5,
};

size_t ju_plain_frames_most(uint32_t row_count)
{
    return (size_t)(row_count + 1) * (HEAD_BYTES + ENTRY_ALIGN + ROW_BYTES_MOST);
}

/* ---- Entries ---- */

static void end_entry(struct byte_sink *section, size_t at)
{
    sink_align(section, ENTRY_ALIGN);
    if (!section->overflow) {
        uint32_t length = (uint32_t)(section->size - at - ID_AT);
        memcpy(section->data + at, &length, sizeof length);
    }
}

/* The rule at a function's first instruction. */
static struct frame_rule first_rule(void)
{
    struct frame_rule rule = {MACHINE_CFA_OFFSET, MACHINE_SP, RULE_OFFSET, {0}};
    for (unsigned i = 0; i < MACHINE_SAVED; i++)
        rule.slots[i] =
            MACHINE_CFA_OFFSET != 0 && machine_saved[i] == MACHINE_RETURN ? -1 : SLOT_SAME;
    return rule;
}

void ju_plain_cie_put(struct byte_sink *section)
{
    size_t at = section->size;
    sink_u32(section, 0);
    sink_u32(section, 0);
    sink_u8(section, 1);
    sink_cstr(section, "");
    sink_uleb(section, 1);
    sink_sleb(section, -WORD);
    sink_u8(section, MACHINE_RETURN);
    sink_u8(section, CFA_def_cfa);
    sink_uleb(section, MACHINE_SP);
    sink_uleb(section, MACHINE_CFA_OFFSET);
    if (MACHINE_CFA_OFFSET) {
        sink_u8(section, CFA_offset | (MACHINE_RETURN & LOW_SIX_BITS));
        sink_uleb(section, 1);
    }
    sink_zeros(section, at + PLAIN_CIE_BYTES - section->size);
    end_entry(section, at);
}

/* ---- Rows ---- */

/* Whether RULE can be written for a debugger. */
static bool is_known(const struct frame_rule *rule)
{
    return rule->kind == RULE_OFFSET && rule->cfa_offset >= 0 && rule->slots[0] != SLOT_UNKNOWN;
}

static void put_advance(struct byte_sink *section, uint32_t by)
{
    if (by <= LOW_SIX_BITS) {
        sink_u8(section, (uint8_t)(CFA_advance_loc | by));
    } else if (by <= UINT16_MAX) {
        sink_u8(section, CFA_advance_loc2);
        sink_u16(section, (uint16_t)by);
    } else {
        sink_u8(section, CFA_advance_loc4);
        sink_u32(section, by);
    }
}

static void put_slot(struct byte_sink *section, uint8_t reg, int16_t slot)
{
    if (slot == SLOT_SAME || slot == SLOT_UNDEFINED || slot == SLOT_UNKNOWN) {
        sink_u8(section, slot == SLOT_SAME ? CFA_same_value : CFA_undefined);
        sink_uleb(section, reg);
    } else if (slot <= 0) {
        sink_u8(section, (uint8_t)(CFA_offset | reg));
        sink_uleb(section, (uint64_t)-slot);
    } else {
        sink_u8(section, CFA_offset_extended_sf);
        sink_uleb(section, reg);
        sink_sleb(section, -slot);
    }
}

/* Write the changes from *NOW to RULE, and set *NOW to RULE. */
static void put_changes(struct byte_sink *section, struct frame_rule *now,
                        const struct frame_rule *rule)
{
    if (rule->cfa_register != now->cfa_register) {
        sink_u8(section, CFA_def_cfa);
        sink_uleb(section, rule->cfa_register);
        sink_uleb(section, (uint64_t)rule->cfa_offset);
    } else if (rule->cfa_offset != now->cfa_offset) {
        sink_u8(section, CFA_def_cfa_offset);
        sink_uleb(section, (uint64_t)rule->cfa_offset);
    }
    for (unsigned i = 0; i < MACHINE_SAVED; i++)
        if (rule->slots[i] != now->slots[i])
            put_slot(section, machine_saved[i], rule->slots[i]);
    *now = *rule;
}

/* An FDE of the ROWS, which are all known, up to END of the function at START. */
static void put_entry(struct byte_sink *section, uint64_t start, uint32_t end,
                      const struct table_row_draft *rows, uint32_t row_count)
{
    struct frame_rule now = first_rule();
    uint32_t from = rows[0].offset, at = from;
    size_t entry = section->size;
    sink_u32(section, 0);
    sink_u32(section, (uint32_t)(entry + ID_AT));
    sink_u64(section, start + from);
    sink_u64(section, end - from);
    for (uint32_t i = 0; i < row_count; i++) {
        if (rows[i].offset > at)
            put_advance(section, rows[i].offset - at);
        at = rows[i].offset;
        put_changes(section, &now, &rows[i].rule);
    }
    end_entry(section, entry);
}

void ju_plain_frames_put(struct byte_sink *section, uint64_t start, uint32_t bytes,
                         const struct table_row_draft *rows, uint32_t row_count)
{
    for (uint32_t i = 0; i < row_count;) {
        uint32_t first = i;
        while (i < row_count && is_known(&rows[i].rule))
            i++;
        uint32_t end = i < row_count ? rows[i].offset : bytes;
        if (i > first && end > rows[first].offset)
            put_entry(section, start, end, rows + first, i - first);
        i += i == first;
    }
}

/* ---- Entries that are written ---- */

static size_t entry_bytes(const uint8_t *entry)
{
    uint32_t length;
    memcpy(&length, entry, sizeof length);
    return length + ID_AT;
}

/* Code that begins at 0 was dropped by a linker. */
void ju_plain_frames_bury(uint8_t *frames, size_t count)
{
    for (size_t at = 0; at < count; at += entry_bytes(frames + at))
        memset(frames + at + BEGIN_AT, 0, 2 * WORD);
}

void ju_plain_frames_place(uint8_t *frames, size_t count, size_t offset)
{
    for (size_t at = 0; at < count; at += entry_bytes(frames + at)) {
        uint32_t id = (uint32_t)(offset + at + ID_AT);
        memcpy(frames + at + ID_AT, &id, sizeof id);
    }
}
