/* See core_file.h. */
#include "injector/debug/snapshot/core_file.h"

#include "injector/arrays/bisect.h"
#include "injector/files/file_bytes.h"
#include "injector/files/regular_file.h"
#include "injector/native/mapped_build_id.h"
#include "jitdump/format/byte_cursor.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The offsets of the fields of the notes. */
enum {
    STATUS_SIGNAL_AT = 12,
    STATUS_TID_AT = 32,
    STATUS_REGISTERS_AT = 112,
    INFO_PID_AT = 24,
    INFO_NAME_AT = 40,
};

struct core_reader {
    struct snapshot *snapshot;
    const uint8_t *bytes;
    size_t size;
    struct snapshot named; /* its maps: from NT_FILE */
    bool has_info;
    uint64_t missing_at; /* the end of memory that the file should have, if it ends before */
};

/* ---- Notes ---- */

static int take_status(struct core_reader *reader, const struct elf_note *note)
{
    if (note->desc_bytes < STATUS_REGISTERS_AT + 8U * reader->snapshot->machine->word_count)
        return 0;
    struct snapshot_thread *thread = snapshot_add_thread(reader->snapshot);
    struct byte_cursor cursor = byte_cursor_over(note->desc, note->desc_bytes, false);
    if (!thread)
        return -1;
    cursor_skip(&cursor, STATUS_SIGNAL_AT);
    uint16_t signal = cursor_u16(&cursor);
    thread->signal = reader->snapshot->thread_count == 1 ? signal : 0; /* all have the same */
    cursor_skip(&cursor, STATUS_TID_AT - STATUS_SIGNAL_AT - 2);
    thread->tid = cursor_u32(&cursor);
    snapshot_take_registers(thread, reader->snapshot->machine, note->desc + STATUS_REGISTERS_AT);
    return 0;
}

static void take_info(struct core_reader *reader, const struct elf_note *note)
{
    if (note->desc_bytes < INFO_NAME_AT + SNAPSHOT_NAME_BYTES)
        return;
    struct byte_cursor cursor = byte_cursor_over(note->desc, note->desc_bytes, false);
    cursor_skip(&cursor, INFO_PID_AT);
    reader->snapshot->pid = cursor_u32(&cursor);
    memcpy(reader->snapshot->name, note->desc + INFO_NAME_AT, SNAPSHOT_NAME_BYTES);
    reader->has_info = true;
}

/* One entry of NT_FILE, whose path is at PATHS. */
static int take_named(struct core_reader *reader, struct byte_cursor *entries,
                      struct byte_cursor *paths, uint64_t page_bytes)
{
    uint64_t start = cursor_u64(entries), end = cursor_u64(entries), page = cursor_u64(entries);
    const char *path = cursor_cstr(paths);
    if (entries->failed || paths->failed || start >= end)
        return 0;
    struct snapshot_map *map = snapshot_add_map(&reader->named);
    if (!map)
        return -1;
    *map = (struct snapshot_map){
        .start = start, .end = end, .offset = page * page_bytes, .executable = true};
    map->path = strdup(path);
    return map->path ? 0 : -1;
}

static int take_files(struct core_reader *reader, const struct elf_note *note)
{
    enum { ENTRY_BYTES = 24 };
    struct byte_cursor entries = byte_cursor_over(note->desc, note->desc_bytes, false);
    uint64_t count = cursor_u64(&entries), page_bytes = cursor_u64(&entries);
    if (count > cursor_left(&entries) / ENTRY_BYTES)
        return 0;
    struct byte_cursor paths = entries;
    cursor_skip(&paths, (size_t)count * ENTRY_BYTES);
    for (uint64_t i = 0; i < count && !paths.failed; i++)
        if (take_named(reader, &entries, &paths, page_bytes))
            return -1;
    return 0;
}

static void take_auxiliary(struct core_reader *reader, const struct elf_note *note)
{
    struct byte_cursor cursor = byte_cursor_over(note->desc, note->desc_bytes, false);
    while (cursor_left(&cursor) >= 16) {
        uint64_t type = cursor_u64(&cursor), value = cursor_u64(&cursor);
        if (type == AT_ENTRY)
            reader->snapshot->entry = value;
    }
}

static int take_notes(struct core_reader *reader, const GElf_Phdr *header)
{
    if (header->p_offset > reader->size || header->p_filesz > reader->size - header->p_offset)
        return 0;
    struct byte_cursor cursor =
        byte_cursor_over(reader->bytes + header->p_offset, (size_t)header->p_filesz, false);
    struct elf_note note;
    int result = 0;
    while (!result && elf_note_next(&cursor, &note)) {
        if (note.name_bytes != 5 || memcmp(note.name, "CORE", 5) != 0)
            continue;
        if (note.type == NT_PRSTATUS)
            result = take_status(reader, &note);
        else if (note.type == NT_PRPSINFO)
            take_info(reader, &note);
        else if (note.type == NT_AUXV)
            take_auxiliary(reader, &note);
        else if (note.type == NT_FILE)
            result = take_files(reader, &note);
    }
    return result;
}

/* ---- Memory ---- */

static int take_load(struct core_reader *reader, const GElf_Phdr *header)
{
    if (header->p_memsz == 0 || header->p_vaddr > UINT64_MAX - header->p_memsz)
        return 0;
    struct snapshot_map *map = snapshot_add_map(reader->snapshot);
    if (!map)
        return -1;
    map->start = header->p_vaddr;
    map->end = header->p_vaddr + header->p_memsz;
    map->executable = (header->p_flags & PF_X) != 0;
    uint64_t wanted = header->p_filesz < header->p_memsz ? header->p_filesz : header->p_memsz;
    uint64_t left = header->p_offset < reader->size ? reader->size - header->p_offset : 0;
    if (wanted > left && header->p_offset <= UINT64_MAX - wanted &&
        header->p_offset + wanted > reader->missing_at)
        reader->missing_at = header->p_offset + wanted;
    map->byte_count = wanted < left ? wanted : left;
    map->bytes = map->byte_count ? reader->bytes + header->p_offset : NULL;
    return 0;
}

static int take_headers(struct core_reader *reader, Elf *elf)
{
    size_t count = 0;
    GElf_Phdr header;
    int result = 0;
    if (elf_getphdrnum(elf, &count))
        count = 0;
    for (size_t i = 0; !result && i < count; i++) {
        if (!gelf_getphdr(elf, (int)i, &header))
            continue;
        if (header.p_type == PT_NOTE)
            result = take_notes(reader, &header);
        else if (header.p_type == PT_LOAD)
            result = take_load(reader, &header);
    }
    return result;
}

/* Add the mappings without a PT_LOAD in the core.  Their contents are in files, and gcore leaves
 * them out. */
static int add_named(struct core_reader *reader, size_t loads)
{
    struct snapshot_map *named = reader->named.maps;
    for (size_t i = 0; i < reader->named.map_count; i++) {
        const struct snapshot loaded = {.maps = reader->snapshot->maps, .map_count = loads};
        const struct snapshot_map *found = snapshot_map_at(&loaded, named[i].start);
        struct snapshot_map *map = found ? &reader->snapshot->maps[found - loaded.maps]
                                         : snapshot_add_map(reader->snapshot);
        if (!map)
            return -1;
        if (found) {
            free(map->path);
            map->path = named[i].path;
            map->offset = named[i].offset - (named[i].start - map->start);
        } else {
            *map = named[i];
        }
        named[i].path = NULL;
    }
    return 0;
}

/* ---- The whole ---- */

static int check_header(struct core_reader *reader, Elf *elf, const char *path,
                        struct findings *findings)
{
    GElf_Ehdr header;
    char machine[MACHINE_TEXT_BYTES];
    if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
        return report_failure(findings, "%s: is no core: it is no ELF file", path);
    if (header.e_type != ET_CORE)
        return report_failure(
            findings,
            "%s: is an ELF file, but no core; name a running process with -p PID; a process writes "
            "a core when it crashes, and gcore PID writes one",
            path);
    reader->snapshot->machine = machine_numbered(header.e_machine);
    if (!machine_has_words(reader->snapshot->machine) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB)
        return report_failure(findings,
                              "%s: is a core of %s, a machine whose stacks can't be read here",
                              path, machine_text(machine, header.e_machine));
    return 0;
}

static int check_contents(const struct core_reader *reader, const char *path,
                          struct findings *findings)
{
    if (reader->missing_at)
        return report_failure(findings,
                              "%s: is cut short: of %" PRIu64 " bytes it has %zu; let the process "
                              "write all of it: ulimit -c unlimited, and room on the disk",
                              path, reader->missing_at, reader->size);
    if (!reader->snapshot->thread_count || !reader->has_info)
        return report_failure(findings,
                              "%s: has no registers of threads in it: it is cut short or damaged; "
                              "let the process write all of it: ulimit -c unlimited, and room on "
                              "the disk",
                              path);
    return 0;
}

static int read_all(struct core_reader *reader, Elf *elf, const char *path,
                    struct findings *findings)
{
    if (check_header(reader, elf, path, findings))
        return -1;
    if (take_headers(reader, elf))
        return report_failure(findings, "out of memory");
    snapshot_complete(reader->snapshot);
    if (add_named(reader, reader->snapshot->map_count))
        return report_failure(findings, "out of memory");
    snapshot_complete(reader->snapshot);
    return check_contents(reader, path, findings);
}

int core_file_read(struct snapshot *snapshot, const char *path, const uint8_t *bytes, size_t size,
                   struct findings *findings)
{
    *snapshot = (struct snapshot){.path = path};
    struct core_reader reader = {.snapshot = snapshot, .bytes = bytes, .size = size};
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)(uintptr_t)bytes, size); /* only read */
    int result = read_all(&reader, elf, path, findings);
    elf_end(elf);
    snapshot_free(&reader.named);
    return result;
}

int core_file_open(struct snapshot *snapshot, const char *path, struct findings *findings)
{
    struct stat status;
    *snapshot = (struct snapshot){.path = path};
    int fd = regular_file_open(path, 0, &status);
    if (fd < 0)
        return report_failure(findings, "%s: can't read it: %s", path, regular_file_error(errno));
    const uint8_t *bytes = status.st_size ? file_bytes(fd, &status) : NULL;
    int error = errno;
    close(fd);
    if (!bytes)
        return report_failure(findings, "%s: can't read it: %s", path,
                              status.st_size ? file_bytes_error(error) : "it is empty");
    int result = core_file_read(snapshot, path, bytes, (size_t)status.st_size, findings);
    snapshot->core = bytes;
    snapshot->core_bytes = (size_t)status.st_size;
    return result;
}
