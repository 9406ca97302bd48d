/* From an address to its frames in a profile: the function, and in front of it the calls that were
 * inlined there.  JIT code is named by its log, or by the images that perfjit inject wrote.  Native
 * code is named by its file's symbols and debug information, the kernel by its own list. */
#ifndef PERFJIT_ADDRESS_NAMES_H
#define PERFJIT_ADDRESS_NAMES_H

#include "injector/log/lines/line_table.h"
#include "injector/native/symbols/kernel_list.h"
#include "injector/native/symbols/native_symbols.h"
#include "injector/profile/call_profile.h"
#include "injector/unwind/addresses/address_space.h"

struct named_address;
struct code_lines;

/* An address of a life that was named a short time ago; count 0: none was. */
struct recent_address {
    uint64_t pc;
    uint64_t version; /* of the life's address space */
    uint32_t life;
    uint32_t place;
    size_t first, count; /* frames */
};

enum { RECENT_BITS = 14, RECENT_TABLES = 64 };

/* The lines of a function, of which several addresses are asked for. */
struct recent_lines {
    const struct code_lines *of; /* NULL: none */
    struct line_table table;
};

struct address_names {
    struct call_profile *to;
    const struct space_source *source;
    struct native_files *files;
    struct native_symbols symbols;
    struct kernel_list kernel;
    struct recent_lines lines[RECENT_TABLES]; /* by hash */
    struct named_address *items; /* by hash; their frames stand one after another in: */
    size_t count, size;
    struct recent_address *recent; /* 1 << RECENT_BITS: each replaces another one of its place */
    struct address_frame *frames;
    size_t frame_count, frame_capacity;
    struct call_place place; /* of the address at hand */
};

struct address_frame {
    uint32_t frame;
    uint32_t line; /* of its file, that the address is at, or the call of the frame before; or 0 */
    /* The debug information of the address, whichever frame it belongs to. */
    uint32_t at_file, at_line;
    bool stands_in; /* it is an inlined call that perfjit inject put in front of its caller */
};

/* The frames of one address, the innermost first. */
struct address_frames {
    const struct address_frame *frames; /* valid until the next call */
    size_t count;
    uint32_t place; /* in the first */
};

/* Begin, to add to TO; SOURCE and FILES outlive NAMES.  Returns 0, or -1 without memory.  Release
 * with address_names_end in either case. */
int address_names_begin(struct address_names *names, struct call_profile *to,
                        const struct space_source *source, struct native_files *files);

/* The frames of user code at PC in SPACE, as it is now (NULL: the process is not known); of the
 * kernel's code that was at PC at MOMENT; and of code in MODE, another cpumode, which has no names
 * here.  Return 0, or -1 without memory. */
int address_names_of_user(struct address_names *names, const struct address_space *space,
                          uint64_t pc, struct address_frames *frames);
int address_names_of_kernel(struct address_names *names, uint64_t pc, struct life_moment moment,
                            struct address_frames *frames);
int address_names_of_mode(struct address_names *names, unsigned mode,
                          struct address_frames *frames);

/* The frame of the JIT's function that is called SYMBOL, with its place, whether or not it is in a
 * stack.  PROFILE_NOTHING without memory. */
uint32_t address_names_of_symbol(struct address_names *names, struct line_text symbol);

/* LINE of FILE, as a line of FRAME's: 0 if it is another file's. */
uint32_t address_names_line(const struct call_profile *profile, uint32_t frame, uint32_t file,
                            uint32_t line);

void address_names_end(struct address_names *names);

#endif
