/* An entry of an .eh_frame in memory. jitdump/format/eh_entry.h documents its format.  The same
 * entries are valid here.  Nothing is allocated. */
#ifndef JITUNWIND_FRAME_ENTRY_H
#define JITUNWIND_FRAME_ENTRY_H

#include "jitunwind/frames/frame_rule.h"

struct frame_section {
    const uint8_t *bytes;
    size_t size;
    uint64_t addr; /* for which it was written */
};

enum frame_entry_kind {
    ENTRY_END,    /* the zero, or the section's end */
    ENTRY_BROKEN, /* it is not valid */
    ENTRY_CIE,
    ENTRY_FDE, /* *ENTRY is set */
};

/* The entry at *OFFSET of SECTION, which is then set to the next one's. */
enum frame_entry_kind ju_frame_entry_read(const struct frame_section *section, size_t *offset,
                                          struct cfi_entry *entry);

#endif
