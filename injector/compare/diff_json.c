/* See diff_json.h. */
#include "injector/compare/diff_json.h"

#include "injector/text/json_writer.h"

#include <stdlib.h>

static void put_values(struct json_writer *json, const struct compared_row *row)
{
    json_fraction(json, "base", row->base, 9);
    json_fraction(json, "new", row->new, 9);
    if (row->base > 0)
        json_fraction(json, "change", compared_row_change(row) / row->base, 9);
    else
        json_nothing(json, "change");
    json_fraction(json, "p", row->p, 6);
    json_fraction(json, "q", row->q, 6);
    json_fraction(json, "least", row->least, 9);
    json_text(json, "verdict", verdict_name(row->verdict));
}

static void put_middle(struct json_writer *json, const struct verdicts *verdicts)
{
    const struct middle_change *middle = &verdicts->middle;
    json_begin_object(json, "middle");
    json_fraction(json, "base", middle->base, 9);
    json_fraction(json, "new", middle->new, 9);
    if (middle->base > 0)
        json_fraction(json, "change", middle->change / middle->base, 9);
    else
        json_nothing(json, "change");
    json_end_object(json);
    json_begin_array(json, "far_off");
    for (size_t i = 0; i < verdicts->far_count; i++) {
        json_begin_object(json, NULL);
        json_text(json, "side", verdicts->far[i].is_new ? "new" : "base");
        json_number(json, "run", verdicts->far[i].number);
        json_fraction(json, "value", verdicts->far[i].value, 9);
        json_end_object(json);
    }
    json_end_array(json);
}

static void put_total(struct json_writer *json, const struct diff_report *report)
{
    const struct verdicts *verdicts = &report->verdicts;
    json_text(json, "format", "perfjit-diff");
    json_number(json, "version", DIFF_JSON_VERSION);
    json_begin_object(json, "runs");
    json_number(json, "base", report->set->base);
    json_number(json, "new", report->set->new);
    json_flag(json, "paired", verdicts->paired);
    json_flag(json, "enough", verdicts->enough);
    json_end_object(json);
    json_fraction(json, "floor", verdicts->floor, 9);
    json_text(json, "compared", report->title);
    json_text(json, "unit", report->unit);
    json_begin_object(json, "total");
    json_text(json, "name", "(in all)");
    put_values(json, &verdicts->total);
    put_middle(json, verdicts);
    json_end_object(json);
    json_begin_array(json, "notes");
    for (size_t i = 0; i < report->set->note_count; i++)
        json_text(json, NULL, report->set->notes[i]);
    json_end_array(json);
}

static void begin_table(struct json_writer *json, const char *key)
{
    json_line(json, 0);
    json_begin_array(json, key);
}

static void begin_row(struct json_writer *json, const char *name)
{
    json_line(json, 0);
    json_begin_object(json, NULL);
    json_text(json, "name", name);
}

static void put_activities(struct json_writer *json, const struct diff_report *report)
{
    const struct verdict_rows *rows = &report->verdicts.tables[BY_ACTIVITY];
    begin_table(json, "activities");
    for (size_t i = 0; i < rows->count; i++) {
        begin_row(json, activity_name((enum activity)rows->items[i].number));
        put_values(json, &rows->items[i]);
        json_end_object(json);
    }
    json_end_array(json);
}

static void put_states(struct json_writer *json, const struct diff_report *report,
                       uint32_t function)
{
    size_t states;
    const struct compared_row *rows = moves_states(&report->moves, function, &states);
    json_begin_array(json, "states");
    for (size_t i = 0; i < states; i++) {
        const struct call_profile *names = &report->set->names;
        const struct call_frame *frame = &names->frames[rows[i].number];
        json_begin_object(json, NULL);
        json_text(json, "kind", frame_kind_name(frame->kind));
        json_text(json, "tier", call_profile_string(names, frame->tier));
        json_flag(json, "inlined", frame->inlined);
        put_values(json, &rows[i]);
        json_end_object(json);
    }
    json_end_array(json);
}

static void put_presence(struct json_writer *json, const struct compared_row *row)
{
    json_text(json, "presence",
              row->base > 0 && row->new > 0 ? "both"
              : row->base > 0               ? "vanished"
                                            : "new");
}

static void put_function(struct json_writer *json, const struct diff_report *report,
                         const struct compared_row *row)
{
    size_t states;
    const struct compared_row *first = moves_states(&report->moves, row->number, &states);
    const struct call_profile *names = &report->set->names;
    const struct call_frame *frame = &names->frames[first->number];
    const char *file = call_profile_string(names, frame->file);
    char *move = compared_row_differs(row) ? move_text(&report->moves, row) : NULL;
    begin_row(json, call_profile_string(names, frame->name));
    json_text(json, "file", *file ? file : call_profile_string(names, frame->module));
    if (frame->column) {
        json_number(json, "line", frame->line);
        json_number(json, "column", frame->column);
    }
    put_values(json, row);
    put_presence(json, row);
    json_text(json, "move", move ? move : "");
    put_states(json, report, row->number);
    json_end_object(json);
    free(move);
}

static void put_places(struct json_writer *json, const struct diff_report *report, const char *key,
                       enum run_table table)
{
    const struct verdict_rows *rows = &report->verdicts.tables[table];
    begin_table(json, key);
    for (size_t i = 0; i < rows->count; i++) {
        begin_row(json, diff_report_string(report, rows->items[i].number));
        put_values(json, &rows->items[i]);
        put_presence(json, &rows->items[i]);
        json_end_object(json);
    }
    json_end_array(json);
}

void diff_json_put(FILE *stream, const struct diff_report *report)
{
    const struct verdict_rows *rows = &report->verdicts.tables[BY_FUNCTION];
    struct json_writer json = {.stream = stream, .viewed = true};
    json_begin_object(&json, NULL);
    put_total(&json, report);
    put_activities(&json, report);
    begin_table(&json, "functions");
    for (size_t i = 0; i < rows->count; i++)
        put_function(&json, report, &rows->items[i]);
    json_end_array(&json);
    if (report->set->lines_of) {
        put_places(&json, report, "lines", BY_LINE);
        put_places(&json, report, "instructions", BY_INSTRUCTION);
    }
    json_end_object(&json);
}
