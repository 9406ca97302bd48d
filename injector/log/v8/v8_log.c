/* See v8_log.h. */
#include "injector/log/v8/v8_log.h"

#include "injector/arrays/array.h"
#include "injector/arrays/number_map.h"
#include "injector/files/file_bytes.h"
#include "injector/files/interruption.h"
#include "injector/files/regular_file.h"
#include "injector/log/script/magic_comment.h"
#include "injector/log/script/v8_place.h"
#include "injector/text/character.h"
#include "injector/text/hex_digit.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SOURCE_INFO_LEAST = 4, TABLES = 3 };           /* fields of source info */
enum { FIELD_TEXT = 3 };                              /* of a script's source */
enum { FIELDS_MOST = 9, LOG_BYTES_MOST = INT32_MAX }; /* 100 000 functions have 20 MB */

/* ---- Lines ---- */

struct reader {
    struct v8_log *log;
    struct number_map functions; /* by SFI */
    struct number_map codes;     /* the newest, by address; only a log with deopts needs them */
    size_t looked_up;            /* how many are in there */
    struct number_map scripts;   /* sources of no file, by SCRIPT */
    uint32_t newest;             /* the function of the code whose source info follows */
    uint64_t newest_sfi;
    struct line_text newest_sfi_text; /* none: that may be another function's now */
    bool newest_is_kept;              /* it is the last of the log's codes */
    struct line_text newest_addr;
    size_t line;
};

static const char *text_end(struct line_text text)
{
    return text.text + text.bytes;
}

/* The next number of TEXT in BASE, at most MOST; TEXT is what follows then.  For each of the two
 * bases there are instructions of their own. */
static inline bool take_number(struct line_text *text, unsigned base, uint64_t most,
                               uint64_t *number)
{
    const char *at = text->text, *end = text_end(*text);
    const uint64_t most_before = UINT64_MAX / base - 1; /* a digit */
    uint64_t value = 0;
    for (; at < end; at++) {
        const unsigned digit = base == 10 ? (unsigned)*at - '0' : (unsigned)hex_digit(*at);
        if (digit >= base)
            break; /* also what is no digit: a large number */
        if (value > most_before)
            return false;
        value = value * base + digit;
    }
    bool any = at > text->text;
    *number = value;
    *text = (struct line_text){at, (uint32_t)(end - at)};
    return any && value <= most;
}

static bool whole_number(struct line_text text, uint64_t most, uint64_t *number)
{
    return take_number(&text, 10, most, number) && text.bytes == 0;
}

static bool whole_hex_number(struct line_text text, uint64_t *number)
{
    return take_number(&text, 16, UINT64_MAX, number) && text.bytes == 0;
}

static bool address_in(struct line_text text, uint64_t *addr)
{
    if (text.bytes < 3 || memcmp(text.text, "0x", 2))
        return false;
    return whole_hex_number((struct line_text){text.text + 2, text.bytes - 2}, addr) && *addr;
}

static inline bool begins_with(struct line_text text, const char *word)
{
    return text.bytes >= strlen(word) && memcmp(text.text, word, strlen(word)) == 0;
}

/* The fields of LINE, at most MOST; of more the last has the rest. */
static size_t split(struct line_text line, size_t most, struct line_text *fields)
{
    size_t count = 0;
    for (;;) {
        const char *comma =
            count + 1 < most && line.bytes ? memchr(line.text, ',', line.bytes) : NULL;
        const uint32_t bytes = comma ? (uint32_t)(comma - line.text) : line.bytes;
        fields[count++] = (struct line_text){line.text, bytes};
        if (!comma)
            return count;
        line = (struct line_text){comma + 1, line.bytes - bytes - 1};
    }
}

/* The function's name has PLACE, which is in FILE. */
static void set_place(struct v8_function *function, const struct v8_place *place,
                      struct line_text file)
{
    function->file = file;
    function->line = place->column ? place->line : 0;
    function->column = place->column;
}

static void find_place(struct v8_function *function)
{
    struct v8_place place;
    if (!v8_place_of(function->name.text, function->name.bytes, &place))
        return;
    function->has_no_file = !place.file_bytes;
    if (!function->has_no_file)
        set_place(function, &place, (struct line_text){place.file, (uint32_t)place.file_bytes});
}

/* The number of a function more.  V8_NOWHERE without memory. */
static uint32_t add_function(struct v8_log *log, struct line_text name)
{
    if (log->function_count >= V8_NOWHERE - 1 ||
        array_reserve(log->functions, log->function_count, log->function_capacity))
        return V8_NOWHERE;
    struct v8_function *function = &log->functions[log->function_count];
    *function = (struct v8_function){
        .name = name, .start = V8_NOWHERE, .script = V8_NOWHERE, .script_number = V8_NOWHERE};
    find_place(function);
    return (uint32_t)log->function_count++;
}

/* The same, which is at SFI now in place of another one. */
static uint32_t replace_function(struct reader *reader, uint64_t sfi, struct line_text name)
{
    const uint32_t number = add_function(reader->log, name);
    return number != V8_NOWHERE && number_map_put(&reader->functions, sfi, number) ? V8_NOWHERE
                                                                                   : number;
}

/* The number of the function at SFI, which is a new one unless that there has this NAME.
 * V8_NOWHERE without memory. */
static uint32_t function_at(struct reader *reader, uint64_t sfi, struct line_text name)
{
    struct v8_log *log = reader->log;
    const uint32_t next = (uint32_t)log->function_count;
    const uint32_t number = number_map_add(&reader->functions, sfi, next);
    if (number == V8_NOWHERE || number == next)
        return number == next ? add_function(log, name) : V8_NOWHERE;
    return line_text_same(log->functions[number].name, name) ? number
                                                             : replace_function(reader, sfi, name);
}

enum outcome { LINE_TAKEN, LINE_BAD, LINE_NO_MEMORY };

static bool is_optimized(struct line_text tier)
{
    return memchr(tier.text, '*', tier.bytes) || memchr(tier.text, '+', tier.bytes);
}

static enum outcome take_code(struct reader *reader, const struct line_text *fields,
                              uint32_t function)
{
    struct v8_log *log = reader->log;
    struct v8_code code = {.function = function,
                           .inlining = V8_NOWHERE,
                           .line = (uint32_t)reader->line,
                           .is_needed = log->functions[function].script != V8_NOWHERE};
    uint64_t size;
    if (!whole_number(fields[3], UINT64_MAX, &code.time_us) || !address_in(fields[4], &code.addr) ||
        !whole_number(fields[5], UINT32_MAX, &size))
        return LINE_BAD;
    code.size = (uint32_t)size;
    if (array_reserve(log->codes, log->code_count, log->code_capacity))
        return LINE_NO_MEMORY;
    log->codes[log->code_count++] = code;
    return LINE_TAKEN;
}

/* Most code is of the same function as the code before it. */
static bool is_newest(const struct reader *reader, const struct line_text *fields)
{
    return fields[7].bytes && line_text_same(fields[7], reader->newest_sfi_text) &&
           line_text_same(fields[6], reader->log->functions[reader->newest].name);
}

static bool sfi_in(const struct reader *reader, struct line_text text, uint64_t *sfi)
{
    *sfi = reader->newest_sfi;
    return (text.bytes && line_text_same(text, reader->newest_sfi_text)) || address_in(text, sfi);
}

static enum outcome take_creation(struct reader *reader, const struct line_text *fields,
                                  size_t count)
{
    uint64_t sfi;
    reader->newest_addr = (struct line_text){NULL, 0};
    if (count == FIELDS_MOST - 2)
        return LINE_TAKEN; /* a builtin, which has no SFI */
    if (count != FIELDS_MOST || !sfi_in(reader, fields[7], &sfi))
        return LINE_BAD;
    const uint32_t function =
        is_newest(reader, fields) ? reader->newest : function_at(reader, sfi, fields[6]);
    if (function == V8_NOWHERE)
        return LINE_NO_MEMORY;
    reader->newest_is_kept =
        is_optimized(fields[8]) || reader->log->functions[function].has_no_file;
    const enum outcome outcome =
        reader->newest_is_kept ? take_code(reader, fields, function) : LINE_TAKEN;
    if (outcome != LINE_TAKEN)
        return outcome;
    reader->newest = function;
    reader->newest_sfi = sfi;
    reader->newest_sfi_text = fields[7];
    reader->newest_addr = fields[4];
    return LINE_TAKEN;
}

static enum outcome take_callees(struct reader *reader, struct line_text functions,
                                 struct v8_inlining *inlining)
{
    struct v8_log *log = reader->log;
    inlining->first_callee = log->callee_count;
    while (functions.bytes) {
        uint64_t sfi;
        if (functions.bytes < 4 || memcmp(functions.text, "S0x", 3))
            return LINE_BAD;
        functions = (struct line_text){functions.text + 3, functions.bytes - 3};
        if (!take_number(&functions, 16, UINT64_MAX, &sfi))
            return LINE_BAD;
        if (array_reserve(log->callees, log->callee_count, log->callee_capacity))
            return LINE_NO_MEMORY;
        log->callees[log->callee_count++] = number_map_get(&reader->functions, sfi);
    }
    inlining->callee_count = log->callee_count - inlining->first_callee;
    return LINE_TAKEN;
}

/* The newest function is of the script with that NUMBER in the log.  Its address may have been that
 * of another script's function, which had its name and is gone. */
static int tell_script(struct reader *reader, uint32_t number)
{
    struct v8_log *log = reader->log;
    const struct v8_function *known = &log->functions[reader->newest];
    if (known->script_number != V8_NOWHERE && known->script_number != number) {
        const uint32_t added = replace_function(reader, reader->newest_sfi, known->name);
        if (added == V8_NOWHERE)
            return -1;
        reader->newest = added;
        if (reader->newest_is_kept)
            log->codes[log->code_count - 1].function = added;
    }
    log->functions[reader->newest].script_number = number;
    return 0;
}

/* The newest function has the name of SOURCE. */
static void name_script(struct reader *reader, uint32_t source)
{
    struct v8_function *function = &reader->log->functions[reader->newest];
    struct v8_place place;
    v8_place_of(function->name.text, function->name.bytes, &place);
    function->script = source;
    set_place(function, &place, reader->log->sources[source].file);
}

/* What source info says of the script of a function whose name has no file. */
static int take_script(struct reader *reader, uint32_t number)
{
    struct v8_log *log = reader->log;
    if (!log->functions[reader->newest].has_no_file || number == V8_NOWHERE)
        return 0;
    if (tell_script(reader, number))
        return -1;
    const uint32_t source = number_map_get(&reader->scripts, number);
    if (source == V8_NOWHERE)
        return 0;
    name_script(reader, source);
    log->codes[log->code_count - 1].is_needed = true;
    return 0;
}

/* Take the newest code's address off TEXT, with its comma. */
static bool take_newest_address(const struct reader *reader, struct line_text *text)
{
    const struct line_text addr = reader->newest_addr;
    if (!addr.bytes || text->bytes <= addr.bytes || text->text[addr.bytes] != ',' ||
        memcmp(text->text, addr.text, addr.bytes))
        return false;
    *text = (struct line_text){text->text + addr.bytes + 1, text->bytes - addr.bytes - 1};
    return true;
}

/* Take a field off TEXT, with its comma: a number, else *NUMBER is V8_NOWHERE. */
static bool take_number_field(struct line_text *text, uint32_t *number)
{
    uint64_t value = 0;
    const bool is_number = take_number(text, 10, V8_NOWHERE - 1, &value);
    const bool at_comma = text->bytes && *text->text == ',';
    const char *comma = at_comma ? text->text : memchr(text->text, ',', text->bytes);
    if (!comma)
        return false;
    *number = is_number && at_comma ? (uint32_t)value : V8_NOWHERE;
    *text = (struct line_text){comma + 1, (uint32_t)(text_end(*text) - comma - 1)};
    return true;
}

/* What stands behind END of source info of the newest code, which is kept. */
static enum outcome take_tables(struct reader *reader, struct line_text text)
{
    struct v8_log *log = reader->log;
    struct v8_code *code = &log->codes[log->code_count - 1];
    struct line_text tables[TABLES];
    if (split(text, TABLES, tables) != TABLES)
        return LINE_BAD;
    if (!tables[1].bytes)
        return LINE_TAKEN;
    reader->newest_addr = (struct line_text){NULL, 0};
    if (array_reserve(log->inlinings, log->inlining_count, log->inlining_capacity))
        return LINE_NO_MEMORY;
    struct v8_inlining *inlining = &log->inlinings[log->inlining_count];
    *inlining = (struct v8_inlining){.positions = tables[0], .inlines = tables[1]};
    const enum outcome outcome = take_callees(reader, tables[2], inlining);
    if (outcome != LINE_TAKEN)
        return outcome;
    code->inlining = (uint32_t)log->inlining_count++;
    code->is_needed = true;
    return LINE_TAKEN;
}

/* Whether the newest code is not kept, and all is known of its function: each function has two or
 * more such pieces of code. */
static bool is_told(const struct reader *reader)
{
    return reader->newest_addr.bytes && !reader->newest_is_kept &&
           reader->log->functions[reader->newest].start != V8_NOWHERE;
}

/* TEXT is what follows the event's name.  Most source info is of code without inlined calls: what
 * it has behind its START is not looked at. */
static enum outcome take_source_info(struct reader *reader, struct line_text text)
{
    struct v8_log *log = reader->log;
    struct line_text fields[SOURCE_INFO_LEAST];
    uint32_t script, start, end;
    if (is_told(reader))
        return LINE_TAKEN;
    if (!take_newest_address(reader, &text))
        return split(text, SOURCE_INFO_LEAST, fields) == SOURCE_INFO_LEAST ? LINE_TAKEN : LINE_BAD;
    if (!take_number_field(&text, &script) || !take_number_field(&text, &start))
        return LINE_BAD;
    if (take_script(reader, script))
        return LINE_NO_MEMORY;
    if (start != V8_NOWHERE)
        log->functions[reader->newest].start = start;
    if (!reader->newest_is_kept)
        return LINE_TAKEN;
    return take_number_field(&text, &end) ? take_tables(reader, text) : LINE_BAD;
}

/* Those that came since the deopt before. */
static int look_up_codes(struct reader *reader)
{
    const struct v8_log *log = reader->log;
    for (; reader->looked_up < log->code_count; reader->looked_up++)
        if (number_map_put(&reader->codes, log->codes[reader->looked_up].addr,
                           (uint32_t)reader->looked_up))
            return -1;
    return 0;
}

/* Of code that the log does not have, nothing is known. */
static enum outcome take_deopt(struct reader *reader, const struct line_text *fields, size_t count)
{
    struct v8_log *log = reader->log;
    struct v8_deopt deopt;
    uint64_t addr;
    if (count != FIELDS_MOST || !whole_number(fields[1], UINT64_MAX, &deopt.time_us) ||
        !address_in(fields[3], &addr))
        return LINE_BAD;
    if (look_up_codes(reader))
        return LINE_NO_MEMORY;
    deopt.code = number_map_get(&reader->codes, addr);
    if (deopt.code == V8_NOWHERE)
        return LINE_TAKEN;
    deopt.kind = fields[6];
    deopt.place = fields[7];
    deopt.reason = fields[8];
    if (array_reserve(log->deopts, log->deopt_count, log->deopt_capacity))
        return LINE_NO_MEMORY;
    log->codes[deopt.code].is_needed = true;
    log->deopts[log->deopt_count++] = deopt;
    return LINE_TAKEN;
}

static enum outcome take_sfi_move(struct reader *reader, const struct line_text *fields,
                                  size_t count)
{
    uint64_t from, to;
    if (count != 3 || !address_in(fields[1], &from) || !address_in(fields[2], &to))
        return LINE_BAD;
    const uint32_t function = number_map_get(&reader->functions, from);
    reader->newest_sfi_text = (struct line_text){NULL, 0};
    return function != V8_NOWHERE && number_map_put(&reader->functions, to, function)
               ? LINE_NO_MEMORY
               : LINE_TAKEN;
}

/* Find what SOURCE calls itself.  Returns 0, or -1 without memory. */
static int find_url(struct v8_source *source)
{
    static const char key[] = "sourceURL=";
    size_t bytes;
    if (!memmem(source->text.text, source->text.bytes, key, sizeof key - 1))
        return 0;
    char *text = v8_text_plain(source->text, &bytes);
    const char *url = text ? magic_comment(text, bytes, key) : NULL;
    const bool is_usable = url && !strchr(url, '\\');
    source->url = is_usable ? strdup(url) : NULL;
    free(text);
    return !text || (is_usable && !source->url) ? -1 : 0;
}

static enum outcome take_source(struct reader *reader, const struct line_text *fields, size_t count)
{
    struct v8_log *log = reader->log;
    struct v8_source source = {.file = fields[2], .text = fields[FIELD_TEXT]};
    uint64_t script;
    if (count != FIELD_TEXT + 1)
        return LINE_BAD;
    source.is_nodes_own = begins_with(source.file, "node:");
    if (!source.is_nodes_own && find_url(&source))
        return LINE_NO_MEMORY;
    const bool has_file =
        source.file.bytes && !line_text_same(source.file, line_text_of("<unknown>"));
    if (!has_file && !source.url)
        return LINE_TAKEN;
    if (!has_file)
        source.file = line_text_of(source.url);
    if (array_reserve(log->sources, log->source_count, log->source_capacity) ||
        (!has_file && whole_number(fields[1], UINT64_MAX, &script) &&
         number_map_put(&reader->scripts, script, (uint32_t)log->source_count))) {
        free(source.url);
        return LINE_NO_MEMORY;
    }
    log->sources[log->source_count++] = source;
    return LINE_TAKEN;
}

static enum outcome take_line(struct reader *reader, struct line_text line)
{
    static const char source_info[] = "code-source-info,";
    struct line_text fields[FIELDS_MOST];
    if (begins_with(line, "code-creation,"))
        return take_creation(reader, fields, split(line, FIELDS_MOST, fields));
    if (begins_with(line, source_info))
        return take_source_info(
            reader, (struct line_text){line.text + sizeof source_info - 1,
                                       line.bytes - (uint32_t)(sizeof source_info - 1)});
    if (begins_with(line, "sfi-move,"))
        return take_sfi_move(reader, fields, split(line, FIELDS_MOST, fields));
    if (begins_with(line, "script-source,"))
        return take_source(reader, fields, split(line, FIELD_TEXT + 1, fields));
    if (begins_with(line, "code-deopt,"))
        return take_deopt(reader, fields, split(line, FIELDS_MOST, fields));
    return LINE_TAKEN;
}

/* The last line of a process that was killed ends anywhere. */
static int read_lines(struct reader *reader, const char *text, size_t text_bytes)
{
    struct v8_log *log = reader->log;
    const char *at = text, *end = at + text_bytes;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline)
            break;
        reader->line++;
        const size_t bytes = (size_t)(newline - at);
        const enum outcome outcome =
            bytes <= UINT32_MAX ? take_line(reader, (struct line_text){at, (uint32_t)bytes})
                                : LINE_BAD;
        if (outcome == LINE_NO_MEMORY)
            return -1;
        if (outcome == LINE_BAD && log->bad_lines++ == 0)
            log->first_bad = reader->line;
        at = newline + 1;
    }
    return 0;
}

/* ---- The file ---- */

int v8_log_parse(struct v8_log *log, const char *text, size_t bytes, struct findings *findings)
{
    static const char begin[] = "v8-version,";
    struct reader reader = {.log = log};
    if (bytes < sizeof begin - 1 || memcmp(text, begin, sizeof begin - 1)) {
        report_failure(findings, "%s: no code log of V8: it does not begin with v8-version",
                       log->path);
        return V8_NO_LOG;
    }
    const int result = read_lines(&reader, text, bytes);
    number_map_free(&reader.functions);
    number_map_free(&reader.codes);
    number_map_free(&reader.scripts);
    return result ? report_failure(findings, "out of memory") : 0;
}

/* Map FD, which has *STATUS.  Its process may still add to it, or begin it anew: a log that has
 * become shorter is left out then. */
static int map_log(struct v8_log *log, int fd, const struct stat *status)
{
    const size_t bytes = (size_t)status->st_size;
    errno = interruption_has_cut(status) ? EAGAIN : EFBIG;
    if (errno == EAGAIN || bytes > LOG_BYTES_MOST)
        return -1;
    if (!bytes)
        return 0;
    log->mapped = file_bytes(fd, status);
    if (!log->mapped)
        return -1;
    log->mapped_bytes = bytes;
    interruption_spare(log->mapped, bytes, status);
    return 0;
}

static const char *reading_error(int error)
{
    return error == EAGAIN  ? "it became shorter while it was read"
           : error == ENXIO ? regular_file_error(error)
                            : file_bytes_error(error);
}

int v8_log_read(struct v8_log *log, const char *path, struct findings *findings)
{
    struct stat status;
    *log = (struct v8_log){.path = path};
    const int fd = regular_file_open(path, 0, &status);
    const int result = fd < 0 ? -1 : map_log(log, fd, &status), error = errno;
    if (fd >= 0)
        close(fd);
    return result ? report_failure(findings, "%s: can't read it: %s", path, reading_error(error))
                  : v8_log_parse(log, log->mapped, log->mapped_bytes, findings);
}

void v8_log_free(struct v8_log *log)
{
    if (log->mapped) {
        interruption_spare_end(log->mapped);
        munmap((void *)(uintptr_t)log->mapped, log->mapped_bytes);
    }
    free(log->functions);
    free(log->codes);
    for (size_t i = 0; i < log->source_count; i++)
        free(log->sources[i].url);
    free(log->sources);
    free(log->deopts);
    free(log->callees);
    free(log->inlinings);
    *log = (struct v8_log){0};
}

/* ---- Rows ---- */

/* LETTER and a number at AT.  Numbers below zero stand for nothing, and so does a function without
 * a number: a builtin.  Returns what follows, or NULL. */
static const char *take_part(const char *at, const char *end, char letter, uint32_t *number)
{
    uint64_t value = 0;
    if (at == end || *at != letter)
        return NULL;
    at++;
    const bool is_negative = at < end && *at == '-';
    at += is_negative;
    const char *digits = at;
    for (; at < end && (unsigned)*at - '0' < 10; at++) {
        value = value * 10 + ((unsigned)*at - '0');
        if (value >= V8_NOWHERE)
            return NULL;
    }
    const bool any = at > digits;
    *number = is_negative || !any ? V8_NOWHERE : (uint32_t)value;
    return any || (!is_negative && letter == 'F') ? at : NULL;
}

int v8_row_next(struct line_text *text, char letter, struct v8_row *row)
{
    const char *at = text->text, *end = text_end(*text);
    row->call = V8_NOWHERE;
    if (!text->bytes)
        return 0;
    if (!(at = take_part(at, end, letter, &row->first)) ||
        !(at = take_part(at, end, 'O', &row->position)) ||
        (at < end && *at == 'I' && !(at = take_part(at, end, 'I', &row->call))))
        return -1;
    *text = (struct line_text){at, (uint32_t)(end - at)};
    return 1;
}

/* ---- Texts ---- */

/* The character behind a backslash and LETTER, in DIGITS hexadecimal digits. */
static bool take_escape(struct line_text *text, char letter, uint32_t digits, uint32_t *code)
{
    uint64_t value;
    if (text->bytes < digits + 2 || text->text[0] != '\\' || text->text[1] != letter ||
        !whole_hex_number((struct line_text){text->text + 2, digits}, &value))
        return false;
    *code = (uint32_t)value;
    *text = (struct line_text){text->text + 2 + digits, text->bytes - 2 - digits};
    return true;
}

static bool take_unit(struct line_text *text, uint32_t *code)
{
    uint32_t low;
    if (!take_escape(text, 'u', 4, code))
        return false;
    struct line_text rest = *text;
    if (*code >> 10 == 0xd800 >> 10 && take_escape(&rest, 'u', 4, &low) &&
        low >> 10 == 0xdc00 >> 10) {
        *code = 0x10000 + ((*code & 0x3ff) << 10) + (low & 0x3ff);
        *text = rest;
    }
    return true;
}

/* Take what the backslash at the start of TEXT escapes; a last one stands for itself.  Returns its
 * bytes, which are no more than the escape's. */
static size_t put_escaped(struct line_text *text, char *to)
{
    const char letter = text->text[text->bytes > 1];
    const uint32_t used = text->bytes > 1 ? 2 : 1;
    uint32_t code;
    if ((letter == 'x' && take_escape(text, 'x', 2, &code)) ||
        (letter == 'u' && take_unit(text, &code)))
        return utf8_put(to, code);
    *to = used == 2 && letter == 'n' ? '\n' : letter;
    *text = (struct line_text){text->text + used, text->bytes - used};
    return 1;
}

char *v8_text_plain(struct line_text text, size_t *bytes)
{
    char *plain = malloc((size_t)text.bytes + 1), *to = plain;
    while (plain && text.bytes) {
        const char *backslash = memchr(text.text, '\\', text.bytes);
        const uint32_t before = backslash ? (uint32_t)(backslash - text.text) : text.bytes;
        memcpy(to, text.text, before);
        to += before;
        text = (struct line_text){text.text + before, text.bytes - before};
        to += text.bytes ? put_escaped(&text, to) : 0;
    }
    *bytes = plain ? (size_t)(to - plain) : 0;
    if (plain)
        *to = '\0';
    return plain;
}
