/* See dump_repair.h. */
#include "injector/check/dump_repair.h"

#include "injector/arrays/array.h"
#include "injector/files/input_guard.h"
#include "injector/files/output_file.h"
#include "jitdump/format/byte_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Code that a further header would end. */
struct residence {
    uint32_t pid, tid;
    uint64_t addr, size, index;
};

struct repairer {
    struct dump_repair *repair;
    const struct jit_dump *dump;
    struct output_file *output;
    struct findings *findings;
    struct jit_record *group; /* the records in front of a LOAD, until the LOAD comes */
    size_t group_count, group_capacity;
    struct residence *residences; /* since the last header */
    size_t residence_count, residence_capacity;
    size_t ended; /* those before this one are to be ended by the next record */
    uint64_t close_time;
    bool foreign; /* a header said that the records behind it are another process's */
};

/* ---- Writing ---- */

static int write_header(const struct repairer *repairer)
{
    const struct jit_dump *dump = repairer->dump;
    uint8_t bytes[JITHEADER_BYTES];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    sink.big_endian = dump->big_endian;
    sink_u32(&sink, JITDUMP_MAGIC);
    sink_u32(&sink, JITDUMP_FILE_VERSION);
    sink_u32(&sink, JITHEADER_BYTES);
    sink_u32(&sink, dump->elf_mach);
    sink_bytes(&sink, dump->data + JITHEADER_PAD1, 4);
    sink_u32(&sink, dump->pid);
    sink_u64(&sink, dump->timestamp);
    sink_u64(&sink, dump->flags & JITDUMP_FLAG_ARCH_TIMESTAMP);
    repairer->repair->header_corrected = memcmp(bytes, dump->data, sizeof bytes) != 0;
    return output_file_write(repairer->output, bytes, sizeof bytes, repairer->findings);
}

static int write_close(const struct repairer *repairer)
{
    uint8_t bytes[JR_CODE_CLOSE_BYTES];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    sink.big_endian = repairer->dump->big_endian;
    sink_u32(&sink, JIT_CODE_CLOSE);
    sink_u32(&sink, JR_CODE_CLOSE_BYTES);
    sink_u64(&sink, repairer->close_time);
    return output_file_write(repairer->output, bytes, sizeof bytes, repairer->findings);
}

static int write_unload(struct repairer *repairer, const struct residence *code, uint64_t time)
{
    uint8_t bytes[JR_CODE_UNLOAD_BYTES];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    sink.big_endian = repairer->dump->big_endian;
    sink_u32(&sink, JIT_CODE_UNLOAD);
    sink_u32(&sink, JR_CODE_UNLOAD_BYTES);
    sink_u64(&sink, time);
    sink_u32(&sink, code->pid);
    sink_u32(&sink, code->tid);
    sink_u64(&sink, code->addr);
    sink_u64(&sink, code->size);
    sink_u64(&sink, code->index);
    repairer->repair->unloads++;
    return output_file_write(repairer->output, bytes, sizeof bytes, repairer->findings);
}

/* The header's own time may be another clock's.  So the code from before it ends at the first
 * record behind it. */
static int end_earlier(struct repairer *repairer, uint64_t time)
{
    for (size_t i = 0; i < repairer->ended; i++)
        if (write_unload(repairer, &repairer->residences[i], time))
            return -1;
    if (repairer->ended)
        repairer->residence_count = 0;
    repairer->ended = 0;
    return 0;
}

static int remember(struct repairer *repairer, const struct jit_record *record)
{
    const struct jit_load *load = &record->load;
    const struct jit_move *move = &record->move;
    if (record->id != JIT_CODE_LOAD && record->id != JIT_CODE_MOVE)
        return 0;
    if (array_reserve(repairer->residences, repairer->residence_count,
                      repairer->residence_capacity))
        return report_failure(repairer->findings, "out of memory");
    repairer->residences[repairer->residence_count++] =
        record->id == JIT_CODE_LOAD ? (struct residence){load->pid, load->tid, load->code_addr,
                                                         load->code_size, load->code_index}
                                    : (struct residence){move->pid, move->tid, move->new_code_addr,
                                                         move->code_size, move->code_index};
    return 0;
}

/* The CLOSE has the time of the last that there was, or of the last record. */
static void note_time(struct repairer *repairer, const struct jit_record *record)
{
    if (record->timestamp > repairer->close_time)
        repairer->close_time = record->timestamp;
}

/* The size that the prefix says is the record's, but where its code stands behind it. */
static int write_record(struct repairer *repairer, const struct jit_record *record)
{
    const uint8_t *bytes = repairer->dump->data + record->offset;
    uint8_t prefix[JR_PREFIX_BYTES];
    struct byte_sink sink = byte_sink_over(prefix, sizeof prefix);
    if (end_earlier(repairer, record->timestamp) || remember(repairer, record))
        return -1;
    repairer->repair->kept++;
    repairer->repair->functions += record->id == JIT_CODE_LOAD;
    note_time(repairer, record);
    if (record->extent == record->total_size || record->extent > UINT32_MAX)
        return output_file_write(repairer->output, bytes, record->total_size, repairer->findings);
    repairer->repair->sizes_corrected++;
    sink.big_endian = repairer->dump->big_endian;
    sink_u32(&sink, record->id);
    sink_u32(&sink, (uint32_t)record->extent);
    sink_u64(&sink, record->timestamp);
    return output_file_write(repairer->output, prefix, sizeof prefix, repairer->findings) ||
                   output_file_write(repairer->output, bytes + sizeof prefix,
                                     (size_t)record->extent - sizeof prefix, repairer->findings)
               ? -1
               : 0;
}

/* ---- Choosing ---- */

static void drop_group(struct repairer *repairer)
{
    repairer->repair->orphans += repairer->group_count;
    repairer->group_count = 0;
}

static int write_group(struct repairer *repairer)
{
    for (size_t i = 0; i < repairer->group_count; i++)
        if (write_record(repairer, &repairer->group[i]))
            return -1;
    repairer->group_count = 0;
    return 0;
}

static int add_to_group(struct repairer *repairer, const struct jit_record *record)
{
    if (array_reserve(repairer->group, repairer->group_count, repairer->group_capacity))
        return report_failure(repairer->findings, "out of memory");
    repairer->group[repairer->group_count++] = *record;
    return 0;
}

static bool has_all_lines(const struct jit_debug_info *info)
{
    struct jit_debug_entry entry;
    size_t at = 0;
    for (uint64_t i = 0; i < info->nr_entry; i++)
        if (!jit_debug_entry_next(info, &at, &entry))
            return false;
    return true;
}

/* perf reads no header but the first. */
static void take_header(struct repairer *repairer, const struct jit_header *header)
{
    const struct jit_dump *dump = repairer->dump;
    drop_group(repairer);
    repairer->repair->headers++;
    repairer->foreign = header->pid != dump->pid || header->big_endian != dump->big_endian ||
                        ((header->flags ^ dump->flags) & JITDUMP_FLAG_ARCH_TIMESTAMP);
    if (!repairer->foreign)
        repairer->ended = repairer->residence_count;
}

static int take_load(struct repairer *repairer, const struct jit_record *record)
{
    if (record->quirks & quirk_bit(QUIRK_RECORD_TORN)) {
        drop_group(repairer);
        repairer->repair->torn_parts++;
        repairer->repair->torn_bytes += record->extent;
        return 0;
    }
    return write_group(repairer) || write_record(repairer, record) ? -1 : 0;
}

static int take_sound_record(struct repairer *repairer, const struct jit_record *record)
{
    switch (record->id) {
    case JIT_CODE_LOAD:
        return take_load(repairer, record);
    case JIT_CODE_DEBUG_INFO:
    case JIT_CODE_INLINE_INFO:
    case JIT_CODE_PIECE:
    case JIT_CODE_UNWINDING_INFO:
        return add_to_group(repairer, record);
    case JIT_CODE_CLOSE:
        note_time(repairer, record);
        return 0;
    case JIT_FILLER:
        repairer->repair->fillers++;
        return 0;
    default:
        return write_record(repairer, record);
    }
}

static int take_record(struct repairer *repairer, const struct jit_record *record)
{
    struct dump_repair *repair = repairer->repair;
    if (record->id == JIT_HEADER) {
        take_header(repairer, &record->header);
        return 0;
    }
    if (repairer->foreign) {
        repair->foreign++;
        return 0;
    }
    bool broken = record->broken ||
                  (record->id == JIT_CODE_DEBUG_INFO && !has_all_lines(&record->debug_info));
    if (!broken && jit_record_name(record->id))
        return take_sound_record(repairer, record);
    broken ? repair->broken++ : repair->unknown++;
    if (record->id == JIT_CODE_LOAD)
        drop_group(repairer);
    return 0;
}

/* RECORD is the place at which the walk stopped, or the part that it skipped. */
static void leave_out(struct repairer *repairer, uint64_t bytes)
{
    drop_group(repairer);
    repairer->repair->torn_parts++;
    repairer->repair->torn_bytes += bytes;
}

static int copy_records(struct repairer *repairer)
{
    struct jit_dump_walk walk = jit_dump_begin(repairer->dump);
    struct jit_record record;
    for (;;) {
        switch (jit_dump_next(&walk, &record)) {
        case JIT_DUMP_MORE:
            if (take_record(repairer, &record))
                return -1;
            break;
        case JIT_DUMP_TWICE:
            repairer->repair->repeated_bytes += record.extent;
            break;
        case JIT_DUMP_TORN:
            leave_out(repairer, record.extent);
            break;
        case JIT_DUMP_CUT:
            leave_out(repairer, repairer->dump->size - walk.offset);
            return 0;
        case JIT_DUMP_WHOLE:
            drop_group(repairer);
            return 0;
        }
    }
}

/* ---- The file ---- */

/* Make sure of the name: no other file is overwritten. */
static int reserve(const char *path, struct findings *findings)
{
    if (input_guard_check(findings))
        return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return report_failure(findings, "%s: %s", path,
                              errno == EEXIST ? "already exists; name a file that does not"
                                              : strerror(errno));
    close(fd);
    return 0;
}

int dump_repair_write(struct dump_repair *repair, const struct jit_dump *dump, const char *path,
                      struct findings *findings)
{
    struct output_file output = {.fd = -1};
    struct repairer repairer = {
        .repair = repair, .dump = dump, .output = &output, .findings = findings};
    *repair = (struct dump_repair){0};
    if (reserve(path, findings))
        return -1;
    int result = output_file_open(&output, path, findings) || write_header(&repairer) ||
                         copy_records(&repairer) || write_close(&repairer) ||
                         output_file_commit(&output, findings)
                     ? -1
                     : 0;
    if (result)
        unlink(path);
    output_file_close(&output);
    free(repairer.residences);
    free(repairer.group);
    return result;
}

bool dump_repair_lost(const struct dump_repair *repair)
{
    return repair->torn_parts || repair->broken || repair->unknown || repair->orphans ||
           repair->headers || repair->foreign;
}
