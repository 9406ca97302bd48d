/* The texts of an image's debug info, each once: .debug_str, and a number for each
 * text. */
#ifndef PERFJIT_DEBUG_STRINGS_H
#define PERFJIT_DEBUG_STRINGS_H

#include "jitdump/format/byte_sink.h"

struct debug_string {
    uint64_t hash;
    uint32_t offset; /* in the section */
    uint32_t bytes;
};

struct debug_strings {
    struct byte_sink section;
    struct debug_string *items;
    size_t count, capacity;
    uint32_t *slots; /* numbers + 1, by hash; 0: free */
    size_t slot_count;
};

/* The number of TEXT, BYTES long, from 0 on.  Without memory it is 0 and the section overflows.
 * Control characters become spaces: perf reads addr2line's answers line by line. */
uint32_t debug_strings_add(struct debug_strings *strings, const char *text, size_t bytes);

/* The offset of string NUMBER in the section. */
uint32_t debug_strings_offset(const struct debug_strings *strings, uint32_t number);

/* String NUMBER, NUL-terminated, until the next one is added. */
const char *debug_strings_text(const struct debug_strings *strings, uint32_t number);

void debug_strings_free(struct debug_strings *strings);

#endif
