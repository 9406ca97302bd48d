/* See json_writer.h. */
#include "injector/text/json_writer.h"

#include "injector/text/character.h"
#include "injector/text/printable_text.h"

#include <string.h>

/* ---- Text ---- */

void json_put_escaped(FILE *stream, const char *text, size_t bytes)
{
    uint32_t code = utf8_code(text, bytes);
    if (code >= 0x10000) {
        fprintf(stream, "\\u%04x", 0xd800u + ((code - 0x10000) >> 10));
        code = 0xdc00 + ((code - 0x10000) & 0x3ff);
    }
    fprintf(stream, "\\u%04x", code);
}

/* The same as a person sees it: as text has it. */
static void put_shown(FILE *stream, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        fprintf(stream, "\\\\x%02x", (unsigned char)text[i]);
}

/* How many of the SIZE bytes at TEXT stand in JSON as they are, one after the other: nearly all. */
static size_t plain_bytes(const struct json_writer *json, const char *text, size_t size)
{
    size_t count = 0;
    while (count < size && text[count] >= ' ' && text[count] < 0x7f && text[count] != '"' &&
           text[count] != '\\' && !(json->viewed && text[count] == '<'))
        count++;
    return count;
}

static void put_quoted(const struct json_writer *json, const char *text, size_t size)
{
    FILE *stream = json->stream;
    putc('"', stream);
    for (size_t at = 0, bytes; at < size; at += bytes ? bytes : 1) {
        bytes = plain_bytes(json, text + at, size - at);
        if (bytes) {
            fwrite(text + at, 1, bytes, stream);
            continue;
        }
        bytes = utf8_bytes(text + at, size - at);
        if (text[at] == '"' || text[at] == '\\')
            fprintf(stream, "\\%c", text[at]);
        else if (bytes == 0)
            fputs("\\ufffd", stream);
        else if (json->shown && printable_bytes(text + at, size - at) == 0)
            put_shown(stream, text + at, bytes);
        else if ((json->viewed && text[at] == '<') || printable_bytes(text + at, size - at) == 0)
            json_put_escaped(stream, text + at, bytes);
        else
            fwrite(text + at, 1, bytes, stream);
    }
    putc('"', stream);
}

/* ---- Between values ---- */

static void begin(struct json_writer *json, const char *key)
{
    if (json->comma)
        putc_unlocked(',', json->stream);
    if (json->comma && json->in_lines)
        putc_unlocked('\n', json->stream);
    json->comma = true;
    if (!key)
        return;
    put_quoted(json, key, strlen(key));
    fputs(json->in_lines ? ": " : ":", json->stream);
}

void json_line(struct json_writer *json, int indent)
{
    fprintf(json->stream, "%s\n%*s", json->comma ? "," : "", indent, "");
    json->comma = false;
}

static void open_group(struct json_writer *json, const char *key, char bracket)
{
    begin(json, key);
    putc(bracket, json->stream);
    json->comma = false;
    json->depth++;
}

static void close_group(struct json_writer *json, char bracket)
{
    putc(bracket, json->stream);
    json->comma = --json->depth > 0;
    if (json->depth == 0)
        putc('\n', json->stream);
}

void json_begin_object(struct json_writer *json, const char *key)
{
    open_group(json, key, '{');
}

void json_begin_array(struct json_writer *json, const char *key)
{
    open_group(json, key, '[');
}

void json_end_object(struct json_writer *json)
{
    close_group(json, '}');
}

void json_end_array(struct json_writer *json)
{
    close_group(json, ']');
}

/* ---- Values ---- */

/* A page has millions of numbers, and fprintf takes five times as long for one. */
static void put_number(FILE *stream, uint64_t value)
{
    enum { MOST_DIGITS = 20 };
    char digits[MOST_DIGITS], *first = digits + MOST_DIGITS;
    do {
        *--first = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    fwrite(first, 1, (size_t)(digits + MOST_DIGITS - first), stream);
}

void json_bytes(struct json_writer *json, const char *key, const char *text, size_t size)
{
    begin(json, key);
    put_quoted(json, text, size);
}

void json_text(struct json_writer *json, const char *key, const char *text)
{
    json_bytes(json, key, text, strlen(text));
}

void json_number(struct json_writer *json, const char *key, uint64_t value)
{
    const bool quoted = value > UINT64_C(1) << 53 && !json->viewed;
    begin(json, key);
    if (quoted)
        putc('"', json->stream);
    put_number(json->stream, value);
    if (quoted)
        putc('"', json->stream);
}

void json_fraction(struct json_writer *json, const char *key, double value, int digits)
{
    begin(json, key);
    fprintf(json->stream, "%.*g", digits, value);
}

void json_decimal(struct json_writer *json, const char *key, double value, int places)
{
    begin(json, key);
    fprintf(json->stream, "%.*f", places, value);
}

void json_difference(struct json_writer *json, const char *key, int64_t value)
{
    begin(json, key);
    if (value < 0)
        putc('-', json->stream);
    put_number(json->stream, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void json_flag(struct json_writer *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->stream);
}

void json_nothing(struct json_writer *json, const char *key)
{
    begin(json, key);
    fputs("null", json->stream);
}
