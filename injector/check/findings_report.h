/* The output of perfjit check in one of two formats: text with a line for each fact, or one JSON
 * document.
 *
 *     text                                       JSON
 *     jit-7.dump                                 {"file": "jit-7.dump",
 *       records               25                  "records": 25,
 *       unwind tables                             "unwind": {"functions": 3, ...}, ...}
 *         functions with one   3
 *
 * Callers use the same functions for both. Text is escaped for the terminal or for JSON.
 */
#ifndef PERFJIT_REPORT_H
#define PERFJIT_REPORT_H

#include "injector/text/json_writer.h"

struct report {
    struct json_writer *json; /* NULL: text */
    int indent;               /* text: groups that are open and have a title */
    uint64_t titled;          /* bit N: group N has one */
};

/* Objects and arrays, nested at most 64 deep.  If TITLE is not NULL, it is a line in text, and the
 * group's contents are indented.  KEY is NULL within an array. */
void report_open(struct report *report, const char *key, const char *title);
void report_close(struct report *report);
void report_open_array(struct report *report, const char *key, const char *title);
void report_close_array(struct report *report);

/* LABEL NULL: in JSON only. */
void report_number(struct report *report, const char *key, const char *label, uint64_t value);
void report_text(struct report *report, const char *key, const char *label, const char *text);
void report_flag(struct report *report, const char *key, bool value); /* in JSON only */

/* As report_number, but text omits a 0. */
void report_count(struct report *report, const char *key, const char *label, uint64_t value);

/* A line in text, nothing in JSON. */
void report_line(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
