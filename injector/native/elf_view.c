/* See elf_view.h. */
#include "injector/native/elf_view.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/files/file_bytes.h"
#include "injector/files/regular_file.h"
#include "jitdump/format/byte_cursor.h"

#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_SEGMENTS = 64 };

/* ---- Sections ---- */

static Elf_Scn *next_section(const struct elf_view *view, Elf_Scn *section, GElf_Shdr *header,
                             const char **name)
{
    size_t names;
    if (!view->elf || elf_getshdrstrndx(view->elf, &names))
        return NULL;
    while ((section = elf_nextscn(view->elf, section))) {
        *name =
            gelf_getshdr(section, header) ? elf_strptr(view->elf, names, header->sh_name) : NULL;
        if (*name)
            return section;
    }
    return NULL;
}

static Elf_Scn *find_section(const struct elf_view *view, const char *name, GElf_Shdr *header)
{
    const char *found;
    Elf_Scn *section = NULL;
    while ((section = next_section(view, section, header, &found)))
        if (strcmp(found, name) == 0)
            return section;
    return NULL;
}

/* libelf changes the headers of sections where they are: in memory that is this process's alone. */
static bool make_writable(const struct elf_view *view)
{
    return view->path
               ? mprotect((void *)(uintptr_t)view->bytes, view->size, PROT_READ | PROT_WRITE) == 0
               : view->unpacked != NULL;
}

/* SECTION has plain contents, if it has any. */
static bool unpack(struct elf_view *view, Elf_Scn *section, const GElf_Shdr *header,
                   const char *name)
{
    return !packed_section_is(header, name) ||
           (make_writable(view) &&
            packed_section_unpack(&view->sections, view->elf, section, header));
}

static const uint8_t *contents(struct elf_view *view, Elf_Scn *section, const GElf_Shdr *header,
                               const char *name, size_t *size)
{
    bool packed = packed_section_is(header, name);
    if (header->sh_type == SHT_NOBITS || !unpack(view, section, header, name))
        return NULL;
    Elf_Data *data = packed ? elf_getdata(section, NULL) : elf_rawdata(section, NULL);
    *size = data && data->d_buf ? data->d_size : 0;
    return data ? data->d_buf : NULL;
}

const uint8_t *elf_view_section(struct elf_view *view, const char *name, size_t *size,
                                uint64_t *addr)
{
    GElf_Shdr header;
    Elf_Scn *section = find_section(view, name, &header);
    if (!section)
        return NULL;
    *addr = header.sh_addr;
    return contents(view, section, &header, name, size);
}

bool elf_view_has(const struct elf_view *view, const char *name)
{
    GElf_Shdr header;
    return find_section(view, name, &header) && header.sh_type != SHT_NOBITS;
}

void elf_view_unpack(struct elf_view *view, bool (*is_wanted)(const char *name))
{
    const char *name;
    GElf_Shdr header;
    for (Elf_Scn *section = NULL; (section = next_section(view, section, &header, &name));)
        if (packed_section_is(&header, name) && make_writable(view) &&
            !(is_wanted(name) && unpack(view, section, &header, name)))
            packed_section_hide(section, &header);
}

void elf_view_hide(struct elf_view *view, const char *name)
{
    GElf_Shdr header;
    Elf_Scn *section = find_section(view, name, &header);
    if (section && make_writable(view))
        packed_section_hide(section, &header);
}

static struct frame_bytes section_bytes(struct elf_view *view, const char *name)
{
    struct frame_bytes bytes = {0};
    bytes.bytes = elf_view_section(view, name, &bytes.size, &bytes.addr);
    if (!bytes.bytes)
        bytes.size = 0;
    return bytes;
}

/* ---- Segments ---- */

static void add_segment(struct elf_view *view, const GElf_Phdr *header)
{
    if (header->p_type != PT_LOAD || header->p_offset > view->size)
        return;
    uint64_t left = view->size - header->p_offset;
    view->segments[view->segment_count++] = (struct elf_segment){
        header->p_offset, header->p_vaddr, header->p_filesz < left ? header->p_filesz : left,
        (header->p_flags & PF_X) != 0};
}

static int read_segments(struct elf_view *view)
{
    size_t count = 0;
    GElf_Phdr header;
    if (elf_getphdrnum(view->elf, &count) || count > MAX_SEGMENTS)
        count = 0;
    view->segments = calloc(count + 1, sizeof *view->segments);
    for (size_t i = 0; view->segments && i < count; i++)
        if (gelf_getphdr(view->elf, (int)i, &header))
            add_segment(view, &header);
    return view->segments ? 0 : -1;
}

/* A mapping begins at a page and may hold bytes in front of its segment: the tolerance. */
bool elf_view_addr(const struct elf_view *view, uint64_t offset, uint64_t *addr)
{
    for (size_t i = 0; i < view->segment_count; i++) {
        const struct elf_segment *segment = &view->segments[i];
        if (offset < segment->offset || offset - segment->offset >= segment->size)
            continue;
        *addr = segment->vaddr + (offset - segment->offset);
        return true;
    }
    return false;
}

const uint8_t *elf_view_code(const struct elf_view *view, uint64_t addr, size_t *before,
                             size_t *size)
{
    for (size_t i = 0; i < view->segment_count; i++) {
        const struct elf_segment *segment = &view->segments[i];
        if (!segment->executable || addr < segment->vaddr || addr - segment->vaddr > segment->size)
            continue;
        *before = (size_t)(addr - segment->vaddr);
        *size = (size_t)segment->size - *before;
        return view->bytes + segment->offset + *before;
    }
    return NULL;
}

/* ---- Who it is ---- */

bool build_id_is(const struct build_id *a, const struct build_id *b)
{
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

void build_id_hex(char hex[BUILD_ID_HEX_BYTES], const struct build_id *id)
{
    hex[0] = '\0';
    for (size_t i = 0; i < id->size; i++)
        snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
}

/* The build-id among the notes in SECTION, if it is there. */
static bool take_build_id(struct elf_view *view, Elf_Scn *section)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t at = 0, name_at, desc_at;
    GElf_Nhdr note;
    while (data && data->d_buf && (at = gelf_getnote(data, at, &note, &name_at, &desc_at))) {
        const uint8_t *notes = data->d_buf;
        if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || note.n_descsz == 0 ||
            note.n_descsz > BUILD_ID_BYTES || memcmp(notes + name_at, "GNU", 4) != 0)
            continue;
        view->build_id.size = note.n_descsz;
        memcpy(view->build_id.bytes, notes + desc_at, note.n_descsz);
        return true;
    }
    return false;
}

/* Mostly in a section of its own; the vdso has all notes in one. */
static void read_build_id(struct elf_view *view)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    while ((section = elf_nextscn(view->elf, section)))
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_NOTE &&
            take_build_id(view, section))
            return;
}

static void read_frames(struct elf_view *view)
{
    view->eh_frame.entries = section_bytes(view, ".eh_frame");
    view->eh_frame.hdr = section_bytes(view, ".eh_frame_hdr");
    view->debug_frame.entries = section_bytes(view, ".debug_frame");
    if (!view->debug_frame.entries.size)
        view->debug_frame.entries = section_bytes(view, ".zdebug_frame");
    view->debug_frame.debug = true;
}

static void read_elf(struct elf_view *view)
{
    GElf_Ehdr header;
    elf_version(EV_CURRENT);
    view->elf = elf_memory((char *)(uintptr_t)view->bytes, view->size);
    if (!view->elf || elf_kind(view->elf) != ELF_K_ELF || !gelf_getehdr(view->elf, &header) ||
        read_segments(view)) {
        elf_end(view->elf);
        view->elf = NULL;
        return;
    }
    view->elf_mach = header.e_machine;
    view->address_bytes = header.e_ident[EI_CLASS] == ELFCLASS32 ? 4 : 8;
    view->entry = header.e_entry;
    view->big_endian = header.e_ident[EI_DATA] == ELFDATA2MSB;
    if (view->address_bytes == 8 && !view->big_endian) /* stacks of others are not unwound */
        read_frames(view);
    read_build_id(view);
}

void elf_view_of(struct elf_view *view, const uint8_t *bytes, size_t size)
{
    *view = (struct elf_view){.bytes = bytes, .size = size};
    read_elf(view);
}

int elf_view_open(struct elf_view *view, const char *path)
{
    *view = (struct elf_view){0};
    int fd = regular_file_open(path, 0, &view->status);
    if (fd < 0)
        return -1;
    if (view->status.st_size > 0 && (view->path = strdup(path))) {
        view->bytes = file_bytes(fd, &view->status);
        view->size = view->bytes ? (size_t)view->status.st_size : 0;
    }
    close(fd);
    if (view->bytes)
        read_elf(view);
    return view->elf ? 0 : -1;
}

/* ---- Functions ---- */

static int compare_functions(const void *left, const void *right)
{
    const struct elf_function *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

static int add_symbol(struct elf_view *view, const GElf_Sym *symbol)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF)
        return 0;
    struct elf_function *functions = array_room(view->functions, view->function_count,
                                                &view->function_capacity, sizeof *functions);
    if (!functions)
        return -1;
    view->functions = functions;
    functions[view->function_count++] =
        (struct elf_function){symbol->st_value, symbol->st_value + symbol->st_size};
    return 0;
}

Elf_Data *elf_view_symbols(struct elf_view *view, uint32_t type, size_t *names)
{
    GElf_Shdr header, of_names;
    const char *name;
    Elf_Scn *section = NULL;
    while ((section = next_section(view, section, &header, &name))) {
        if (header.sh_type != type)
            continue;
        Elf_Scn *strings = elf_getscn(view->elf, header.sh_link);
        *names = header.sh_link;
        return unpack(view, section, &header, name) && gelf_getshdr(strings, &of_names) &&
                       unpack(view, strings, &of_names, "")
                   ? elf_getdata(section, NULL)
                   : NULL;
    }
    return NULL;
}

static int read_symbols(struct elf_view *view, uint32_t type)
{
    size_t names;
    GElf_Sym symbol;
    Elf_Data *data = elf_view_symbols(view, type, &names);
    for (int i = 0; data && gelf_getsym(data, i, &symbol); i++)
        if (add_symbol(view, &symbol))
            return -1;
    return 0;
}

static int read_functions(struct elf_view *view)
{
    view->functions_read = true;
    if (!view->elf)
        return 0;
    if (read_symbols(view, SHT_SYMTAB) ||
        (view->function_count == 0 && read_symbols(view, SHT_DYNSYM)))
        return -1;
    if (view->function_count)
        qsort(view->functions, view->function_count, sizeof *view->functions, compare_functions);
    return 0;
}

int elf_view_function(struct elf_view *view, uint64_t addr, struct elf_function *function)
{
    size_t behind;
    if (!view->functions_read && read_functions(view))
        return -1;
    array_bisect(behind, view->function_count, view->functions[behind].start <= addr);
    if (behind == 0)
        return 0;
    *function = view->functions[behind - 1];
    if (function->end <= function->start)
        function->end = behind < view->function_count ? view->functions[behind].start : addr + 1;
    return addr < function->end;
}

void elf_view_close(struct elf_view *view)
{
    frame_section_free(&view->eh_frame);
    frame_section_free(&view->debug_frame);
    free(view->segments);
    free(view->functions);
    elf_end(view->elf);
    if (view->path && view->bytes)
        munmap((void *)(uintptr_t)view->bytes, view->size);
    unpacked_sections_free(&view->sections);
    free(view->path);
    free(view->unpacked);
    *view = (struct elf_view){0};
}
