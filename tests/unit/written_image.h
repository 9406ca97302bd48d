/* An image written as an ELF file of a directory of its own, read back with libelf and held against
 * its functions. */
#ifndef PERFJIT_TEST_WRITTEN_IMAGE_H
#define PERFJIT_TEST_WRITTEN_IMAGE_H

#include "injector/inject/image/elf_image.h"
#include "injector/inject/image/image_name.h"
#include "tests/unit/process_builder.h"

#include <fcntl.h>
#include <gelf.h>
#include <limits.h>

enum { PAGE = 4096 };

static struct process_builder built;

/* The image of BUILT's functions, written to a directory of its own and opened again. */
struct written {
    struct image_plan plan;
    struct jit_image *image;
    char path[PATH_MAX];
    uint8_t *bytes;
    size_t size;
    Elf *elf;
};

static inline struct jit_function *function(uint32_t index)
{
    return &built.process.log.functions[index];
}

static inline uint32_t add_visible(uint64_t addr, uint64_t size)
{
    uint32_t index = build_load(&built, 1, addr, size);
    built.states[index].visible = true;
    return index;
}

/* Write WRITTEN's image into a directory of its own, and read it. */
static inline void write_planned(struct written *written)
{
    static int number;
    char directory[64], name[IMAGE_FILE_NAME_BYTES];
    struct findings findings = {0};
    snprintf(directory, sizeof directory, "%s/%d", scratch, number++);
    assert_int_equal(mkdir(directory, 0700), 0);
    int dir_fd = open(directory, O_RDONLY | O_DIRECTORY);
    if (elf_image_write(written->image, &built.process, 7, dir_fd, &findings))
        fail_msg("%s", findings.failure);
    close(dir_fd);
    image_file_name(written->image, &built.process, 7, name);
    snprintf(written->path, sizeof written->path, "%s/%s", directory, name);
    written->bytes = read_whole(written->path, &written->size);
}

static inline void write_image(struct written *written)
{
    struct findings findings = {0};
    *written = (struct written){0};
    const struct timeline timeline = built_timeline(&built);
    assert_int_equal(
        image_plan_add(&written->plan, &built.process, &timeline, LAYOUT_IMAGE, &findings), 0);
    assert_int_equal(written->plan.image_count, 1);
    written->image = written->plan.images;
    write_planned(written);
    elf_version(EV_CURRENT);
    written->elf = elf_memory((char *)written->bytes, written->size);
    assert_non_null(written->elf);
}

static inline void release(struct written *written)
{
    elf_end(written->elf);
    free(written->bytes);
    image_plan_free(&written->plan);
}

static inline Elf_Scn *find_section(const struct written *written, const char *name,
                                    GElf_Shdr *shdr)
{
    size_t strings;
    assert_int_equal(elf_getshdrstrndx(written->elf, &strings), 0);
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(written->elf, scn));) {
        assert_ptr_equal(gelf_getshdr(scn, shdr), shdr);
        if (strcmp(elf_strptr(written->elf, strings, shdr->sh_name), name) == 0)
            return scn;
    }
    fail_msg("no section %s", name);
    return NULL;
}

/* Every visible function's bytes, or zeros where they are unknown, at its address minus the base.
 */
static inline void assert_code(const struct written *written)
{
    static const uint8_t zeros[PAGE];
    for (size_t i = 0; i < written->image->body_count; i++) {
        const struct jit_function *here = written->image->bodies[i].function;
        uint64_t offset = here->addr - written->image->base;
        assert_true(offset + here->size <= written->size);
        assert_memory_equal(written->bytes + offset, here->code ? here->code : zeros, here->size);
    }
}

struct symbols {
    const struct written *written;
    Elf_Data *data;
    size_t text, strings; /* sections */
    size_t seen;
};

static inline void assert_symbol(const struct symbols *symbols, int at,
                                 const struct jit_function *here)
{
    GElf_Sym sym;
    assert_ptr_equal(gelf_getsym(symbols->data, at, &sym), &sym);
    assert_int_equal(sym.st_info, GELF_ST_INFO(STB_LOCAL, STT_FUNC));
    assert_int_equal(sym.st_shndx, symbols->text);
    assert_int_equal(sym.st_value, here->addr - symbols->written->image->base);
    assert_int_equal(sym.st_size, here->size);
    assert_string_equal(elf_strptr(symbols->written->elf, symbols->strings, sym.st_name),
                        here->name);
}

/* Left of each symbol of the heap is what lies below it, and right of it what lies above. */
static inline void assert_symbols_under(struct symbols *symbols, size_t at)
{
    const struct jit_image *image = symbols->written->image;
    if (at > image->body_count)
        return;
    assert_symbols_under(symbols, 2 * at);
    assert_symbol(symbols, (int)at, image->bodies[symbols->seen++].function);
    assert_symbols_under(symbols, 2 * at + 1);
}

/* A null symbol, then one local FUNC symbol for each function. */
static inline void assert_symbols(const struct written *written)
{
    GElf_Shdr shdr, other;
    GElf_Sym null;
    size_t count = written->image->body_count;
    struct symbols symbols = {.written = written,
                              .text = elf_ndxscn(find_section(written, ".text", &other)),
                              .strings = elf_ndxscn(find_section(written, ".strtab", &other))};
    symbols.data = elf_getdata(find_section(written, ".symtab", &shdr), NULL);
    assert_int_equal(shdr.sh_type, SHT_SYMTAB);
    assert_int_equal(shdr.sh_info, count + 1); /* all are local */
    assert_int_equal(shdr.sh_link, symbols.strings);
    assert_int_equal(shdr.sh_size, (count + 1) * shdr.sh_entsize);
    assert_ptr_equal(gelf_getsym(symbols.data, 0, &null), &null);
    assert_int_equal(null.st_info + null.st_shndx + null.st_value + null.st_name, 0);
    assert_symbols_under(&symbols, 1);
    assert_int_equal(symbols.seen, count);
}

/* Offset and virtual address of all that is loaded are one; the first PT_LOAD starts at 0, the last
 * one is the text.  With a page for headers, and nothing between them and the text, it is one. */
static inline void assert_segments(const struct written *written)
{
    const struct jit_image *image = written->image;
    bool is_one = image_has_header_page(image) && !image->tables_start;
    size_t count, notes = 0, loads = 0;
    GElf_Phdr phdr, first = {0}, last = {0};
    assert_int_equal(elf_getphdrnum(written->elf, &count), 0);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(gelf_getphdr(written->elf, (int)i, &phdr), &phdr);
        assert_int_equal(phdr.p_vaddr, phdr.p_offset);
        assert_int_equal(phdr.p_filesz, phdr.p_memsz);
        assert_true(phdr.p_offset + phdr.p_filesz <= written->size);
        notes += phdr.p_type == PT_NOTE;
        if (phdr.p_type != PT_LOAD)
            continue;
        assert_true(phdr.p_offset >= last.p_offset + last.p_filesz);
        assert_int_equal(phdr.p_align, PAGE);
        first = loads++ ? first : phdr;
        last = phdr;
    }
    assert_int_equal(loads, is_one ? 1 : 2);
    assert_int_equal(first.p_vaddr, 0);
    assert_int_equal(first.p_flags, is_one ? PF_R | PF_X : PF_R);
    assert_int_equal(last.p_vaddr, is_one ? 0 : image->text_start);
    assert_int_equal(last.p_vaddr + last.p_memsz, image->text_end);
    assert_int_equal(last.p_flags, PF_R | PF_X);
    assert_int_equal(notes, 1);
}

static inline void assert_build_id(const struct written *written)
{
    GElf_Shdr shdr;
    GElf_Nhdr nhdr;
    size_t name, descriptor;
    find_section(written, ".note.gnu.build-id", &shdr);
    assert_int_equal(shdr.sh_type, SHT_NOTE);
    if (shdr.sh_flags & SHF_ALLOC)
        assert_int_equal(shdr.sh_addr, shdr.sh_offset);
    Elf_Data *data =
        elf_getdata_rawchunk(written->elf, (int64_t)shdr.sh_offset, shdr.sh_size, ELF_T_NHDR);
    assert_non_null(data);
    assert_true(gelf_getnote(data, 0, &nhdr, &name, &descriptor) > 0);
    assert_int_equal(nhdr.n_type, NT_GNU_BUILD_ID);
    assert_int_equal(nhdr.n_descsz, IMAGE_BUILD_ID_BYTES);
    assert_string_equal((const char *)data->d_buf + name, "GNU");
    assert_memory_equal((const char *)data->d_buf + descriptor, written->image->build_id,
                        IMAGE_BUILD_ID_BYTES);
}

static inline void assert_text_section(const struct written *written)
{
    GElf_Shdr shdr;
    find_section(written, ".text", &shdr);
    assert_int_equal(shdr.sh_type, SHT_PROGBITS);
    assert_int_equal(shdr.sh_flags, SHF_ALLOC | SHF_EXECINSTR);
    assert_int_equal(shdr.sh_addr, written->image->text_start);
    assert_int_equal(shdr.sh_offset, written->image->text_start);
    assert_int_equal(shdr.sh_size, written->image->text_end - written->image->text_start);
}

static inline void assert_sound(const struct written *written)
{
    assert_text_section(written);
    assert_code(written);
    assert_symbols(written);
    assert_segments(written);
    assert_build_id(written);
}

#endif
