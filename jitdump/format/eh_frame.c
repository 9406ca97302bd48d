/* See eh_frame.h, which has the format. */
#include "jitdump/format/eh_frame.h"

#include "jitdump/format/cfa_instruction.h"

#include <stdlib.h>

enum {
    ENTRY_HEADER_BYTES = 8, /* length and id */
    ENCODING_FORMAT = 0x0f,
    ENCODING_APPLICATION = 0x70,
    ENCODING_INDIRECT = 0x80,
};

const char *jd_cfa_program_check(const struct eh_cie *cie, const uint8_t *instructions, size_t size,
                                 bool big_endian, struct cfa_program *program)
{
    struct cfa_decoder decoder =
        cfa_decoder_over(instructions, size, big_endian, cie->code_align, cie->data_align);
    struct cfa_instruction instruction;
    *program = (struct cfa_program){0};
    while (cfa_next(&decoder, &instruction)) {
        program->remembered_count += instruction.subject == CFA_IS_REMEMBER;
        if (instruction.subject == CFA_IS_RECALL && program->remembered_count-- == 0)
            return "call frame instruction restore_state without a state";
        program->advances |= instruction.subject == CFA_IS_ADVANCE;
        if (instruction.opcode != CFA_nop)
            program->used_bytes = decoder.program.offset;
    }
    return decoder.wrong;
}

/* A pointer's value in the format of ENCODING, sign-extended if that is signed. */
static uint64_t get_encoded(struct byte_cursor *cursor, uint8_t encoding, uint8_t address_bytes)
{
    switch (encoding & ENCODING_FORMAT) {
    case 0x00:
        return address_bytes == 4 ? cursor_u32(cursor) : cursor_u64(cursor);
    case 0x02:
        return cursor_u16(cursor);
    case 0x03:
        return cursor_u32(cursor);
    case 0x0a:
        return (uint64_t)(int16_t)cursor_u16(cursor);
    case 0x0b:
        return (uint64_t)(int32_t)cursor_u32(cursor);
    default:
        return cursor_u64(cursor);
    }
}

static bool can_read(uint8_t encoding)
{
    static const uint16_t formats =
        1u << 0x0 | 1u << 0x2 | 1u << 0x3 | 1u << 0x4 | 1u << 0xa | 1u << 0xb | 1u << 0xc;
    uint8_t application = encoding & ENCODING_APPLICATION;
    return (formats >> (encoding & ENCODING_FORMAT) & 1) && !(encoding & ENCODING_INDIRECT) &&
           (application == DW_EH_PE_absptr || application == DW_EH_PE_pcrel);
}

static void skip_personality(struct byte_cursor *cursor, uint8_t address_bytes)
{
    uint8_t encoding = cursor_u8(cursor);
    if (encoding == DW_EH_PE_omit)
        return;
    if ((encoding & ENCODING_FORMAT) == 0x01 || (encoding & ENCODING_FORMAT) == 0x09)
        cursor_uleb(cursor);
    else
        get_encoded(cursor, encoding, address_bytes);
}

/* The augmentation data, letter by letter.  Personality and LSDA serve exceptions, not unwinding:
 * stepped over. */
static const char *read_augmentation(struct byte_cursor *cursor, const char *letters,
                                     uint8_t address_bytes, struct eh_cie *cie)
{
    if (*letters == '\0')
        return NULL;
    if (*letters != 'z')
        return "CIE with an augmentation of unknown length";
    cie->sized = true;
    uint64_t size = cursor_uleb(cursor);
    const uint8_t *data =
        cursor_bytes(cursor, size <= cursor_left(cursor) ? (size_t)size : SIZE_MAX);
    if (!data)
        return "CIE with an augmentation longer than itself";
    struct byte_cursor part = byte_cursor_over(data, (size_t)size, cursor->big_endian);
    while (*++letters) {
        if (*letters == 'R')
            cie->fde_encoding = cursor_u8(&part);
        else if (*letters == 'L')
            cursor_skip(&part, 1);
        else if (*letters == 'P')
            skip_personality(&part, address_bytes);
        else if (*letters == 'S')
            cie->signal_frame = true;
        else if (*letters == 'B')
            cie->b_key = true;
        else if (*letters == 'G') /* the frame is tagged: matters to who unwinds for real */
            continue;
        else
            return "CIE with an unknown augmentation letter";
    }
    return part.failed ? "CIE with an augmentation shorter than its letters say" : NULL;
}

static const char *take_instructions(struct byte_cursor *cursor, const struct eh_cie *cie,
                                     const uint8_t **instructions, size_t *size)
{
    size_t left = cursor_left(cursor);
    struct cfa_program program;
    *instructions = cursor_bytes(cursor, left);
    const char *wrong =
        jd_cfa_program_check(cie, *instructions, left, cursor->big_endian, &program);
    *size = program.used_bytes;
    return wrong;
}

static const char *read_cie(struct byte_cursor *cursor, uint8_t address_bytes, struct eh_cie *cie)
{
    *cie = (struct eh_cie){.fde_encoding = DW_EH_PE_absptr};
    uint8_t version = cursor_u8(cursor);
    if (version != 1 && version != 3)
        return "CIE of unknown version";
    const char *letters = cursor_cstr(cursor);
    cie->code_align = cursor_uleb(cursor);
    cie->data_align = cursor_sleb(cursor);
    cie->return_register = version == 1 ? cursor_u8(cursor) : cursor_uleb(cursor);
    if (cursor->failed)
        return "CIE is shorter than its fields";
    const char *wrong = read_augmentation(cursor, letters, address_bytes, cie);
    if (!wrong && !can_read(cie->fde_encoding))
        wrong = "CIE with a pointer encoding that JIT code can't have";
    return wrong ? wrong
                 : take_instructions(cursor, cie, &cie->instructions, &cie->instructions_bytes);
}

/* The bytes of the entry at OFFSET after its length and id, which is set.  Returns false if it is
 * not in SECTION. */
static bool open_entry(const struct byte_cursor *section, size_t offset, struct byte_cursor *entry,
                       uint32_t *id)
{
    struct byte_cursor cursor = *section;
    if (offset > section->size)
        return false;
    cursor.offset = offset;
    cursor.failed = false;
    uint32_t length = cursor_u32(&cursor);
    if (cursor.failed || length > cursor_left(&cursor))
        return false;
    *entry = cursor;
    entry->size = cursor.offset + length;
    *id = cursor_u32(entry);
    return !entry->failed;
}

/* ---- The CIEs that have been passed ---- */

static struct eh_passed_cie *passed_cie(struct eh_frame_walk *walk, size_t number)
{
    return number ? &walk->further_cies[number - 1] : &walk->first_cie;
}

/* Keep where a CIE begins.  Returns false if there is no memory. */
static bool pass_cie(struct eh_frame_walk *walk, size_t offset)
{
    if (walk->cie_count > walk->further_capacity) {
        size_t wanted = walk->cie_count * 2;
        struct eh_passed_cie *grown = wanted > SIZE_MAX / sizeof *grown
                                          ? NULL
                                          : realloc(walk->further_cies, wanted * sizeof *grown);
        if (!grown)
            return false;
        walk->further_cies = grown;
        walk->further_capacity = wanted;
    }
    *passed_cie(walk, walk->cie_count++) = (struct eh_passed_cie){.offset = offset};
    return true;
}

/* The number of the CIE at OFFSET, or cie_count. */
static size_t find_cie(struct eh_frame_walk *walk, size_t offset)
{
    size_t first = 0, end = walk->cie_count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (passed_cie(walk, middle)->offset < offset)
            first = middle + 1;
        else
            end = middle;
    }
    bool found = first < walk->cie_count && passed_cie(walk, first)->offset == offset;
    return found ? first : walk->cie_count;
}

/* Set FDE's CIE, which begins OFFSET bytes into the section. */
static const char *get_cie(struct eh_frame_walk *walk, size_t offset, struct eh_fde *fde)
{
    struct byte_cursor entry;
    uint32_t id;
    fde->cie_number = find_cie(walk, offset);
    if (fde->cie_number == walk->cie_count || !open_entry(&walk->section, offset, &entry, &id))
        return "FDE whose CIE is not there";
    struct eh_passed_cie *passed = passed_cie(walk, fde->cie_number);
    if (!passed->is_read)
        passed->wrong = read_cie(&entry, walk->address_bytes, &passed->cie);
    passed->is_read = true;
    fde->cie = passed->cie;
    return passed->wrong;
}

/* CURSOR stands after the id of an FDE. */
static const char *read_fde(struct eh_frame_walk *walk, struct byte_cursor *cursor, uint32_t id,
                            struct eh_fde *fde)
{
    size_t id_offset = cursor->offset - 4;
    if (id > id_offset)
        return "FDE whose CIE is not there";
    const char *wrong = get_cie(walk, id_offset - id, fde);
    if (wrong)
        return wrong;
    uint8_t encoding = fde->cie.fde_encoding;
    fde->pcrel = (encoding & ENCODING_APPLICATION) == DW_EH_PE_pcrel;
    fde->pc_offset = cursor->offset;
    fde->pc_value = get_encoded(cursor, encoding, walk->address_bytes);
    fde->pc_range = get_encoded(cursor, encoding & ENCODING_FORMAT, walk->address_bytes);
    if (fde->cie.sized) {
        uint64_t size = cursor_uleb(cursor);
        cursor_skip(cursor, size <= cursor_left(cursor) ? (size_t)size : SIZE_MAX);
    }
    if (cursor->failed)
        return "FDE is shorter than its fields";
    return take_instructions(cursor, &fde->cie, &fde->instructions, &fde->instructions_bytes);
}

struct eh_frame_walk jd_eh_frame_begin(const void *data, size_t size, bool big_endian,
                                       uint8_t address_bytes)
{
    return (struct eh_frame_walk){.section = byte_cursor_over(data, size, big_endian),
                                  .address_bytes = address_bytes};
}

void jd_eh_frame_end(struct eh_frame_walk *walk)
{
    free(walk->further_cies);
    walk->further_cies = NULL;
    walk->cie_count = walk->further_capacity = 0;
}

static bool stop(struct eh_frame_walk *walk, const char *wrong, size_t at)
{
    walk->broken = wrong;
    walk->broken_at = at;
    return false;
}

bool jd_eh_frame_next(struct eh_frame_walk *walk, struct eh_fde *fde)
{
    while (cursor_left(&walk->section)) {
        struct byte_cursor length = walk->section, entry;
        size_t at = walk->section.offset;
        uint32_t id;
        if (cursor_u32(&length) == 0 && !length.failed)
            return false;
        if (!open_entry(&walk->section, at, &entry, &id))
            return stop(walk, "an entry reaches past the section", at);
        walk->section.offset = entry.size;
        if (id == 0) {
            walk->no_memory = !pass_cie(walk, at);
            if (walk->no_memory)
                return stop(walk, "out of memory", at);
            continue;
        }
        const char *wrong = read_fde(walk, &entry, id, fde);
        return wrong ? stop(walk, wrong, at) : true;
    }
    return false;
}

/* ---- Writing ---- */

static size_t begin_entry(const struct eh_frame_writer *writer, uint32_t id)
{
    size_t start = writer->sink->size;
    sink_u32(writer->sink, 0); /* the length, set by end_entry */
    sink_u32(writer->sink, id);
    return start;
}

static size_t end_entry(const struct eh_frame_writer *writer, size_t start)
{
    struct byte_sink *sink = writer->sink;
    size_t rest = (sink->size - start) % EH_FRAME_ALIGN_BYTES;
    sink_zeros(sink, (EH_FRAME_ALIGN_BYTES - rest) % EH_FRAME_ALIGN_BYTES);
    if (!sink->overflow) {
        struct byte_sink length = byte_sink_over(sink->data + start, 4);
        length.big_endian = sink->big_endian;
        sink_u32(&length, (uint32_t)(sink->size - start - 4));
    }
    return start - writer->start;
}

size_t jd_eh_frame_put_cie(const struct eh_frame_writer *writer, const struct eh_cie *cie)
{
    struct byte_sink *sink = writer->sink;
    size_t start = begin_entry(writer, 0);
    bool wide = cie->return_register > UINT8_MAX;
    sink_u8(sink, wide ? 3 : 1);
    sink_bytes(sink, "zR", 2);
    if (cie->signal_frame)
        sink_u8(sink, 'S');
    if (cie->b_key)
        sink_u8(sink, 'B');
    sink_u8(sink, '\0');
    sink_uleb(sink, cie->code_align);
    sink_sleb(sink, cie->data_align);
    if (wide)
        sink_uleb(sink, cie->return_register);
    else
        sink_u8(sink, (uint8_t)cie->return_register);
    sink_uleb(sink, 1); /* of augmentation data: */
    sink_u8(sink, DW_EH_PE_pcrel | DW_EH_PE_sdata4);
    sink_bytes(sink, cie->instructions, cie->instructions_bytes);
    return end_entry(writer, start);
}

size_t jd_eh_frame_put_fde(const struct eh_frame_writer *writer, size_t cie_offset, uint64_t pc,
                           uint64_t pc_range, const uint8_t *instructions,
                           size_t instructions_bytes)
{
    struct byte_sink *sink = writer->sink;
    size_t offset = sink->size - writer->start;
    size_t start = begin_entry(writer, (uint32_t)(offset + 4 - cie_offset));
    uint64_t here = writer->section_addr + offset + ENTRY_HEADER_BYTES;
    sink_u32(sink, (uint32_t)(pc - here));
    sink_u32(sink, (uint32_t)pc_range);
    sink_uleb(sink, 0); /* bytes of augmentation data */
    sink_bytes(sink, instructions, instructions_bytes);
    return end_entry(writer, start);
}

void jd_eh_frame_put_end(const struct eh_frame_writer *writer)
{
    sink_u32(writer->sink, 0);
}

void jd_eh_frame_hdr_put(struct byte_sink *sink, uint64_t hdr_addr, uint64_t eh_frame_addr,
                         const struct eh_frame_hdr_entry *entries, size_t count)
{
    sink_u8(sink, 1);
    sink_u8(sink, DW_EH_PE_pcrel | DW_EH_PE_sdata4);
    sink_u8(sink, DW_EH_PE_udata4);
    sink_u8(sink, DW_EH_PE_datarel | DW_EH_PE_sdata4);
    sink_u32(sink, (uint32_t)(eh_frame_addr - (hdr_addr + 4)));
    sink_u32(sink, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        sink_u32(sink, (uint32_t)(entries[i].pc - hdr_addr));
        sink_u32(sink, (uint32_t)(entries[i].fde_addr - hdr_addr));
    }
}
