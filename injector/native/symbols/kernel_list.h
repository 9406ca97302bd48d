/* The kernel's list of symbols that is right for a recording.
 *
 * The recording says where the kernel was: a map of process -1 with the name
 * "[kernel.kallsyms]_text", or ..._stext, and that symbol's address as its offset.  Since a kernel
 * may be elsewhere after each boot (KASLR), a list's addresses are moved to where it was.  The
 * lists, in the order of their use:
 *
 *     ~/.debug/[kernel.kallsyms]/BUILD-ID/kallsyms   perf record's copy, by the kernel's
 *                        build-id.  Reading it takes a tenth of the time that the kernel takes to
 *                        write its own.  It may be of another machine.  It is used for the kernel
 *                        itself, from _text to _etext: modules may have been elsewhere.
 *     /proc/kallsyms     if the recorded kernel is this one, since this boot.  After a reboot
 *                        of the same kernel it is used without modules.
 *
 * A recording without such a map is taken for one of this boot, if it is of this machine. */
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
    bool core_alone;
    bool has_been_read;
};

struct kernel_list {
    struct kernel_place place;
    char *kept_path;
    struct kernel_candidate candidates[2]; /* perf's copy, and the kernel's own */
};

/* Find out which lists there are for PROFILE; no list is read yet.  PATHS are valid until
 * kernel_list_end.  Returns 0, or -1 without memory.  Release with kernel_list_end in either
 * case. */
int kernel_list_begin(struct kernel_list *list, const struct records *records,
                      struct kernel_paths paths);

/* *NAME is set to that of the code at PC, or to NULL; it is valid until kernel_list_end.  Returns
 * 0, or -1 without memory. */
int kernel_list_at(struct kernel_list *list, uint64_t pc, const char **name);

void kernel_list_end(struct kernel_list *list);

#endif
