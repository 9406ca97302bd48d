/* See dump_record.h. */
#include "jitdump/dump_record.h"
#include "jitdump/format/jitdump_format.h"
#include "jitdump/guest/record_author.h"

#include <string.h>

JD_THREAD_DATA struct record_author jd_cached_author;

/* ---- Measuring ---- */

/* A source file's name and its length, which is kept from row to row: most rows name the file of
 * the row before, with the same pointer. */
struct row_file {
    const char *given;
    const char *text;
    size_t bytes; /* with the NUL */
};

static void row_file_set(struct row_file *file, const char *given)
{
    if (file->bytes && file->given == given)
        return;
    file->given = given;
    file->text = given ? given : "";
    file->bytes = strlen(file->text) + 1;
}

uint64_t jd_debug_info_bytes(const struct jitdump_code *code)
{
    struct row_file file = {NULL, NULL, 0};
    uint64_t bytes = JR_CODE_DEBUG_INFO_BYTES;
    /* 4 GiB of rows that the record can't count need not be looked at. */
    if (code->line_count > UINT32_MAX / JR_DEBUG_ENTRY_BYTES)
        return JD_TOO_LARGE;
    for (size_t i = 0; i < code->line_count && bytes < JD_TOO_LARGE; i++) {
        row_file_set(&file, code->lines[i].file);
        bytes += JR_DEBUG_ENTRY_BYTES + file.bytes;
    }
    return bytes;
}

uint64_t jd_unwinding_info_bytes(const struct jitdump_unwind *unwind)
{
    if (unwind->unwinding_size == 0)
        return 0;
    if (unwind->unwinding_size > UINT32_MAX)
        return JD_TOO_LARGE;
    return JR_CODE_UNWINDING_INFO_BYTES + unwind->unwinding_size;
}

/* ---- Putting ---- */

void jd_put_unwinding_info(struct dump_room *room, const struct jitdump_unwind *unwind,
                           uint64_t total_size)
{
    jd_room_begin_record(room, JIT_CODE_UNWINDING_INFO, total_size);
    sink_u64(&room->sink, unwind->unwinding_size);
    sink_u64(&room->sink, unwind->eh_frame_hdr_size);
    sink_u64(&room->sink, unwind->mapped_size);
    sink_bytes(&room->sink, unwind->data, (size_t)unwind->unwinding_size);
}

/* Each row carries its file's name in full.  The short form for "as in the row before", the name
 * \xff, is not used: no specification has it, and perf 6.1 shows a file of that name. */
void jd_put_debug_info(struct dump_room *room, const struct jitdump_code *code, uint64_t total_size)
{
    struct row_file file = {NULL, NULL, 0};
    jd_room_begin_record(room, JIT_CODE_DEBUG_INFO, total_size);
    sink_u64(&room->sink, code->code_addr);
    sink_u64(&room->sink, code->line_count);
    for (size_t i = 0; i < code->line_count; i++) {
        const struct jitdump_line *row = &code->lines[i];
        row_file_set(&file, row->file);
        sink_u64(&room->sink, code->code_addr + jd_row_offset(code, i));
        sink_u32(&room->sink, row->line);
        sink_u32(&room->sink, row->column); /* the record calls it discrim */
        sink_bytes(&room->sink, file.text, file.bytes);
    }
}

static void put_author(struct dump_room *room, struct record_author author)
{
    sink_u32(&room->sink, author.pid);
    sink_u32(&room->sink, author.tid);
}

void jd_put_move(struct dump_room *room, struct record_author author, uint64_t code_index,
                 uint64_t old_code_addr, uint64_t new_code_addr, uint64_t code_size)
{
    jd_room_begin_record(room, JIT_CODE_MOVE, JR_CODE_MOVE_BYTES);
    put_author(room, author);
    sink_u64(&room->sink, new_code_addr); /* vma */
    sink_u64(&room->sink, old_code_addr);
    sink_u64(&room->sink, new_code_addr);
    sink_u64(&room->sink, code_size);
    sink_u64(&room->sink, code_index);
}

void jd_put_unload(struct dump_room *room, struct record_author author, uint64_t code_index,
                   uint64_t code_addr, uint64_t code_size)
{
    jd_room_begin_record(room, JIT_CODE_UNLOAD, JR_CODE_UNLOAD_BYTES);
    put_author(room, author);
    sink_u64(&room->sink, code_addr);
    sink_u64(&room->sink, code_size);
    sink_u64(&room->sink, code_index);
}
