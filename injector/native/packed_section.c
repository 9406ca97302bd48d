/* See packed_section.h. */
#include "injector/native/packed_section.h"

#include "injector/arrays/array.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { COMPRESSED_BY_ZSTD = 2 /* in elf.h since glibc 2.37 */ };

static const char old_prefix[] = ".zdebug_", old_magic[] = "ZLIB";

static bool is_old(const char *name)
{
    return strncmp(name, old_prefix, strlen(old_prefix)) == 0;
}

bool packed_section_is(const GElf_Shdr *header, const char *name)
{
    return header->sh_type != SHT_NOBITS && (header->sh_flags & SHF_COMPRESSED || is_old(name));
}

/* Whether a section of PACKED bytes may become SIZE. */
static bool may_become(struct unpacked_sections *unpacked, uint64_t size, uint64_t packed)
{
    uint64_t expected = packed * UNPACKED_RATIO, spare = size > expected ? size - expected : 0;
    if (spare > UNPACKED_SPARE - unpacked->used)
        return false;
    unpacked->used += spare;
    return true;
}

/* ---- .zdebug_*: "ZLIB", the size, eight bytes with the highest first, and zlib's stream ---- */

static bool unpack_old(struct unpacked_sections *unpacked, Elf_Scn *section)
{
    const size_t magic_bytes = strlen(old_magic);
    const Elf_Data *data = elf_rawdata(section, NULL);
    uint64_t size;
    if (!data || !data->d_buf || data->d_size < magic_bytes + sizeof size ||
        memcmp(data->d_buf, old_magic, magic_bytes) != 0)
        return false;
    memcpy(&size, (const char *)data->d_buf + magic_bytes, sizeof size);
    return may_become(unpacked, be64toh(size), data->d_size) &&
           elf_compress_gnu(section, 0, 0) >= 0;
}

/* ---- SHF_COMPRESSED ---- */

/* Let BYTES, SIZE of them, be what libelf has of SECTION. */
static bool replace(Elf_Scn *section, const GElf_Shdr *header, void *bytes, uint64_t size,
                    uint64_t align)
{
    GElf_Shdr plain = *header;
    Elf_Data *data = elf_getdata(section, NULL);
    plain.sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
    if (!data || !gelf_update_shdr(section, &plain))
        return false;
    data->d_buf = bytes;
    data->d_size = size;
    data->d_align = align;
    return true;
}

static bool unpack_zstd(struct unpacked_sections *unpacked, Elf_Scn *section,
                        const GElf_Shdr *header, const GElf_Chdr *packed, size_t head)
{
    const Elf_Data *data = elf_rawdata(section, NULL);
    if (!data || !data->d_buf || data->d_size < head ||
        array_reserve(unpacked->items, unpacked->count, unpacked->capacity))
        return false;
    uint8_t *bytes = malloc(packed->ch_size + 1);
    unpacked->items[unpacked->count++] = bytes;
    return bytes &&
           ZSTD_decompress(bytes, packed->ch_size, (const char *)data->d_buf + head,
                           data->d_size - head) == packed->ch_size &&
           replace(section, header, bytes, packed->ch_size, packed->ch_addralign);
}

bool packed_section_unpack(struct unpacked_sections *unpacked, Elf *elf, Elf_Scn *section,
                           const GElf_Shdr *header)
{
    GElf_Chdr packed;
    if (!(header->sh_flags & SHF_COMPRESSED))
        return unpack_old(unpacked, section);
    if (!gelf_getchdr(section, &packed) || !may_become(unpacked, packed.ch_size, header->sh_size))
        return false;
    /* libelf knows zstd since elfutils 0.189; since then libdw does not see what REPLACE puts
     * there. */
    if (elf_compress(section, 0, 0) >= 0)
        return true;
    return packed.ch_type == COMPRESSED_BY_ZSTD &&
           unpack_zstd(unpacked, section, header, &packed,
                       gelf_fsize(elf, ELF_T_CHDR, 1, EV_CURRENT));
}

void packed_section_hide(Elf_Scn *section, const GElf_Shdr *header)
{
    GElf_Shdr absent = *header;
    absent.sh_type = SHT_NOBITS;
    gelf_update_shdr(section, &absent);
}

void unpacked_sections_free(struct unpacked_sections *unpacked)
{
    for (size_t i = 0; i < unpacked->count; i++)
        free(unpacked->items[i]);
    free(unpacked->items);
    *unpacked = (struct unpacked_sections){0};
}
