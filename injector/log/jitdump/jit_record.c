/* See jit_record.h. */
#include "injector/log/jitdump/jit_record.h"

#include "injector/findings/quirk.h"
#include "injector/text/code_name.h"

#include <string.h>

/* A record without code bytes may have any code_size, and an image is as large as its code. */
#define MAX_CODE_BYTES (UINT64_C(1) << 30)

/* Whether a process can have SIZE bytes of code at ADDR.  The first 64 KiB are kept free by the
 * kernel (vm.mmap_min_addr), which leaves room for an image's headers in front of any code. */
static bool possible_code(uint64_t addr, uint64_t size)
{
    return addr >= 0x10000 && size <= MAX_CODE_BYTES && size <= UINT64_MAX - addr;
}

/* Whether BYTES are text: no control character, and no byte that UTF-8 never has. */
static bool is_text(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] < 0x20 || bytes[i] == 0x7f || bytes[i] >= 0xf5)
            return false;
    return count > 0;
}

/* QUIRK_NAME_OPEN: the REST bytes at NAME are name and code with no NUL between.  The first NUL is
 * then in the code, or there is none: the bytes up to it are not text, and the name's are.  Text up
 * to a NUL is a name, and its code too short. */
static bool name_is_open(const uint8_t *name, size_t rest, uint64_t code_size, size_t name_bytes)
{
    size_t open_bytes = rest > code_size ? rest - (size_t)code_size : 0;
    return open_bytes && open_bytes <= name_bytes && is_text(name, open_bytes) &&
           (name_bytes == rest || !is_text(name, name_bytes));
}

/* Name and code, which are the rest of the record.  The code is its last code_size bytes, as perf
 * takes it. */
static const char *read_name_and_code(struct byte_cursor *cursor, struct jit_load *load,
                                      uint64_t *quirks)
{
    size_t rest = cursor_left(cursor);
    const uint8_t *bytes = cursor->data + cursor->offset;
    size_t name_bytes = strnlen((const char *)bytes, rest);
    load->name = "";
    load->name_bytes = 0;
    load->code = NULL;
    if (rest == load->code_size && rest > 0) {
        *quirks |= quirk_bit(QUIRK_NAME_ABSENT);
        load->code = bytes;
        return NULL;
    }
    load->name = (const char *)bytes;
    load->name_bytes = name_bytes;
    if (name_is_open(bytes, rest, load->code_size, name_bytes)) {
        *quirks |= quirk_bit(QUIRK_NAME_OPEN);
        load->name_bytes = rest - (size_t)load->code_size;
        load->code = bytes + load->name_bytes;
        return NULL;
    }
    if (name_bytes == rest)
        return "LOAD has a name without end";
    size_t after_name = rest - name_bytes - 1;
    if (name_bytes == 0)
        *quirks |= quirk_bit(QUIRK_NAME_EMPTY);
    if (load->code_size == 0)
        *quirks |= quirk_bit(QUIRK_CODE_EMPTY);
    else if (after_name > load->code_size)
        *quirks |= quirk_bit(QUIRK_NAME_PADDED);
    else if (after_name == 0)
        *quirks |= quirk_bit(QUIRK_CODE_ABSENT);
    if (after_name >= load->code_size)
        load->code = bytes + (rest - (size_t)load->code_size);
    else if (after_name != 0)
        return "LOAD holds fewer bytes of code than it says";
    return NULL;
}

/* A LOAD whose tid has TID_BYTES, after PAD_BYTES of padding. */
static const char *read_load_fields(struct byte_cursor *cursor, struct jit_load *load,
                                    uint64_t *quirks, size_t pad_bytes, size_t tid_bytes)
{
    load->pid = cursor_u32(cursor);
    cursor_skip(cursor, pad_bytes);
    load->tid = tid_bytes == 8 ? (uint32_t)cursor_u64(cursor) : cursor_u32(cursor);
    load->vma = cursor_u64(cursor);
    load->code_addr = cursor_u64(cursor);
    load->code_size = cursor_u64(cursor);
    load->code_index = cursor_u64(cursor);
    if (cursor->failed)
        return "LOAD is shorter than its fixed part";
    if (!possible_code(load->code_addr, load->code_size))
        return "LOAD at addresses where no process can have code";
    return read_name_and_code(cursor, load, quirks);
}

/* QUIRK_THREAD_ID_64.  CPython's struct on macOS is not packed, so 4 bytes of padding stand before
 * the tid.  Its vma is equal to its code_addr.  Its name, NUL and code fill the record.  A damaged
 * LOAD does not meet all of that by chance. */
static bool read_load_of_long_tid(const struct byte_cursor *start, struct jit_load *load,
                                  uint64_t *quirks)
{
    for (size_t pad_bytes = 0; pad_bytes <= 4; pad_bytes += 4) {
        struct byte_cursor cursor = *start;
        struct jit_load wide;
        uint64_t seen = 0;
        if (read_load_fields(&cursor, &wide, &seen, pad_bytes, 8) || seen ||
            wide.vma != wide.code_addr)
            continue;
        *load = wide;
        *quirks = quirk_bit(QUIRK_THREAD_ID_64);
        return true;
    }
    return false;
}

static const char *read_load(struct byte_cursor *cursor, struct jit_load *load, uint64_t *quirks)
{
    const struct byte_cursor start = *cursor;
    const char *wrong = read_load_fields(cursor, load, quirks, 0, 4);
    if (wrong && !read_load_of_long_tid(&start, load, quirks))
        return wrong;
    if (!code_name_is_printable(load->name, load->name_bytes))
        *quirks |= quirk_bit(QUIRK_NAME_UNPRINTABLE);
    return NULL;
}

static const char *read_move(struct byte_cursor *cursor, struct jit_move *move)
{
    move->pid = cursor_u32(cursor);
    move->tid = cursor_u32(cursor);
    move->vma = cursor_u64(cursor);
    move->old_code_addr = cursor_u64(cursor);
    move->new_code_addr = cursor_u64(cursor);
    move->code_size = cursor_u64(cursor);
    move->code_index = cursor_u64(cursor);
    if (cursor->failed)
        return "MOVE is shorter than its fixed part";
    if (!possible_code(move->old_code_addr, move->code_size) ||
        !possible_code(move->new_code_addr, move->code_size))
        return "MOVE at addresses where no process can have code";
    return NULL;
}

static const char *read_unload(struct byte_cursor *cursor, struct jit_unload *unload)
{
    unload->pid = cursor_u32(cursor);
    unload->tid = cursor_u32(cursor);
    unload->code_addr = cursor_u64(cursor);
    unload->code_size = cursor_u64(cursor);
    unload->code_index = cursor_u64(cursor);
    if (cursor->failed)
        return "UNLOAD is shorter than its fixed part";
    if (!possible_code(unload->code_addr, unload->code_size))
        return "UNLOAD at addresses where no process can have code";
    return NULL;
}

static const char *read_history(struct byte_cursor *cursor, struct jit_history *history)
{
    history->generation = cursor_u64(cursor);
    history->dropped = cursor_u64(cursor);
    history->kept = cursor_u64(cursor);
    return cursor->failed || cursor_left(cursor) ? "HISTORY is not as long as it must be" : NULL;
}

static const char *read_debug_info(struct byte_cursor *cursor, struct jit_debug_info *info)
{
    info->code_addr = cursor_u64(cursor);
    info->nr_entry = cursor_u64(cursor);
    if (cursor->failed)
        return "DEBUG_INFO is shorter than its fixed part";
    info->big_endian = cursor->big_endian;
    info->entries_bytes = cursor_left(cursor);
    info->entries = cursor_bytes(cursor, info->entries_bytes);
    if (info->nr_entry > info->entries_bytes / (JR_DEBUG_ENTRY_BYTES + 1))
        return "DEBUG_INFO claims more entries than it can hold";
    return NULL;
}

static const char *read_unwinding_info(struct byte_cursor *cursor, struct jit_unwinding_info *info)
{
    info->unwinding_size = cursor_u64(cursor);
    info->eh_frame_hdr_size = cursor_u64(cursor);
    info->mapped_size = cursor_u64(cursor);
    if (cursor->failed)
        return "UNWINDING_INFO is shorter than its fixed part";
    if (info->unwinding_size > cursor_left(cursor))
        return "UNWINDING_INFO holds fewer bytes than it says";
    if (info->eh_frame_hdr_size > info->unwinding_size)
        return "UNWINDING_INFO has a header larger than the whole";
    info->data = cursor_bytes(cursor, (size_t)info->unwinding_size);
    return NULL;
}

static const char *read_piece(struct byte_cursor *cursor, struct jit_piece *piece)
{
    piece->code_addr = cursor_u64(cursor);
    piece->code_index = cursor_u64(cursor);
    piece->number = cursor_u32(cursor);
    piece->nr_piece = cursor_u32(cursor);
    if (cursor->failed)
        return "PIECE is shorter than its fixed part";
    if (piece->number >= piece->nr_piece)
        return "PIECE has a number that is not below its count";
    return NULL;
}

const char *jit_record_read_fields(struct byte_cursor *cursor, struct jit_record *record)
{
    switch (record->id) {
    case JIT_CODE_LOAD:
        return read_load(cursor, &record->load, &record->quirks);
    case JIT_CODE_MOVE:
        return read_move(cursor, &record->move);
    case JIT_CODE_UNLOAD:
        return read_unload(cursor, &record->unload);
    case JIT_CODE_HISTORY:
        return read_history(cursor, &record->history);
    case JIT_CODE_DEBUG_INFO:
        return read_debug_info(cursor, &record->debug_info);
    case JIT_CODE_INLINE_INFO:
        return jit_inline_info_read(cursor, &record->inline_info);
    case JIT_CODE_UNWINDING_INFO:
        return read_unwinding_info(cursor, &record->unwinding_info);
    case JIT_CODE_PIECE:
        return read_piece(cursor, &record->piece);
    case JIT_INTERPRETER_FRAME:
        return jit_interpreter_read(cursor, &record->interpreter);
    case JIT_INTERPRETED_FUNCTION:
        return jit_interpreted_read(cursor, &record->interpreted);
    default:
        return NULL;
    }
}

const char *jit_record_check(const struct jit_record *record)
{
    if (record->id == JIT_INTERPRETED_FUNCTION)
        return jit_interpreted_check(&record->interpreted);
    return record->id == JIT_CODE_INLINE_INFO ? jit_inline_info_check(&record->inline_info) : NULL;
}

bool jit_debug_entry_next(const struct jit_debug_info *info, size_t *at,
                          struct jit_debug_entry *entry)
{
    struct byte_cursor cursor =
        byte_cursor_over(info->entries, info->entries_bytes, info->big_endian);
    cursor_skip(&cursor, *at);
    entry->addr = cursor_u64(&cursor);
    entry->line = cursor_u32(&cursor);
    entry->discrim = cursor_u32(&cursor);
    entry->name = cursor_cstr(&cursor);
    *at = cursor.offset;
    return !cursor.failed;
}

void jit_debug_entry_put(struct byte_sink *sink, uint64_t addr, uint32_t line, const char *name,
                         size_t bytes)
{
    sink_u64(sink, addr);
    sink_u32(sink, line);
    sink_u32(sink, 0);
    sink_bytes(sink, name, bytes);
    sink_u8(sink, 0);
}

bool jit_record_has_time(uint32_t id)
{
    return id != JIT_FILLER && id != JIT_HEADER && id != JIT_CODE_HISTORY;
}

const char *jit_record_name(uint32_t id)
{
    switch (id) {
    case JIT_CODE_LOAD:
        return "CODE_LOAD";
    case JIT_CODE_MOVE:
        return "CODE_MOVE";
    case JIT_CODE_DEBUG_INFO:
        return "CODE_DEBUG_INFO";
    case JIT_CODE_CLOSE:
        return "CODE_CLOSE";
    case JIT_CODE_UNWINDING_INFO:
        return "CODE_UNWINDING_INFO";
    case JIT_CODE_UNLOAD:
        return "CODE_UNLOAD";
    case JIT_HEADER:
        return "HEADER";
    case JIT_FILLER:
        return "FILLER";
    case JIT_CODE_INLINE_INFO:
        return "CODE_INLINE_INFO";
    case JIT_CODE_PIECE:
        return "CODE_PIECE";
    case JIT_CODE_HISTORY:
        return "CODE_HISTORY";
    case JIT_INTERPRETER_FRAME:
        return "INTERPRETER_FRAME";
    case JIT_INTERPRETED_FUNCTION:
        return "INTERPRETED_FUNCTION";
    default:
        return NULL;
    }
}
