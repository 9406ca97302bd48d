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

struct address_names {
    struct call_profile *to;
    const struct space_source *source;
    struct native_files *files;
    struct native_symbols symbols;
    struct kernel_list kernel;
    struct line_table lines;
    struct named_address *items; /* by hash; their frames stand one after another in: */
    size_t count, size;
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

/* The frames of user code at PC, in WHAT, a number of address_space_at; of the kernel's code that
 * was at PC at MOMENT; and of code in MODE, another cpumode, which has no names here.  Return 0, or
 * -1 without memory. */
int address_names_of_user(struct address_names *names, uint32_t what, uint64_t pc,
                          struct address_frames *frames);
int address_names_of_kernel(struct address_names *names, uint64_t pc, struct life_moment moment,
                            struct address_frames *frames);
int address_names_of_mode(struct address_names *names, unsigned mode,
                          struct address_frames *frames);

/* LINE of FILE, as a line of FRAME's: 0 if it is another file's. */
uint32_t address_names_line(const struct call_profile *profile, uint32_t frame, uint32_t file,
                            uint32_t line);

void address_names_end(struct address_names *names);

#endif
