/* See perf_rewrite.h; the format stands in perf_format.h. */
#include "injector/inject/merge/perf_rewrite.h"

#include "injector/recording/perf_data/perf_format.h"
#include "jitdump/format/byte_cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct rewriter {
    struct output_file *output;
    const struct perf_file *file;
    const struct record_marks *marks;
    size_t next_mark;
    const struct record_source *added;
    const struct record_change *change; /* or NULL */
    struct findings *findings;
    const uint64_t *dropped;
    size_t dropped_left;
    size_t next_added;
    uint64_t copied_to;        /* input offset up to which all is written or left out */
    struct memory_file traces; /* the index of AUX traces, as they stand in the output */
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
        return report_failure(rewriter->findings,
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

static int note_trace(struct rewriter *rewriter, const struct perf_record *record)
{
    return perf_trace_index_add(&rewriter->traces, record->offset + shift(rewriter), record->size)
               ? report_failure(rewriter->findings, "out of memory")
               : 0;
}

/* Leave RECORD out, and its data behind it. */
static int leave_out(struct rewriter *rewriter, const struct perf_record *record)
{
    if (copy_up_to(rewriter, record->offset))
        return -1;
    rewriter->copied_to = record->offset + record->span;
    return 0;
}

static int change_record(struct rewriter *rewriter, const struct perf_record *record)
{
    struct byte_sink sink = byte_sink_over(rewriter->record, sizeof rewriter->record);
    int changed = rewriter->change->put(rewriter->change->context, record, &sink);
    if (changed == 0)
        return 0;
    if (leave_out(rewriter, record))
        return -1;
    return changed < 0
               ? 0
               : output_file_write(rewriter->output, sink.data, sink.size, rewriter->findings);
}

static int pass_record(struct rewriter *rewriter, const struct perf_record *record)
{
    uint64_t time_ns;
    if (perf_record_time(rewriter->file, record, &time_ns) &&
        add_until(rewriter, time_ns, record->offset))
        return -1;
    if (record->type == PERF_RECORD_AUXTRACE)
        return note_trace(rewriter, record);
    if (rewriter->dropped_left == 0 || *rewriter->dropped != record->offset)
        return rewriter->change ? change_record(rewriter, record) : 0;
    while (rewriter->dropped_left && *rewriter->dropped == record->offset) {
        rewriter->dropped++;
        rewriter->dropped_left--;
    }
    return leave_out(rewriter, record);
}

/* Go to where something may have to be done: no record is added in front of one that is older, and
 * none is left out before the next that is.  Records that CHANGE changes can't be foretold. */
static void skip_untouched(struct rewriter *rewriter, struct perf_walk *walk)
{
    uint64_t due_ns, none = UINT64_MAX;
    if (rewriter->change)
        return;
    bool due = rewriter->added->time(rewriter->added->context, rewriter->next_added, &due_ns);
    record_marks_skip(rewriter->marks, walk, &rewriter->next_mark, due ? due_ns : none,
                      rewriter->dropped_left ? *rewriter->dropped : none);
}

/* Records that are younger than all others go to the end: before the last round's mark if one ends
 * the file. */
static int write_records(struct rewriter *rewriter)
{
    struct perf_walk walk = perf_walk_begin(rewriter->file);
    struct perf_record record;
    uint64_t end = rewriter->file->records.offset, late = end; /* where the youngest go */
    int result = 0;
    for (;;) {
        skip_untouched(rewriter, &walk);
        if (result || !perf_walk_next(&walk, &record, NULL))
            break;
        result = pass_record(rewriter, &record);
        end = record.offset + record.span;
        late = record.type == PERF_RECORD_FINISHED_ROUND ? record.offset : end;
    }
    if (result || add_until(rewriter, UINT64_MAX, late))
        return -1;
    return copy_up_to(rewriter, end);
}

/* ---- What stands around the records ---- */

/* The features, anew: the table holds file offsets, and the index of AUX traces holds them, too. */
static int write_features(struct rewriter *rewriter, const struct perf_features *features)
{
    struct memory_file tail = {0};
    int result = 0;
    if (perf_features_add(&tail, features, rewriter->output->size))
        result = report_failure(rewriter->findings, "out of memory");
    else if (tail.size)
        result = output_file_write(rewriter->output, tail.data, tail.size, rewriter->findings);
    memory_file_free(&tail);
    return result;
}

static int patch_header(struct rewriter *rewriter, const struct perf_features *features,
                        uint64_t records_bytes)
{
    uint8_t header[PERF_FILE_HEADER_BYTES];
    memcpy(header, rewriter->file->data, sizeof header);
    perf_put_u64(header + PERF_HEADER_DATA + 8, records_bytes);
    perf_features_mark(features, header);
    return output_file_patch(rewriter->output, 0, header, sizeof header, rewriter->findings);
}

static int rewrite(struct rewriter *rewriter)
{
    const struct perf_file *file = rewriter->file;
    struct perf_features features = file->features;
    if (copy_up_to(rewriter, file->records.offset) || write_records(rewriter))
        return -1;
    uint64_t records_bytes = rewriter->output->size - file->records.offset;
    if (perf_features_find(&features, PERF_FEATURE_AUXTRACE))
        perf_trace_index_set(&features, &rewriter->traces);
    return write_features(rewriter, &features) || patch_header(rewriter, &features, records_bytes);
}

int perf_rewrite(struct output_file *output, const struct perf_file *file,
                 const struct record_marks *marks, const uint64_t *dropped, size_t dropped_count,
                 const struct record_source *added, const struct record_change *change,
                 struct findings *findings)
{
    struct rewriter *rewriter = calloc(1, sizeof *rewriter);
    if (!rewriter)
        return report_failure(findings, "out of memory");
    rewriter->output = output;
    rewriter->file = file;
    rewriter->marks = marks;
    rewriter->added = added;
    rewriter->change = change;
    rewriter->findings = findings;
    rewriter->dropped = dropped;
    rewriter->dropped_left = dropped_count;
    int result = rewrite(rewriter);
    memory_file_free(&rewriter->traces);
    free(rewriter);
    return result ? -1 : 0;
}
