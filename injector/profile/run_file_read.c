/* The reading half of run_file.h.  Entries of the file become entries of a call_profile, by its own
 * calls.  Equal entries become one, so each list has a table from its numbers to the profile's. */
#include "injector/profile/run_file.h"

#include "injector/files/file_bytes.h"
#include "injector/files/regular_file.h"
#include "injector/text/code_name.h"
#include "jitdump/format/byte_cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

enum { HEADER_BYTES = 16 };

static const uint8_t magic[] = {'p', 'j', 'r', 'u', 'n', '\r', '\n', 0x1a};

/* From a list's numbers to the profile's. */
struct number_table {
    uint32_t *numbers;
    size_t count;
};

struct run_reading {
    const char *path;
    struct findings *findings;
    struct call_profile *profile;
    struct byte_cursor cursor;
    struct number_table strings, frames, nodes, places, threads;
    size_t events;
    uint32_t version;
    enum run_samples samples;
    uint64_t sample_count; /* of RUN_EACH */
};

/* ---- What is wrong ---- */

static int fail(struct run_reading *reading, size_t offset, const char *what)
{
    return report_failure(reading->findings, "%s: byte %zu of the body: %s", reading->path, offset,
                          what);
}

static int no_memory(struct run_reading *reading)
{
    return report_failure(reading->findings, "out of memory");
}

/* A number less than LIMIT.  For any other the failure text is set, and the result is 0. */
static uint32_t number_below(struct run_reading *reading, size_t limit, const char *what)
{
    size_t offset = reading->cursor.offset;
    uint64_t value = cursor_uleb(&reading->cursor);
    if (reading->cursor.failed)
        fail(reading, offset, "it ends here, inside a number");
    else if (value >= limit)
        fail(reading, offset, what);
    else
        return (uint32_t)value;
    return 0;
}

static bool is_broken(const struct run_reading *reading)
{
    return reading->findings->failure[0] != '\0';
}

/* The length of a list, each entry of which has LEAST bytes or more. */
static size_t length(struct run_reading *reading, size_t least)
{
    size_t offset = reading->cursor.offset;
    uint64_t count = cursor_uleb(&reading->cursor);
    if (reading->cursor.failed)
        fail(reading, offset, "it ends here, inside a number");
    else if (count > cursor_left(&reading->cursor) / least)
        fail(reading, offset, "a list is longer than the rest of the file");
    else
        return (size_t)count;
    return 0;
}

/* A table of COUNT numbers behind ZERO, for a first entry that is not in the list. */
static int begin_table(struct run_reading *reading, struct number_table *table, size_t count)
{
    table->numbers = calloc(count + 1, sizeof *table->numbers);
    return table->numbers ? 0 : no_memory(reading);
}

static int add_number(struct run_reading *reading, struct number_table *table, uint32_t number)
{
    if (number == PROFILE_NOTHING)
        return no_memory(reading);
    table->numbers[table->count++] = number;
    return is_broken(reading) ? -1 : 0;
}

static uint32_t entry_of(struct run_reading *reading, const struct number_table *table,
                         const char *what)
{
    uint32_t number = number_below(reading, table->count, what);
    return table->count ? table->numbers[number] : 0;
}

/* ---- Lists ---- */

static int read_strings(struct run_reading *reading)
{
    size_t count = length(reading, 1);
    if (is_broken(reading) || begin_table(reading, &reading->strings, count + 1) ||
        add_number(reading, &reading->strings, 0))
        return -1;
    for (size_t i = 0; i < count; i++) {
        size_t bytes = length(reading, 1), offset = reading->cursor.offset;
        const char *text = (const char *)cursor_bytes(&reading->cursor, bytes);
        if (is_broken(reading))
            return -1;
        if (memchr(text, 0, bytes) || !code_name_is_printable(text, bytes))
            return fail(reading, offset, "a name that can't be shown");
        if (add_number(reading, &reading->strings,
                       call_profile_add_string(reading->profile, text, bytes)))
            return -1;
    }
    return 0;
}

static uint32_t string_of(struct run_reading *reading)
{
    return entry_of(reading, &reading->strings, "there is no such string");
}

static int read_frames(struct run_reading *reading)
{
    size_t count = length(reading, reading->version == RUN_FILE_OLDEST ? 7 : 8);
    if (is_broken(reading) || begin_table(reading, &reading->frames, count))
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct call_frame frame = {0};
        frame.name = string_of(reading);
        frame.module = string_of(reading);
        frame.file = string_of(reading);
        frame.line = number_below(reading, UINT32_MAX, "a line over 4 294 967 294");
        if (reading->version > RUN_FILE_OLDEST)
            frame.column = number_below(reading, UINT32_MAX, "a column over 4 294 967 294");
        frame.tier = string_of(reading);
        frame.kind = number_below(reading, FRAME_KINDS, "there is no such kind of frame");
        frame.inlined = number_below(reading, 2, "inlined is neither 0 nor 1");
        if (is_broken(reading) ||
            add_number(reading, &reading->frames, call_profile_add_frame(reading->profile, &frame)))
            return -1;
    }
    return 0;
}

static int read_nodes(struct run_reading *reading)
{
    size_t count = length(reading, 2);
    if (is_broken(reading) || begin_table(reading, &reading->nodes, count + 1) ||
        add_number(reading, &reading->nodes, 0))
        return -1;
    for (size_t i = 0; i < count; i++) {
        uint32_t parent = entry_of(reading, &reading->nodes, "a caller that is not before it");
        uint32_t frame = entry_of(reading, &reading->frames, "there is no such frame");
        if (is_broken(reading) ||
            add_number(reading, &reading->nodes,
                       call_profile_add_node(reading->profile, parent, frame)))
            return -1;
    }
    return 0;
}

static int read_places(struct run_reading *reading)
{
    size_t count = length(reading, 3);
    if (is_broken(reading) || begin_table(reading, &reading->places, count + 1) ||
        add_number(reading, &reading->places, 0))
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct call_place place = {.known = 1};
        place.offset = number_below(reading, UINT32_MAX, "an offset over 4 294 967 294");
        place.line = number_below(reading, UINT32_MAX, "a line over 4 294 967 294");
        place.file = string_of(reading);
        if (is_broken(reading) ||
            add_number(reading, &reading->places, call_profile_add_place(reading->profile, &place)))
            return -1;
    }
    return 0;
}

static int read_threads(struct run_reading *reading)
{
    size_t count = length(reading, 2);
    if (is_broken(reading) || begin_table(reading, &reading->threads, count))
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct profile_thread thread = {0};
        thread.name = string_of(reading);
        thread.process = string_of(reading);
        if (is_broken(reading) || add_number(reading, &reading->threads,
                                             call_profile_add_thread(reading->profile, &thread)))
            return -1;
    }
    return 0;
}

static int read_events(struct run_reading *reading)
{
    reading->events = length(reading, 2);
    for (size_t i = 0; i < reading->events && !is_broken(reading); i++) {
        struct profile_event event = {0};
        event.name = string_of(reading);
        event.counts_ns = number_below(reading, 2, "ns is neither 0 nor 1");
        event.counts_ns &= reading->samples != RUN_COUNTS;
        if (!is_broken(reading) && call_profile_add_event(reading->profile, &event))
            return no_memory(reading);
    }
    return is_broken(reading) ? -1 : 0;
}

/* COUNT samples like SAMPLE, whose periods add up to PERIOD. */
static int add_samples(struct run_reading *reading, struct call_sample *sample, uint64_t count,
                       uint64_t period)
{
    uint64_t times = reading->samples == RUN_EACH ? count : 1;
    sample->period = reading->samples == RUN_COUNTS ? count : period;
    for (uint64_t i = 0; i < times; i++) {
        struct call_sample one = *sample;
        if (reading->samples == RUN_EACH)
            one.period = period / count + (i < period % count);
        if (call_profile_add_sample(reading->profile, &one))
            return no_memory(reading);
    }
    return 0;
}

/* The sums of all are numbers as well, so they can be added without a check. */
static int read_samples(struct run_reading *reading)
{
    size_t lines = length(reading, 6);
    uint64_t counts = 0, periods = 0;
    for (size_t i = 0; i < lines && !is_broken(reading); i++) {
        struct call_sample sample = {0};
        sample.node = entry_of(reading, &reading->nodes, "there is no such stack");
        sample.thread = entry_of(reading, &reading->threads, "there is no such thread");
        sample.event = number_below(reading, reading->events, "there is no such event");
        sample.place = entry_of(reading, &reading->places, "there is no such place");
        size_t offset = reading->cursor.offset;
        uint64_t count = cursor_uleb(&reading->cursor), period = cursor_uleb(&reading->cursor);
        if (reading->cursor.failed || __builtin_add_overflow(counts, count, &counts) ||
            __builtin_add_overflow(periods, period, &periods) ||
            (reading->samples == RUN_EACH && counts > RUN_FILE_MOST_SAMPLES))
            return fail(reading, offset, "it ends here, or these are too many samples");
        if (!is_broken(reading) && add_samples(reading, &sample, count, period))
            return -1;
    }
    return is_broken(reading) ? -1 : 0;
}

static int read_body(struct run_reading *reading)
{
    if (read_strings(reading) || read_frames(reading) || read_nodes(reading) ||
        read_places(reading) || read_threads(reading) || read_events(reading) ||
        read_samples(reading))
        return -1;
    return cursor_left(&reading->cursor)
               ? fail(reading, reading->cursor.offset, "there is something behind the samples")
               : 0;
}

static void free_tables(struct run_reading *reading)
{
    free(reading->strings.numbers);
    free(reading->frames.numbers);
    free(reading->nodes.numbers);
    free(reading->places.numbers);
    free(reading->threads.numbers);
}

int run_file_parse_body(struct call_profile *profile, const char *path, uint32_t version,
                        const uint8_t *body, size_t size, enum run_samples samples,
                        struct findings *findings)
{
    struct run_reading reading = {path, findings, profile, .version = version, .samples = samples};
    reading.cursor = byte_cursor_over(body, size, false);
    int result = read_body(&reading);
    free_tables(&reading);
    return result;
}

/* ---- The file ---- */

static int check_header(struct run_reading *reading, const uint8_t *bytes, size_t size,
                        uint32_t *body_bytes)
{
    struct byte_cursor cursor = byte_cursor_over(bytes, size, false);
    const uint8_t *begin = cursor_bytes(&cursor, sizeof magic);
    reading->version = cursor_u32(&cursor);
    *body_bytes = cursor_u32(&cursor);
    if (!begin || memcmp(begin, magic, sizeof magic))
        return report_failure(reading->findings, "%s: is no run that perfjit bench has kept",
                              reading->path);
    if (cursor.failed)
        return report_failure(reading->findings, "%s: byte %zu: it ends here, inside its header",
                              reading->path, size);
    if (reading->version < RUN_FILE_OLDEST || reading->version > RUN_FILE_VERSION)
        return report_failure(reading->findings,
                              "%s: byte 8: version %" PRIu32
                              "; this perfjit reads versions %d to %d",
                              reading->path, reading->version, RUN_FILE_OLDEST, RUN_FILE_VERSION);
    if (*body_bytes > RUN_FILE_MOST_BYTES)
        return report_failure(reading->findings, "%s: byte 12: a body of %" PRIu32 " bytes",
                              reading->path, *body_bytes);
    return 0;
}

int run_file_parse(struct call_profile *profile, const char *path, const uint8_t *bytes,
                   size_t size, enum run_samples samples, struct findings *findings)
{
    struct run_reading reading = {path, findings, profile, .samples = samples};
    uint32_t body_bytes;
    *profile = (struct call_profile){0};
    if (check_header(&reading, bytes, size, &body_bytes))
        return -1;
    uint8_t *body = malloc((size_t)body_bytes + 1);
    if (!body || call_profile_begin(profile)) {
        free(body);
        return no_memory(&reading);
    }
    size_t got = ZSTD_decompress(body, body_bytes, bytes + HEADER_BYTES, size - HEADER_BYTES);
    int result = ZSTD_isError(got) || got != body_bytes
                     ? report_failure(findings, "%s: its body is cut short or damaged: %s", path,
                                      ZSTD_isError(got) ? ZSTD_getErrorName(got) : "it is shorter")
                     : run_file_parse_body(profile, path, reading.version, body, body_bytes,
                                           samples, findings);
    free(body);
    return result;
}

bool run_file_is(const char *path)
{
    struct stat status;
    uint8_t begin[sizeof magic];
    int fd = regular_file_open(path, 0, &status);
    bool is_one = fd >= 0 && pread(fd, begin, sizeof begin, 0) == sizeof begin &&
                  memcmp(begin, magic, sizeof begin) == 0;
    if (fd >= 0)
        close(fd);
    return is_one;
}

int run_file_read(struct call_profile *profile, const char *path, enum run_samples samples,
                  struct findings *findings)
{
    struct stat status;
    *profile = (struct call_profile){0};
    int fd = regular_file_open(path, O_NOFOLLOW, &status);
    if (fd < 0)
        return report_failure(findings, "%s: can't read it: %s", path, regular_file_error(errno));
    if (status.st_size < HEADER_BYTES || status.st_size > RUN_FILE_MOST_BYTES) {
        close(fd);
        return report_failure(findings, "%s: has %lld bytes: it is no run, or is cut short", path,
                              (long long)status.st_size);
    }
    void *bytes = (void *)(uintptr_t)file_bytes(fd, &status);
    int error = errno;
    close(fd);
    if (!bytes)
        return report_failure(findings, "%s: can't read it: %s", path, file_bytes_error(error));
    int result = run_file_parse(profile, path, bytes, (size_t)status.st_size, samples, findings);
    munmap(bytes, (size_t)status.st_size);
    return result;
}
