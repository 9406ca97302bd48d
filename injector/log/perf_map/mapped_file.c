/* See mapped_file.h. */
#include "injector/log/perf_map/mapped_file.h"

#include "injector/arrays/array.h"
#include "injector/arrays/number_sort.h"
#include "injector/files/regular_file.h"
#include "injector/recording/host/mapped_path.h"

#include <gelf.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The largest symbol table; Chromium's has 50 MB. */
#define MAX_TABLE_BYTES (UINT64_C(256) << 20)

enum { PAGE_BYTES = 4096, MAX_SEGMENTS = 64 };

/* ---- Which file ---- */

static int compare(const void *left, const void *right)
{
    const struct mapped_file *a = left, *b = right;
    return perf_map_compare_files(a->map, b->map);
}

struct mapped_file *mapped_files_get(struct mapped_files *files, const struct perf_map *map)
{
    struct mapped_file wanted = {.map = map}, **found = tfind(&wanted, &files->tree, compare);
    if (found)
        return *found;
    struct mapped_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->map = map;
    if (tsearch(file, &files->tree, compare))
        return file;
    free(file);
    return NULL;
}

/* Open the file at the map's path below ROOT, if it is a regular file and can be the one that was
 * mapped. */
static int open_below(const struct mapped_files *files, const char *root,
                      const struct perf_map *map)
{
    struct stat status;
    char *path = mapped_path(root, map->filename);
    if (!path)
        return -1;
    int fd = regular_file_open(path, 0, &status);
    free(path);
    if (fd < 0)
        return -1;
    bool same_device = !files->is_elsewheres && mapped_inode_is_on(map, status.st_dev);
    if (status.st_size > 0 && !(same_device && status.st_ino != map->ino))
        return fd;
    close(fd);
    return -1;
}

static int open_file(const struct mapped_files *files, const struct perf_map *map)
{
    int fd = -1;
    if (map->filename[0] != '/')
        return -1;
    if (files->root)
        fd = open_below(files, files->root, map);
    return fd < 0 ? open_below(files, "", map) : fd;
}

/* ---- Its symbols ---- */

/* A file that is being read.  libelf copies its input: it can't change behind the checks. */
struct reader {
    Elf *elf;
    struct address_span *ranges; /* virtual addresses at first; end 0: up to the next */
    size_t count, capacity;
};

static bool is_taken(const GElf_Sym *symbol)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    if (symbol->st_name == 0 || symbol->st_shndx == SHN_UNDEF)
        return false;
    if (type == STT_NOTYPE)
        return symbol->st_shndx != SHN_ABS && GELF_ST_VISIBILITY(symbol->st_other) == STV_DEFAULT;
    return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT;
}

static int add_symbol(struct reader *reader, const GElf_Sym *symbol)
{
    uint64_t start = symbol->st_value, end = symbol->st_size ? start + symbol->st_size : 0;
    if (end && end < start)
        return 0;
    if (array_reserve(reader->ranges, reader->count, reader->capacity))
        return -1;
    reader->ranges[reader->count++] = (struct address_span){start, end};
    return 0;
}

static int read_table(struct reader *reader, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = header->sh_size <= MAX_TABLE_BYTES ? elf_getdata(section, NULL) : NULL;
    GElf_Sym symbol;
    for (int i = 0; data && gelf_getsym(data, i, &symbol); i++)
        if (is_taken(&symbol) && add_symbol(reader, &symbol))
            return -1;
    return 0;
}

/* The first table of TYPE: a file has one, and a thousand that stand at the same bytes would fill
 * all memory. */
static int read_table_of(struct reader *reader, uint32_t type)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    while ((section = elf_nextscn(reader->elf, section)))
        if (gelf_getshdr(section, &header) && header.sh_type == type)
            return read_table(reader, section, &header);
    return 0;
}

/* Give symbols without a size the end that perf gives them: the next one's start, or the last one's
 * page. */
static void close_ranges(struct reader *reader)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = reader->count; i-- > 0;) {
        struct address_span *range = &reader->ranges[i];
        if (range->end == 0)
            range->end = next == UINT64_MAX ? (range->start | (PAGE_BYTES - 1)) + 1 : next;
        if (i > 0 && reader->ranges[i - 1].start != range->start)
            next = range->start;
    }
}

/* The segment of the file that ADDR is in, or NULL. */
static const GElf_Phdr *segment_of(const struct reader *reader, uint64_t addr, GElf_Phdr *header)
{
    size_t count = 0;
    elf_getphdrnum(reader->elf, &count);
    for (size_t i = 0; i < count && i < MAX_SEGMENTS && gelf_getphdr(reader->elf, (int)i, header);
         i++)
        if (header->p_type == PT_LOAD && addr >= header->p_vaddr &&
            addr - header->p_vaddr < header->p_filesz)
            return header;
    return NULL;
}

/* From virtual addresses to offsets; most symbols are in the segment of the one before. */
static void move_to_offsets(struct reader *reader)
{
    GElf_Phdr header;
    const GElf_Phdr *segment = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < reader->count; i++) {
        struct address_span range = reader->ranges[i];
        if (!segment || range.start < segment->p_vaddr ||
            range.start - segment->p_vaddr >= segment->p_filesz)
            segment = segment_of(reader, range.start, &header);
        if (!segment)
            continue;
        uint64_t left = segment->p_filesz - (range.start - segment->p_vaddr);
        uint64_t bytes = range.end - range.start;
        range.start = range.start - segment->p_vaddr + segment->p_offset;
        range.end = range.start + (bytes < left ? bytes : left);
        if (range.start < range.end) /* else the segment's offset is none */
            reader->ranges[kept++] = range;
    }
    reader->count = kept;
}

static void sort_ranges(struct reader *reader)
{
    number_sort(reader->ranges, reader->count, sizeof *reader->ranges); /* by start */
    close_ranges(reader);
    move_to_offsets(reader);
    reader->count = address_spans_join(reader->ranges, reader->count);
}

static int read_file(const struct mapped_files *files, struct mapped_file *file)
{
    int result = 0, fd = open_file(files, file->map);
    if (fd < 0)
        return 0;
    elf_version(EV_CURRENT);
    struct reader reader = {.elf = elf_begin(fd, ELF_C_READ, NULL)};
    if (reader.elf && elf_kind(reader.elf) == ELF_K_ELF) {
        result = read_table_of(&reader, SHT_SYMTAB);
        if (!result && reader.count == 0)
            result = read_table_of(&reader, SHT_DYNSYM);
        sort_ranges(&reader);
    }
    elf_end(reader.elf);
    close(fd);
    file->ranges = reader.ranges;
    file->range_count = reader.count;
    return result;
}

int mapped_file_symbols(const struct mapped_files *files, struct mapped_file *file, uint64_t offset,
                        struct address_span *range)
{
    if (!file->was_read && read_file(files, file))
        return -1;
    file->was_read = true;
    const struct address_span *found = address_spans_find(file->ranges, file->range_count, offset);
    *range = found ? *found : (struct address_span){UINT64_MAX, UINT64_MAX};
    return 0;
}

static void free_file(void *node)
{
    struct mapped_file *file = node;
    free(file->ranges);
    free(file);
}

void mapped_files_free(struct mapped_files *files)
{
    tdestroy(files->tree, free_file);
    files->tree = NULL;
}
