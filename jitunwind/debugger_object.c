/* See debugger_object.h.  Source: ELF-64 Object File Format, version 1.5. */
#include "jitunwind/debugger_object.h"

#include "jitunwind/frames/plain_frames.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { GLOBAL_FUNCTION = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) };

enum { HEADS = 2, HEAD_BYTES = 512, PART_ALIGN = 64, LEAST_RECORDS = 64 };

enum section { SECTION_NONE, TEXT, EH_FRAME, SYMTAB, STRTAB, SHSTRTAB, SECTIONS };

static const char section_names[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0.shstrtab";
enum { AT_TEXT = 1, AT_EH_FRAME = 7, AT_SYMTAB = 17, AT_STRTAB = 25, AT_SHSTRTAB = 33 };

_Static_assert(sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr) + sizeof section_names <=
                   HEAD_BYTES,
               "a head has room for it");

/* ---- Where its parts are ---- */

static size_t aligned(size_t bytes)
{
    return (bytes + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
}

static size_t symbols_at(void)
{
    return HEADS * HEAD_BYTES;
}

static size_t names_at(const struct object_memory *memory)
{
    return symbols_at() + aligned((memory->room.records + (size_t)1) * sizeof(Elf64_Sym));
}

static size_t frames_at(const struct object_memory *memory)
{
    return names_at(memory) + aligned(memory->room.names);
}

static size_t records_at(const struct object_memory *memory)
{
    return frames_at(memory) + aligned(memory->room.frames);
}

static Elf64_Sym *symbols_of(const struct debugger_object *object)
{
    return (Elf64_Sym *)(void *)(object->memory.base + symbols_at());
}

static char *names_of(const struct debugger_object *object)
{
    return (char *)object->memory.base + names_at(&object->memory);
}

static uint8_t *frames_of(const struct debugger_object *object)
{
    return object->memory.base + frames_at(&object->memory);
}

static struct object_record *records_of(const struct debugger_object *object)
{
    return (struct object_record *)(void *)(object->memory.base + records_at(&object->memory));
}

/* ---- Memory ---- */

static int memory_open(struct object_memory *memory, struct object_sizes room)
{
    memory->room = room;
    memory->bytes = records_at(memory) + room.records * sizeof(struct object_record);
    memory->base = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory->base == MAP_FAILED ? -ENOMEM : 0;
}

static void memory_close(struct object_memory *memory)
{
    if (memory->base)
        munmap(memory->base, memory->bytes);
    memory->base = NULL;
}

/* Empty: of each table what stands at its begin. */
static void begin(struct debugger_object *object)
{
    struct byte_sink frames = byte_sink_over(frames_of(object), object->memory.room.frames);
    ju_plain_cie_put(&frames);
    object->used = (struct object_sizes){.names = 1, .frames = (uint32_t)frames.size};
    object->symbols = 1;
    object->live = 0;
}

/* Twice SIZES, and something. */
static struct object_sizes with_more(struct object_sizes sizes)
{
    return (struct object_sizes){.names = sizes.names * 2 + 4096,
                                 .frames = sizes.frames * 2 + 4096,
                                 .records = sizes.records * 2 + LEAST_RECORDS};
}

struct debugger_object *ju_debugger_object_new(uint64_t start, uint64_t end,
                                               struct object_sizes sizes)
{
    struct debugger_object *object = calloc(1, sizeof *object);
    if (!object)
        return NULL;
    if (memory_open(&object->memory, with_more(sizes))) {
        free(object);
        return NULL;
    }
    object->start = object->top = start;
    object->end = object->bottom = end;
    begin(object);
    return object;
}

void ju_debugger_object_free(struct debugger_object *object)
{
    if (!object)
        return;
    memory_close(&object->memory);
    memory_close(&object->left);
    free(object);
}

/* ---- Functions ---- */

/* So large that there is no memory for it, but sums do not wrap around. */
static uint32_t bounded(size_t bytes)
{
    return bytes < UINT32_MAX / 2 ? (uint32_t)bytes : UINT32_MAX / 2;
}

struct object_sizes ju_debugger_object_needs(const struct object_addition *addition)
{
    return (struct object_sizes){
        .names = addition->name ? bounded(strlen(addition->name) + 1) : 0,
        .frames = addition->row_count ? bounded(ju_plain_frames_most(addition->row_count)) : 0,
        .records = 1};
}

/* Returns where the name stands. */
static uint32_t put_symbol(struct debugger_object *object, const char *name, uint64_t start,
                           uint64_t bytes)
{
    uint32_t at = object->used.names;
    size_t size = strlen(name) + 1;
    memcpy(names_of(object) + at, name, size);
    symbols_of(object)[object->symbols++] = (Elf64_Sym){.st_name = at,
                                                        .st_info = GLOBAL_FUNCTION,
                                                        .st_shndx = TEXT,
                                                        .st_value = start,
                                                        .st_size = bytes};
    object->used.names += (uint32_t)size;
    return at;
}

static void widen(struct debugger_object *object, uint64_t bottom, uint64_t top)
{
    object->bottom = bottom < object->bottom ? bottom : object->bottom;
    object->top = top > object->top ? top : object->top;
    object->changed = true;
    object->live++;
}

uint32_t ju_debugger_object_add(struct debugger_object *object,
                                const struct object_addition *addition)
{
    struct object_record *record = &records_of(object)[object->used.records];
    struct byte_sink frames = byte_sink_over(frames_of(object), object->memory.room.frames);
    frames.size = object->used.frames;
    ju_plain_frames_put(&frames, addition->start, addition->bytes, addition->rows,
                        addition->row_count);
    *record = (struct object_record){.number = addition->number,
                                     .frames = object->used.frames,
                                     .frames_bytes = (uint32_t)frames.size - object->used.frames};
    if (addition->name) {
        record->symbol = object->symbols;
        put_symbol(object, addition->name, addition->start, addition->bytes);
    }
    object->used.frames = (uint32_t)frames.size;
    widen(object, addition->start, addition->start + addition->bytes);
    return object->used.records++;
}

/* Append the function of RECORD, a record of another object: with the same symbol and frames. */
static void copy_record(struct debugger_object *object, const struct debugger_object *from,
                        const struct object_record *record, const struct function_table *table)
{
    const struct table_function *function = &table->functions[record->number];
    struct object_record *copy = &records_of(object)[object->used.records];
    uint8_t *frames = frames_of(object) + object->used.frames;
    *copy = *record;
    copy->frames = object->used.frames;
    memcpy(frames, frames_of(from) + record->frames, record->frames_bytes);
    ju_plain_frames_place(frames, record->frames_bytes, object->used.frames);
    object->used.frames += record->frames_bytes;
    if (record->symbol) {
        copy->symbol = object->symbols;
        put_symbol(object, names_of(from) + symbols_of(from)[record->symbol].st_name,
                   function->start, function->bytes);
    }
    widen(object, function->start, function->start + function->bytes);
}

/* Copy everything of FROM, in which nothing was buried: table by table, without the first entry of
 * each. */
static void copy_tables(struct debugger_object *object, const struct debugger_object *from,
                        uint32_t *records)
{
    const uint32_t frames_bytes = from->used.frames - PLAIN_CIE_BYTES;
    uint8_t *frames = frames_of(object) + object->used.frames;
    Elf64_Sym *symbols = symbols_of(object) + object->symbols;
    struct object_record *copies = records_of(object) + object->used.records;
    memcpy(names_of(object) + object->used.names, names_of(from) + 1, from->used.names - 1);
    memcpy(frames, frames_of(from) + PLAIN_CIE_BYTES, frames_bytes);
    ju_plain_frames_place(frames, frames_bytes, object->used.frames);
    memcpy(symbols, symbols_of(from) + 1, (from->symbols - 1) * sizeof *symbols);
    for (uint32_t i = 0; i < from->symbols - 1; i++)
        symbols[i].st_name += object->used.names - 1;
    for (uint32_t i = 0; i < from->used.records; i++) {
        copies[i] = records_of(from)[i];
        copies[i].frames += object->used.frames - PLAIN_CIE_BYTES;
        copies[i].symbol += copies[i].symbol ? object->symbols - 1 : 0;
        records[copies[i].number] = object->used.records + i;
    }
    object->used.names += from->used.names - 1;
    object->used.frames += frames_bytes;
    object->used.records += from->used.records;
    object->symbols += from->symbols - 1;
    object->live += from->live - 1;
    widen(object, from->bottom, from->top);
}

void ju_debugger_object_add_all(struct debugger_object *object, const struct debugger_object *from,
                                const struct function_table *table, uint32_t *records)
{
    const struct object_record *record = records_of(from);
    if (from->live && from->live == from->used.records) {
        copy_tables(object, from, records);
        return;
    }
    for (uint32_t i = 0; i < from->used.records; i++) {
        if (!record[i].number)
            continue;
        copy_record(object, from, &record[i], table);
        records[record[i].number] = object->used.records++;
    }
}

void ju_debugger_object_add_own(struct debugger_object *object, const struct debugger_object *from,
                                const struct function_table *table, uint32_t *records)
{
    const struct object_record *record = records_of(from);
    for (uint32_t i = 0; i < from->used.records; i++) {
        const uint64_t start = table->functions[record[i].number].start;
        if (!record[i].number || start < object->start || start >= object->end)
            continue;
        copy_record(object, from, &record[i], table);
        records[record[i].number] = object->used.records++;
    }
}

uint64_t ju_debugger_object_middle(const struct debugger_object *object,
                                   const struct function_table *table)
{
    const struct object_record *record = records_of(object);
    uint64_t middle = object->bottom + (object->top - object->bottom) / 2, found = object->end;
    for (uint32_t i = 0; i < object->used.records; i++) {
        const uint64_t start = table->functions[record[i].number].start;
        if (record[i].number && start >= middle && start < found)
            found = start;
    }
    return found < object->end ? found : object->start;
}

static bool fits(uint32_t used, uint32_t more, uint32_t room)
{
    return used <= room && more <= room - used;
}

/* The sizes of OBJECT without buried functions. */
static struct object_sizes live_sizes(const struct debugger_object *object)
{
    const struct object_record *records = records_of(object);
    struct object_sizes sizes = {.names = 1, .frames = PLAIN_CIE_BYTES, .records = object->live};
    for (uint32_t i = 0; i < object->used.records; i++) {
        if (!records[i].number)
            continue;
        const Elf64_Sym *symbol = &symbols_of(object)[records[i].symbol];
        sizes.names += (uint32_t)strlen(names_of(object) + symbol->st_name) + 1;
        sizes.frames += records[i].frames_bytes;
    }
    return sizes;
}

int ju_debugger_object_reserve(struct debugger_object *object, struct object_sizes more,
                               const struct function_table *table, uint32_t *records)
{
    const struct object_sizes room = object->memory.room;
    if (fits(object->used.names, more.names, room.names) &&
        fits(object->used.frames, more.frames, room.frames) &&
        fits(object->used.records, more.records, room.records))
        return 0;
    const struct debugger_object old = *object;
    struct object_sizes sizes = live_sizes(object);
    sizes.names += more.names;
    sizes.frames += more.frames;
    sizes.records += more.records;
    struct object_memory memory;
    if (sizes.frames > UINT32_MAX / 4 || sizes.names > UINT32_MAX / 4 ||
        memory_open(&memory, with_more(sizes)))
        return -ENOMEM;
    object->memory = memory;
    object->left = old.memory;
    ju_debugger_object_range(object, object->start, object->end);
    begin(object);
    ju_debugger_object_add_all(object, &old, table, records);
    return 0;
}

void ju_debugger_object_bury(struct debugger_object *object, uint32_t number)
{
    struct object_record *record = &records_of(object)[number];
    if (record->symbol)
        symbols_of(object)[record->symbol] = (Elf64_Sym){.st_info = GLOBAL_FUNCTION};
    ju_plain_frames_bury(frames_of(object) + record->frames, record->frames_bytes);
    record->number = 0;
    object->live--;
}

/* ---- Heads ---- */

void ju_debugger_object_range(struct debugger_object *object, uint64_t start, uint64_t end)
{
    object->start = start;
    object->end = end;
    object->changed = true;
    object->written[0] = object->written[1] = false;
}

static Elf64_Shdr section_at(const uint8_t *head, const void *data)
{
    return (Elf64_Shdr){.sh_offset = (uint64_t)((const uint8_t *)data - head), .sh_addralign = 1};
}

static void put_sections(const struct debugger_object *object, const uint8_t *head,
                         const char *names, Elf64_Shdr *sections)
{
    sections[TEXT] = (Elf64_Shdr){.sh_name = AT_TEXT,
                                  .sh_type = SHT_NOBITS,
                                  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                  .sh_addr = object->start,
                                  .sh_size = object->end - object->start,
                                  .sh_addralign = 1};
    sections[EH_FRAME] = section_at(head, frames_of(object));
    sections[EH_FRAME].sh_name = AT_EH_FRAME;
    sections[EH_FRAME].sh_type = SHT_PROGBITS;
    sections[EH_FRAME].sh_flags = SHF_ALLOC;
    sections[EH_FRAME].sh_addr = (uint64_t)(uintptr_t)frames_of(object);
    sections[EH_FRAME].sh_addralign = sizeof(uint64_t);
    sections[SYMTAB] = section_at(head, symbols_of(object));
    sections[SYMTAB].sh_name = AT_SYMTAB;
    sections[SYMTAB].sh_type = SHT_SYMTAB;
    sections[SYMTAB].sh_link = STRTAB;
    sections[SYMTAB].sh_info = 1;
    sections[SYMTAB].sh_entsize = sizeof(Elf64_Sym);
    sections[SYMTAB].sh_addralign = sizeof(uint64_t);
    sections[STRTAB] = section_at(head, names_of(object));
    sections[STRTAB].sh_name = AT_STRTAB;
    sections[STRTAB].sh_type = SHT_STRTAB;
    sections[SHSTRTAB] = section_at(head, names);
    sections[SHSTRTAB].sh_size = sizeof section_names;
    sections[SHSTRTAB].sh_name = AT_SHSTRTAB;
    sections[SHSTRTAB].sh_type = SHT_STRTAB;
}

static void put_head(const struct debugger_object *object, uint8_t *head)
{
    Elf64_Ehdr *elf = (Elf64_Ehdr *)(void *)head;
    Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(head + sizeof *elf);
    char *names = (char *)head + sizeof *elf + SECTIONS * sizeof *sections;
    *elf = (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = MACHINE_ELF,
        .e_version = EV_CURRENT,
        .e_shoff = sizeof *elf,
        .e_ehsize = sizeof *elf,
        .e_shentsize = sizeof *sections,
        .e_shnum = SECTIONS,
        .e_shstrndx = SHSTRTAB};
    sections[SECTION_NONE] = (Elf64_Shdr){0};
    memcpy(names, section_names, sizeof section_names);
    put_sections(object, head, names, sections);
}

static void put_sizes(const struct debugger_object *object, uint8_t *head)
{
    Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(head + sizeof(Elf64_Ehdr));
    sections[EH_FRAME].sh_size = object->used.frames;
    sections[SYMTAB].sh_size = object->symbols * sizeof(Elf64_Sym);
    sections[STRTAB].sh_size = object->used.names;
}

/* ---- What debuggers see ---- */

void ju_debugger_object_hide(struct debugger_object *object)
{
    if (object->shown)
        ju_debugger_list_remove(&object->entries[object->head]);
    object->hidden = object->shown;
    object->shown = false;
}

static void show_other_head(struct debugger_object *object)
{
    unsigned other = 1 - object->head;
    uint8_t *head = object->memory.base + other * HEAD_BYTES;
    struct debugger_entry *entry = &object->entries[other];
    if (!object->written[other])
        put_head(object, head);
    object->written[other] = true;
    put_sizes(object, head);
    entry->object = head;
    entry->object_bytes = records_at(&object->memory) - other * HEAD_BYTES;
    ju_debugger_list_add(entry);
    if (object->shown)
        ju_debugger_list_remove(&object->entries[object->head]);
    object->head = other;
    object->changed = false;
    memory_close(&object->left);
}

void ju_debugger_object_show(struct debugger_object *object)
{
    if (object->changed)
        show_other_head(object);
    else if (object->hidden)
        ju_debugger_list_add(&object->entries[object->head]);
    else
        return;
    object->shown = true;
    object->hidden = false;
}
