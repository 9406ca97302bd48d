/* The records of a dump as bytes; their layout stands in jitdump_format.h.
 *
 * The records of one function are a group: UNWINDING_INFO, INLINE_INFO and DEBUG_INFO if there are any, then
 * LOAD, because perf gives what it knows of these to the next LOAD in the file.  It is measured first, then put into its room.
 */
#ifndef JITDUMP_DUMP_RECORD_H
#define JITDUMP_DUMP_RECORD_H

#include "jitdump/dump_writer.h"
#include "jitdump/inline_info.h"
#include "jitdump/jitdump.h"

#include <stddef.h>
#include <stdint.h>

/* Who writes. */
struct record_author {
    uint32_t pid;
    uint32_t tid;
};

/* The sizes of a function's records.  0: there is no such record. */
struct function_sizes {
    uint64_t unwinding_info;
    uint64_t debug_info;
    uint64_t load;
    size_t name; /* in LOAD, with its NUL */
};

/* The size of the whole group; more than UINT32_MAX for one that no record can hold. */
uint64_t jd_function_measure(const struct jitdump_code *code, const struct inline_info *inlining,
                             struct function_sizes *sizes);

void jd_put_function(struct dump_room *room, const struct jitdump_code *code,
                     const struct inline_info *inlining, const struct function_sizes *sizes,
                     struct record_author author);

void jd_put_move(struct dump_room *room, struct record_author author, uint64_t code_index,
                 uint64_t old_code_addr, uint64_t new_code_addr, uint64_t code_size);

void jd_put_unload(struct dump_room *room, struct record_author author, uint64_t code_index,
                   uint64_t code_addr, uint64_t code_size);

#endif
