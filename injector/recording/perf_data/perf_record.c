/* See perf_record.h; the format stands in perf_format.h. */
#include "injector/recording/perf_data/perf_record.h"

#include "injector/recording/perf_data/perf_format.h"
#include "injector/text/file_name.h"
#include "jitdump/format/byte_cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct perf_walk perf_walk_begin(const struct perf_file *file)
{
    return (struct perf_walk){file, file->records.offset, 0};
}

static bool cut_short(const struct perf_walk *walk, uint64_t left, struct findings *findings)
{
    if (findings && !walk->file->cut)
        report_finding(findings, FINDING_PROFILE_TRUNCATED,
                       "%s: record %" PRIu64 " at 0x%" PRIx64 ": %" PRIu64
                       " bytes are left, too few for it",
                       walk->file->path, walk->number, walk->offset, left);
    return false;
}

/* The place of a record is known only when the one before it is read, and the processor waits for
 * each.  So the bytes some records further on are brought into the cache meanwhile, as many as this
 * record has.  A prefetch past the end of the file does no harm. */
static void bring_near(const uint8_t *bytes, size_t size)
{
    enum { AHEAD_BYTES = 2048, LINE_BYTES = 64, FEW_BYTES = 4 * LINE_BYTES, MOST_BYTES = 1024 };
    uintptr_t ahead = (uintptr_t)bytes + AHEAD_BYTES;
    if (size <= FEW_BYTES) /* behind the first line the processor goes on by itself */
        size = LINE_BYTES;
    size = size < MOST_BYTES ? size : MOST_BYTES;
    for (size_t at = 0; at < size; at += LINE_BYTES)
        __builtin_prefetch((const void *)(ahead + at));
}

bool perf_walk_next(struct perf_walk *walk, struct perf_record *record, struct findings *findings)
{
    const struct perf_section *records = &walk->file->records;
    uint64_t left = records->offset + records->size - walk->offset;
    if (left == 0)
        return false;
    if (left < PERF_RECORD_HEADER_BYTES)
        return cut_short(walk, left, findings);
    record->bytes = walk->file->data + walk->offset;
    record->offset = walk->offset;
    record->number = walk->number;
    const uint64_t header = perf_get_u64(record->bytes); /* u32 type, u16 misc, u16 size */
    record->type = (uint32_t)header;
    record->misc = (uint16_t)(header >> 32);
    record->size = (uint16_t)(header >> 48);
    record->span = record->size;
    bring_near(record->bytes, record->size);
    if (record->size < PERF_RECORD_HEADER_BYTES || record->size > left)
        return cut_short(walk, left, findings);
    if (record->type == PERF_RECORD_AUXTRACE && record->size >= PERF_AUXTRACE_BYTES) {
        uint64_t payload = perf_get_u64(record->bytes + PERF_RECORD_HEADER_BYTES);
        if (payload > left - record->size)
            return cut_short(walk, left, findings);
        record->span += payload;
    }
    walk->offset += record->span;
    walk->number++;
    return true;
}

struct perf_record perf_record_at(const struct perf_file *file, uint64_t offset)
{
    struct perf_walk walk = {file, offset, 0};
    struct perf_record record = {0};
    perf_walk_next(&walk, &record, NULL);
    return record;
}

const struct sample_format *perf_record_format_of_id(const struct perf_file *file,
                                                     const struct perf_record *record)
{
    if (record->size < PERF_RECORD_HEADER_BYTES + 8)
        return NULL;
    bool sample = record->type == PERF_RECORD_SAMPLE;
    uint32_t event;
    perf_file_event_of(
        file, perf_get_u64(record->bytes + (sample ? PERF_RECORD_HEADER_BYTES : record->size - 8)),
        &event);
    /* perf writes the maps of running processes with id 0 where the first event is meant. */
    return &file->events[event].format;
}

const uint8_t *perf_record_trailer(const struct perf_file *file, const struct perf_record *record,
                                   const struct sample_format **format)
{
    if (record->type >= PERF_RECORD_USER_TYPE_START || record->type == PERF_RECORD_SAMPLE)
        return NULL;
    *format = perf_record_format(file, record);
    if (!*format || !(*format)->id_bytes ||
        record->size < PERF_RECORD_HEADER_BYTES + (*format)->id_bytes)
        return NULL;
    return record->bytes + record->size - (*format)->id_bytes;
}

bool perf_record_time(const struct perf_file *file, const struct perf_record *record,
                      uint64_t *time_ns)
{
    if (record->type == PERF_RECORD_SAMPLE)
        return perf_record_front(file, record, SAMPLE_TIME, time_ns);
    const struct sample_format *format;
    const uint8_t *trailer = perf_record_trailer(file, record, &format);
    if (!trailer || format->id_time == format->id_bytes)
        return false;
    *time_ns = perf_get_u64(trailer + format->id_time);
    return true;
}

/* Read the fields that an MMAP2 has and an MMAP has not. */
static void read_identity(struct byte_cursor *cursor, const struct perf_record *record,
                          struct perf_map *map)
{
    map->has_inode = false;
    map->maj = map->min = map->prot = map->flags = 0;
    map->ino = map->generation = 0;
    map->build_id = NULL;
    map->build_id_bytes = 0;
    if (record->type != PERF_RECORD_MMAP2)
        return;
    map->maj = cursor_u32(cursor);
    map->min = cursor_u32(cursor);
    map->ino = cursor_u64(cursor);
    map->generation = cursor_u64(cursor);
    map->prot = cursor_u32(cursor);
    map->flags = cursor_u32(cursor);
    /* Memory is on no device.  The first System V segment of a machine, or of a container, has
     * inode 0. */
    map->has_inode =
        (map->ino || map->maj || map->min) && !(record->misc & PERF_MISC_MMAP_BUILD_ID);
    map->build_id = perf_record_build_id(record, &map->build_id_bytes);
}

bool perf_record_is_map(const struct perf_record *record)
{
    return record->type == PERF_RECORD_MMAP || record->type == PERF_RECORD_MMAP2;
}

/* With misc bit 14 it stands in an MMAP2's place of the inode. */
const uint8_t *perf_record_build_id(const struct perf_record *record, size_t *size)
{
    if (record->type != PERF_RECORD_MMAP2 || !(record->misc & PERF_MISC_MMAP_BUILD_ID))
        return NULL;
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    cursor_skip(&cursor, PERF_MMAP_BYTES);
    uint8_t said = cursor_u8(&cursor);
    cursor_skip(&cursor, 3);
    const uint8_t *bytes = cursor_bytes(&cursor, PERF_BUILD_ID_BYTES);
    if (!bytes || said == 0 || said > PERF_BUILD_ID_BYTES)
        return NULL;
    *size = said;
    return bytes;
}

bool perf_record_map(const struct perf_file *file, const struct perf_record *record,
                     struct perf_map *map)
{
    if (!perf_record_is_map(record))
        return false;
    const struct sample_format *format;
    const uint8_t *trailer = perf_record_trailer(file, record, &format);
    size_t size = record->size - (trailer ? format->id_bytes : 0u);
    struct byte_cursor cursor = byte_cursor_over(record->bytes, size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    map->pid = cursor_u32(&cursor);
    map->tid = cursor_u32(&cursor);
    map->start = cursor_u64(&cursor);
    map->len = cursor_u64(&cursor);
    map->pgoff = cursor_u64(&cursor);
    read_identity(&cursor, record, map);
    map->filename = cursor_cstr(&cursor);
    map->data = record->misc & PERF_MISC_MMAP_DATA;
    return !cursor.failed && map->len <= UINT64_MAX - map->start;
}

bool perf_record_task(const struct perf_file *file, const struct perf_record *record,
                      struct perf_task *task)
{
    bool has_parent = record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_EXIT;
    if (!has_parent && record->type != PERF_RECORD_COMM)
        return false;
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    task->pid = cursor_u32(&cursor);
    task->parent_pid = has_parent ? cursor_u32(&cursor) : 0;
    task->tid = cursor_u32(&cursor);
    task->parent_tid = has_parent ? cursor_u32(&cursor) : 0;
    task->time_ns = has_parent ? cursor_u64(&cursor) : 0;
    perf_record_time(file, record, &task->time_ns);
    return !cursor.failed;
}

int perf_map_compare_files(const struct perf_map *a, const struct perf_map *b)
{
    if (a->has_inode != b->has_inode)
        return a->has_inode ? 1 : -1;
    if (a->has_inode && a->ino != b->ino)
        return a->ino < b->ino ? -1 : 1;
    if (a->has_inode && a->maj != b->maj)
        return a->maj < b->maj ? -1 : 1;
    if (a->has_inode && a->min != b->min)
        return a->min < b->min ? -1 : 1;
    if (a->build_id_bytes != b->build_id_bytes)
        return a->build_id_bytes < b->build_id_bytes ? -1 : 1;
    int order = a->build_id ? memcmp(a->build_id, b->build_id, a->build_id_bytes) : 0;
    return order ? order : strcmp(a->filename, b->filename);
}

size_t perf_map_name_length(const char *filename)
{
    static const char deleted[] = " (deleted)";
    size_t length = strlen(filename), tail = sizeof deleted - 1;
    return length > tail && strcmp(filename + length - tail, deleted) == 0 ? length - tail : length;
}

bool perf_map_same_name(const char *filename, const char *other)
{
    const char *a = file_name_of(filename), *b = file_name_of(other);
    size_t length = perf_map_name_length(a);
    return length == perf_map_name_length(b) && strncmp(a, b, length) == 0;
}

static bool begins_with_any(const char *filename, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(filename, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool name_is_anonymous(const char *filename)
{
    static const char *const names[] = {"//anon", "[anon:", "/anon_hugepage"};
    return begins_with_any(filename, names, sizeof names / sizeof names[0]);
}

bool perf_map_name_is_memory(const char *filename)
{
    static const char *const names[] = {"[anon_shmem:", "/memfd:", "/dev/zero",
                                        "/SYSV",        "[heap]",  "[stack"};
    return name_is_anonymous(filename) ||
           begins_with_any(filename, names, sizeof names / sizeof names[0]);
}

bool perf_map_is_anonymous(const struct perf_map *map)
{
    return name_is_anonymous(map->filename) || map->flags & MAP_HUGETLB;
}

bool perf_map_is_memory(const struct perf_map *map)
{
    return perf_map_name_is_memory(map->filename) || map->flags & MAP_HUGETLB;
}

bool perf_map_is_shared_memory(const struct perf_map *map)
{
    static const char shared[] = "/dev/shm/";
    return strncmp(map->filename, shared, sizeof shared - 1) == 0 ||
           map->filename[perf_map_name_length(map->filename)] != '\0';
}

bool perf_map_may_hold_code(const struct perf_map *map)
{
    return !map->data && (perf_map_is_memory(map) || perf_map_is_shared_memory(map) ||
                          (map->flags & MAP_TYPE) == MAP_SHARED || map->prot & PROT_WRITE);
}
