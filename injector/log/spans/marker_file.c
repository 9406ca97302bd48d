/* See marker_file.h. */
#include "injector/log/spans/marker_file.h"

#include "injector/arrays/array.h"
#include "injector/files/regular_file.h"
#include "injector/recording/host/mapped_path.h"
#include "injector/text/file_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A million spans with names of 40 bytes. */
enum { MOST_FILE_BYTES = 80 << 20 };

/* ---- Lines ---- */

/* The decimal number at *AT, which moves behind it and one space.  Returns false if that is not
 * there. */
static bool take_number(const char **at, const char *end, uint64_t *value)
{
    const char *digit = *at;
    *value = 0;
    for (; digit < end && *digit >= '0' && *digit <= '9'; digit++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*digit - '0'), value))
            return false;
    if (digit == *at || digit == end || *digit != ' ')
        return false;
    *at = digit + 1;
    return true;
}

static bool take_line(const char *at, const char *end, struct marker_span *span)
{
    if (end > at && end[-1] == '\r')
        end--;
    if (!take_number(&at, end, &span->from_ns) || !take_number(&at, end, &span->to_ns))
        return false;
    span->name = at;
    span->name_bytes = strnlen(at, (size_t)(end - at));
    return span->name_bytes && span->to_ns >= span->from_ns && span->to_ns <= INT64_MAX;
}

int marker_spans_add(struct marker_spans *spans, char *text, size_t bytes, uint32_t pid,
                     uint32_t tid)
{
    const char *at = text, *end = text + bytes;
    if (array_reserve(spans->texts, spans->text_count, spans->text_capacity)) {
        free(text);
        return -1;
    }
    spans->texts[spans->text_count++] = text;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        struct marker_span span = {.pid = pid, .tid = tid};
        stop = stop ? stop : end;
        if (!take_line(at, stop, &span))
            spans->wrong_lines += stop > at;
        else if (array_reserve(spans->items, spans->count, spans->capacity))
            return -1;
        else
            spans->items[spans->count++] = span;
        at = stop + 1;
    }
    return 0;
}

/* ---- Files ---- */

bool marker_file_named(const char *name, uint32_t *pid, uint32_t *tid)
{
    static const char begin[] = "marker";
    const char *at = file_name_of(name);
    *tid = 0;
    if (strncmp(at, begin, sizeof begin - 1) != 0)
        return false;
    at = file_name_number(at + sizeof begin - 1, pid);
    if (at && *at == '-')
        at = file_name_number(at, tid);
    return at && (strcmp(at, ".txt") == 0 || strcmp(at, ".txt (deleted)") == 0);
}

/* Add those in the file PATH.  Returns 0, or -1 with the failure text set; a file that is not there
 * is one if it IS_WANTED. */
static int read_file(struct marker_spans *spans, const char *path, uint32_t pid, uint32_t tid,
                     bool is_wanted, struct findings *findings)
{
    size_t bytes;
    char *text = regular_file_bytes(path, MOST_FILE_BYTES, &bytes);
    if (!text && is_wanted)
        return report_failure(findings, "%s: can't read it: %s", path, regular_file_error(errno));
    if (!text && errno != ENOENT)
        report_note(findings, "%s: has spans, but can't be read: %s", path,
                    regular_file_error(errno));
    if (!text)
        return 0;
    const size_t wrong = spans->wrong_lines;
    if (marker_spans_add(spans, text, bytes, pid, tid))
        return report_failure(findings, "out of memory");
    if (spans->wrong_lines > wrong)
        report_note(findings, "%s: %zu line%s no span: START_NS END_NS NAME", path,
                    spans->wrong_lines - wrong, spans->wrong_lines - wrong == 1 ? " is" : "s are");
    return 0;
}

/* Where perfjit record keeps the file NAME of the recording PATH, to be freed; NULL without memory.
 */
static char *kept_path(const char *path, const char *name)
{
    char *kept;
    const char *file = file_name_of(name);
    return asprintf(&kept, "%s" MARKER_FOLDER_ENDING "/%.*s", path, (int)perf_map_name_length(file),
                    file) < 0
               ? NULL
               : kept;
}

/* In a container the file is called by the numbers there; the recording has those of its own. */
static int read_mapped(struct marker_spans *spans, const struct records *records, size_t number,
                       const char *root, struct findings *findings)
{
    const struct perf_map *map = &records->maps[number].map;
    uint32_t pid, tid;
    marker_file_named(map->filename, &pid, &tid);
    char *path = mapped_path(root ? root : "", map->filename);
    char *kept = kept_path(records->file->path, map->filename);
    int result = path && kept ? 0 : report_failure(findings, "out of memory");
    if (tid && pid != map->pid)
        tid = map->tid;
    if (!result)
        result = read_file(spans, access(kept, F_OK) ? path : kept, map->pid, tid, false, findings);
    free(path);
    free(kept);
    return result;
}

/* Maps of marker files. */
struct marker_maps {
    size_t *numbers, count, capacity;
};

static int compare_names(const void *left, const void *right, void *argument)
{
    const struct recorded_map *maps = argument;
    const size_t a = *(const size_t *)left, b = *(const size_t *)right;
    const int order = strcmp(maps[a].map.filename, maps[b].map.filename);
    return order ? order : a < b ? -1 : a > b;
}

static int compare_numbers(const void *left, const void *right)
{
    const size_t a = *(const size_t *)left, b = *(const size_t *)right;
    return a < b ? -1 : a > b;
}

/* A file that a process maps twice, or whose children map it too, has its spans once: the first map
 * of each, in order.  Returns 0, or -1 without memory. */
static int find_maps(struct marker_maps *found, const struct records *records)
{
    const struct recorded_map *maps = records->maps;
    size_t kept = 0;
    for (size_t i = 0; i < records->map_count; i++) {
        uint32_t pid, tid;
        if (!marker_file_named(maps[i].map.filename, &pid, &tid))
            continue;
        if (array_reserve(found->numbers, found->count, found->capacity))
            return -1;
        found->numbers[found->count++] = i;
    }
    if (!found->count)
        return 0;
    qsort_r(found->numbers, found->count, sizeof *found->numbers, compare_names, records->maps);
    for (size_t i = 0; i < found->count; i++)
        if (i == 0 || strcmp(maps[found->numbers[i]].map.filename,
                             maps[found->numbers[kept - 1]].map.filename) != 0)
            found->numbers[kept++] = found->numbers[i];
    found->count = kept;
    qsort(found->numbers, found->count, sizeof *found->numbers, compare_numbers);
    return 0;
}

static int read_all_mapped(struct marker_spans *spans, const struct records *records,
                           const char *root, struct findings *findings)
{
    struct marker_maps found = {.count = 0};
    int result = find_maps(&found, records) ? report_failure(findings, "out of memory") : 0;
    for (size_t i = 0; !result && i < found.count; i++)
        result = read_mapped(spans, records, found.numbers[i], root, findings);
    free(found.numbers);
    return result;
}

int marker_spans_read(struct marker_spans *spans, const struct records *records, const char *root,
                      const char *given, struct findings *findings)
{
    uint32_t pid = 0, tid = 0;
    *spans = (struct marker_spans){.count = 0};
    int result = read_all_mapped(spans, records, root, findings);
    if (result || !given)
        return result;
    if (!marker_file_named(given, &pid, &tid))
        pid = tid = 0;
    return read_file(spans, given, pid, tid, true, findings);
}

void marker_spans_free(struct marker_spans *spans)
{
    for (size_t i = 0; i < spans->text_count; i++)
        free(spans->texts[i]);
    free(spans->texts);
    free(spans->items);
    *spans = (struct marker_spans){.count = 0};
}
