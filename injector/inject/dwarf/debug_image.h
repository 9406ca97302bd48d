/* The debug info of an image: where its instructions come from, for those of its functions of which
 * that is known.
 *
 * Functions share compilation units by the hundred: of a few large units the tools read much for
 * one address, of many small ones each repeats the files' names.  An image of which nothing is
 * known has no debug info.
 */
#ifndef PERFJIT_DEBUG_IMAGE_H
#define PERFJIT_DEBUG_IMAGE_H

#include "injector/inject/dwarf/debug_tree.h"
#include "injector/inject/layout/image_plan.h"

enum debug_section {
    DEBUG_LINE,
    DEBUG_INFO,
    DEBUG_ABBREV,
    DEBUG_STR,
    DEBUG_ARANGES,
    DEBUG_RANGES,
    DEBUG_SECTIONS
};

extern const char *const debug_section_names[DEBUG_SECTIONS];

struct debug_image {
    struct debug_tree tree;
    const struct byte_sink *sections[DEBUG_SECTIONS]; /* all NULL: nothing is known */
};

/* Make the sections of IMAGE; addresses in them are its virtual ones.  Returns 0, or -1 without
 * memory.  Release with debug_image_free in either case. */
int debug_image_make(struct debug_image *debug, const struct jit_image *image,
                     const struct jit_process *processes, uint8_t address_bytes, bool big_endian);

void debug_image_free(struct debug_image *debug);

#endif
