/* .eh_frame and .eh_frame_hdr: reading anybody's, writing one plain form.
 *
 * Their formats: jitdump/format/eh_entry.h.
 *
 * The written form is version 1, "zR" (with S or B where it was), with all pointers pcrel | sdata4
 * (0x1b) and the table datarel | sdata4 (0x3b).  Entries are padded to 8 with DW_CFA_nop.  All of
 * perf's unwinders, libgcc and gdb read that form.
 *
 * An .eh_frame is valid if every entry lies inside it, every FDE's CIE is an entry that stands
 * before it in it, and every instruction lies inside its entry.  Source: LSB 5.0, "Exception
 * Frames"; DWARF 5, section 6.4.
 */
#ifndef EH_FRAME_H
#define EH_FRAME_H

#include "jitdump/format/byte_sink.h"
#include "jitdump/format/eh_entry.h"

/* Sizes of what is written. */
enum {
    EH_FRAME_HDR_BYTES = 12, /* without the table */
    EH_FRAME_ALIGN_BYTES = 8,
    EH_FRAME_END_BYTES = 4, /* the zero length that ends .eh_frame */
};

/* A CIE that the walk has passed.  It is read when the first FDE refers to it, and only then:
 * thousands may share a long one. */
struct eh_passed_cie {
    size_t offset; /* in the section */
    bool is_read;
    const char *wrong; /* with it, or NULL */
    struct eh_cie cie;
};

struct eh_frame_walk {
    struct byte_cursor section;
    uint8_t address_bytes; /* 4 or 8: of a EH_PE_absptr */
    const char *broken;    /* what is wrong, or NULL */
    size_t broken_at;      /* the offset of the entry where it is */
    bool no_memory;        /* that is what is wrong */
    size_t cie_count;
    struct eh_passed_cie first_cie;     /* as a rule the only one */
    struct eh_passed_cie *further_cies; /* in order of their offsets */
    size_t further_capacity;
};

/* Read the .eh_frame at DATA, which must outlive the walk and its entries.  jd_eh_frame_end ends
 * the walk. */
struct eh_frame_walk jd_eh_frame_begin(const void *data, size_t size, bool big_endian,
                                       uint8_t address_bytes);

/* The next FDE; its instructions, and its CIE's, are without trailing nops.  Returns false at the
 * end, and at damage, when walk->broken says what is wrong. */
bool jd_eh_frame_next(struct eh_frame_walk *walk, struct eh_fde *fde);

/* Free what WALK has allocated. */
void jd_eh_frame_end(struct eh_frame_walk *walk);

/* The effects of a program of call frame instructions. */
struct cfa_program {
    size_t used_bytes;       /* its length without trailing nops */
    size_t remembered_count; /* states that it leaves on the stack */
    bool advances;           /* the location, be it by 0 */
};

/* Check a program of call frame instructions with the alignments of CIE.  Returns NULL and sets
 * *PROGRAM, or says what is wrong. */
const char *jd_cfa_program_check(const struct eh_cie *cie, const uint8_t *instructions, size_t size,
                                 bool big_endian, struct cfa_program *program);

/* ---- Writing ---- */

/* The writer's position: SINK holds the section from START on, and SECTION_ADDR is the address that
 * it will have. */
struct eh_frame_writer {
    struct byte_sink *sink;
    size_t start;
    uint64_t section_addr;
};

/* Put CIE in the form above.  Returns its offset in the section. */
size_t jd_eh_frame_put_cie(const struct eh_frame_writer *writer, const struct eh_cie *cie);

/* Put an FDE for [PC, PC + PC_RANGE).  Returns its offset in the section. */
size_t jd_eh_frame_put_fde(const struct eh_frame_writer *writer, size_t cie_offset, uint64_t pc,
                           uint64_t pc_range, const uint8_t *instructions,
                           size_t instructions_bytes);

/* Put the zero length that ends the section. */
void jd_eh_frame_put_end(const struct eh_frame_writer *writer);

struct eh_frame_hdr_entry {
    uint64_t pc;
    uint64_t fde_addr;
};

/* Put an .eh_frame_hdr that will stand at HDR_ADDR for the section at EH_FRAME_ADDR; ENTRIES are
 * sorted by pc. */
void jd_eh_frame_hdr_put(struct byte_sink *sink, uint64_t hdr_addr, uint64_t eh_frame_addr,
                         const struct eh_frame_hdr_entry *entries, size_t count);

#endif
