/* See perf_file.h; the format stands in perf_format.h. */
#include "injector/recording/perf_data/perf_file.h"

#include "injector/arrays/bisect.h"
#include "injector/arrays/number_sort.h"
#include "injector/files/file_bytes.h"
#include "injector/files/input_guard.h"
#include "injector/recording/perf_data/event_names.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/text/plural.h"
#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/jitdump_format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct perf_section get_section(struct byte_cursor *cursor)
{
    struct perf_section section;
    section.offset = cursor_u64(cursor);
    section.size = cursor_u64(cursor);
    return section;
}

static bool section_inside(const struct perf_file *file, const struct perf_section *section)
{
    return section->offset <= file->size && section->size <= file->size - section->offset;
}

static int refuse_short(const char *path, size_t size, struct findings *findings)
{
    return report_failure(findings,
                          "%s: not a perf.data file: only %zu byte%s long; was perf record killed?",
                          path, size, plural(size));
}

static int map_file(struct perf_file *file, int fd, struct findings *findings)
{
    struct stat status;
    if (fstat(fd, &status))
        return report_failure(findings, "%s: %s", file->path, strerror(errno));
    if (S_ISDIR(status.st_mode))
        return report_failure(findings, "%s: is a directory", file->path);
    if (!S_ISREG(status.st_mode))
        return report_failure(findings, "%s: not a regular file", file->path);
    if (status.st_size < PERF_PIPE_HEADER_BYTES)
        return refuse_short(file->path, (size_t)status.st_size, findings);
    input_guard_input(&status);
    file->size = (size_t)status.st_size;
    file->data = file_bytes(fd, &status);
    if (!file->data)
        return report_failure(findings, "%s: can't read it: %s", file->path,
                              file_bytes_error(errno));
    file->mapped = true;
    return 0;
}

static int open_and_map(struct perf_file *file, struct findings *findings)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return report_failure(findings, "%s: can't open it: %s%s", file->path, strerror(errno),
                              errno == ENOENT ? "; name another recording" : "");
    int result = map_file(file, fd, findings);
    close(fd);
    return result;
}

static int read_event(struct perf_file *file, struct perf_event *event, uint64_t offset,
                      size_t attr_bytes, struct findings *findings)
{
    const uint8_t *entry = file->data + offset;
    event->attr = (struct perf_section){offset, attr_bytes};
    struct byte_cursor cursor = byte_cursor_over(entry, attr_bytes, false);
    event->type = cursor_u32(&cursor);
    uint32_t own_bytes = cursor_u32(&cursor);
    /* The first Linux that had attributes put no size into them. */
    if (own_bytes ? own_bytes < PERF_ATTR_MIN_BYTES || own_bytes > attr_bytes
                  : attr_bytes != PERF_ATTR_MIN_BYTES)
        return report_failure(findings,
                              "%s: damaged: the event attribute at 0x%" PRIx64
                              " tells a wrong size of itself",
                              file->path, offset);
    cursor_skip(&cursor, PERF_ATTR_FLAGS - 8);
    uint64_t flags = cursor_u64(&cursor);
    event->format = sample_format_of_attr(entry, attr_bytes);
    if (attr_bytes >= PERF_ATTR_CLOCKID + 4) {
        cursor_skip(&cursor, PERF_ATTR_CLOCKID - PERF_ATTR_FLAGS - 8);
        event->clockid = (int32_t)cursor_u32(&cursor);
        event->use_clockid = flags & PERF_ATTR_USE_CLOCKID;
    }
    struct byte_cursor tail = byte_cursor_over(entry + attr_bytes, PERF_SECTION_BYTES, false);
    event->ids = get_section(&tail);
    if (event->ids.size == 0)
        event->ids.offset =
            0; /* it is nowhere: another offset could lie after the end of the written bytes */
    if (!section_inside(file, &event->ids) || event->ids.size % 8)
        return report_failure(findings,
                              "%s: damaged: the event ids at 0x%" PRIx64 " lie outside the file",
                              file->path, event->ids.offset);
    return 0;
}

static int read_events(struct perf_file *file, const struct perf_section *attrs,
                       uint64_t entry_bytes, struct findings *findings)
{
    /* perf 6.12 leaves such a file, and ends with status 0, where /sys is not mounted. */
    if (attrs->size == 0)
        return report_failure(
            findings, "%s: has no events: perf recorded nothing; is /sys mounted?", file->path);
    if (entry_bytes < PERF_ATTR_MIN_BYTES + PERF_SECTION_BYTES || !section_inside(file, attrs) ||
        attrs->size < entry_bytes || attrs->size % entry_bytes)
        return report_failure(findings,
                              "%s: damaged: %" PRIu64 " bytes of event attributes at 0x%" PRIx64
                              ", %" PRIu64 " each",
                              file->path, attrs->size, attrs->offset, entry_bytes);
    file->event_count = (size_t)(attrs->size / entry_bytes);
    file->events = calloc(file->event_count, sizeof *file->events);
    if (!file->events)
        return report_failure(findings, "out of memory");
    for (size_t i = 0; i < file->event_count; i++)
        if (read_event(file, &file->events[i], attrs->offset + i * entry_bytes,
                       (size_t)entry_bytes - PERF_SECTION_BYTES, findings))
            return -1;
    return 0;
}

/* Whether ip, pid and time stand in the same places. */
static bool same_places(const struct sample_format *a, const struct sample_format *b)
{
    return memcmp(a->front, b->front, SAMPLE_TIME + 1) == 0 && a->id_bytes == b->id_bytes &&
           a->id_time == b->id_time;
}

static int collect_ids(struct perf_file *file, struct findings *findings)
{
    size_t count = 0, next = 0;
    for (size_t i = 0; i < file->event_count; i++)
        count += (size_t)(file->events[i].ids.size / 8);
    file->ids = calloc(count ? count : 1, sizeof *file->ids);
    if (!file->ids)
        return report_failure(findings, "out of memory");
    for (size_t i = 0; i < file->event_count; i++) {
        const struct perf_section *ids = &file->events[i].ids;
        struct byte_cursor cursor =
            byte_cursor_over(file->data + ids->offset, (size_t)ids->size, false);
        while (cursor_left(&cursor))
            file->ids[next++] = (struct perf_id){cursor_u64(&cursor), (uint32_t)i};
    }
    file->id_count = next;
    number_sort(file->ids, next, sizeof *file->ids);
    return 0;
}

/* If the events lay out their records differently, each record names its event by IDENTIFIER.
 * Otherwise it names it by IDENTIFIER or ID, if at all. */
static int choose_layout(struct perf_file *file, struct findings *findings)
{
    bool all_identify = true;
    file->one_layout = true;
    for (size_t i = 0; i < file->event_count; i++) {
        const struct sample_format *format = &file->events[i].format;
        all_identify = all_identify && format->front[SAMPLE_IDENTIFIER];
        if (!same_places(format, &file->events[0].format))
            file->one_layout = false;
        if (!format->front[SAMPLE_TIME] || !format->sample_id_all)
            file->untimed = true;
    }
    if (!file->one_layout && !all_identify)
        return report_failure(
            findings,
            "%s: its events lay out their records differently and do not say which is "
            "whose (sample_type lacks IDENTIFIER)",
            file->path);
    if (file->event_count == 1)
        return 0;
    file->sample_id_at = file->events[0].format.front[all_identify ? SAMPLE_IDENTIFIER : SAMPLE_ID];
    return collect_ids(file, findings);
}

static int check_header(struct perf_file *file, struct findings *findings)
{
    struct byte_cursor cursor = byte_cursor_over(file->data, file->size, false);
    uint64_t magic = cursor_u64(&cursor);
    uint64_t header_bytes = cursor_u64(&cursor);
    if (magic == __builtin_bswap64(PERF_MAGIC))
        return report_failure(findings, "%s: recorded on a machine of the other byte order",
                              file->path);
    if ((uint32_t)magic == JITDUMP_MAGIC || (uint32_t)magic == JITDUMP_MAGIC_SWAPPED)
        return report_failure(findings,
                              "%s: is a dump, not a recording: give perf record's file, and this "
                              "with --jitdump if the recording does not name it",
                              file->path);
    if (magic != PERF_MAGIC)
        return report_failure(findings, "%s: not a perf.data file: it does not begin with PERFILE2",
                              file->path);
    if (header_bytes == PERF_PIPE_HEADER_BYTES)
        return report_failure(
            findings, "%s: was recorded into a pipe; record into a file with perf record -o FILE",
            file->path);
    if (header_bytes != PERF_FILE_HEADER_BYTES || file->size < PERF_FILE_HEADER_BYTES)
        return report_failure(findings,
                              "%s: damaged: a header of %" PRIu64 " bytes in a file of %zu",
                              file->path, header_bytes, file->size);
    return 0;
}

/* Whether a record stands where the records begin.  perf record writes their size, and what follows
 * them, when it ends.  (The table of feature sections looks like no record: the upper half of an
 * offset is 0, and no record is of 0 bytes.) */
static bool has_record(const struct perf_file *file)
{
    if (file->records.offset > file->size)
        return false;
    struct byte_cursor cursor = byte_cursor_over(file->data + file->records.offset,
                                                 file->size - (size_t)file->records.offset, false);
    size_t left = cursor_left(&cursor);
    cursor_skip(&cursor, 6);
    uint16_t size = cursor_u16(&cursor);
    return !cursor.failed && size >= PERF_RECORD_HEADER_BYTES && size <= left;
}

/* The data section may reach past the end of a file whose writer was killed, or have no size: then
 * the bytes that are there count. */
static int check_records(struct perf_file *file, struct findings *findings)
{
    if (file->records.size == 0 && has_record(file)) {
        file->records.size = file->size - file->records.offset;
        file->cut = true;
        report_finding(findings, FINDING_PROFILE_TRUNCATED,
                       "%s: its header does not tell where its records end: the %" PRIu64
                       " bytes up to the file's end were taken",
                       file->path, file->records.size);
        return 0;
    }
    if (file->records.size == 0)
        return report_failure(findings,
                              "%s: has no records: perf record was killed, or is still running",
                              file->path);
    if (file->records.offset > file->size)
        return report_failure(findings, "%s: damaged: its data lie at 0x%" PRIx64 ", past its end",
                              file->path, file->records.offset);
    if (section_inside(file, &file->records))
        return 0;
    report_finding(findings, FINDING_PROFILE_TRUNCATED,
                   "%s: data section of %" PRIu64 " bytes at 0x%" PRIx64 " in a file of %zu bytes",
                   file->path, file->records.size, file->records.offset, file->size);
    file->records.size = file->size - file->records.offset;
    file->cut = true;
    return 0;
}

/* ---- Features ---- */

static bool overlap(const struct perf_section *a, const struct perf_section *b)
{
    return a->size && b->size && a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

/* Whether SECTION's bytes belong to no other part of the file; TABLE is that of the features. */
static bool is_free(const struct perf_file *file, const struct perf_section *section,
                    const struct perf_section *table)
{
    const struct perf_section header = {0, PERF_FILE_HEADER_BYTES};
    if (!section_inside(file, section) || overlap(section, &header) ||
        overlap(section, &file->records) || overlap(section, table))
        return false;
    for (size_t i = 0; i < file->event_count; i++) {
        struct perf_section entry = file->events[i].attr;
        entry.size += PERF_SECTION_BYTES;
        if (overlap(section, &entry) || overlap(section, &file->events[i].ids))
            return false;
    }
    return true;
}

static size_t count_bits(const uint64_t *bits)
{
    size_t count = 0;
    for (size_t i = 0; i < PERF_FEATURE_BITS / 64; i++)
        count += (size_t)__builtin_popcountll(bits[i]);
    return count;
}

/* Take the sections that are whole.  Returns how many are not; the first of these is *BROKEN, of
 * bit *BROKEN_BIT. */
static size_t take_features(struct perf_file *file, const uint64_t *bits,
                            const struct perf_section *table, unsigned *broken_bit,
                            struct perf_section *broken)
{
    struct byte_cursor entries =
        byte_cursor_over(file->data + table->offset, (size_t)table->size, false);
    size_t count = 0;
    for (unsigned bit = 0; bit < PERF_FEATURE_BITS; bit++) {
        if (!(bits[bit / 64] >> bit % 64 & 1))
            continue;
        struct perf_section section = get_section(&entries);
        if (is_free(file, &section, table)) {
            perf_features_set(&file->features, bit, file->data + section.offset,
                              (size_t)section.size);
        } else if (count++ == 0) {
            *broken_bit = bit;
            *broken = section;
        }
    }
    return count;
}

/* A recording whose writer was killed has set no bits, or has no table after its records. */
static void read_features(struct perf_file *file, const uint64_t *bits, struct findings *findings)
{
    struct perf_section table = {file->records.offset + file->records.size,
                                 count_bits(bits) * PERF_SECTION_BYTES};
    struct perf_section broken;
    unsigned bit;
    size_t count;
    if (!section_inside(file, &table)) {
        if (!file->cut)
            report_finding(findings, FINDING_FEATURE_BROKEN,
                           "%s: the table of %" PRIu64 " feature sections at 0x%" PRIx64
                           " reaches past the end",
                           file->path, table.size / PERF_SECTION_BYTES, table.offset);
    } else if ((count = take_features(file, bits, &table, &bit, &broken)) != 0) {
        report_finding(findings, FINDING_FEATURE_BROKEN,
                       "%s: %zu feature section%s, the first of them feature %u: %" PRIu64
                       " bytes at 0x%" PRIx64 " past the end, or over other parts of the file",
                       file->path, count, plural(count), bit, broken.size, broken.offset);
    }
}

/* ---- Threads that waited ---- */

/* A recording that came through a pipe may have no names; no other event of BPF's has such samples.
 */
static bool is_off_cpu(const struct perf_file *file, const struct perf_event *event,
                       const char *name, size_t bytes)
{
    if (event->type != PERF_TYPE_SOFTWARE ||
        perf_get_u64(file->data + event->attr.offset + PERF_ATTR_CONFIG) != PERF_SOFTWARE_OUTPUT)
        return false;
    if (!perf_file_has_feature(file, PERF_FEATURE_EVENT_DESC))
        return true;
    return event_name_is(name, bytes, PERF_OFF_CPU_NAME);
}

/* Before 6.16, perf wrote the samples itself, with the thread's own fields and no RAW. */
static void find_off_cpu(struct perf_file *file)
{
    struct event_names names = event_names_begin(&file->features);
    for (size_t i = 0; i < file->event_count; i++) {
        struct perf_event *event = &file->events[i];
        size_t bytes = 0;
        const char *name = event_names_next(&names, &bytes);
        event->off_cpu = is_off_cpu(file, event, name, bytes);
        event->format.off_cpu = event->off_cpu && event->format.sample_type & PERF_SAMPLE_RAW;
        file->has_off_cpu |= event->format.off_cpu;
    }
}

/* ---- All of it ---- */

/* Whether SECTION stands in front of the records, where nothing is written anew, as the header
 * is. */
static bool is_in_front(const struct perf_file *file, const struct perf_section *section)
{
    return section->size == 0 || (section->offset >= PERF_FILE_HEADER_BYTES &&
                                  section->offset + section->size <= file->records.offset);
}

static bool is_scattered(const struct perf_file *file)
{
    for (size_t i = 0; i < file->event_count; i++)
        if (!is_in_front(file, &file->events[i].attr) || !is_in_front(file, &file->events[i].ids))
            return true;
    return false;
}

static int read_header(struct perf_file *file, struct findings *findings)
{
    if (check_header(file, findings))
        return -1;
    uint64_t bits[PERF_FEATURE_BITS / 64];
    struct byte_cursor cursor = byte_cursor_over(file->data, file->size, false);
    cursor_skip(&cursor, PERF_HEADER_ATTR_SIZE);
    uint64_t entry_bytes = cursor_u64(&cursor);
    struct perf_section attrs = get_section(&cursor);
    file->records = get_section(&cursor);
    cursor_skip(&cursor, PERF_HEADER_FEATURES - PERF_HEADER_DATA - PERF_SECTION_BYTES);
    for (size_t i = 0; i < PERF_FEATURE_BITS / 64; i++)
        bits[i] = cursor_u64(&cursor);
    if (read_events(file, &attrs, entry_bytes, findings) || choose_layout(file, findings) ||
        check_records(file, findings))
        return -1;
    file->scattered = is_scattered(file);
    read_features(file, bits, findings);
    find_off_cpu(file);
    return 0;
}

int perf_file_open(struct perf_file *file, const char *path, struct findings *findings)
{
    *file = (struct perf_file){.path = path};
    return open_and_map(file, findings) ? -1 : read_header(file, findings);
}

int perf_file_view(struct perf_file *file, const char *path, const uint8_t *data, size_t size,
                   struct findings *findings)
{
    *file = (struct perf_file){.path = path, .data = data, .size = size};
    if (size < PERF_PIPE_HEADER_BYTES)
        return refuse_short(path, size, findings);
    return read_header(file, findings);
}

void perf_file_close(struct perf_file *file)
{
    free(file->events);
    free(file->ids);
    if (file->mapped)
        munmap((void *)(uintptr_t)file->data, file->size);
}

bool perf_file_event_of(const struct perf_file *file, uint64_t id, uint32_t *event)
{
    size_t at;
    array_bisect(at, file->id_count, file->ids[at].id < id);
    bool found = at < file->id_count && file->ids[at].id == id;
    *event = found ? file->ids[at].event : 0;
    return found || file->event_count == 1;
}

bool perf_file_has_feature(const struct perf_file *file, unsigned bit)
{
    return perf_features_find(&file->features, bit) != NULL;
}

/* The feature sections' table, 16 bytes for each set bit, follows the records. */
const char *perf_file_string(const struct perf_file *file, unsigned bit, size_t *bytes)
{
    const struct perf_feature *feature = perf_features_find(&file->features, bit);
    if (!feature)
        return NULL;
    struct byte_cursor cursor = byte_cursor_over(feature->bytes, feature->size, false);
    uint32_t size = cursor_u32(&cursor);
    const char *text = (const char *)cursor_bytes(&cursor, size);
    *bytes = text && !cursor.failed ? strnlen(text, size) : 0;
    return cursor.failed ? NULL : text;
}

bool perf_file_has_chains(const struct perf_file *file)
{
    for (size_t i = 0; i < file->event_count; i++)
        if (file->events[i].format.sample_type & PERF_SAMPLE_CALLCHAIN)
            return true;
    return false;
}

bool perf_file_has_stacks(const struct perf_file *file)
{
    for (size_t i = 0; i < file->event_count; i++)
        if (file->events[i].format.sample_type & PERF_SAMPLE_STACK_USER)
            return true;
    return false;
}

bool perf_file_has_times(const struct perf_file *file)
{
    return !perf_file_uses_clock(file, PERF_CLOCK_NONE);
}

bool perf_file_uses_clock(const struct perf_file *file, int32_t clockid)
{
    for (size_t i = 0; i < file->event_count; i++)
        if (!file->events[i].use_clockid || file->events[i].clockid != clockid)
            return false;
    return true;
}
