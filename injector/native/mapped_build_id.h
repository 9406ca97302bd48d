/* The build-id in the first page of an ELF file, which is all that a core has of it.
 *
 *     of 64 bits: ELF header     32 u64 e_phoff, 54 u16 e_phentsize, 56 u16 e_phnum
 *                 program header  0 u32 p_type, 8 u64 p_offset, 32 u64 p_filesz
 *     of 32 bits: ELF header     28 u32 e_phoff, 42 u16 e_phentsize, 44 u16 e_phnum
 *                 program header  0 u32 p_type, 4 u32 p_offset, 16 u32 p_filesz
 *     PT_NOTE        notes: u32 namesz, u32 descsz, u32 type, name, descriptor; both padded to 4
 */
#ifndef PERFJIT_MAPPED_BUILD_ID_H
#define PERFJIT_MAPPED_BUILD_ID_H

#include "injector/native/elf_view.h"

/* Read that of the file that begins with the SIZE BYTES; ID has size 0 if it is not among them. */
void mapped_build_id_read(struct build_id *id, const uint8_t *bytes, size_t size);

/* A note, as files and cores have it. */
struct elf_note {
    uint32_t type;
    const uint8_t *name, *desc;
    uint32_t name_bytes, desc_bytes;
};

struct byte_cursor;

/* That among the SIZE bytes of NOTES; ID is left as it is, and false returned, without one. */
bool build_id_in_notes(struct build_id *id, const uint8_t *notes, size_t size);

/* The next note at CURSOR.  Returns false at the end, and where the next one is cut off. */
bool elf_note_next(struct byte_cursor *cursor, struct elf_note *note);

#endif
