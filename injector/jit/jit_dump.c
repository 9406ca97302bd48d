/* See jit_dump.h; the format stands in jitdump/jitdump_format.h. */
#include "injector/jit/jit_dump.h"

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
    if (status.st_size < JITHEADER_BYTES)
        return refuse(cause, "only %lld bytes long, less than a jitdump header",
                      (long long)status.st_size);
    dump->size = (size_t)status.st_size;
    void *data = mmap(NULL, dump->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return refuse(cause, "can't map it: %s", strerror(errno));
    dump->data = data;
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

static int read_header(struct jit_dump *dump, struct cause cause)
{
    struct byte_cursor cursor = byte_cursor_over(dump->data, dump->size, false);
    uint32_t magic = cursor_u32(&cursor);
    if (magic != JITDUMP_MAGIC && magic != JITDUMP_MAGIC_SWAPPED)
        return refuse(cause, "not a jitdump file: it begins with 0x%08" PRIx32, magic);
    dump->big_endian = cursor.big_endian = magic == JITDUMP_MAGIC_SWAPPED;
    dump->version = cursor_u32(&cursor);
    dump->header_bytes = cursor_u32(&cursor);
    dump->elf_mach = cursor_u32(&cursor);
    dump->address_bytes = address_bytes_of(dump->elf_mach);
    cursor_skip(&cursor, 4);
    dump->pid = cursor_u32(&cursor);
    dump->timestamp = cursor_u64(&cursor);
    dump->flags = cursor_u64(&cursor);
    if (dump->header_bytes < JITHEADER_BYTES || dump->header_bytes > dump->size)
        return refuse(cause, "its header says that it is %" PRIu32 " bytes long",
                      dump->header_bytes);
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

void jit_dump_close(struct jit_dump *dump)
{
    if (dump->data)
        munmap((void *)(uintptr_t)dump->data, dump->size);
    dump->data = NULL;
}

struct jit_dump_walk jit_dump_begin(const struct jit_dump *dump)
{
    return (struct jit_dump_walk){dump, dump->header_bytes, 0};
}

/* A record without the bytes may claim any size, and an image is as large as its code: no file and no disk would do. */
#define MAX_CODE_BYTES (UINT64_C(1) << 30)

/* Whether a process can have SIZE bytes of code at ADDR.  The first 64 KiB are kept free by the kernel
 * (vm.mmap_min_addr), which leaves room for an image's headers in front of any code. */
static bool possible_code(uint64_t addr, uint64_t size)
{
    return addr >= 0x10000 && size <= MAX_CODE_BYTES && size <= UINT64_MAX - addr;
}

/* The code is the last code_size bytes of the record, as perf takes it: what stands between the name's NUL
 * and the code is padding.  Records without a name (perf's own tests write them) and records that end
 * behind the name although code_size is not 0 (jvmti and .NET stubs) are both in the wild. */
static const char *read_load(struct byte_cursor *cursor, struct jit_load *load)
{
    load->pid = cursor_u32(cursor);
    load->tid = cursor_u32(cursor);
    load->vma = cursor_u64(cursor);
    load->code_addr = cursor_u64(cursor);
    load->code_size = cursor_u64(cursor);
    load->code_index = cursor_u64(cursor);
    if (cursor->failed)
        return "LOAD is shorter than its fixed part";
    size_t rest = cursor_left(cursor);
    const char *name = (const char *)cursor->data + cursor->offset;
    load->name = "";
    load->code = NULL;
    if (!possible_code(load->code_addr, load->code_size))
        return "LOAD at addresses where no process can have code";
    if (rest == load->code_size && rest > 0) {
        load->code = cursor_bytes(cursor, rest);
        return NULL;
    }
    size_t name_bytes = strnlen(name, rest);
    if (name_bytes == rest)
        return "LOAD has a name without end";
    load->name = name;
    if (rest - name_bytes - 1 >= load->code_size) {
        cursor_skip(cursor, rest - (size_t)load->code_size);
        load->code = cursor_bytes(cursor, (size_t)load->code_size);
    } else if (rest != name_bytes + 1) {
        return "LOAD holds fewer bytes of code than it says";
    }
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

static const char *read_debug_info(struct byte_cursor *cursor, struct jit_debug_info *info)
{
    info->code_addr = cursor_u64(cursor);
    info->nr_entry = cursor_u64(cursor);
    if (cursor->failed)
        return "DEBUG_INFO is shorter than its fixed part";
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
        return read_load(cursor, &record->load);
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
    default:
        return NULL;
    }
}

/* A writer that maps its file (libjitdump does) leaves zeros behind the last record when it is killed. */
static bool all_zero(const uint8_t *bytes, size_t count)
{
    return count == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0);
}

enum jit_dump_end jit_dump_next(struct jit_dump_walk *walk, struct jit_record *record)
{
    const struct jit_dump *dump = walk->dump;
    const uint8_t *bytes = dump->data + walk->offset;
    size_t left = dump->size - (size_t)walk->offset;
    if (left == 0)
        return JIT_DUMP_WHOLE;
    struct byte_cursor cursor = byte_cursor_over(bytes, left, dump->big_endian);
    record->id = cursor_u32(&cursor);
    record->total_size = cursor_u32(&cursor);
    record->timestamp = cursor_u64(&cursor);
    record->offset = walk->offset;
    record->number = walk->number;
    if (cursor.failed || record->total_size < JR_PREFIX_BYTES || record->total_size > left)
        return all_zero(bytes, left) ? JIT_DUMP_WHOLE : JIT_DUMP_CUT;
    cursor.size = record->total_size;
    record->broken = read_fields(&cursor, record);
    walk->offset += record->total_size;
    walk->number++;
    return JIT_DUMP_MORE;
}

bool jit_debug_entry_next(const struct jit_dump *dump, const struct jit_debug_info *info,
                          size_t *at, struct jit_debug_entry *entry)
{
    struct byte_cursor cursor =
        byte_cursor_over(info->entries, info->entries_bytes, dump->big_endian);
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
