/* The unwind tables of the process's files: programs, libraries.
 *
 * glibc's _dl_find_object (2.35 and later) finds a file's .eh_frame_hdr without locks; elsewhere a
 * list of the files that were there when the first arena was opened does.  .eh_frame_hdr has a
 * sorted table of the entries: jitdump/format/eh_frame.h has its format.
 */
#ifndef JITUNWIND_NATIVE_TABLES_H
#define JITUNWIND_NATIVE_TABLES_H

#include "jitunwind/frames/frame_rule.h"

enum native_result {
    NATIVE_NONE, /* no file has the address */
    NATIVE_FILE, /* one has, and its tables say nothing of it */
    NATIVE_RULE, /* *RULE is set */
};

/* What to do at ADDR.  Async-signal-safe. */
enum native_result ju_native_find(uint64_t addr, struct frame_rule *rule, bool *signal_frame);

/* Make the list of files. */
void ju_native_list(void);

#endif
