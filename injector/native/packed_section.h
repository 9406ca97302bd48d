/* Sections that are packed: with zlib or zstd by SHF_COMPRESSED, and with zlib as .zdebug_*.
 *
 * A file tells how large a section becomes, and a small file can tell of gigabytes.  So a section
 * may become UNPACKED_RATIO times as large as it is packed, which real ones don't.  All sections of
 * a file together may become UNPACKED_SPARE bytes larger than that.  Others are left out.
 *
 * libdw unpacks all sections that it knows, without a bound.  Those that are not wanted, or too
 * large, must be marked as absent before.  libelf 0.188 can't unpack zstd's.
 */
#ifndef PERFJIT_PACKED_SECTION_H
#define PERFJIT_PACKED_SECTION_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UNPACKED_RATIO = 16, UNPACKED_SPARE = 64 << 20 };

struct unpacked_sections {
    uint64_t used; /* of UNPACKED_SPARE */
    void **items;  /* by zstd, to be freed */
    size_t count, capacity;
};

/* Whether the section called NAME is packed. */
bool packed_section_is(const GElf_Shdr *header, const char *name);

/* Unpack SECTION of ELF, which is packed, in libelf's own view of the file.  The file's bytes are
 * memory that may be written.  Returns false if it is damaged, would become too large, or is packed
 * in an unknown way. */
bool packed_section_unpack(struct unpacked_sections *unpacked, Elf *elf, Elf_Scn *section,
                           const GElf_Shdr *header);

/* Mark SECTION as absent, in memory that may be written. */
void packed_section_hide(Elf_Scn *section, const GElf_Shdr *header);

void unpacked_sections_free(struct unpacked_sections *unpacked);

#endif
