/* See native_tables.h. */
#include "jitunwind/frames/native_tables.h"

#include "jitdump/format/eh_entry.h"
#include "jitunwind/frames/frame_entry.h"
#include "jitunwind/frames/memory_reader.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILES_MAX = 4096, INSTRUCTIONS_MAX = 20000, WITNESS_WORDS = 2 };

/* A loaded file. */
struct native_file {
    uint64_t start, end; /* of its mapping */
    uint64_t hdr;        /* its .eh_frame_hdr, or 0 */
    /* As the loader has it: */
    uint64_t load_addr, dynamic, path;
    uint64_t map;                    /* by _dl_find_object: where these are */
    uint64_t witness[WITNESS_WORDS]; /* what its .eh_frame_hdr, or without one the file, begins
                                        with: it is still loaded if that is still there */
};

/* ---- Without _dl_find_object: a list of our own ----
 *
 * It is made in jitunwind_open.  Files that are loaded later are taken from the loader's list, in
 * handlers, too: the kernel reads that list, since the loader may be changing it. */

static struct native_file files[FILES_MAX];
static atomic_uint file_count;
static atomic_uint adding_pid;  /* of the process in which a thread adds files, or 0 */
static atomic_uintptr_t loader; /* its struct r_debug, or 0 */

/* The last of the loader's list when all of it was known. */
static struct {
    atomic_uintptr_t addr, dynamic;
} newest;

static uint64_t witness_addr(const struct native_file *file)
{
    return file->hdr ? file->hdr : file->start;
}

/* It is compared in place, behind the kernel's word that it is there. */
static bool is_loaded(const struct native_file *file)
{
    const uint64_t addr = witness_addr(file);
    return ju_memory_is_there(addr, sizeof file->witness) &&
           memcmp((const void *)(uintptr_t)addr, file->witness, sizeof file->witness) == 0;
}

static bool is_listed(const struct native_file *file)
{
    const unsigned count = atomic_load_explicit(&file_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (memcmp(&files[i], file, sizeof *file) == 0)
            return true;
    return false;
}

/* One thread at a time adds files.  A thread that is gone with a fork is no thread of the child;
 * what it has not counted is not there. */
static bool begin_adding(void)
{
    const unsigned pid = (unsigned)syscall(SYS_getpid);
    unsigned other = atomic_load(&adding_pid);
    return other != pid && atomic_compare_exchange_strong(&adding_pid, &other, pid);
}

static void end_adding(void)
{
    atomic_store(&adding_pid, 0);
}

/* Between begin_adding and end_adding. */
static void add_file(struct native_file *file)
{
    const unsigned count = atomic_load(&file_count);
    if (count == FILES_MAX || file->start >= file->end ||
        !ju_memory_read_there(witness_addr(file), file->witness, sizeof file->witness) ||
        is_listed(file))
        return;
    files[count] = *file;
    atomic_store_explicit(&file_count, count + 1, memory_order_release);
}

static void add_segment(struct native_file *file, uint32_t type, uint64_t start, uint64_t bytes)
{
    if (type == PT_GNU_EH_FRAME)
        file->hdr = start;
    if (type == PT_DYNAMIC)
        file->dynamic = start;
    if (type == PT_LOAD && start < file->start)
        file->start = start;
    if (type == PT_LOAD && start + bytes > file->end)
        file->end = start + bytes;
}

/* A program's says where the loader's list is. */
static void look_for_loader(const struct native_file *file)
{
    const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(uintptr_t)file->dynamic;
    for (; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_DEBUG && entry->d_un.d_ptr)
            atomic_store(&loader, (uintptr_t)entry->d_un.d_ptr);
}

static int list_file(struct dl_phdr_info *info, size_t size, void *context)
{
    struct native_file file = {.start = UINT64_MAX,
                               .load_addr = info->dlpi_addr,
                               .path = (uint64_t)(uintptr_t)info->dlpi_name};
    (void)size, (void)context;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        add_segment(&file, header->p_type, info->dlpi_addr + header->p_vaddr, header->p_memsz);
    }
    look_for_loader(&file);
    add_file(&file);
    return 0;
}

/* Add the file that the loader has as MAP, whose header stands where it is loaded. */
static void add_loaded(const struct link_map *map)
{
    enum { SEGMENTS_MAX = 64 };
    struct native_file file = {
        .start = UINT64_MAX, .load_addr = map->l_addr, .path = (uint64_t)(uintptr_t)map->l_name};
    ElfW(Ehdr) header;
    ElfW(Phdr) segment;
    if (!ju_memory_read_there(map->l_addr, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof segment ||
        header.e_phnum > SEGMENTS_MAX)
        return;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        if (!ju_memory_read_there(map->l_addr + header.e_phoff + i * sizeof segment, &segment,
                                  sizeof segment))
            return;
        add_segment(&file, segment.p_type, map->l_addr + segment.p_vaddr, segment.p_memsz);
    }
    if (file.dynamic == (uint64_t)(uintptr_t)map->l_ld)
        add_file(&file);
}

static bool is_in_list(const struct link_map *map)
{
    const unsigned count = atomic_load_explicit(&file_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (files[i].load_addr == map->l_addr &&
            files[i].dynamic == (uint64_t)(uintptr_t)map->l_ld &&
            files[i].path == (uint64_t)(uintptr_t)map->l_name && is_loaded(&files[i]))
            return true;
    return false;
}

static bool read_map(uint64_t addr, struct link_map *map)
{
    return addr && ju_memory_read_there(addr, map, sizeof *map);
}

/* Whether the loader has loaded nothing since its list was read. */
static bool is_newest_the_last(void)
{
    struct link_map map;
    return read_map(atomic_load(&newest.addr), &map) && !map.l_next &&
           (uintptr_t)map.l_ld == atomic_load(&newest.dynamic);
}

/* Add what the loader has loaded meanwhile.  Returns whether there may be something new. */
static bool add_what_is_new(void)
{
    enum { MAPS_MAX = 2 * FILES_MAX }; /* it may have become a circle meanwhile */
    struct r_debug debug;
    struct link_map map;
    const uintptr_t from = atomic_load(&loader);
    if (!from || is_newest_the_last() || !begin_adding())
        return false;
    uint64_t at = ju_memory_read_there(from, &debug, sizeof debug) ? (uintptr_t)debug.r_map : 0;
    for (unsigned i = 0; i < MAPS_MAX && read_map(at, &map); i++) {
        if (map.l_addr && !is_in_list(&map))
            add_loaded(&map);
        if (!map.l_next) {
            atomic_store(&newest.dynamic, (uintptr_t)map.l_ld);
            atomic_store(&newest.addr, (uintptr_t)at);
        }
        at = (uintptr_t)map.l_next;
    }
    end_adding();
    return true;
}

/* The newest comes first: another may have had its addresses before. */
static bool find_in_list(uint64_t addr, struct native_file *found)
{
    for (unsigned i = atomic_load_explicit(&file_count, memory_order_acquire); i-- > 0;)
        if (addr >= files[i].start && addr < files[i].end && is_loaded(&files[i])) {
            *found = files[i];
            return true;
        }
    return false;
}

/* ---- The file that has an address ---- */

#ifdef DLFO_STRUCT_HAS_EH_DBASE
#pragma weak _dl_find_object

/* glibc 2.35: knows them, without a lock. */
static bool libc_knows(void)
{
    return _dl_find_object != NULL;
}

static bool find_by_libc(uint64_t addr, struct native_file *found)
{
    struct dl_find_object object;
    if (_dl_find_object((void *)(uintptr_t)addr, &object) != 0)
        return false;
    *found = (struct native_file){.start = (uint64_t)(uintptr_t)object.dlfo_map_start,
                                  .end = (uint64_t)(uintptr_t)object.dlfo_map_end,
                                  .hdr = (uint64_t)(uintptr_t)object.dlfo_eh_frame,
                                  .map = (uint64_t)(uintptr_t)object.dlfo_link_map};
    return true;
}
#else
static bool libc_knows(void)
{
    return false;
}

static bool find_by_libc(uint64_t addr, struct native_file *found)
{
    (void)addr, (void)found;
    return false;
}
#endif

void ju_native_list(void)
{
    if (libc_knows() || !begin_adding())
        return;
    dl_iterate_phdr(list_file, NULL);
    end_adding();
}

static bool find_file(uint64_t addr, struct native_file *found)
{
    if (libc_knows())
        return find_by_libc(addr, found);
    return find_in_list(addr, found) || (add_what_is_new() && find_in_list(addr, found));
}

bool ju_native_name(uint64_t addr, struct native_name *name)
{
    struct native_file file;
    struct link_map map;
    if (!find_file(addr, &file))
        return false;
    if (read_map(file.map, &map)) {
        file.load_addr = map.l_addr;
        file.path = (uint64_t)(uintptr_t)map.l_name;
    }
    *name = (struct native_name){.path = file.path, .load_addr = file.load_addr};
    return true;
}

/* ---- Their tables ---- */

/* The entry that HDR's table has for ADDR, or 0. */
static uint64_t search(const struct eh_frame_hdr *hdr, uint64_t addr)
{
    size_t low = 0, high = hdr->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (eh_frame_hdr_code(hdr, middle) <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? eh_frame_hdr_fde(hdr, low - 1) : 0;
}

/* The FDE for ADDR in FILE's tables. */
static bool find_entry(const struct native_file *file, uint64_t addr, struct cfi_entry *entry,
                       const uint8_t **fde)
{
    struct eh_frame_hdr hdr;
    if (!eh_frame_hdr_read((const uint8_t *)(uintptr_t)file->hdr, (size_t)(file->end - file->hdr),
                           file->hdr, &hdr))
        return false;
    uint64_t found = search(&hdr, addr);
    if (found < hdr.frame_addr || found >= file->end || hdr.frame_addr < file->start)
        return false;
    const struct frame_section section = {(const uint8_t *)(uintptr_t)hdr.frame_addr,
                                          (size_t)(file->end - hdr.frame_addr), hdr.frame_addr};
    size_t offset = (size_t)(found - hdr.frame_addr);
    *fde = section.bytes + offset;
    return ju_frame_entry_read(&section, &offset, entry) == ENTRY_FDE && addr >= entry->start &&
           addr < entry->end;
}

bool ju_native_is_same(uint64_t addr, uint64_t file, const uint8_t *fde,
                       const uint64_t fde_words[2])
{
    struct native_file found;
    return find_file(addr, &found) && found.hdr == file &&
           (uint64_t)(uintptr_t)fde < found.end - 16 &&
           memcmp(fde, fde_words, 2 * sizeof *fde_words) == 0;
}

enum native_result ju_native_find(uint64_t addr, struct frame_rule *rule,
                                  struct native_place *place)
{
    struct native_file file;
    struct cfi_entry entry;
    struct frame_run run;
    uint64_t from, to = 0;
    *place = (struct native_place){0, NULL, false};
    if (!find_file(addr, &file))
        return NATIVE_NONE;
    const uint8_t *fde;
    if (file.hdr < file.start || file.hdr >= file.end || !find_entry(&file, addr, &entry, &fde))
        return NATIVE_FILE;
    *place = (struct native_place){file.hdr, file.end - (uint64_t)(uintptr_t)fde > 16 ? fde : NULL,
                                   entry.signal_frame};
    ju_frame_run_begin(&run, &entry, INSTRUCTIONS_MAX);
    while (to <= addr - entry.start)
        if (!ju_frame_run_next(&run, &from, &to, rule))
            return NATIVE_FILE;
    return rule->kind == RULE_UNKNOWN && !entry.signal_frame ? NATIVE_FILE : NATIVE_RULE;
}
