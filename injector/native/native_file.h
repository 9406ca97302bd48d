/* The files that processes mapped: programs, libraries, the vdso.
 *
 * A file is read when something on a stack lies in it.  It is looked for below the root directory,
 * then at its own path, then in perf's cache.  A file with another build-id than the recorded one
 * is not used.  If the recording has no build-id, a file with another inode on the same device is
 * not used, nor one that was changed after the last sample, nor one on another device.  perf record
 * reads build-ids at its end, by the files' names as it sees them itself: that of a file that is
 * there and is not the mapped one says nothing about the latter, as below a chroot.  If the file
 * has no table for an address, its debug file may have one.  That is the file named by its
 * build-id, the file named by its .gnu_debuglink (the CRC must match), or the contents of its own
 * .gnu_debugdata.  The network is never used.
 */
#ifndef PERFJIT_NATIVE_FILE_H
#define PERFJIT_NATIVE_FILE_H

#include "injector/native/elf_view.h"
#include "injector/recording/records.h"

/* Why a file is not the one that was mapped. */
enum native_change {
    NATIVE_UNCHANGED, /* or it is not there */
    NATIVE_REBUILT,   /* it has another build-id */
    NATIVE_REPLACED,  /* it has another inode */
    NATIVE_ELSEWHERE, /* it is on another device: the process had another root, or other mounts */
    NATIVE_WRITTEN,   /* it was changed later */
};

/* The file that is in the place of a mapped one. */
struct native_found {
    enum native_change change;
    struct build_id build_id;
    uint64_t inode;
    dev_t device;
};

struct native_file {
    const struct recorded_map *map; /* one that names it */
    struct build_id wanted;         /* size 0: unknown */
    struct elf_view view;           /* without segments: it could not be read, or was another one */
    struct elf_view debug;
    bool is_in_map; /* WANTED is in the map's record; else in the table, by the file's name */
    bool was_read, debug_sought;
    bool is_told; /* its change was, where names are given */
    struct native_found found;
    uint32_t number;
    uint64_t ended; /* stacks that ended in it */
};

struct native_files {
    const struct records *records;
    const char *root;   /* or NULL */
    uint16_t elf_mach;  /* the recording's machine */
    bool is_elsewheres; /* of another machine, whose devices may have the numbers of this one's */
    uint64_t ended_ns;  /* wall clock of its last sample, or when it was written; 0: not known */
    bool ended_exactly; /* the former */
    bool kept_numbers;  /* this machine has not started anew since: devices have their numbers */
    uint32_t *of_map;   /* by the profile's maps: the file's number, from 1 on; 0: not looked up
                         * yet */
    struct native_file **items; /* by number */
    size_t count, capacity;
    void *tree; /* tsearch's */
};

/* Returns 0, or -1 without memory.  Release with native_files_free in either case. */
int native_files_begin(struct native_files *files, const struct records *records, const char *root,
                       uint16_t elf_mach);

/* The build-id that the recording's table of them has for NAME; ID is left as it is without one. */
void native_build_id_of(const struct perf_file *file, const char *name, struct build_id *id);

/* The file of map number MAP of the profile, read.  NULL without memory. */
struct native_file *native_file_of(struct native_files *files, uint32_t map);

/* Whether FILE was found below the root, is the very one that was mapped, and not the one, if any,
 * at its name here. */
bool native_file_is_rooted(const struct native_files *files, const struct native_file *file);

/* The address, as FILE has it, of PC in map number MAP, which is FILE's.  Returns false if no
 * segment is there. */
bool native_file_addr(const struct native_files *files, const struct native_file *file,
                      uint32_t map, uint64_t pc, uint64_t *addr);

/* Whether stacks in FILE's code are those of the recording's machine: not in 32-bit programs on one
 * of 64 bits. */
bool native_file_unwinds(const struct native_files *files, const struct native_file *file);

/* Find the entry about ADDR, an address as the file has it, in the file or its debug file.  Returns
 * 1, 0 if there is none, or -1 without memory. */
int native_file_entry(struct native_files *files, struct native_file *file, uint64_t addr,
                      struct unwind_budget *budget, struct cfi_entry *entry);

/* The function that ADDR is in, by the symbols of the file or its debug file.  Returns as
 * above. */
int native_file_function(struct native_files *files, struct native_file *file, uint64_t addr,
                         struct elf_function *function);

/* The debug file of FILE; without ELF: there is none. */
struct elf_view *native_file_debug(const struct native_files *files, struct native_file *file);

/* Report the files that are not the ones that were mapped. */
void native_files_report(const struct native_files *files, struct findings *findings);

void native_files_free(struct native_files *files);

#endif
