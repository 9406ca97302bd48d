/* See report.h. */
#include "injector/check/findings_report.h"

#include "injector/text/json_text.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDENT = 2, LABEL_COLUMNS = 38, VALUE_COLUMNS = 10 };

/* ---- Text that comes from files ---- */

static void put_json_text(const char *text)
{
    json_text_put(text, strlen(text));
}

/* ---- JSON ---- */

static void begin_member(struct report *report, const char *key)
{
    if (report->comma)
        fputs(",\n", stdout);
    report->comma = true;
    if (!key)
        return;
    put_json_text(key);
    fputs(": ", stdout);
}

static void begin_group(struct report *report, const char *key, const char *title, char bracket)
{
    if (report->json) {
        begin_member(report, key);
        putchar(bracket);
        report->comma = false;
    } else if (title) {
        printf("%*s", report->indent * INDENT, "");
        printable_put(stdout, title);
        putchar('\n');
    }
    report->indent += title != NULL;
    report->titled = report->titled << 1 | (uint64_t)(title != NULL);
    report->depth++;
}

static void end_group(struct report *report, char bracket)
{
    report->depth--;
    report->indent -= (int)(report->titled & 1);
    report->titled >>= 1;
    report->comma = true;
    if (!report->json)
        return;
    putchar(bracket);
    if (report->depth == 0)
        putchar('\n');
}

void report_open(struct report *report, const char *key, const char *title)
{
    begin_group(report, key, title, '{');
}

void report_close(struct report *report)
{
    end_group(report, '}');
}

void report_open_array(struct report *report, const char *key, const char *title)
{
    begin_group(report, key, title, '[');
}

void report_close_array(struct report *report)
{
    end_group(report, ']');
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
        begin_member(report, key);
        json_number_put(value);
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
        begin_member(report, key);
        put_json_text(text);
    } else if (label) {
        put_label(report, label);
        printf("%*s", strlen(text) < VALUE_COLUMNS ? (int)(VALUE_COLUMNS - strlen(text)) : 0, "");
        printable_put(stdout, text);
        putchar('\n');
    }
}

void report_flag(struct report *report, const char *key, bool value)
{
    if (!report->json)
        return;
    begin_member(report, key);
    fputs(value ? "true" : "false", stdout);
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
