/* See report.h. */
#include "injector/check/findings_report.h"

#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDENT = 2, LABEL_COLUMNS = 38, VALUE_COLUMNS = 10 };

/* ---- Groups ---- */

static void begin_group(struct report *report, const char *title)
{
    if (!report->json && title) {
        printf("%*s", report->indent * INDENT, "");
        printable_put(stdout, title);
        putchar('\n');
    }
    report->indent += title != NULL;
    report->titled = report->titled << 1 | (uint64_t)(title != NULL);
}

static void end_group(struct report *report)
{
    report->indent -= (int)(report->titled & 1);
    report->titled >>= 1;
}

void report_open(struct report *report, const char *key, const char *title)
{
    if (report->json)
        json_begin_object(report->json, key);
    begin_group(report, title);
}

void report_close(struct report *report)
{
    if (report->json)
        json_end_object(report->json);
    end_group(report);
}

void report_open_array(struct report *report, const char *key, const char *title)
{
    if (report->json)
        json_begin_array(report->json, key);
    begin_group(report, title);
}

void report_close_array(struct report *report)
{
    if (report->json)
        json_end_array(report->json);
    end_group(report);
}

/* ---- Facts ---- */

/* The label, so that all values of a report begin in one column. */
static void put_label(const struct report *report, const char *label)
{
    int indent = report->indent * INDENT;
    printf("%*s%-*s ", indent, "", indent < LABEL_COLUMNS ? LABEL_COLUMNS - indent : 0, label);
}

void report_number(struct report *report, const char *key, const char *label, uint64_t value)
{
    if (report->json) {
        json_number(report->json, key, value);
    } else if (label) {
        put_label(report, label);
        printf("%*" PRIu64 "\n", VALUE_COLUMNS, value);
    }
}

void report_count(struct report *report, const char *key, const char *label, uint64_t value)
{
    report_number(report, key, value ? label : NULL, value);
}

void report_text(struct report *report, const char *key, const char *label, const char *text)
{
    if (report->json) {
        json_text(report->json, key, text);
    } else if (label) {
        put_label(report, label);
        printf("%*s", strlen(text) < VALUE_COLUMNS ? (int)(VALUE_COLUMNS - strlen(text)) : 0, "");
        printable_put(stdout, text);
        putchar('\n');
    }
}

void report_flag(struct report *report, const char *key, bool value)
{
    if (report->json)
        json_flag(report->json, key, value);
}

void report_line(struct report *report, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    if (report->json)
        return;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    printf("%*s", report->indent * INDENT, "");
    printable_put(stdout, text);
    putchar('\n');
    free(text);
}
