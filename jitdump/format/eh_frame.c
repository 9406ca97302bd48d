/* See eh_frame.h, which has the format. */
#include "jitdump/format/eh_frame.h"

#include "jitdump/format/cfa_instruction.h"

#include <stdlib.h>

enum { ENTRY_HEADER_BYTES = 8 }; /* length and id */

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

/* Check the *SIZE bytes of instructions, and leave out trailing nops. */
static const char *trim_instructions(const struct eh_frame_walk *walk, const struct eh_cie *cie,
                                     const uint8_t *instructions, size_t *size)
{
    struct cfa_program program;
    const char *wrong =
        jd_cfa_program_check(cie, instructions, *size, walk->section.big_endian, &program);
    *size = program.used_bytes;
    return wrong;
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
static size_t find_cie(struct eh_frame_walk *walk, uint64_t offset)
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

static const char *read_cie(const struct eh_frame_walk *walk, struct byte_cursor *cursor,
                            struct eh_cie *cie)
{
    const char *wrong = eh_cie_read(cursor, walk->address_bytes, cie);
    return wrong ? wrong
                 : trim_instructions(walk, cie, cie->instructions, &cie->instructions_bytes);
}

/* Set FDE's CIE, which begins OFFSET bytes into the section. */
static const char *get_cie(struct eh_frame_walk *walk, uint64_t offset, struct eh_fde *fde)
{
    struct eh_entry entry;
    fde->cie_number = find_cie(walk, offset);
    if (fde->cie_number == walk->cie_count || !eh_entry_open(&walk->section, offset, false, &entry))
        return "FDE whose CIE is not there";
    struct eh_passed_cie *passed = passed_cie(walk, fde->cie_number);
    if (!passed->is_read)
        passed->wrong = read_cie(walk, &entry.cursor, &passed->cie);
    passed->is_read = true;
    fde->cie = passed->cie;
    return passed->wrong;
}

static const char *read_fde(struct eh_frame_walk *walk, struct eh_entry *entry, struct eh_fde *fde)
{
    const char *wrong = get_cie(walk, entry->cie_at, fde);
    if (!wrong)
        wrong = eh_fde_read(&entry->cursor, walk->address_bytes, fde);
    return wrong ? wrong
                 : trim_instructions(walk, &fde->cie, fde->instructions, &fde->instructions_bytes);
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
        struct eh_entry entry;
        size_t at = walk->section.offset;
        if (!eh_entry_open(&walk->section, at, false, &entry))
            return stop(walk, "an entry reaches past the section", at);
        if (entry.is_end)
            return false;
        walk->section.offset = entry.next;
        if (entry.is_cie) {
            walk->no_memory = !pass_cie(walk, at);
            if (walk->no_memory)
                return stop(walk, "out of memory", at);
            continue;
        }
        const char *wrong = read_fde(walk, &entry, fde);
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
    sink_u8(sink, EH_PE_pcrel | EH_PE_sdata4);
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
    sink_u8(sink, EH_PE_pcrel | EH_PE_sdata4);
    sink_u8(sink, EH_PE_udata4);
    sink_u8(sink, EH_PE_datarel | EH_PE_sdata4);
    sink_u32(sink, (uint32_t)(eh_frame_addr - (hdr_addr + 4)));
    sink_u32(sink, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        sink_u32(sink, (uint32_t)(entries[i].pc - hdr_addr));
        sink_u32(sink, (uint32_t)(entries[i].fde_addr - hdr_addr));
    }
}
