/* See jit_dump.h; the format stands in jitdump/jitdump_format.h. */
#include "injector/jit/jit_dump.h"

#include "injector/file_bytes.h"
#include "injector/jit/dump_mapping.h"
#include "injector/jit/line_positions.h"
#include "injector/jit/torn_record.h"
#include "jitdump/byte_cursor.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct cause {
    char *text;
    size_t bytes;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct cause cause, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cause.text, cause.bytes, format, arguments);
    va_end(arguments);
    return -1;
}

static int map_dump(struct jit_dump *dump, int fd, struct cause cause)
{
    struct stat status;
    if (fstat(fd, &status))
        return refuse(cause, "%s", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return refuse(cause, "not a regular file");
    dump->size = (size_t)status.st_size;
    dump->owner_uid = status.st_uid;
    if (dump->size < JITHEADER_BYTES) /* which an empty file, that can't be mapped, is as well */
        return 0;
    dump->data = dump_mapping_make(fd, &status);
    if (!dump->data)
        return refuse(cause, "can't read it: %s", file_bytes_error(errno));
    dump->size = (size_t)status.st_size;
    dump->mapped = true;
    return 0;
}

static uint8_t address_bytes_of(uint32_t elf_mach)
{
    switch (elf_mach) {
    case EM_386:
    case EM_ARM:
    case EM_PPC:
    case EM_MIPS:
        return 4;
    default:
        return 8;
    }
}

static struct jit_header get_header(struct byte_cursor *cursor)
{
    struct jit_header header = {.big_endian = cursor->big_endian};
    cursor_skip(cursor, 4); /* the magic */
    header.version = cursor_u32(cursor);
    header.total_size = cursor_u32(cursor);
    header.elf_mach = cursor_u32(cursor);
    cursor_skip(cursor, 4);
    header.pid = cursor_u32(cursor);
    header.timestamp = cursor_u64(cursor);
    header.flags = cursor_u64(cursor);
    return header;
}

static void take_header(struct jit_dump *dump, const struct jit_header *header)
{
    dump->big_endian = header->big_endian;
    dump->version = header->version;
    dump->header_bytes = header->total_size;
    dump->elf_mach = header->elf_mach;
    dump->address_bytes = address_bytes_of(dump->elf_mach);
    dump->pid = header->pid;
    dump->timestamp = header->timestamp;
    dump->flags = header->flags;
}

static bool sound_record_at(const struct jit_dump *dump, uint64_t offset)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    return jit_record_is_sound(&walk, offset);
}

static bool record_follows_header(const struct jit_dump *dump)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    return jit_record_follows(&walk, walk.offset);
}

/* QUIRK_HEADER_SIZE: behind total_size, unless a record is found at 40 and none there. */
static void place_records(struct jit_dump *dump)
{
    bool possible = dump->header_bytes >= JITHEADER_BYTES && dump->header_bytes <= dump->size;
    if (dump->header_bytes == JITHEADER_BYTES)
        return;
    if ((!possible || !sound_record_at(dump, dump->header_bytes)) &&
        sound_record_at(dump, JITHEADER_BYTES)) {
        dump->header_bytes = JITHEADER_BYTES;
        dump->quirks |= quirk_bit(QUIRK_HEADER_SIZE);
    } else if (possible) {
        dump->quirks |= quirk_bit(QUIRK_HEADER_LONGER);
    }
}

/* QUIRK_ELF_CLASS: whether some code lies where the machine of elf_mach has no addresses. */
static bool has_far_code(const struct jit_dump *dump)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    for (;;) {
        enum jit_dump_end end = jit_dump_next(&walk, &record);
        if (end == JIT_DUMP_WHOLE || end == JIT_DUMP_CUT)
            return false;
        if (end == JIT_DUMP_MORE && record.id == JIT_CODE_LOAD && !record.broken &&
            record.load.code_addr + record.load.code_size > UINT32_MAX)
            return true;
    }
}

static void widen_addresses(struct jit_dump *dump)
{
    if (dump->address_bytes == 8 || !has_far_code(dump))
        return;
    dump->address_bytes = 8;
    dump->elf_mach = dump->elf_mach == EM_386   ? EM_X86_64
                     : dump->elf_mach == EM_ARM ? EM_AARCH64
                     : dump->elf_mach == EM_PPC ? EM_PPC64
                                                : dump->elf_mach; /* MIPS has one for both */
    dump->quirks |= quirk_bit(QUIRK_ELF_CLASS);
}

static int read_header(struct jit_dump *dump, struct cause cause)
{
    if (dump->size < JITHEADER_BYTES)
        return refuse(cause, "only %zu bytes long, less than a jitdump header", dump->size);
    dump->used_bytes = dump->size;
    while (dump->used_bytes && dump->data[dump->used_bytes - 1] == 0)
        dump->used_bytes--;
    struct byte_cursor cursor = byte_cursor_over(dump->data, dump->size, false);
    uint32_t magic = cursor_u32(&cursor);
    if (magic != JITDUMP_MAGIC && magic != JITDUMP_MAGIC_SWAPPED)
        return refuse(cause, "not a jitdump file: it begins with 0x%08" PRIx32, magic);
    cursor = byte_cursor_over(dump->data, dump->size, magic == JITDUMP_MAGIC_SWAPPED);
    const struct jit_header header = get_header(&cursor);
    take_header(dump, &header);
    place_records(dump);
    if (dump->header_bytes < JITHEADER_BYTES || dump->header_bytes > dump->size)
        return refuse(cause, "its header says that it is %" PRIu32 " bytes long",
                      dump->header_bytes);
    if (dump->version != JITDUMP_FILE_VERSION && dump->header_bytes < dump->size &&
        !record_follows_header(dump))
        return refuse(cause,
                      "its version is %" PRIu32 ", and no record of version 1 follows the header",
                      dump->version);
    if (dump->version != JITDUMP_FILE_VERSION)
        dump->quirks |= quirk_bit(QUIRK_HEADER_VERSION);
    if (dump->flags & ~(uint64_t)JITDUMP_FLAG_ARCH_TIMESTAMP)
        dump->quirks |= quirk_bit(QUIRK_HEADER_FLAGS);
    widen_addresses(dump);
    return 0;
}

int jit_dump_open(struct jit_dump *dump, const char *path, char *cause, size_t cause_bytes)
{
    struct cause why = {cause, cause_bytes};
    *dump = (struct jit_dump){.path = path};
    /* O_NONBLOCK: the path comes from the profile, and may name a FIFO by now. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return refuse(why, "%s", strerror(errno));
    int result = map_dump(dump, fd, why);
    close(fd);
    return result ? result : read_header(dump, why);
}

int jit_dump_view(struct jit_dump *dump, const char *path, const uint8_t *data, size_t size,
                  char *cause, size_t cause_bytes)
{
    *dump = (struct jit_dump){.path = path, .data = data, .size = size};
    return read_header(dump, (struct cause){cause, cause_bytes});
}

void jit_dump_close(struct jit_dump *dump)
{
    if (dump->mapped && dump->data)
        munmap((void *)(uintptr_t)dump->data, dump->size);
    dump->data = NULL;
}

struct jit_dump_walk jit_dump_begin(const struct jit_dump *dump)
{
    return (struct jit_dump_walk){.dump = dump,
                                  .big_endian = dump->big_endian,
                                  .offset = dump->header_bytes,
                                  .pid = dump->pid};
}

/* A record without the bytes may claim any size, and an image is as large as its code: no file and no disk would do. */
#define MAX_CODE_BYTES (UINT64_C(1) << 30)

/* Whether a process can have SIZE bytes of code at ADDR.  The first 64 KiB are kept free by the kernel
 * (vm.mmap_min_addr), which leaves room for an image's headers in front of any code. */
static bool possible_code(uint64_t addr, uint64_t size)
{
    return addr >= 0x10000 && size <= MAX_CODE_BYTES && size <= UINT64_MAX - addr;
}

/* Whether BYTES are text: no control character, and UTF-8 as far as one can tell from the leading bits. */
static bool is_text(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] < 0x20 || bytes[i] == 0x7f || bytes[i] >= 0xf5)
            return false;
    return count > 0;
}

/* QUIRK_NAME_OPEN: the REST bytes at NAME are name and code with no NUL between.  The first NUL is then in the code, or
 * there is none: what stands before it is no text, while the name is.  A text up to its NUL is a name, and the code behind
 * it too short. */
static bool name_is_open(const uint8_t *name, size_t rest, uint64_t code_size, size_t name_bytes)
{
    size_t open_bytes = rest > code_size ? rest - (size_t)code_size : 0;
    return open_bytes && open_bytes <= name_bytes && is_text(name, open_bytes) &&
           (name_bytes == rest || !is_text(name, name_bytes));
}

/* Name and code, which are the rest of the record.  The code is its last code_size bytes, as perf takes it. */
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
    size_t behind = rest - name_bytes - 1;
    if (name_bytes == 0)
        *quirks |= quirk_bit(QUIRK_NAME_EMPTY);
    if (load->code_size == 0)
        *quirks |= quirk_bit(QUIRK_CODE_EMPTY);
    else if (behind > load->code_size)
        *quirks |= quirk_bit(QUIRK_NAME_PADDED);
    else if (behind == 0)
        *quirks |= quirk_bit(QUIRK_CODE_ABSENT);
    if (behind >= load->code_size)
        load->code = bytes + (rest - (size_t)load->code_size);
    else if (behind != 0)
        return "LOAD holds fewer bytes of code than it says";
    return NULL;
}

/* A LOAD whose tid has TID_BYTES, behind PAD_BYTES of padding. */
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

/* QUIRK_THREAD_ID_64.  CPython's struct on macOS is not packed, so 4 bytes of padding stand before the tid; it says vma =
 * code_addr, and name, NUL and code fill the record.  A damaged LOAD fulfils none of that by chance. */
static bool read_wide_load(const struct byte_cursor *start, struct jit_load *load, uint64_t *quirks)
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
    return wrong && read_wide_load(&start, load, quirks) ? NULL : wrong;
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
        return "DEBUG_INFO announces more entries than it can hold";
    return NULL;
}

/* ---- INLINE_INFO ---- */

static struct byte_cursor element(const struct jit_inline_info *info, const uint8_t *elements,
                                  uint32_t index, size_t element_bytes)
{
    struct byte_cursor cursor =
        byte_cursor_over(elements, (index + (size_t)1) * element_bytes, info->big_endian);
    cursor_skip(&cursor, index * element_bytes);
    return cursor;
}

static const char *string_at(const struct jit_inline_info *info, uint32_t offset)
{
    return offset == JIT_INLINE_NONE ? NULL : info->strings + offset;
}

void jit_inline_at(const struct jit_inline_info *info, uint32_t index, struct jit_inline *call)
{
    struct byte_cursor cursor = element(info, info->inlines, index, JR_INLINE_BYTES);
    call->parent = cursor_u32(&cursor);
    call->call_file = string_at(info, cursor_u32(&cursor));
    call->call_line = cursor_u32(&cursor);
    call->call_column = cursor_u32(&cursor);
    call->name = string_at(info, cursor_u32(&cursor));
    call->decl_file = string_at(info, cursor_u32(&cursor));
    call->decl_line = cursor_u32(&cursor);
}

void jit_inline_span_at(const struct jit_inline_info *info, uint32_t index,
                        struct jit_inline_span *span)
{
    struct byte_cursor cursor = element(info, info->spans, index, JR_INLINE_SPAN_BYTES);
    span->code_offset = cursor_u32(&cursor);
    span->inline_index = cursor_u32(&cursor);
}

static bool string_is_inside(const struct jit_inline_info *info, uint32_t offset)
{
    return offset == JIT_INLINE_NONE || offset < info->strings_bytes;
}

static const char *check_inline(const struct jit_inline_info *info, uint32_t index)
{
    struct byte_cursor cursor = element(info, info->inlines, index, JR_INLINE_BYTES);
    uint32_t parent = cursor_u32(&cursor);
    uint32_t call_file = cursor_u32(&cursor);
    cursor_skip(&cursor, 8); /* call_line, call_column */
    uint32_t name = cursor_u32(&cursor);
    uint32_t decl_file = cursor_u32(&cursor);
    if (parent != JIT_INLINE_NONE && parent >= index)
        return "INLINE_INFO has a call that stands in front of its parent";
    if (name == JIT_INLINE_NONE)
        return "INLINE_INFO has a call without a name";
    if (!string_is_inside(info, call_file) || !string_is_inside(info, name) ||
        !string_is_inside(info, decl_file))
        return "INLINE_INFO names a string behind its strings";
    return NULL;
}

static const char *check_spans(const struct jit_inline_info *info)
{
    struct jit_inline_span span, before = {0, 0};
    for (uint32_t i = 0; i < info->nr_span; i++) {
        jit_inline_span_at(info, i, &span);
        if (i > 0 && span.code_offset <= before.code_offset)
            return "INLINE_INFO has spans that do not ascend";
        if (span.inline_index != JIT_INLINE_NONE && span.inline_index >= info->nr_inline)
            return "INLINE_INFO has a span of a call that it does not have";
        before = span;
    }
    return NULL;
}

static const char *read_inline_info(struct byte_cursor *cursor, struct jit_inline_info *info)
{
    info->big_endian = cursor->big_endian;
    info->code_addr = cursor_u64(cursor);
    info->nr_inline = cursor_u32(cursor);
    info->nr_span = cursor_u32(cursor);
    info->strings_bytes = cursor_u32(cursor);
    cursor_skip(cursor, 4); /* pad1 */
    if (cursor->failed)
        return "INLINE_INFO is shorter than its fixed part";
    uint64_t inlines_bytes = (uint64_t)info->nr_inline * JR_INLINE_BYTES;
    uint64_t spans_bytes = (uint64_t)info->nr_span * JR_INLINE_SPAN_BYTES;
    if (inlines_bytes + spans_bytes + info->strings_bytes != cursor_left(cursor))
        return "INLINE_INFO is not as long as its counts say";
    info->inlines = cursor_bytes(cursor, (size_t)inlines_bytes);
    info->spans = cursor_bytes(cursor, (size_t)spans_bytes);
    info->strings = (const char *)cursor_bytes(cursor, info->strings_bytes);
    if (info->strings_bytes ? info->strings[info->strings_bytes - 1] != '\0' : info->nr_inline > 0)
        return "INLINE_INFO has a string without end";
    const char *broken = NULL;
    for (uint32_t i = 0; i < info->nr_inline && !broken; i++)
        broken = check_inline(info, i);
    return broken ? broken : check_spans(info);
}

/* ---- Records ---- */

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

static const char *read_fields(struct byte_cursor *cursor, struct jit_record *record)
{
    switch (record->id) {
    case JIT_CODE_LOAD:
        return read_load(cursor, &record->load, &record->quirks);
    case JIT_CODE_MOVE:
        return read_move(cursor, &record->move);
    case JIT_CODE_UNLOAD:
        return read_unload(cursor, &record->unload);
    case JIT_CODE_DEBUG_INFO:
        return read_debug_info(cursor, &record->debug_info);
    case JIT_CODE_INLINE_INFO:
        return read_inline_info(cursor, &record->inline_info);
    case JIT_CODE_UNWINDING_INFO:
        return read_unwinding_info(cursor, &record->unwinding_info);
    case JIT_CODE_DEBUG_INFO2:
        return jit_debug_info2_read(cursor, &record->debug_info2);
    default:
        return NULL;
    }
}

/* The magic of a header, in either byte order, stands at OFFSET. */
static bool header_at(const struct jit_dump_walk *walk, uint64_t offset, struct jit_record *record)
{
    const struct jit_dump *dump = walk->dump;
    size_t left = dump->size - (size_t)offset;
    bool swapped = record->id == JITDUMP_MAGIC_SWAPPED;
    struct byte_cursor cursor =
        byte_cursor_over(dump->data + offset, left, walk->big_endian != swapped);
    struct jit_header header = get_header(&cursor);
    *record = (struct jit_record){.id = JIT_HEADER,
                                  .total_size = header.total_size,
                                  .extent = header.total_size,
                                  .timestamp = header.timestamp,
                                  .offset = offset,
                                  .number = walk->number,
                                  .header = header};
    return !cursor.failed && header.version <= 2 && header.total_size >= JITHEADER_BYTES &&
           header.total_size <= left;
}

bool jit_record_at(const struct jit_dump_walk *walk, uint64_t offset, struct jit_record *record)
{
    const struct jit_dump *dump = walk->dump;
    size_t left = dump->size - (size_t)offset;
    struct byte_cursor cursor = byte_cursor_over(dump->data + offset, left, walk->big_endian);
    record->id = cursor_u32(&cursor);
    if (record->id == JITDUMP_MAGIC || record->id == JITDUMP_MAGIC_SWAPPED)
        return header_at(walk, offset, record);
    record->total_size = cursor_u32(&cursor);
    record->timestamp = cursor_u64(&cursor);
    record->offset = offset;
    record->number = walk->number;
    record->extent = record->total_size;
    record->quirks = 0;
    record->broken = NULL;
    if (cursor.failed || record->total_size < JR_PREFIX_BYTES || record->total_size > left)
        return false;
    cursor.size = record->total_size;
    record->broken = read_fields(&cursor, record);
    return true;
}

/* QUIRK_CODE_BEHIND: the bytes that a LOAD without code announces stand behind it if they end with the file, or if no record
 * follows it, but one follows them. */
static void take_code_behind(const struct jit_dump_walk *walk, struct jit_record *record)
{
    const struct jit_dump *dump = walk->dump;
    uint64_t end = record->offset + record->total_size;
    if (record->id != JIT_CODE_LOAD || record->broken || record->load.code ||
        record->load.code_size > dump->size - end)
        return;
    bool last = record->load.code_size == dump->size - end;
    if (!last &&
        (jit_record_follows(walk, end) || !jit_record_follows(walk, end + record->load.code_size)))
        return;
    record->load.code = dump->data + end;
    record->extent += record->load.code_size;
    record->quirks &= ~quirk_bit(QUIRK_CODE_ABSENT);
    record->quirks |= quirk_bit(QUIRK_CODE_BEHIND);
}

/* What tells later records from noise. */
static void remember(struct jit_dump_walk *walk, const struct jit_record *record)
{
    walk->number++;
    if (record->id == JIT_HEADER)
        walk->big_endian = record->header.big_endian;
    if (record->broken || record->id == JIT_HEADER || record->id == JIT_FILLER)
        return;
    walk->time = record->timestamp;
    if (record->id == JIT_CODE_LOAD)
        walk->pid = record->load.pid;
}

static enum jit_dump_end step_over(struct jit_dump_walk *walk, struct jit_record *record,
                                   uint64_t next)
{
    record->extent = next - walk->offset;
    walk->offset = next;
    return JIT_DUMP_TORN;
}

/* A LOAD whose code was cut short by a record at NEXT, as a write that fails with EFAULT leaves it, still says what is at
 * its addresses. */
static bool keep_name(struct jit_record *record, const uint8_t *next)
{
    const struct jit_load *load = &record->load;
    if (record->id != JIT_CODE_LOAD || record->broken || load->name_bytes == 0 ||
        record->quirks & quirk_bit(QUIRK_NAME_OPEN) ||
        (const uint8_t *)load->name + load->name_bytes >= next)
        return false;
    record->load.code = NULL;
    record->quirks = quirk_bit(QUIRK_RECORD_TORN);
    return true;
}

/* As jit_record_at, at the walk's offset; mostly it has been read as what follows the record before. */
static bool read_next(const struct jit_dump_walk *walk, struct jit_record *record)
{
    if (!walk->has_ahead || walk->ahead_offset != walk->offset ||
        walk->ahead_big_endian != walk->big_endian)
        return jit_record_at(walk, walk->offset, record);
    *record = walk->ahead;
    record->number = walk->number;
    return true;
}

/* What is behind the record ahead comes from memory while the one in front is looked at.  Behind the file's end nothing comes,
 * and no harm is done. */
static void fetch_behind(const struct jit_dump_walk *walk)
{
    enum { LINE_BYTES = 64, LINES = 3 }; /* mostly a LOAD with its name */
    uintptr_t at = (uintptr_t)walk->dump->data + walk->ahead_offset + walk->ahead.total_size;
    for (uintptr_t line = 0; line < LINES; line++)
        __builtin_prefetch((const void *)(at + line * LINE_BYTES));
}

static bool look_ahead(struct jit_dump_walk *walk, uint64_t offset)
{
    walk->ahead_offset = offset;
    walk->ahead_big_endian = walk->big_endian;
    bool follows = jit_record_following(walk, offset, &walk->ahead, &walk->has_ahead);
    if (walk->has_ahead)
        fetch_behind(walk);
    return follows;
}

enum jit_dump_end jit_dump_next(struct jit_dump_walk *walk, struct jit_record *record)
{
    const struct jit_dump *dump = walk->dump;
    size_t left = dump->size - (size_t)walk->offset;
    uint64_t next;
    if (left == 0)
        return JIT_DUMP_WHOLE;
    if (!read_next(walk, record)) {
        if (jit_dump_unused_from(walk, walk->offset))
            return JIT_DUMP_WHOLE;
        return torn_record_end(walk, &next) ? step_over(walk, record, next) : JIT_DUMP_CUT;
    }
    take_code_behind(walk, record);
    if (!look_ahead(walk, walk->offset + record->extent) &&
        torn_record_inside(walk, record->extent, &next)) {
        if (!keep_name(record, dump->data + next))
            return step_over(walk, record, next);
        record->extent = next - walk->offset;
    }
    walk->offset += record->extent;
    remember(walk, record);
    return JIT_DUMP_MORE;
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
    case JIT_CODE_DEBUG_INFO2:
        return "CODE_DEBUG_INFO2";
    default:
        return NULL;
    }
}
