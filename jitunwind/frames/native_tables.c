/* See native_tables.h. */
#include "jitunwind/frames/native_tables.h"

#include "jitdump/format/eh_entry.h"
#include "jitunwind/frames/frame_entry.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>

enum { FILES_MAX = 512, INSTRUCTIONS_MAX = 20000 };

/* A file's mapping, and its .eh_frame_hdr in it. */
struct native_file {
    uint64_t start, end;
    const uint8_t *hdr;
};

static struct native_file files[FILES_MAX];
static atomic_uint file_count;

static int list_file(struct dl_phdr_info *info, size_t size, void *context)
{
    struct native_file file = {UINT64_MAX, 0, NULL};
    unsigned *count = context;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_GNU_EH_FRAME)
            file.hdr = (const uint8_t *)(uintptr_t)start;
        if (header->p_type == PT_LOAD && start < file.start)
            file.start = start;
        if (header->p_type == PT_LOAD && start + header->p_memsz > file.end)
            file.end = start + header->p_memsz;
    }
    if (*count < FILES_MAX)
        files[(*count)++] = file;
    return 0;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
#pragma weak _dl_find_object
#endif

void ju_native_list(void)
{
    static atomic_bool is_begun;
    unsigned count = 0;
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    if (_dl_find_object) /* glibc 2.35: knows them, without a lock */
        return;
#endif
    if (atomic_exchange(&is_begun, true))
        return;
    dl_iterate_phdr(list_file, &count);
    atomic_store(&file_count, count);
}

static bool find_in_list(uint64_t addr, struct native_file *found)
{
    unsigned count = atomic_load_explicit(&file_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (addr >= files[i].start && addr < files[i].end) {
            *found = files[i];
            return true;
        }
    return false;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE

static bool find_file(uint64_t addr, struct native_file *found)
{
    struct dl_find_object object;
    if (!_dl_find_object)
        return find_in_list(addr, found);
    if (_dl_find_object((void *)(uintptr_t)addr, &object) != 0)
        return false;
    *found = (struct native_file){(uint64_t)(uintptr_t)object.dlfo_map_start,
                                  (uint64_t)(uintptr_t)object.dlfo_map_end, object.dlfo_eh_frame};
    return true;
}
#else
static bool find_file(uint64_t addr, struct native_file *found)
{
    return find_in_list(addr, found);
}
#endif

/* Files that are not there any more are known then. */
static bool is_listed_by_libc(void)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    return _dl_find_object != NULL;
#else
    return false;
#endif
}

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
    const uint64_t hdr_addr = (uint64_t)(uintptr_t)file->hdr;
    struct eh_frame_hdr hdr;
    if (!eh_frame_hdr_read(file->hdr, (size_t)(file->end - hdr_addr), hdr_addr, &hdr))
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

bool ju_native_is_same(uint64_t addr, const void *file, const uint8_t *fde,
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
    *place = (struct native_place){NULL, NULL, false};
    if (!find_file(addr, &file))
        return NATIVE_NONE;
    const uint64_t hdr_addr = (uint64_t)(uintptr_t)file.hdr;
    const uint8_t *fde;
    if (hdr_addr < file.start || hdr_addr >= file.end || !find_entry(&file, addr, &entry, &fde))
        return NATIVE_FILE;
    *place = (struct native_place){
        file.hdr, is_listed_by_libc() && file.end - (uint64_t)(uintptr_t)fde > 16 ? fde : NULL,
        entry.signal_frame};
    ju_frame_run_begin(&run, &entry, INSTRUCTIONS_MAX);
    while (to <= addr - entry.start)
        if (!ju_frame_run_next(&run, &from, &to, rule))
            return NATIVE_FILE;
    return rule->kind == RULE_UNKNOWN && !entry.signal_frame ? NATIVE_FILE : NATIVE_RULE;
}
