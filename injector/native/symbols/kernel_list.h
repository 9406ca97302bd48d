/* The kernel's list of symbols that is right for a recording.
 *
 * The recording says where the kernel was: a map of process -1 with the name
 * "[kernel.kallsyms]_text", or ..._stext, and that symbol's address as its offset.  Since a kernel
 * may be elsewhere after each boot (KASLR), a list's addresses are moved to where it was.  The
 * lists, in the order of their use:
 *
 *     ~/.debug/[kernel.kallsyms]/BUILD-ID/kallsyms   perf record's copy, by the kernel's
 *                        build-id.  Reading it takes a tenth of the time that the kernel takes to
 *                        write its own.  It may be of another machine.
 *     /proc/kallsyms     if the recorded kernel is this one, since this boot or after a reboot.
 *
 * A recording without such a map is taken for one of this boot, if it is of this machine.
 *
 * Modules may have been elsewhere when perf made its copy, and after a reboot.  They are named then
 * only where the recording maps a module of that name, and the module's first symbol in the list is
 * in the first page of the map: modules move by pages.
 *
 * BPF programs and trampolines are named by the recording (kernel_code.h), while they lived.  A
 * list names them only for a recording that tells of none. */
#ifndef PERFJIT_KERNEL_LIST_H
#define PERFJIT_KERNEL_LIST_H

#include "injector/native/symbols/kernel_symbols.h"
#include "injector/recording/records.h"

/* The files in which this machine describes its kernel. */
struct kernel_paths {
    const char *symbols; /* "/proc/kallsyms" */
    const char *notes;   /* "/sys/kernel/notes", with the build-id */
    const char *home;    /* where .debug is, or NULL */
};

struct kernel_place {
    uint64_t start, len;  /* of the map */
    uint64_t symbol_addr; /* 0: the recording does not say */
    bool is_stext;        /* the symbol is _stext, not _text */
};

/* One of the lists. */
struct kernel_candidate {
    const char *path; /* NULL: not to be used */
    struct kernel_symbols symbols;
    bool core_alone; /* modules are where the recording says, or have no names */
    bool has_been_read;
};

struct kernel_list {
    const struct records *records;
    struct kernel_place place;
    char *kept_path;
    struct kernel_candidate candidates[2]; /* perf's copy, and the kernel's own */
};

/* Find out which lists there are for PROFILE; no list is read yet.  PATHS are valid until
 * kernel_list_end.  Returns 0, or -1 without memory.  Release with kernel_list_end in either
 * case. */
int kernel_list_begin(struct kernel_list *list, const struct records *records,
                      struct kernel_paths paths);

/* *NAME is set to that of the code at PC, or to NULL; it is valid until kernel_list_end.  CODE:
 * what kernel_code_at says of it.  Returns 0, or -1 without memory. */
int kernel_list_at(struct kernel_list *list, uint64_t pc, size_t code, const char **name);

void kernel_list_end(struct kernel_list *list);

#endif
