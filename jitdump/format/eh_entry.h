/* The entries of .eh_frame and .debug_frame, and the table of .eh_frame_hdr, read where they stand.
 *
 * .eh_frame is a list of entries, each
 *      0 u32 length           of what follows; 0: the end; 0xffffffff: u64 length follows
 *      4 u32 id               0: a CIE; else an FDE, whose CIE begins `id` bytes before this field
 *
 * CIE     8 u8 version        1, 3 or 4
 *         9 augmentation      NUL-terminated: "", or "z" and letters out of R P L S B G
 *           version 4: u8 address_size, u8 segment_size
 *           uleb code_align, sleb data_align, return register (version 1: u8, then: uleb) with "z":
 *           uleb length, then what the letters announce: R u8 encoding of the FDEs' pointers; P u8
 *           encoding, pointer to the personality; L u8 encoding of the FDEs' LSDA pointers; S and B
 *           nothing: a signal frame; return addresses signed with aarch64's B key instructions, up
 *           to the length
 *
 * FDE     8 pc_begin, pc_range, in the CIE's encoding (pc_range: its format alone)
 *           with "z": uleb length, LSDA pointer
 *           instructions, up to the length
 *
 * In .debug_frame the id 0xffffffff is a CIE.  Any other id is an FDE, whose CIE begins `id` bytes
 * into the section.  With a length of 64 bits the id has 64, too.  Pointers are addresses, as wide
 * as the machine's.
 *
 * .eh_frame_hdr
 *      0 u8 version 1, u8 eh_frame_ptr_enc, u8 fde_count_enc, u8 table_enc
 *      4 eh_frame_ptr, fde_count, then fde_count times {initial_loc, fde}, sorted by initial_loc
 *
 * Nothing is allocated and nothing locked: an unwinder in a signal handler goes by it, too. Source:
 * LSB 5.0, "Exception Frames"; DWARF 5, section 6.4.
 */
#ifndef EH_ENTRY_H
#define EH_ENTRY_H

#include "jitdump/format/byte_cursor.h"

/* How a pointer is written: a format, and what the value counts from. */
enum {
    EH_PE_absptr = 0x00,
    EH_PE_uleb128 = 0x01,
    EH_PE_udata2 = 0x02,
    EH_PE_udata4 = 0x03,
    EH_PE_udata8 = 0x04,
    EH_PE_sleb128 = 0x09,
    EH_PE_sdata2 = 0x0a,
    EH_PE_sdata4 = 0x0b,
    EH_PE_sdata8 = 0x0c,
    EH_PE_pcrel = 0x10,
    EH_PE_datarel = 0x30,
    EH_PE_omit = 0xff,
    EH_PE_FORMAT = 0x0f,
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
    size_t instructions_bytes;
};

struct eh_fde {
    struct eh_cie cie;
    size_t cie_number; /* among the section's CIEs, from 0 */
    bool pcrel;        /* pc_begin counts from where it stands */
    size_t pc_offset;  /* where pc_begin stands in the section */
    uint64_t pc_value; /* as it stands there, sign-extended */
    uint64_t pc_range;
    const uint8_t *instructions;
    size_t instructions_bytes;
};

/* An FDE with its CIE, from any table: what the users of its instructions need. */
struct cfi_entry {
    uint64_t start, end; /* the addresses that it is about */
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_register;
    bool signal_frame;
    const uint8_t *initial; /* the CIE's instructions */
    size_t initial_bytes;
    const uint8_t *instructions;
    size_t instructions_bytes;
};

/* That of a CIE, and of an FDE about SIZE bytes from START on. */
static inline struct cfi_entry cfi_entry_of(const struct eh_cie *cie, uint64_t start, uint64_t size,
                                            const uint8_t *instructions, size_t instructions_bytes)
{
    return (struct cfi_entry){.start = start,
                              .end = start + size,
                              .code_align = cie->code_align,
                              .data_align = cie->data_align,
                              .return_register = cie->return_register,
                              .signal_frame = cie->signal_frame,
                              .initial = cie->instructions,
                              .initial_bytes = cie->instructions_bytes,
                              .instructions = instructions,
                              .instructions_bytes = instructions_bytes};
}

/* The address at which the code of FDE begins if the section stood at SECTION_ADDR. */
static inline uint64_t eh_fde_pc(const struct eh_fde *fde, uint64_t section_addr)
{
    return fde->pcrel ? section_addr + fde->pc_offset + fde->pc_value : fde->pc_value;
}

/* ---- Pointers ---- */

/* A pointer's value in the format of ENCODING, sign-extended if that is signed.  A format that
 * there is not is a failure, like a missing byte. */
static inline uint64_t eh_value_read(struct byte_cursor *cursor, uint8_t encoding,
                                     uint8_t address_bytes)
{
    switch (encoding & EH_PE_FORMAT) {
    case EH_PE_absptr:
        return address_bytes == 4 ? cursor_u32(cursor) : cursor_u64(cursor);
    case EH_PE_uleb128:
        return cursor_uleb(cursor);
    case EH_PE_udata2:
        return cursor_u16(cursor);
    case EH_PE_udata4:
        return cursor_u32(cursor);
    case EH_PE_sleb128:
        return (uint64_t)cursor_sleb(cursor);
    case EH_PE_sdata2:
        return (uint64_t)(int16_t)cursor_u16(cursor);
    case EH_PE_sdata4:
        return (uint64_t)(int32_t)cursor_u32(cursor);
    case EH_PE_udata8:
    case EH_PE_sdata8:
        return cursor_u64(cursor);
    default:
        cursor_skip(cursor, SIZE_MAX);
        return 0;
    }
}

/* Whether it is an address, or counts from where it stands, and has a fixed size: code has no
 * others. */
static inline bool eh_encoding_is_plain(uint8_t encoding)
{
    static const uint16_t formats = 1u << EH_PE_absptr | 1u << EH_PE_udata2 | 1u << EH_PE_udata4 |
                                    1u << EH_PE_udata8 | 1u << EH_PE_sdata2 | 1u << EH_PE_sdata4 |
                                    1u << EH_PE_sdata8;
    uint8_t application = encoding & (uint8_t)~EH_PE_FORMAT;
    return (formats >> (encoding & EH_PE_FORMAT) & 1) &&
           (application == EH_PE_absptr || application == EH_PE_pcrel);
}

/* A pointer that stands at ADDR.  Returns false if it can't be read, or counts from elsewhere. */
static inline bool eh_pointer_read(struct byte_cursor *cursor, uint8_t encoding, uint64_t addr,
                                   uint8_t address_bytes, uint64_t *value)
{
    if (!eh_encoding_is_plain(encoding))
        return false;
    *value = eh_value_read(cursor, encoding, address_bytes);
    if ((encoding & ~EH_PE_FORMAT) == EH_PE_pcrel)
        *value += addr;
    return !cursor->failed;
}

/* Step over a number of bytes in LEB128, and as many bytes. */
static inline void eh_sized_skip(struct byte_cursor *cursor)
{
    uint64_t size = cursor_uleb(cursor);
    cursor_skip(cursor, size <= cursor_left(cursor) ? (size_t)size : SIZE_MAX);
}

/* ---- Entries ---- */

/* An entry, opened: CURSOR, by the section's offsets, stands behind its id and ends where it does.
 */
struct eh_entry {
    struct byte_cursor cursor;
    size_t next;     /* offset of the entry behind it */
    bool is_end;     /* a length of zero: nothing else is set */
    bool is_cie;     /* else an FDE: */
    uint64_t cie_at; /* the offset of its CIE */
};

/* Open the entry at OFFSET of SECTION, whose own offset does not matter.  Returns false if it does
 * not lie in it. */
static inline bool eh_entry_open(const struct byte_cursor *section, uint64_t offset, bool debug,
                                 struct eh_entry *entry)
{
    struct byte_cursor *cursor = &entry->cursor;
    *cursor = byte_cursor_over(section->data, section->size, section->big_endian);
    cursor_skip(cursor, offset <= section->size ? (size_t)offset : SIZE_MAX);
    uint64_t length = cursor_u32(cursor);
    bool wide = length == UINT32_MAX;
    if (wide)
        length = cursor_u64(cursor);
    if (cursor->failed || length > cursor_left(cursor))
        return false;
    cursor->size = entry->next = cursor->offset + (size_t)length;
    entry->is_end = length == 0;
    if (entry->is_end)
        return true;
    uint64_t id_at = cursor->offset;
    uint64_t id = wide && debug ? cursor_u64(cursor) : cursor_u32(cursor);
    uint64_t cie_id = !debug ? 0 : wide ? UINT64_MAX : UINT32_MAX;
    entry->is_cie = id == cie_id;
    entry->cie_at = debug ? id : id <= id_at ? id_at - id : UINT64_MAX;
    return !cursor->failed;
}

static inline void eh_rest_take(struct byte_cursor *cursor, const uint8_t **instructions,
                                size_t *bytes)
{
    *bytes = cursor_left(cursor);
    *instructions = cursor_bytes(cursor, *bytes);
}

/* The augmentation data, letter by letter.  Personality and LSDA serve exceptions, not unwinding:
 * stepped over. */
static inline const char *eh_augmentation_read(struct byte_cursor *cursor, const char *letters,
                                               uint8_t address_bytes, struct eh_cie *cie)
{
    if (*letters == '\0')
        return NULL;
    if (*letters != 'z')
        return "CIE with an augmentation of unknown length";
    cie->sized = true;
    struct byte_cursor data = *cursor;
    eh_sized_skip(cursor);
    if (cursor->failed)
        return "CIE with an augmentation longer than itself";
    cursor_uleb(&data);
    data.size = cursor->offset;
    while (*++letters) {
        uint8_t encoding;
        switch (*letters) {
        case 'R':
            cie->fde_encoding = cursor_u8(&data);
            break;
        case 'L':
            cursor_skip(&data, 1);
            break;
        case 'P':
            encoding = cursor_u8(&data);
            if (encoding != EH_PE_omit)
                eh_value_read(&data, encoding, address_bytes);
            break;
        case 'S':
            cie->signal_frame = true;
            break;
        case 'B':
            cie->b_key = true;
            break;
        case 'G': /* the frame is tagged: matters to who unwinds for real */
            break;
        default:
            return "CIE with an unknown augmentation letter";
        }
    }
    return data.failed ? "CIE with an augmentation shorter than its letters say" : NULL;
}

/* Read the CIE whose id CURSOR stands behind, with addresses of ADDRESS_BYTES, 4 or 8.  Returns
 * what is wrong with it, or NULL. */
static inline const char *eh_cie_read(struct byte_cursor *cursor, uint8_t address_bytes,
                                      struct eh_cie *cie)
{
    *cie = (struct eh_cie){.fde_encoding = EH_PE_absptr};
    uint8_t version = cursor_u8(cursor);
    if (version != 1 && version != 3 && version != 4)
        return "CIE of unknown version";
    const char *letters = cursor_cstr(cursor);
    if (version == 4)
        cursor_skip(cursor, 2);
    cie->code_align = cursor_uleb(cursor);
    cie->data_align = cursor_sleb(cursor);
    cie->return_register = version == 1 ? cursor_u8(cursor) : cursor_uleb(cursor);
    if (cursor->failed)
        return "CIE is shorter than its fields";
    const char *wrong = eh_augmentation_read(cursor, letters, address_bytes, cie);
    if (!wrong && !eh_encoding_is_plain(cie->fde_encoding))
        wrong = "CIE with a pointer encoding that JIT code can't have";
    eh_rest_take(cursor, &cie->instructions, &cie->instructions_bytes);
    return wrong;
}

/* The same of the FDE, whose CIE is in *FDE. */
static inline const char *eh_fde_read(struct byte_cursor *cursor, uint8_t address_bytes,
                                      struct eh_fde *fde)
{
    uint8_t encoding = fde->cie.fde_encoding;
    fde->pcrel = (encoding & ~EH_PE_FORMAT) == EH_PE_pcrel;
    fde->pc_offset = cursor->offset;
    fde->pc_value = eh_value_read(cursor, encoding, address_bytes);
    fde->pc_range = eh_value_read(cursor, encoding, address_bytes);
    if (fde->cie.sized)
        eh_sized_skip(cursor);
    if (cursor->failed)
        return "FDE is shorter than its fields";
    eh_rest_take(cursor, &fde->instructions, &fde->instructions_bytes);
    return NULL;
}

/* ---- .eh_frame_hdr ---- */

enum { EH_FRAME_HDR_ENTRY_BYTES = 8 };

/* One whose table can be searched: as linkers write it, distances of 32 bits from the header. */
struct eh_frame_hdr {
    uint64_t addr, frame_addr; /* its own, and that of the .eh_frame */
    const uint8_t *table;
    size_t count;
};

/* Read the header of up to SIZE bytes that stands at ADDR.  Returns false if it is another. */
static inline bool eh_frame_hdr_read(const uint8_t *bytes, size_t size, uint64_t addr,
                                     struct eh_frame_hdr *hdr)
{
    struct byte_cursor cursor = byte_cursor_over(bytes, size, false);
    uint8_t version = cursor_u8(&cursor), pointer = cursor_u8(&cursor);
    uint8_t count_encoding = cursor_u8(&cursor), table = cursor_u8(&cursor);
    uint64_t count;
    hdr->addr = addr;
    if (version != 1 || table != (EH_PE_datarel | EH_PE_sdata4) ||
        !eh_pointer_read(&cursor, pointer, addr + cursor.offset, 8, &hdr->frame_addr) ||
        !eh_pointer_read(&cursor, count_encoding, 0, 8, &count) ||
        count > cursor_left(&cursor) / EH_FRAME_HDR_ENTRY_BYTES)
        return false;
    hdr->count = (size_t)count;
    hdr->table = cursor_bytes(&cursor, hdr->count * EH_FRAME_HDR_ENTRY_BYTES);
    return true;
}

static inline uint64_t eh_frame_hdr_word(const struct eh_frame_hdr *hdr, size_t word)
{
    struct byte_cursor cursor = byte_cursor_over(hdr->table + word * 4, 4, false);
    return hdr->addr + (uint64_t)(int32_t)cursor_u32(&cursor);
}

/* The address at which the code of entry INDEX begins, and the entry's FDE. */
static inline uint64_t eh_frame_hdr_code(const struct eh_frame_hdr *hdr, size_t index)
{
    return eh_frame_hdr_word(hdr, 2 * index);
}

static inline uint64_t eh_frame_hdr_fde(const struct eh_frame_hdr *hdr, size_t index)
{
    return eh_frame_hdr_word(hdr, 2 * index + 1);
}

#endif
