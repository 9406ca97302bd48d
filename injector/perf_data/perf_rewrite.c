/* See perf_rewrite.h; the format stands in perf_format.h. */
#include "injector/perf_data/perf_rewrite.h"

#include "injector/array.h"
#include "injector/perf_data/perf_format.h"
#include "jitdump/byte_cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Where a piece of the input went: the index of AUX traces holds file offsets. */
struct moved {
    uint64_t from, to;
};

struct rewriter {
    struct output_file *output;
    const struct perf_file *file;
    const struct record_source *added;
    struct findings *findings;
    const uint64_t *dropped;
    size_t dropped_left;
    size_t next_added;
    uint64_t copied_to; /* input offset up to which all is written or left out */
    struct moved *traces;
    size_t trace_count, trace_capacity;
    uint8_t record[RECORD_MAX_BYTES];
};

/* Write the input from copied_to up to OFFSET. */
static int copy_up_to(struct rewriter *rewriter, uint64_t offset)
{
    uint64_t from = rewriter->copied_to;
    rewriter->copied_to = offset;
    return output_file_write(rewriter->output, rewriter->file->data + from, (size_t)(offset - from),
                             rewriter->findings);
}

static int write_added(struct rewriter *rewriter)
{
    struct byte_sink sink = byte_sink_over(rewriter->record, sizeof rewriter->record);
    if (rewriter->added->put(rewriter->added->context, rewriter->next_added++, &sink))
        return failure(rewriter->findings,
                       "%s: the path of the directory for the ELF files is too long",
                       rewriter->output->path);
    return output_file_write(rewriter->output, sink.data, sink.size, rewriter->findings);
}

/* Add, before the input's byte at OFFSET, every record that is not younger than TIME_NS. */
static int add_until(struct rewriter *rewriter, uint64_t time_ns, uint64_t offset)
{
    uint64_t due_ns;
    while (rewriter->added->time(rewriter->added->context, rewriter->next_added, &due_ns) &&
           due_ns <= time_ns)
        if (copy_up_to(rewriter, offset) || write_added(rewriter))
            return -1;
    return 0;
}

/* How much further from the start the output is than the input was at copied_to. */
static uint64_t shift(const struct rewriter *rewriter)
{
    return rewriter->output->size - rewriter->copied_to;
}

static int note_trace(struct rewriter *rewriter, uint64_t offset)
{
    struct moved *traces = array_room(rewriter->traces, rewriter->trace_count,
                                      &rewriter->trace_capacity, sizeof *traces);
    if (!traces)
        return failure(rewriter->findings, "out of memory");
    rewriter->traces = traces;
    traces[rewriter->trace_count++] = (struct moved){offset, offset + shift(rewriter)};
    return 0;
}

static int pass_record(struct rewriter *rewriter, const struct perf_record *record)
{
    uint64_t time_ns;
    if (perf_record_time(rewriter->file, record, &time_ns) &&
        add_until(rewriter, time_ns, record->offset))
        return -1;
    if (record->type == PERF_RECORD_AUXTRACE)
        return note_trace(rewriter, record->offset);
    if (rewriter->dropped_left == 0 || *rewriter->dropped != record->offset)
        return 0;
    while (rewriter->dropped_left && *rewriter->dropped == record->offset) {
        rewriter->dropped++;
        rewriter->dropped_left--;
    }
    if (copy_up_to(rewriter, record->offset))
        return -1;
    rewriter->copied_to = record->offset + record->span;
    return 0;
}

/* Records that are younger than all others go to the end: before the last round's mark if one ends the file. */
static int write_records(struct rewriter *rewriter)
{
    struct perf_walk walk = perf_walk_begin(rewriter->file);
    struct perf_record record;
    struct findings known = {.quiet = true}; /* damage was reported when the profile was read */
    uint64_t end = rewriter->file->records.offset, late = end; /* where the youngest go */
    int result = 0;
    while (!result && perf_walk_next(&walk, &record, &known)) {
        result = pass_record(rewriter, &record);
        end = record.offset + record.span;
        late = record.type == PERF_RECORD_FINISHED_ROUND ? record.offset : end;
    }
    findings_free(&known);
    if (result || add_until(rewriter, UINT64_MAX, late))
        return -1;
    return copy_up_to(rewriter, end);
}

/* ---- What stands around the records ---- */

static int write_u64(struct rewriter *rewriter, uint64_t value)
{
    uint8_t bytes[8];
    perf_put_u64(bytes, value);
    return output_file_write(rewriter->output, bytes, sizeof bytes, rewriter->findings);
}

static uint64_t trace_moved_to(const struct rewriter *rewriter, uint64_t offset)
{
    size_t first = 0, end = rewriter->trace_count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (rewriter->traces[middle].from < offset)
            first = middle + 1;
        else
            end = middle;
    }
    bool found = first < rewriter->trace_count && rewriter->traces[first].from == offset;
    return found ? rewriter->traces[first].to : offset;
}

/* The index of AUX traces: u64 count, then {u64 file offset, u64 size} each. */
static int write_trace_index(struct rewriter *rewriter, const uint8_t *index, uint64_t bytes)
{
    uint64_t at = 8;
    if (output_file_write(rewriter->output, index, bytes < 8 ? (size_t)bytes : 8,
                          rewriter->findings))
        return -1;
    for (; at + 16 <= bytes; at += 16)
        if (write_u64(rewriter, trace_moved_to(rewriter, perf_get_u64(index + at))) ||
            write_u64(rewriter, perf_get_u64(index + at + 8)))
            return -1;
    return at < bytes ? output_file_write(rewriter->output, index + at, (size_t)(bytes - at),
                                          rewriter->findings)
                      : 0;
}

/* The feature sections' table follows the records; their contents follow the table. */
static int write_features(struct rewriter *rewriter)
{
    const struct perf_file *file = rewriter->file;
    uint64_t table = file->records.offset + file->records.size;
    size_t count = perf_file_feature_count(file);
    uint64_t table_bytes = count * (uint64_t)PERF_SECTION_BYTES;
    uint64_t index_offset = 0, index_bytes = 0;
    unsigned bit = 0;
    rewriter->copied_to = table;
    uint64_t moved_by = shift(rewriter);
    for (size_t i = 0; i < count; i++, bit++) {
        const uint8_t *section = file->data + table + i * PERF_SECTION_BYTES;
        uint64_t offset = perf_get_u64(section);
        for (; !perf_file_has_feature(file, bit); bit++)
            ;
        if (bit == PERF_FEATURE_AUXTRACE) {
            index_offset = offset;
            index_bytes = perf_get_u64(section + 8);
        }
        if (write_u64(rewriter, offset >= table ? offset + moved_by : offset) ||
            write_u64(rewriter, perf_get_u64(section + 8)))
            return -1;
    }
    rewriter->copied_to = table + table_bytes;
    if (index_bytes && index_offset >= rewriter->copied_to && index_offset <= file->size &&
        index_bytes <= file->size - index_offset) {
        if (copy_up_to(rewriter, index_offset) ||
            write_trace_index(rewriter, file->data + index_offset, index_bytes))
            return -1;
        rewriter->copied_to = index_offset + index_bytes;
    }
    return copy_up_to(rewriter, file->size);
}

/* A recording that was cut short has no feature sections, whatever its header says. */
static bool has_features(const struct perf_file *file)
{
    uint64_t table = file->records.offset + file->records.size;
    return table + perf_file_feature_count(file) * (uint64_t)PERF_SECTION_BYTES <= file->size;
}

static int patch_header(struct rewriter *rewriter, uint64_t records_bytes, bool features)
{
    uint8_t header[PERF_FILE_HEADER_BYTES];
    memcpy(header, rewriter->file->data, sizeof header);
    perf_put_u64(header + PERF_HEADER_DATA + 8, records_bytes);
    if (!features)
        memset(header + PERF_HEADER_FEATURES, 0, PERF_FEATURE_BITS / 8);
    return output_file_patch(rewriter->output, 0, header, sizeof header, rewriter->findings);
}

int perf_rewrite(struct output_file *output, const struct perf_file *file, const uint64_t *dropped,
                 size_t dropped_count, const struct record_source *added, struct findings *findings)
{
    struct rewriter *rewriter = calloc(1, sizeof *rewriter);
    if (!rewriter)
        return failure(findings, "out of memory");
    rewriter->output = output;
    rewriter->file = file;
    rewriter->added = added;
    rewriter->findings = findings;
    rewriter->dropped = dropped;
    rewriter->dropped_left = dropped_count;
    int result = copy_up_to(rewriter, file->records.offset) || write_records(rewriter);
    uint64_t records_bytes = output->size - file->records.offset;
    bool features = has_features(file);
    if (!result && features)
        result = write_features(rewriter);
    if (!result)
        result = patch_header(rewriter, records_bytes, features);
    free(rewriter->traces);
    free(rewriter);
    return result ? -1 : 0;
}
