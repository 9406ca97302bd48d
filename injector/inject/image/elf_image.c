/* See elf_image.h. */
#include "injector/inject/image/elf_image.h"

#include "injector/files/full_write.h"
#include "injector/files/interruption.h"
#include "injector/inject/dwarf/debug_image.h"
#include "injector/inject/image/deopt_section.h"
#include "injector/inject/image/dso_dir.h"
#include "injector/inject/image/image_name.h"
#include "injector/inject/image/image_text.h"
#include "injector/inject/image/symbol_table.h"
#include "injector/inject/image/unwind_table.h"

#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum section {
    SECTION_NULL,
    SECTION_NOTE,
    SECTION_TEXT,
    SECTION_EH_FRAME_HDR,
    SECTION_EH_FRAME,
    SECTION_DEBUG, /* DEBUG_SECTIONS of them */
    SECTION_DEOPTS = SECTION_DEBUG + DEBUG_SECTIONS,
    SECTION_SYMTAB,
    SECTION_STRTAB,
    SECTION_SHSTRTAB,
    SECTIONS
};

static const char *const section_names[SECTIONS] = {
    [SECTION_NULL] = "",
    [SECTION_NOTE] = ".note.gnu.build-id",
    [SECTION_TEXT] = ".text",
    [SECTION_EH_FRAME_HDR] = ".eh_frame_hdr",
    [SECTION_EH_FRAME] = ".eh_frame",
    [SECTION_DEOPTS] = DEOPT_SECTION_NAME,
    [SECTION_SYMTAB] = ".symtab",
    [SECTION_STRTAB] = ".strtab",
    [SECTION_SHSTRTAB] = ".shstrtab",
};

/* Loaded parts stand in front, and are one segment if possible: perf 6.1 goes through the segments
 * anew for each symbol, up to the symbol's own.  The text is the last of the loaded parts
 * (elf_image.h).  The tables' segments come into play only if there are tables. */
enum segment {
    SEGMENT_HEADERS,
    SEGMENT_TABLES,
    SEGMENT_TEXT,
    SEGMENT_EH_FRAME,
    SEGMENT_NOTE,
    SEGMENTS
};

enum {
    NOTE_HEADER_BYTES = 16, /* namesz, descsz, type, "GNU\0" */
    NOTE_BYTES = NOTE_HEADER_BYTES + IMAGE_BUILD_ID_BYTES,
    SHSTRTAB_BYTES = 224,
};

_Static_assert(SEGMENTS * sizeof(Elf64_Phdr) + NOTE_BYTES + 16 <= IMAGE_TRAILER_BYTES,
               "the headers of a function that is alone fit behind it");

struct elf_writer {
    struct jit_image *image;
    const struct jit_process *processes;
    const struct jit_dump *dump; /* says machine and byte order */
    Elf *elf;
    int class;
    struct symbol_table symbols;
    char section_strings[SHSTRTAB_BYTES];
    size_t section_strings_bytes;
    GElf_Word section_name[SECTIONS];  /* offsets into section_strings */
    GElf_Word section_index[SECTIONS]; /* in this file: the tables may be absent */
    GElf_Word section_count;           /* added so far */
    uint8_t *tables;                   /* .eh_frame_hdr and .eh_frame, or NULL */
    struct debug_image debug;
    struct deopt_section deopts;
    XXH128_hash_t code; /* the digest of the functions' code */
    uint8_t note[NOTE_BYTES];
    uint64_t phdrs_start;
    uint64_t note_start;
    uint64_t end; /* of the sections placed so far */
    struct progress *progress;
};

/* ---- Contents ---- */

static const char *section_name(int section)
{
    bool is_debug = section >= SECTION_DEBUG && section < SECTION_DEBUG + DEBUG_SECTIONS;
    return is_debug ? debug_section_names[section - SECTION_DEBUG] : section_names[section];
}

static void fill_section_names(struct elf_writer *writer)
{
    size_t at = 0;
    for (int i = 0; i < SECTIONS; i++) {
        writer->section_name[i] = (GElf_Word)at;
        size_t bytes = strlen(section_name(i)) + 1;
        memcpy(writer->section_strings + at, section_name(i), bytes);
        at += bytes;
    }
    writer->section_strings_bytes = at;
}

static int make_unwind_tables(struct elf_writer *writer)
{
    const struct jit_image *image = writer->image;
    if (!image->tables_start)
        return 0;
    writer->tables = malloc((size_t)(image->hdr_bytes + image->eh_frame_bytes));
    return !writer->tables ||
                   unwind_table_fill(image, &writer->processes[image->process], writer->tables)
               ? -1
               : 0;
}

/* The build-id covers all by which a reader can tell two images apart, also the place in the
 * process.  For perf, files with equal build-ids are one file, and equal code at two addresses is
 * common (CPython's trampolines; python/cpython#139544). */
static int fill_build_id(struct elf_writer *writer)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return -1;
    XXH3_128bits_reset(state);
    const uint32_t process = writer->image->process;
    const bool of_all = process == NO_PROCESS; /* wherever its functions are */
    const uint64_t whole[4] = {of_all ? 0 : writer->image->base,
                               of_all ? 0 : writer->processes[process].pid, writer->code.low64,
                               writer->code.high64};
    XXH3_128bits_update(state, whole, sizeof whole);
    XXH3_128bits_update(state, writer->symbols.symbols, writer->symbols.symbols_bytes);
    XXH3_128bits_update(state, writer->symbols.strings, writer->symbols.strings_bytes);
    if (writer->tables)
        XXH3_128bits_update(state, writer->tables,
                            (size_t)(writer->image->hdr_bytes + writer->image->eh_frame_bytes));
    for (int i = 0; i < DEBUG_SECTIONS; i++)
        if (writer->debug.sections[i])
            XXH3_128bits_update(state, writer->debug.sections[i]->data,
                                writer->debug.sections[i]->size);
    XXH3_128bits_update(state, writer->deopts.text, writer->deopts.bytes);
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
    XXH3_freeState(state);
    memcpy(writer->image->build_id, canonical.digest, IMAGE_BUILD_ID_BYTES);
    return 0;
}

static void fill_note(struct elf_writer *writer)
{
    bool big_endian = writer->dump->big_endian;
    const uint32_t fields[3] = {4, IMAGE_BUILD_ID_BYTES, NT_GNU_BUILD_ID};
    for (size_t i = 0; i < 12; i++)
        writer->note[i] = (uint8_t)(fields[i / 4] >> (8 * (big_endian ? 3 - i % 4 : i % 4)));
    memcpy(writer->note + 12, "GNU", 4);
    memcpy(writer->note + NOTE_HEADER_BYTES, writer->image->build_id, IMAGE_BUILD_ID_BYTES);
}

/* ---- Sections and segments ---- */

/* Place a section of BYTES at the end of the placed ones, aligned. */
static uint64_t place(struct elf_writer *writer, uint64_t bytes, uint64_t alignment)
{
    uint64_t at = (writer->end + alignment - 1) / alignment * alignment;
    writer->end = at + bytes;
    return at;
}

/* Program headers and note stand in the headers' page, or after the text where there is none
 * (image_plan.c, place). */
static void place_headers(struct elf_writer *writer)
{
    const struct jit_image *image = writer->image;
    bool page = image_has_header_page(image);
    writer->end = page ? IMAGE_ELF_HEADER_BYTES : image->text_end;
    writer->phdrs_start = place(writer, SEGMENTS * sizeof(Elf64_Phdr), 8);
    writer->note_start = place(writer, NOTE_BYTES, 4);
    if (page)
        writer->end = image->text_end;
}

/* Put SHDR into the next section, with its contents, unless they are NULL: then libelf writes
 * nothing there, and write_contents does.  (libelf fills the gap in front of a section
 * that has contents with zeros, be it program headers or 1 GiB of hole.) */
static int add_section(struct elf_writer *writer, enum section section, GElf_Shdr shdr,
                       const void *contents)
{
    elf_errno(); /* forget earlier ones */
    Elf_Scn *scn = elf_newscn(writer->elf);
    /* elfutils 0.188 gives a half-made one when there is no memory for its header. */
    if (elf_errno() || !scn || elf_ndxscn(scn) == 0)
        return -1;
    Elf_Data *data = contents ? elf_newdata(scn) : NULL;
    if (contents && !data)
        return -1;
    if (data) {
        data->d_buf = (void *)(uintptr_t)contents;
        data->d_size = (size_t)shdr.sh_size;
        data->d_align = shdr.sh_addralign;
        data->d_type = section == SECTION_SYMTAB ? ELF_T_SYM : ELF_T_BYTE;
    }
    writer->section_index[section] = ++writer->section_count;
    shdr.sh_name = writer->section_name[section];
    return gelf_update_shdr(scn, &shdr) ? 0 : -1;
}

/* The note is loaded if it stands in the headers' page.  It is not loaded if it stands after the
 * text: there it would make libdw's module longer. */
static int add_note(struct elf_writer *writer)
{
    bool loaded = writer->note_start < writer->image->text_start;
    return add_section(writer, SECTION_NOTE,
                       (GElf_Shdr){.sh_type = SHT_NOTE,
                                   .sh_flags = loaded ? SHF_ALLOC : 0,
                                   .sh_addr = loaded ? writer->note_start : 0,
                                   .sh_offset = writer->note_start,
                                   .sh_size = NOTE_BYTES,
                                   .sh_addralign = 4},
                       NULL);
}

static int add_text(struct elf_writer *writer)
{
    const struct jit_image *image = writer->image;
    return add_section(writer, SECTION_TEXT,
                       (GElf_Shdr){.sh_type = SHT_PROGBITS,
                                   .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                   .sh_addr = image->text_start,
                                   .sh_offset = image->text_start,
                                   .sh_size = image->text_end - image->text_start,
                                   .sh_addralign = 1},
                       NULL);
}

static GElf_Shdr table_shdr(uint64_t start, uint64_t bytes)
{
    return (GElf_Shdr){.sh_type = SHT_PROGBITS,
                       .sh_flags = SHF_ALLOC,
                       .sh_addr = start,
                       .sh_offset = start,
                       .sh_size = bytes,
                       .sh_addralign = 8};
}

static int add_tables(struct elf_writer *writer)
{
    const struct jit_image *image = writer->image;
    if (!writer->tables)
        return 0;
    uint64_t frame_start = image->tables_start + image->hdr_bytes;
    writer->end = frame_start + image->eh_frame_bytes;
    return add_section(writer, SECTION_EH_FRAME_HDR,
                       table_shdr(image->tables_start, image->hdr_bytes), NULL) ||
           add_section(writer, SECTION_EH_FRAME, table_shdr(frame_start, image->eh_frame_bytes),
                       NULL);
}

/* Compress the section that was added last; one that would not get smaller stays as it is. */
static int compress_section(struct elf_writer *writer, enum section section)
{
    Elf_Scn *scn = elf_getscn(writer->elf, writer->section_index[section]);
    GElf_Shdr shdr;
    if (!scn || elf_compress(scn, ELFCOMPRESS_ZLIB, 0) < 0 || !gelf_getshdr(scn, &shdr))
        return -1;
    writer->end = shdr.sh_offset;
    shdr.sh_offset = place(writer, shdr.sh_size, shdr.sh_addralign);
    return gelf_update_shdr(scn, &shdr) ? 0 : -1;
}

static int add_debug(struct elf_writer *writer)
{
    for (int i = 0; i < DEBUG_SECTIONS; i++) {
        const struct byte_sink *contents = writer->debug.sections[i];
        if (!contents)
            continue;
        bool strings = i == DEBUG_STR;
        GElf_Shdr shdr = {.sh_type = SHT_PROGBITS,
                          .sh_flags = strings ? SHF_MERGE | SHF_STRINGS : 0,
                          .sh_offset = place(writer, contents->size, 1),
                          .sh_size = contents->size,
                          .sh_entsize = strings ? 1 : 0,
                          .sh_addralign = 1};
        if (add_section(writer, (enum section)(SECTION_DEBUG + i), shdr, contents->data) ||
            (writer->image->compress_debug &&
             compress_section(writer, (enum section)(SECTION_DEBUG + i))))
            return -1;
    }
    return 0;
}

static int add_deopts(struct elf_writer *writer)
{
    if (!writer->deopts.bytes)
        return 0;
    return add_section(writer, SECTION_DEOPTS,
                       (GElf_Shdr){.sh_type = SHT_PROGBITS,
                                   .sh_offset = place(writer, writer->deopts.bytes, 1),
                                   .sh_size = writer->deopts.bytes,
                                   .sh_addralign = 1},
                       writer->deopts.text);
}

static int add_symtab(struct elf_writer *writer)
{
    size_t entries = writer->symbols.symbols_bytes / writer->symbols.symbol_bytes;
    return add_section(writer, SECTION_SYMTAB,
                       (GElf_Shdr){.sh_type = SHT_SYMTAB,
                                   .sh_offset = place(writer, writer->symbols.symbols_bytes, 8),
                                   .sh_size = writer->symbols.symbols_bytes,
                                   .sh_link = writer->section_count + 2, /* .strtab comes next */
                                   .sh_info = (GElf_Word)entries,        /* all are local */
                                   .sh_entsize = writer->symbols.symbol_bytes,
                                   .sh_addralign = 8},
                       writer->symbols.symbols);
}

static int add_strings(struct elf_writer *writer, enum section section, const char *strings,
                       size_t bytes)
{
    return add_section(writer, section,
                       (GElf_Shdr){.sh_type = SHT_STRTAB,
                                   .sh_offset = place(writer, bytes, 1),
                                   .sh_size = bytes,
                                   .sh_addralign = 1},
                       strings);
}

static int add_sections(struct elf_writer *writer)
{
    return add_note(writer) || add_text(writer) || add_tables(writer) || add_debug(writer) ||
           add_deopts(writer) || add_symtab(writer) ||
           add_strings(writer, SECTION_STRTAB, writer->symbols.strings,
                       writer->symbols.strings_bytes) ||
           add_strings(writer, SECTION_SHSTRTAB, writer->section_strings,
                       writer->section_strings_bytes);
}

/* File offset and virtual address are the same everywhere. */
static GElf_Phdr segment_at(GElf_Word type, GElf_Word flags, uint64_t start, uint64_t bytes,
                            uint64_t alignment)
{
    return (GElf_Phdr){.p_type = type,
                       .p_flags = flags,
                       .p_offset = start,
                       .p_vaddr = start,
                       .p_paddr = start,
                       .p_filesz = bytes,
                       .p_memsz = bytes,
                       .p_align = alignment};
}

/* Headers and text are one segment where nothing has to stand between them. */
static bool is_in_one_segment(const struct elf_writer *writer)
{
    return !writer->tables && image_has_header_page(writer->image);
}

static bool has_segment(const struct elf_writer *writer, enum segment segment)
{
    if (segment == SEGMENT_HEADERS)
        return !is_in_one_segment(writer);
    return writer->tables || (segment != SEGMENT_TABLES && segment != SEGMENT_EH_FRAME);
}

static int add_segments(struct elf_writer *writer)
{
    const struct jit_image *image = writer->image;
    uint64_t tables_bytes = image->hdr_bytes + image->eh_frame_bytes;
    uint64_t headers_bytes = image_has_header_page(image) ? IMAGE_PAGE_BYTES : image->text_start;
    uint64_t text_start = is_in_one_segment(writer) ? 0 : image->text_start;
    const GElf_Phdr segments[SEGMENTS] = {
        [SEGMENT_HEADERS] = segment_at(PT_LOAD, PF_R, 0, headers_bytes, IMAGE_PAGE_BYTES),
        [SEGMENT_TABLES] =
            segment_at(PT_LOAD, PF_R, image->tables_start, tables_bytes, IMAGE_PAGE_BYTES),
        [SEGMENT_TEXT] = segment_at(PT_LOAD, PF_R | PF_X, text_start, image->text_end - text_start,
                                    IMAGE_PAGE_BYTES),
        [SEGMENT_EH_FRAME] =
            segment_at(PT_GNU_EH_FRAME, PF_R, image->tables_start, image->hdr_bytes, 8),
        [SEGMENT_NOTE] = segment_at(PT_NOTE, PF_R, writer->note_start, NOTE_BYTES, 4),
    };
    size_t count = 0;
    for (int i = 0; i < SEGMENTS; i++)
        count += has_segment(writer, (enum segment)i);
    if (!gelf_newphdr(writer->elf, count))
        return -1;
    int at = 0;
    for (int i = 0; i < SEGMENTS; i++) {
        GElf_Phdr phdr = segments[i];
        if (has_segment(writer, (enum segment)i) && !gelf_update_phdr(writer->elf, at++, &phdr))
            return -1;
    }
    return 0;
}

static int set_header(struct elf_writer *writer)
{
    GElf_Ehdr ehdr;
    if (!gelf_newehdr(writer->elf, writer->class) || add_segments(writer) ||
        !gelf_getehdr(writer->elf, &ehdr))
        return -1;
    ehdr.e_ident[EI_DATA] = writer->dump->big_endian ? ELFDATA2MSB : ELFDATA2LSB;
    ehdr.e_type = ET_DYN;
    ehdr.e_machine = (GElf_Half)writer->dump->elf_mach;
    ehdr.e_version = EV_CURRENT;
    ehdr.e_phoff = writer->phdrs_start;
    return gelf_update_ehdr(writer->elf, &ehdr) ? 0 : -1;
}

static int place_section_headers(struct elf_writer *writer)
{
    GElf_Ehdr ehdr;
    if (!gelf_getehdr(writer->elf, &ehdr))
        return -1;
    ehdr.e_shoff = place(writer, 0, 8);
    ehdr.e_shstrndx = (GElf_Half)writer->section_index[SECTION_SHSTRTAB];
    return gelf_update_ehdr(writer->elf, &ehdr) ? 0 : -1;
}

static int write_elf(struct elf_writer *writer, int fd)
{
    elf_version(EV_CURRENT);
    writer->elf = elf_begin(fd, ELF_C_WRITE, NULL);
    if (!writer->elf)
        return -1;
    elf_flagelf(writer->elf, ELF_C_SET, ELF_F_LAYOUT);
    place_headers(writer);
    int result = set_header(writer) || add_sections(writer) || place_section_headers(writer) ||
                 elf_update(writer->elf, ELF_C_WRITE) < 0;
    elf_end(writer->elf);
    return result ? -1 : 0;
}

/* The contents that libelf does not write, but for the code, which is there already. */
static int write_contents(const struct elf_writer *writer, int fd)
{
    const struct jit_image *image = writer->image;
    size_t tables_bytes = (size_t)(image->hdr_bytes + image->eh_frame_bytes);
    return full_write(fd, (off_t)writer->note_start, writer->note, NOTE_BYTES) ||
                   (writer->tables &&
                    full_write(fd, (off_t)image->tables_start, writer->tables, tables_bytes))
               ? -1
               : 0;
}

/* ---- All together ---- */

/* All of the file but its code.  Returns -1 without memory. */
static int fill(struct elf_writer *writer)
{
    const struct jit_image *image = writer->image;
    if (symbol_table_make(&writer->symbols, image, writer->class) || make_unwind_tables(writer) ||
        deopt_section_make(&writer->deopts, image, writer->processes) ||
        debug_image_make(&writer->debug, image, writer->processes, writer->dump->address_bytes,
                         writer->dump->big_endian))
        return -1;
    symbol_table_fill(&writer->symbols, image, SECTION_TEXT);
    if (image_text_digest(image, &writer->code) || fill_build_id(writer))
        return -1;
    fill_note(writer);
    return 0;
}

static int cannot_write(const char *name, struct findings *findings)
{
    int error = errno;
    if (interruption_check(findings))
        return -1;
    return report_failure(findings, "%s: can't write it: %s", name,
                          error ? strerror(error) : elf_errmsg(-1));
}

/* In front of headers that stand after the text libelf writes zeros: the text comes after them. */
static int write_file(struct elf_writer *writer, size_t index, int dir_fd,
                      struct findings *findings)
{
    char name[IMAGE_FILE_NAME_BYTES];
    image_file_name(writer->image, writer->processes, index, name);
    int fd = dso_dir_create(dir_fd, name);
    if (fd < 0)
        return report_failure(findings, "%s: can't make it: %s", name, strerror(errno));
    errno = 0;
    int result = write_elf(writer, fd) || image_text_write(writer->image, fd, writer->progress) ||
                         write_contents(writer, fd)
                     ? cannot_write(name, findings)
                     : 0;
    close(fd);
    return result;
}

int elf_image_write(struct jit_image *image, const struct jit_process *processes, size_t index,
                    int dir_fd, struct findings *findings)
{
    struct elf_writer writer = {.image = image,
                                .processes = processes,
                                .dump = image_dump(image, processes),
                                .progress = &findings->progress};
    writer.class = writer.dump->address_bytes == 4 ? ELFCLASS32 : ELFCLASS64;
    fill_section_names(&writer);
    int result = fill(&writer) ? report_failure(findings, "out of memory")
                               : write_file(&writer, index, dir_fd, findings);
    symbol_table_free(&writer.symbols);
    free(writer.tables);
    debug_image_free(&writer.debug);
    deopt_section_free(&writer.deopts);
    return result;
}

static uint64_t text_bytes(const struct image_plan *plan)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < plan->image_count; i++)
        bytes += plan->images[i].text_end - plan->images[i].text_start;
    return bytes;
}

int elf_images_write(struct image_plan *plan, const struct jit_process *processes, int dir_fd,
                     bool compress_debug, struct findings *findings)
{
    progress_begin(&findings->progress, "writing", "", text_bytes(plan));
    for (size_t i = 0; i < plan->image_count; i++) {
        struct jit_image *image = &plan->images[i];
        image->compress_debug = compress_debug;
        if (interruption_check(findings) || elf_image_write(image, processes, i, dir_fd, findings))
            return -1;
    }
    progress_end(&findings->progress);
    return 0;
}
