/* The unwind tables of the process's files: programs, libraries.
 *
 * glibc's _dl_find_object (2.35 and later) finds a file's .eh_frame_hdr without locks.  Without it
 * there is a list of up to 4096 files.  jitunwind_open lists what is loaded, and a lookup adds what
 * was loaded later.  Nobody says when a file is unloaded, so each lookup asks whether it still
 * begins with the same bytes.  .eh_frame_hdr has a sorted table of the entries;
 * jitdump/format/eh_entry.h documents its format.
 */
#ifndef JITUNWIND_NATIVE_TABLES_H
#define JITUNWIND_NATIVE_TABLES_H

#include "jitunwind/frames/frame_rule.h"

enum native_result {
    NATIVE_NONE, /* no file has the address */
    NATIVE_FILE, /* a file has the code, but its tables do not */
    NATIVE_RULE, /* *RULE is set */
};

/* The place at which a rule was found. */
struct native_place {
    uint64_t file;      /* its .eh_frame_hdr, or 0 */
    const uint8_t *fde; /* of at least 16 bytes; or NULL where ju_native_is_same can't be asked */
    bool signal_frame;  /* handlers return there */
};

/* Find the rule at ADDR.  Async-signal-safe. */
enum native_result ju_native_find(uint64_t addr, struct frame_rule *rule,
                                  struct native_place *place);

/* Whether FILE still has ADDR, and its FDE the words that it had.  Async-signal-safe. */
bool ju_native_is_same(uint64_t addr, uint64_t file, const uint8_t *fde,
                       const uint64_t fde_words[2]);

/* The file that has ADDR. */
struct native_name {
    uint64_t path;      /* where its path stands, or "", if it is still there; or 0 */
    uint64_t load_addr; /* what the addresses in it count from */
};

/* Returns false if none has it.  Async-signal-safe. */
bool ju_native_name(uint64_t addr, struct native_name *name);

/* List the files that are loaded now, if libc does not say that in handlers. */
void ju_native_list(void);

#endif
