/* See jit_dump.h; the format stands in jitdump/jitdump_format.h. */
#include "injector/dump/jit_dump.h"

#include "injector/dump/dump_mapping.h"
#include "injector/dump/torn_record.h"
#include "injector/files/file_bytes.h"
#include "injector/files/regular_file.h"
#include "injector/findings/quirk.h"
#include "injector/perf_data/machine.h"
#include "jitdump/byte_cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
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

/* Where a hole at the end of FD begins: what a runtime reserved and never used need not be looked
 * at.  SIZE if there is none, or if the file system can't tell; or if the file was cut since SIZE
 * bytes of it were mapped, as libjitdump cuts it when it ends. */
static size_t hole_at_end(int fd, size_t size)
{
    struct stat status;
    off_t data = 0, hole = 0;
    if (lseek(fd, (off_t)size - 1, SEEK_DATA) >= 0 || errno != ENXIO)
        return size;
    while ((data = lseek(fd, hole, SEEK_DATA)) >= 0 && (hole = lseek(fd, data, SEEK_HOLE)) >= 0)
        continue;
    if (hole < 0 || fstat(fd, &status) || (size_t)status.st_size < size)
        return size;
    return (size_t)hole < size ? (size_t)hole : size; /* it may have grown, too */
}

static void read_identity(struct jit_dump *dump, int fd, const struct stat *status)
{
    int generation[2] = {0}; /* a long by its definition, but an int is what file systems write */
    struct statx more;
    dump->owner_uid = status->st_uid;
    dump->dev = status->st_dev;
    dump->ino = status->st_ino;
    dump->has_generation = ioctl(fd, FS_IOC_GETVERSION, generation) == 0;
    dump->generation = (uint32_t)generation[0];
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &more) == 0 && more.stx_mask & STATX_BTIME)
        dump->born_ns = (uint64_t)more.stx_btime.tv_sec * 1000000000 + more.stx_btime.tv_nsec;
}

static int map_dump(struct jit_dump *dump, int fd, struct stat *status, struct cause cause)
{
    dump->size = (size_t)status->st_size;
    read_identity(dump, fd, status);
    if (dump->size < JITHEADER_BYTES) /* which an empty file, that can't be mapped, is as well */
        return 0;
    dump->data = dump_mapping_make(fd, status);
    if (!dump->data)
        return refuse(cause, "can't read it: %s", file_bytes_error(errno));
    dump->size = (size_t)status->st_size;
    dump->used_bytes = hole_at_end(fd, dump->size);
    dump->mapped = true;
    return 0;
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
    dump->address_bytes = machine_address_bytes(dump->elf_mach);
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
    dump->elf_mach = machine_wide(dump->elf_mach); /* MIPS has one for both */
    dump->quirks |= quirk_bit(QUIRK_ELF_CLASS);
}

static int read_header(struct jit_dump *dump, struct cause cause)
{
    if (dump->size < JITHEADER_BYTES)
        return refuse(cause, "only %zu bytes long, less than a jitdump header", dump->size);
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
    struct stat status;
    int fd = regular_file_open(path, &status);
    if (fd < 0)
        return refuse(why, "%s%s", errno == ENXIO ? "not a regular file" : strerror(errno),
                      errno == EACCES ? "; run perfjit as somebody who may read it" : "");
    int result = map_dump(dump, fd, &status, why);
    close(fd);
    return result ? result : read_header(dump, why);
}

int jit_dump_view(struct jit_dump *dump, const char *path, const uint8_t *data, size_t size,
                  char *cause, size_t cause_bytes)
{
    *dump = (struct jit_dump){.path = path, .data = data, .size = size, .used_bytes = size};
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

bool jit_record_outline_at(const struct jit_dump_walk *walk, uint64_t offset,
                           struct jit_record *record)
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
    record->broken = jit_record_read_fields(&cursor, record);
    return true;
}

bool jit_record_at(const struct jit_dump_walk *walk, uint64_t offset, struct jit_record *record)
{
    if (!jit_record_outline_at(walk, offset, record))
        return false;
    if (record->id != JIT_HEADER && !record->broken)
        record->broken = jit_record_check(record);
    return true;
}

/* QUIRK_CODE_BEHIND: the bytes that a LOAD without code announces stand behind it if they end with
 * the file, or if no record follows it, but one follows them. */
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

/* A LOAD whose code was cut short by a record at NEXT, as a write that fails with EFAULT leaves it,
 * still says what is at its addresses. */
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

/* As jit_record_at, at the walk's offset; mostly it has been read as what follows the record
 * before. */
static bool read_next(const struct jit_dump_walk *walk, struct jit_record *record)
{
    if (!walk->has_ahead || walk->ahead_offset != walk->offset ||
        walk->ahead_big_endian != walk->big_endian)
        return jit_record_at(walk, walk->offset, record);
    *record = walk->ahead;
    record->number = walk->number;
    return true;
}

/* What is behind the record ahead comes from memory while the one in front is looked at.  Behind
 * the file's end nothing comes, and no harm is done. */
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
