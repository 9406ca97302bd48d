/* See diff_json.h. */
#include "injector/compare/diff_json.h"

#include "injector/profile/export/json_stream.h"

#include <stdlib.h>
#include <string.h>

static void put_text(FILE *stream, const char *key, const char *text)
{
    fprintf(stream, "\"%s\":", key);
    json_stream_text(stream, text);
}

static void put_values(FILE *stream, const struct compared_row *row)
{
    fprintf(stream, ",\"base\":%.9g,\"new\":%.9g,\"change\":", row->base, row->new);
    if (row->base > 0)
        fprintf(stream, "%.9g", compared_row_change(row) / row->base);
    else
        fputs("null", stream);
    fprintf(stream, ",\"p\":%.6g,\"q\":%.6g,\"least\":%.9g,\"verdict\":", row->p, row->q,
            row->least);
    json_stream_text(stream, verdict_name(row->verdict));
}

static void put_total(FILE *stream, const struct diff_report *report)
{
    const struct verdicts *verdicts = &report->verdicts;
    fprintf(stream,
            "{\"format\":\"perfjit-diff\",\"version\":%d,\"runs\":{\"base\":%zu,\"new\":%zu,"
            "\"paired\":%s,\"enough\":%s},\"floor\":%.9g,",
            DIFF_JSON_VERSION, report->set->base, report->set->new,
            verdicts->paired ? "true" : "false", verdicts->enough ? "true" : "false",
            verdicts->floor);
    put_text(stream, "compared", report->title);
    fputc(',', stream);
    put_text(stream, "unit", report->unit);
    fputs(",\"total\":{\"name\":\"(in all)\"", stream);
    put_values(stream, &verdicts->total);
    fputs("},\"notes\":[", stream);
    size_t count = 0;
    for (size_t i = 0; i < report->set->note_count; i++) {
        json_stream_comma(stream, &count);
        json_stream_text(stream, report->set->notes[i]);
    }
    fputc(']', stream);
}

static void put_activities(FILE *stream, const struct diff_report *report)
{
    const struct verdict_rows *rows = &report->verdicts.tables[BY_ACTIVITY];
    size_t count = 0;
    fputs(",\n\"activities\":[", stream);
    for (size_t i = 0; i < rows->count; i++) {
        json_stream_comma(stream, &count);
        fputs("\n{", stream);
        put_text(stream, "name", activity_name((enum activity)rows->items[i].number));
        put_values(stream, &rows->items[i]);
        fputc('}', stream);
    }
    fputc(']', stream);
}

static void put_states(FILE *stream, const struct diff_report *report, uint32_t function)
{
    size_t states, count = 0;
    const struct compared_row *rows = moves_states(&report->moves, function, &states);
    fputs(",\"states\":[", stream);
    for (size_t i = 0; i < states; i++) {
        const struct call_profile *names = &report->set->names;
        const struct call_frame *frame = &names->frames[rows[i].number];
        json_stream_comma(stream, &count);
        fputc('{', stream);
        put_text(stream, "kind", frame_kind_name(frame->kind));
        fputc(',', stream);
        put_text(stream, "tier", call_profile_string(names, frame->tier));
        fprintf(stream, ",\"inlined\":%s", frame->inlined ? "true" : "false");
        put_values(stream, &rows[i]);
        fputc('}', stream);
    }
    fputc(']', stream);
}

static void put_presence(FILE *stream, const struct compared_row *row)
{
    fprintf(stream, ",\"presence\":\"%s\"",
            row->base > 0 && row->new > 0 ? "both"
            : row->base > 0               ? "vanished"
                                          : "new");
}

static void put_function(FILE *stream, const struct diff_report *report,
                         const struct compared_row *row)
{
    size_t states;
    const struct compared_row *first = moves_states(&report->moves, row->number, &states);
    const struct call_profile *names = &report->set->names;
    const struct call_frame *frame = &names->frames[first->number];
    char *move = compared_row_differs(row) ? move_text(&report->moves, row) : NULL;
    fputs("\n{", stream);
    put_text(stream, "name", call_profile_string(names, frame->name));
    fputc(',', stream);
    put_text(stream, "file",
             call_profile_string(names, *call_profile_string(names, frame->file) ? frame->file
                                                                                 : frame->module));
    put_values(stream, row);
    put_presence(stream, row);
    fputc(',', stream);
    put_text(stream, "move", move ? move : "");
    put_states(stream, report, row->number);
    fputc('}', stream);
    free(move);
}

static void put_places(FILE *stream, const struct diff_report *report, const char *key,
                       enum run_table table)
{
    const struct verdict_rows *rows = &report->verdicts.tables[table];
    size_t count = 0;
    fprintf(stream, ",\n\"%s\":[", key);
    for (size_t i = 0; i < rows->count; i++) {
        json_stream_comma(stream, &count);
        fputs("\n{", stream);
        put_text(stream, "name", diff_report_function(report, rows->items[i].number));
        put_values(stream, &rows->items[i]);
        put_presence(stream, &rows->items[i]);
        fputc('}', stream);
    }
    fputc(']', stream);
}

void diff_json_put(FILE *stream, const struct diff_report *report)
{
    const struct verdict_rows *rows = &report->verdicts.tables[BY_FUNCTION];
    size_t count = 0;
    put_total(stream, report);
    put_activities(stream, report);
    fputs(",\n\"functions\":[", stream);
    for (size_t i = 0; i < rows->count; i++) {
        json_stream_comma(stream, &count);
        put_function(stream, report, &rows->items[i]);
    }
    fputc(']', stream);
    if (report->set->lines_of) {
        put_places(stream, report, "lines", BY_LINE);
        put_places(stream, report, "instructions", BY_INSTRUCTION);
    }
    fputs("}\n", stream);
}
