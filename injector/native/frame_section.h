/* The .eh_frame or .debug_frame of a file: which of its entries is about an address.  Their
 * formats: jitdump/format/eh_entry.h.
 *
 * An .eh_frame_hdr that has a sorted table finds an entry without reading the others.  Without one
 * all entries are read once.
 *
 * An entry is valid if it lies in the section, its CIE does, and its instructions lie in it.  One
 * that is not ends the search at it.
 */
#ifndef PERFJIT_FRAME_SECTION_H
#define PERFJIT_FRAME_SECTION_H

#include "injector/native/cfi_program.h"

struct frame_bytes {
    const uint8_t *bytes;
    size_t size;
    uint64_t addr; /* as the file has it */
};

struct frame_section {
    struct frame_bytes entries;
    struct frame_bytes hdr; /* size 0: none */
    bool debug;             /* .debug_frame */
    bool indexed;           /* all entries have been read */
    struct frame_place {
        uint64_t start, end;
        uint64_t offset;
    } * index; /* by start */
    size_t index_count, index_capacity;
};

/* Find the entry about PC, an address as the file has it.  Returns 1, 0 if there is none, or -1
 * without memory. */
int frame_section_find(struct frame_section *section, uint64_t pc, struct unwind_budget *budget,
                       struct cfi_entry *entry);

void frame_section_free(struct frame_section *section);

#endif
