/* JSON on a stream: commas, quotes, and the permitted characters of texts and numbers.
 *
 * KEY is the name of a member of an object, and NULL in an array and at the top.
 */
#ifndef PERFJIT_JSON_WRITER_H
#define PERFJIT_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_writer {
    FILE *stream;
    bool in_lines; /* each value in a line of its own, and a space in front of a member's */
    /* For a page, or for a tool whose format says number: "<" is escaped, and every number is one.
     * Their readers take doubles. */
    bool viewed;
    /* For a page that shows its texts as they are: what is not printable is written as text has it,
     * by \x and two digits.  Else it is escaped by \u and four, and readers get the text itself. */
    bool shown;
    bool comma; /* something stands in front of the next value */
    unsigned depth;
};

/* Put the UTF-8 character of BYTES bytes at TEXT by its numbers of UTF-16, once or twice \u and
 * four digits. */
void json_put_escaped(FILE *stream, const char *text, size_t bytes);

/* Not named as Jansson's functions are: a program's own would replace them. */
void json_begin_object(struct json_writer *json, const char *key);
void json_begin_array(struct json_writer *json, const char *key);

/* End the last object or array: with a line's end at the top. */
void json_end_object(struct json_writer *json);
void json_end_array(struct json_writer *json);

/* The next value begins a line, behind INDENT spaces. */
void json_line(struct json_writer *json, int indent);

/* TEXT, or SIZE bytes of it, may be anything.  Bytes that are not printable UTF-8
 * (printable_text.h) are escaped, so that a line is not broken.  Each byte that is not UTF-8
 * becomes U+FFFD. */
void json_text(struct json_writer *json, const char *key, const char *text);
void json_bytes(struct json_writer *json, const char *key, const char *text, size_t size);

/* A number up to 2^53, which every reader of JSON has exactly.  A larger number is a string of its
 * decimal digits, because most readers would round a number; but see VIEWED. */
void json_number(struct json_writer *json, const char *key, uint64_t value);

/* A number with as many DIGITS as matter, or as many PLACES behind its point. */
void json_fraction(struct json_writer *json, const char *key, double value, int digits);
void json_decimal(struct json_writer *json, const char *key, double value, int places);

/* A small number that may be negative. */
void json_difference(struct json_writer *json, const char *key, int64_t value);

void json_flag(struct json_writer *json, const char *key, bool value);
void json_nothing(struct json_writer *json, const char *key);

#endif
