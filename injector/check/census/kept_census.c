/* See kept_census.h. */
#include "injector/check/census/kept_census.h"

#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/byte_sink.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC UINT64_C(0x5355534e45434a50) /* "PJCENSUS" */
enum { VERSION = 1, CAUSE_BYTES = 16, HEAD_BYTES = 72, GROUP_BYTES = 80, END_BYTES = 16 };

static size_t size_of(size_t group_count)
{
    return HEAD_BYTES + group_count * GROUP_BYTES + END_BYTES;
}

/* The counts in the order of the format. */
enum { COUNTS = 7 };

static void list_counts(struct sample_census *census, uint64_t *counts[COUNTS])
{
    counts[0] = &census->samples;
    counts[1] = &census->outside_user;
    counts[2] = &census->incomplete;
    counts[3] = &census->in_files;
    counts[4] = &census->named;
    counts[5] = &census->unmapped;
    counts[6] = &census->unknown;
}

/* ---- Writing ---- */

static void put_group(struct byte_sink *sink, const struct unknown_samples *group)
{
    const char *cause = sample_cause_id(group->cause);
    sink_bytes(sink, cause, strlen(cause));
    sink_zeros(sink, CAUSE_BYTES - strlen(cause));
    sink_bytes(sink, group->comm, strlen(group->comm));
    sink_zeros(sink, PROCESS_COMM_BYTES - strlen(group->comm));
    sink_u32(sink, group->pid);
    sink_u32(sink, 0);
    sink_u64(sink, group->count);
    sink_u64(sink, group->first_ip);
    sink_u64(sink, group->first_ns);
}

static void put(struct byte_sink *sink, const struct sample_census *census)
{
    struct sample_census copy = *census;
    uint64_t *counts[COUNTS];
    list_counts(&copy, counts);
    sink_u64(sink, MAGIC);
    sink_u32(sink, VERSION);
    sink_u32(sink, (uint32_t)census->group_count);
    for (int i = 0; i < COUNTS; i++)
        sink_u64(sink, *counts[i]);
    for (size_t i = 0; i < census->group_count; i++)
        put_group(sink, &census->groups[i]);
    sink_u64(sink, size_of(census->group_count));
    sink_u64(sink, MAGIC);
}

int kept_census_write(const struct sample_census *census, struct output_file *output,
                      struct findings *findings)
{
    size_t size = size_of(census->group_count);
    uint8_t *bytes = malloc(size);
    if (!bytes)
        return report_failure(findings, "out of memory");
    struct byte_sink sink = byte_sink_over(bytes, size);
    put(&sink, census);
    int result = output_file_write(output, bytes, size, findings);
    free(bytes);
    return result;
}

/* ---- Reading ---- */

/* The whole section, and its number of groups; NULL: there is none. */
static const uint8_t *find(const struct perf_file *file, uint32_t *group_count)
{
    uint64_t behind = file->records.offset + file->records.size;
    if (behind > file->size || file->size - behind < size_of(0))
        return NULL;
    struct byte_cursor end =
        byte_cursor_over(file->data + file->size - END_BYTES, END_BYTES, false);
    uint64_t size = cursor_u64(&end);
    if (cursor_u64(&end) != MAGIC || size > file->size - behind || size < size_of(0))
        return NULL;
    const uint8_t *bytes = file->data + file->size - size;
    struct byte_cursor head = byte_cursor_over(bytes, HEAD_BYTES, false);
    if (cursor_u64(&head) != MAGIC || cursor_u32(&head) != VERSION)
        return NULL;
    *group_count = cursor_u32(&head);
    return size == size_of(*group_count) ? bytes : NULL;
}

/* The cause whose id is in these CAUSE_BYTES, or CAUSES. */
static enum sample_cause cause_of(const uint8_t *bytes)
{
    int cause = 0;
    while (cause < CAUSES && strncmp((const char *)bytes, sample_cause_id((enum sample_cause)cause),
                                     CAUSE_BYTES) != 0)
        cause++;
    return (enum sample_cause)cause;
}

static bool take_group(struct unknown_samples *group, const uint8_t *bytes)
{
    struct byte_cursor cursor = byte_cursor_over(bytes, GROUP_BYTES, false);
    *group = (struct unknown_samples){.life = NO_LIFE};
    group->cause = cause_of(cursor_bytes(&cursor, CAUSE_BYTES));
    memcpy(group->comm, cursor_bytes(&cursor, PROCESS_COMM_BYTES), PROCESS_COMM_BYTES);
    group->pid = cursor_u32(&cursor);
    cursor_skip(&cursor, 4);
    group->count = cursor_u64(&cursor);
    group->first_ip = cursor_u64(&cursor);
    group->first_ns = cursor_u64(&cursor);
    return group->cause != CAUSES && group->comm[PROCESS_COMM_BYTES - 1] == '\0';
}

int kept_census_read(struct sample_census *census, const struct perf_file *file)
{
    uint32_t count;
    uint64_t *counts[COUNTS], grouped = 0;
    struct sample_census kept = {.is_kept = true};
    const uint8_t *bytes = find(file, &count);
    if (!bytes)
        return 0;
    kept.groups = malloc((count + 1) * sizeof *kept.groups);
    if (!kept.groups)
        return -1;
    list_counts(&kept, counts);
    for (int i = 0; i < COUNTS; i++)
        *counts[i] = perf_get_u64(bytes + 16 + 8 * i);
    bool valid = true;
    for (; valid && kept.group_count < count; kept.group_count++) {
        struct unknown_samples *group = &kept.groups[kept.group_count];
        valid = take_group(group, bytes + HEAD_BYTES + kept.group_count * GROUP_BYTES);
        grouped += group->count;
    }
    if (valid && grouped == kept.unknown) {
        *census = kept;
        return 1;
    }
    sample_census_free(&kept);
    return 0;
}

int kept_census_or_take(struct sample_census *census, const struct census_question *question,
                        struct findings *findings)
{
    int kept = question->has_given ? 0 : kept_census_read(census, question->records->file);
    if (kept < 0)
        return report_failure(findings, "out of memory");
    return kept ? 0 : sample_census_take(census, question, findings);
}
