/* The records of a dump as bytes; their layout stands in jitdump_format.h.
 *
 * The records of one function are a group: UNWINDING_INFO, INLINE_INFO and DEBUG_INFO if there are
 * any, then LOAD, because perf attaches these to the next LOAD in the file.  It is measured first,
 * then put into its room.
 */
#ifndef JITDUMP_DUMP_RECORD_H
#define JITDUMP_DUMP_RECORD_H

#include "jitdump/format/jitdump_format.h"
#include "jitdump/guest/record_author.h"
#include "jitdump/inline_info.h"
#include "jitdump/jitdump.h"
#include "jitdump/writer/dump_writer.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The sizes of a function's records.  0: there is no such record. */
struct function_sizes {
    uint64_t unwinding_info;
    uint64_t debug_info;
    uint64_t load;
    size_t name; /* in LOAD, with its NUL */
};

/* ---- A function ----
 *
 * Everything that each record needs is inline, so that room and sizes are in registers. */

/* More than any record may have, and small enough to be added up without a care. */
#define JD_TOO_LARGE (UINT64_C(1) << 40)

/* The sizes of the records of CODE's lines, of which there are some, and of UNWIND. */
uint64_t jd_debug_info_bytes(const struct jitdump_code *code);
uint64_t jd_unwinding_info_bytes(const struct jitdump_unwind *unwind);

/* The size of the whole group; more than UINT32_MAX for one that no record can hold. */
static inline uint64_t jd_function_measure(const struct jitdump_code *code,
                                           const struct inline_info *inlining,
                                           struct function_sizes *sizes)
{
    sizes->name = strlen(code->name ? code->name : "") + 1;
    sizes->unwinding_info = code->unwind ? jd_unwinding_info_bytes(code->unwind) : 0;
    sizes->load = JR_CODE_LOAD_BYTES + sizes->name + code->code_size;
    if (code->code_size > UINT32_MAX)
        return JD_TOO_LARGE;
    sizes->debug_info = code->line_count ? jd_debug_info_bytes(code) : 0;
    return sizes->unwinding_info + inlining->total_size + sizes->debug_info + sizes->load;
}

void jd_put_unwinding_info(struct dump_room *room, const struct jitdump_unwind *unwind,
                           uint64_t total_size);
void jd_put_debug_info(struct dump_room *room, const struct jitdump_code *code,
                       uint64_t total_size);

/* perf takes the last code_size bytes of the record for the code, so nothing may follow them.  Code
 * that can't be read is zeros.
 *
 * The fixed part is put together here first: into an array of constant size the compiler does that
 * in ten instructions. */
static inline void jd_put_load(struct dump_room *room, const struct jitdump_code *code,
                               const struct function_sizes *sizes, struct record_author author)
{
    uint8_t bytes[JR_CODE_LOAD_BYTES - JR_PREFIX_BYTES];
    struct byte_sink fixed = byte_sink_over(bytes, sizeof bytes);
    sink_u32(&fixed, author.pid);
    sink_u32(&fixed, author.tid);
    sink_u64(&fixed, code->code_addr); /* vma, which perf ignores */
    sink_u64(&fixed, code->code_addr);
    sink_u64(&fixed, code->code_size);
    sink_u64(&fixed, room->code_index);
    jd_room_begin_record(room, JIT_CODE_LOAD, sizes->load);
    sink_bytes(&room->sink, bytes, sizeof bytes);
    sink_bytes(&room->sink, code->name ? code->name : "", sizes->name);
    if (code->bytes)
        sink_bytes(&room->sink, code->bytes, (size_t)code->code_size);
    else
        sink_zeros(&room->sink, (size_t)code->code_size);
}

static inline void jd_put_function(struct dump_room *room, const struct jitdump_code *code,
                                   const struct inline_info *inlining,
                                   const struct function_sizes *sizes, struct record_author author)
{
    if (sizes->unwinding_info)
        jd_put_unwinding_info(room, code->unwind, sizes->unwinding_info);
    if (inlining->total_size) {
        jd_room_begin_record(room, JIT_CODE_INLINE_INFO, inlining->total_size);
        jd_put_inline_info(&room->sink, inlining, code);
    }
    if (sizes->debug_info)
        jd_put_debug_info(room, code, sizes->debug_info);
    jd_put_load(room, code, sizes, author);
}

/* ---- What becomes of it ---- */

void jd_put_move(struct dump_room *room, struct record_author author, uint64_t code_index,
                 uint64_t old_code_addr, uint64_t new_code_addr, uint64_t code_size);

void jd_put_unload(struct dump_room *room, struct record_author author, uint64_t code_index,
                   uint64_t code_addr, uint64_t code_size);

#endif
