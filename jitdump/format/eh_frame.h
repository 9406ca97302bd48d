/* .eh_frame and .eh_frame_hdr: reading anybody's, writing one plain form.
 *
 * .eh_frame is a list of entries, each
 *      0 u32 length           of what follows; 0: the end; 0xffffffff: 64-bit form, in no JIT's
 *                             output
 *      4 u32 id               0: a CIE; else an FDE, whose CIE begins `id` bytes before this field
 *
 * CIE     8 u8 version        1 or 3
 *         9 augmentation      NUL-terminated: "", or "z" and letters out of R P L S B G
 *           uleb code_align, sleb data_align, return register (version 1: u8, 3: uleb) with "z":
 *           uleb length, then what the letters announce: R u8 encoding of the FDEs' pointers; P u8
 *           encoding, pointer to the personality; L u8 encoding of the FDEs' LSDA pointers; S and B
 *           nothing: a signal frame; return addresses signed with aarch64's B key instructions, up
 *           to the length
 *
 * FDE     8 pc_begin, pc_range, in the CIE's encoding (pc_range: its format alone)
 *           with "z": uleb length, LSDA pointer
 *           instructions, up to the length
 *
 * .eh_frame_hdr
 *      0 u8 version 1, u8 eh_frame_ptr_enc, u8 fde_count_enc, u8 table_enc
 *      4 eh_frame_ptr, fde_count, then fde_count times {initial_loc, fde}, sorted by initial_loc
 *
 * What is written: version 1, "zR" (with S or B where it was), all pointers pcrel | sdata4 (0x1b),
 * the table datarel | sdata4 (0x3b), entries padded to 8 with DW_CFA_nop.  perf's unwinders, libgcc
 * and gdb all read that.
 *
 * An .eh_frame is valid if every entry lies inside it, every FDE's CIE is an entry that stands
 * before it in it, and every instruction lies inside its entry.  Source: LSB 5.0, "Exception
 * Frames"; DWARF 5, section 6.4.
 */
#ifndef EH_FRAME_H
#define EH_FRAME_H

#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/byte_sink.h"

enum {
    DW_EH_PE_absptr = 0x00,
    DW_EH_PE_udata4 = 0x03,
    DW_EH_PE_sdata4 = 0x0b,
    DW_EH_PE_pcrel = 0x10,
    DW_EH_PE_datarel = 0x30,
    DW_EH_PE_omit = 0xff,
};

/* Sizes of what is written. */
enum {
    EH_FRAME_HDR_BYTES = 12,      /* without the table */
    EH_FRAME_HDR_ENTRY_BYTES = 8, /* of the table */
    EH_FRAME_ALIGN_BYTES = 8,
    EH_FRAME_END_BYTES = 4, /* the zero length that ends .eh_frame */
};

struct eh_cie {
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_register;
    bool sized;           /* has augmentation data: "z" */
    bool signal_frame;    /* "S" */
    bool b_key;           /* "B" */
    uint8_t fde_encoding; /* "R" */
    const uint8_t *instructions;
    size_t instructions_bytes; /* without trailing nops */
};

struct eh_fde {
    struct eh_cie cie;
    size_t cie_number; /* among the section's CIEs, from 0 */
    bool pcrel;        /* pc_begin counts from where it stands */
    size_t pc_offset;  /* where pc_begin stands in the section */
    uint64_t pc_value; /* as it stands there, sign-extended */
    uint64_t pc_range;
    const uint8_t *instructions;
    size_t instructions_bytes; /* without trailing nops */
};

/* Where the code of FDE begins if the section stood at SECTION_ADDR. */
static inline uint64_t eh_fde_pc(const struct eh_fde *fde, uint64_t section_addr)
{
    return fde->pcrel ? section_addr + fde->pc_offset + fde->pc_value : fde->pc_value;
}

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
    uint8_t address_bytes; /* 4 or 8: of a DW_EH_PE_absptr */
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

/* The next FDE.  Returns false at the end, and at damage, when walk->broken says what is wrong. */
bool jd_eh_frame_next(struct eh_frame_walk *walk, struct eh_fde *fde);

/* Free what WALK has allocated. */
void jd_eh_frame_end(struct eh_frame_walk *walk);

/* What a program of call frame instructions does. */
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

/* Where the writer is: SINK holds the section from START on, and SECTION_ADDR is the address that
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
