/* See jit_dump.h; the format stands in jitdump/format/jitdump_format.h. */
#include "injector/log/jitdump/jit_dump.h"

#include "injector/files/file_bytes.h"
#include "injector/files/interruption.h"
#include "injector/files/regular_file.h"
#include "injector/findings/quirk.h"
#include "injector/log/jitdump/dump_mapping.h"
#include "injector/log/jitdump/torn_record.h"
#include "injector/recording/machine.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/text/plural.h"
#include "jitdump/format/byte_cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
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

/* The offset at which a hole at the end of FD begins.  A runtime reserved these bytes and never
 * used them, so they need no reading.  Returns SIZE if there is no hole, or if the file system
 * can't tell.  The same if the file was cut since SIZE bytes of it were mapped; libjitdump does
 * that when it ends. */
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
    int generation[2] = {0}; /* a long by its definition, but file systems write an int */
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
    if (interruption_has_cut(status))
        return refuse(cause, "it became shorter while it was read; does its process still run?  "
                             "Try again when it has ended");
    if (dump->size < JITHEADER_BYTES) /* which an empty file, that can't be mapped, is as well */
        return 0;
    size_t lasting;
    dump->data = dump_mapping_make(fd, status, &lasting);
    if (!dump->data)
        return refuse(cause, "can't read it: %s", file_bytes_error(errno));
    dump->size = (size_t)status->st_size;
    dump->used_bytes = hole_at_end(fd, dump->size);
    dump->mapped = true;
    interruption_spare_lasts(dump->data, dump->path, lasting);
    return 0;
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
    return jit_record_is_sound(&walk.reader, offset);
}

static bool record_follows_header(const struct jit_dump *dump)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    return jit_record_follows(&walk.reader, walk.offset);
}

/* QUIRK_HEADER_SIZE: after total_size, unless a record is found at 40 and none there. */
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
        if (!jit_dump_goes_on(end))
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
    if (dump->size == 0)
        return refuse(cause, "nothing of it was written: its process ended, or became another "
                             "program, with all of it in its buffer");
    if (dump->size < JITHEADER_BYTES)
        return refuse(cause, "only %zu byte%s long, less than a jitdump header", dump->size,
                      plural(dump->size));
    while (dump->used_bytes && dump->data[dump->used_bytes - 1] == 0)
        dump->used_bytes--;
    struct byte_cursor cursor = byte_cursor_over(dump->data, dump->size, false);
    uint32_t magic = cursor_u32(&cursor);
    if (magic == (uint32_t)PERF_MAGIC)
        return refuse(cause, "not a jitdump file but a recording of perf record's: perfjit report "
                             "and perfjit check read it");
    if (magic != JITDUMP_MAGIC && magic != JITDUMP_MAGIC_SWAPPED)
        return refuse(cause, "not a jitdump file: it begins with 0x%08" PRIx32, magic);
    cursor = byte_cursor_over(dump->data, dump->size, magic == JITDUMP_MAGIC_SWAPPED);
    const struct jit_header header = jit_header_read(&cursor);
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
    int fd = regular_file_open(path, 0, &status);
    if (fd < 0)
        return refuse(why, "%s%s", regular_file_error(errno),
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
        dump_mapping_end(dump->data, dump->size);
    dump->data = NULL;
}

struct jit_dump_walk jit_dump_begin(const struct jit_dump *dump)
{
    return (struct jit_dump_walk){.reader = {.data = dump->data,
                                             .size = dump->size,
                                             .used_bytes = dump->used_bytes,
                                             .big_endian = dump->big_endian,
                                             .pid = dump->pid},
                                  .offset = dump->header_bytes};
}

bool jit_dump_is_closed(const struct jit_dump *dump)
{
    if (!dump->data || dump->size < dump->header_bytes + JR_CODE_CLOSE_BYTES)
        return false;
    struct byte_cursor cursor = byte_cursor_over(dump->data + dump->size - JR_CODE_CLOSE_BYTES,
                                                 JR_CODE_CLOSE_BYTES, dump->big_endian);
    return cursor_u32(&cursor) == JIT_CODE_CLOSE && cursor_u32(&cursor) == JR_CODE_CLOSE_BYTES;
}

bool jit_dump_is_empty(const struct jit_dump *dump)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    enum jit_dump_end end;
    while ((end = jit_dump_next(&walk, &record)) == JIT_DUMP_MORE)
        if (record.id != JIT_FILLER && record.id != JIT_CODE_CLOSE)
            return false;
    return end == JIT_DUMP_WHOLE;
}
