/* perfjit dump: see commands.h.
 *
 * Text:  one line a record, "number  0xoffset  time  NAME  field=value ...", and below it with -v
 *        the entries of a DEBUG_INFO, or the inlined calls and spans of an INLINE_INFO; what is not
 *        known is left out.
 * JSON:  one object a line, the header first, with the specification's field names; code and tables
 *        left out, null for none.  A number over 2^53 is a string (json_writer.h): an address, a
 *        time, an index or a size may be one.
 *
 * Exit status: 0 every record was sound; 3 some were not, as reported on stderr; 1 not readable; 2
 * usage.
 */
#include "injector/commands/commands.h"

#include "injector/files/interruption.h"
#include "injector/log/jitdump/jit_dump.h"
#include "injector/log/jitdump/newest_records.h"
#include "injector/text/help_text.h"
#include "injector/text/json_writer.h"
#include "injector/text/plural.h"
#include "injector/text/printable_text.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_SOUND = 0, EXIT_UNREADABLE = 1, EXIT_DAMAGED = 3 };

struct dump_options {
    const char *path;
    bool json;
    bool verbose;
};

/* ---- Fields, in one of two formats ---- */

struct field_writer {
    struct json_writer *json; /* NULL: text */
};

static void put_number(const struct field_writer *writer, const char *name, uint64_t value)
{
    if (writer->json)
        json_number(writer->json, name, value);
    else
        printf(" %s=%" PRIu64, name, value);
}

static void put_address(const struct field_writer *writer, const char *name, uint64_t value)
{
    if (writer->json)
        json_number(writer->json, name, value);
    else
        printf(" %s=0x%" PRIx64, name, value);
}

static void put_bytes(const struct field_writer *writer, const char *name, const char *text,
                      size_t size)
{
    struct json_writer quoted = {.stream = stdout};
    if (writer->json) {
        json_bytes(writer->json, name, text, size);
    } else {
        printf(" %s=", name);
        json_bytes(&quoted, NULL, text, size);
    }
}

static void put_text(const struct field_writer *writer, const char *name, const char *text)
{
    put_bytes(writer, name, text, strlen(text));
}

static void put_signed(const struct field_writer *writer, const char *name, int32_t value)
{
    if (writer->json)
        json_difference(writer->json, name, value);
    else
        printf(" %s=%" PRId32, name, value);
}

static void begin_array(const struct field_writer *writer, const char *name)
{
    if (writer->json)
        json_begin_array(writer->json, name);
}

static void end_array(const struct field_writer *writer)
{
    if (writer->json)
        json_end_array(writer->json);
}

/* The ids of QUIRKS, which were tolerated while parsing. */
static void put_quirks(const struct field_writer *writer, uint64_t quirks)
{
    const char *before = " quirks=";
    if (!quirks)
        return;
    begin_array(writer, "quirks");
    for (int quirk = 0; quirk < QUIRKS; quirk++) {
        if (!(quirks & quirk_bit((enum quirk)quirk)))
            continue;
        const char *id = quirk_text((enum quirk)quirk)->id;
        if (writer->json)
            json_text(writer->json, NULL, id);
        else
            printf("%s%s", before, id);
        before = ",";
    }
    end_array(writer);
}

/* ---- Records ---- */

static void put_load(const struct field_writer *writer, const struct jit_load *load)
{
    put_number(writer, "pid", load->pid);
    put_number(writer, "tid", load->tid);
    put_address(writer, "vma", load->vma);
    put_address(writer, "code_addr", load->code_addr);
    put_number(writer, "code_size", load->code_size);
    put_number(writer, "code_index", load->code_index);
    put_bytes(writer, "name", load->name, load->name_bytes);
    if (!load->code)
        put_text(writer, "code", "absent");
}

static void put_move(const struct field_writer *writer, const struct jit_move *move)
{
    put_number(writer, "pid", move->pid);
    put_number(writer, "tid", move->tid);
    put_address(writer, "vma", move->vma);
    put_address(writer, "old_code_addr", move->old_code_addr);
    put_address(writer, "new_code_addr", move->new_code_addr);
    put_number(writer, "code_size", move->code_size);
    put_number(writer, "code_index", move->code_index);
}

static void put_unload(const struct field_writer *writer, const struct jit_unload *unload)
{
    put_number(writer, "pid", unload->pid);
    put_number(writer, "tid", unload->tid);
    put_address(writer, "code_addr", unload->code_addr);
    put_number(writer, "code_size", unload->code_size);
    put_number(writer, "code_index", unload->code_index);
}

/* Begin and end an element of an array: an object in JSON, a line in text. */
static void begin_element(const struct field_writer *writer)
{
    if (writer->json)
        json_begin_object(writer->json, NULL);
    else
        fputs("\n       ", stdout);
}

static void end_element(const struct field_writer *writer)
{
    if (writer->json)
        json_end_object(writer->json);
}

static void put_entry(const struct field_writer *writer, const struct jit_debug_entry *entry)
{
    begin_element(writer);
    put_address(writer, "addr", entry->addr);
    put_number(writer, "line", entry->line);
    put_number(writer, "discrim", entry->discrim);
    put_text(writer, "name", entry->name);
    end_element(writer);
}

static bool put_debug_info(const struct field_writer *writer, const struct jit_debug_info *info,
                           bool entries)
{
    struct jit_debug_entry entry;
    size_t at = 0;
    bool whole = true;
    put_address(writer, "code_addr", info->code_addr);
    put_number(writer, "nr_entry", info->nr_entry);
    if (entries)
        begin_array(writer, "entries");
    for (uint64_t i = 0; whole && i < info->nr_entry; i++) {
        whole = jit_debug_entry_next(info, &at, &entry);
        if (whole && entries)
            put_entry(writer, &entry);
    }
    if (entries)
        end_array(writer);
    return whole;
}

/* ---- Inlined calls ---- */

static void put_index(const struct field_writer *writer, const char *name, uint32_t index)
{
    if (index != JIT_INLINE_NONE)
        put_number(writer, name, index);
    else if (writer->json)
        json_nothing(writer->json, name);
}

static void put_optional_text(const struct field_writer *writer, const char *name, const char *text)
{
    if (text)
        put_text(writer, name, text);
    else if (writer->json)
        json_nothing(writer->json, name);
}

static void put_inline(const struct field_writer *writer, const struct jit_inline *call)
{
    put_index(writer, "parent", call->parent);
    put_text(writer, "name", call->name);
    put_optional_text(writer, "call_file", call->call_file);
    put_number(writer, "call_line", call->call_line);
    put_number(writer, "call_column", call->call_column);
    put_optional_text(writer, "decl_file", call->decl_file);
    put_number(writer, "decl_line", call->decl_line);
}

static void put_inlines(const struct field_writer *writer, const struct jit_inline_info *info)
{
    struct jit_inline call;
    for (uint32_t i = 0; i < info->nr_inline; i++) {
        jit_inline_at(info, i, &call);
        begin_element(writer);
        put_number(writer, "inline", i);
        put_inline(writer, &call);
        end_element(writer);
    }
}

static void put_spans(const struct field_writer *writer, const struct jit_inline_info *info)
{
    struct jit_inline_span span;
    for (uint32_t i = 0; i < info->nr_span; i++) {
        jit_inline_span_at(info, i, &span);
        begin_element(writer);
        put_number(writer, "span", i);
        put_number(writer, "code_offset", span.code_offset);
        put_index(writer, "inline_index", span.inline_index);
        end_element(writer);
    }
}

static void put_inline_info(const struct field_writer *writer, const struct jit_inline_info *info,
                            bool elements)
{
    put_address(writer, "code_addr", info->code_addr);
    put_number(writer, "nr_inline", info->nr_inline);
    put_number(writer, "nr_span", info->nr_span);
    put_number(writer, "strings_bytes", info->strings_bytes);
    if (!elements)
        return;
    begin_array(writer, "inlines");
    put_inlines(writer, info);
    end_array(writer);
    begin_array(writer, "spans");
    put_spans(writer, info);
    end_array(writer);
}

/* ---- Records ---- */

static void put_unwinding_info(const struct field_writer *writer,
                               const struct jit_unwinding_info *info)
{
    put_number(writer, "unwinding_size", info->unwinding_size);
    put_number(writer, "eh_frame_hdr_size", info->eh_frame_hdr_size);
    put_number(writer, "mapped_size", info->mapped_size);
}

static void put_piece(const struct field_writer *writer, const struct jit_piece *piece)
{
    put_address(writer, "code_addr", piece->code_addr);
    put_number(writer, "code_index", piece->code_index);
    put_number(writer, "number", piece->number);
    put_number(writer, "nr_piece", piece->nr_piece);
}

static void put_interpreter(const struct field_writer *writer,
                            const struct jit_interpreter *interpreter)
{
    put_address(writer, "code_addr", interpreter->code_addr);
    put_number(writer, "code_size", interpreter->code_size);
    put_number(writer, "frame_register", interpreter->frame_register);
    put_signed(writer, "function_offset", interpreter->function_offset);
    put_signed(writer, "position_offset", interpreter->position_offset);
    put_index(writer, "position_register", interpreter->position_register);
}

static void put_positions(const struct field_writer *writer, const struct jit_interpreted *function)
{
    struct byte_cursor rows = jit_interpreted_rows(function);
    struct jit_position row = {0, 0};
    begin_array(writer, "lines");
    for (uint32_t i = 0; i < function->nr_line && jit_position_next(&rows, function, &row); i++) {
        begin_element(writer);
        put_number(writer, "offset", row.offset);
        put_number(writer, "line", row.line);
        end_element(writer);
    }
    end_array(writer);
}

static void put_interpreted(const struct field_writer *writer,
                            const struct jit_interpreted *function, bool elements)
{
    put_address(writer, "function", function->function);
    put_number(writer, "function_bytes", function->function_bytes);
    put_address(writer, "position", function->position);
    put_number(writer, "position_bytes", function->position_bytes);
    put_number(writer, "nr_line", function->nr_line);
    put_text(writer, "name", function->name);
    put_text(writer, "file", function->file);
    if (elements)
        put_positions(writer, function);
}

static void put_history(const struct field_writer *writer, const struct jit_history *history)
{
    put_number(writer, "generation", history->generation);
    put_number(writer, "dropped", history->dropped);
    put_number(writer, "kept", history->kept);
}

static void put_header_fields(const struct field_writer *writer, const struct jit_header *header)
{
    put_number(writer, "version", header->version);
    put_number(writer, "elf_mach", header->elf_mach);
    put_number(writer, "pid", header->pid);
    put_number(writer, "flags", header->flags);
    put_text(writer, "byte_order", header->big_endian ? "big" : "little");
}

/* Returns the error in RECORD, or NULL. */
static const char *put_fields(const struct field_writer *writer, const struct jit_record *record,
                              bool verbose)
{
    if (record->broken)
        return record->broken;
    switch (record->id) {
    case JIT_CODE_LOAD:
        put_load(writer, &record->load);
        return NULL;
    case JIT_CODE_MOVE:
        put_move(writer, &record->move);
        return NULL;
    case JIT_CODE_UNLOAD:
        put_unload(writer, &record->unload);
        return NULL;
    case JIT_CODE_DEBUG_INFO:
        return put_debug_info(writer, &record->debug_info, verbose)
                   ? NULL
                   : "DEBUG_INFO ends before its last entry";
    case JIT_CODE_INLINE_INFO:
        put_inline_info(writer, &record->inline_info, verbose);
        return NULL;
    case JIT_CODE_UNWINDING_INFO:
        put_unwinding_info(writer, &record->unwinding_info);
        return NULL;
    case JIT_CODE_PIECE:
        put_piece(writer, &record->piece);
        return NULL;
    case JIT_INTERPRETER_FRAME:
        put_interpreter(writer, &record->interpreter);
        return NULL;
    case JIT_INTERPRETED_FUNCTION:
        put_interpreted(writer, &record->interpreted, verbose);
        return NULL;
    case JIT_CODE_HISTORY:
        put_history(writer, &record->history);
        return NULL;
    case JIT_HEADER:
        put_header_fields(writer, &record->header);
        return NULL;
    default:
        return jit_record_name(record->id) ? NULL : "record of unknown type";
    }
}

static void put_prefix(const struct field_writer *writer, const struct jit_record *record)
{
    const char *name = jit_record_name(record->id);
    if (writer->json) {
        json_begin_object(writer->json, NULL);
        json_number(writer->json, "record", record->number);
        json_number(writer->json, "offset", record->offset);
        json_text(writer->json, "type", name ? name : "unknown");
        json_number(writer->json, "id", record->id);
        json_number(writer->json, "total_size", record->total_size);
        json_number(writer->json, "timestamp", record->timestamp);
    } else {
        printf("%6" PRIu64 "  0x%08" PRIx64 "  %" PRIu64 ".%09" PRIu64 "  %s total_size=%" PRIu32,
               record->number, record->offset, record->timestamp / 1000000000,
               record->timestamp % 1000000000, name ? name : "unknown", record->total_size);
    }
    if (!name && !writer->json)
        put_number(writer, "id", record->id);
}

static void end_record(const struct field_writer *writer)
{
    if (writer->json)
        json_end_object(writer->json);
    else
        putchar('\n');
}

static void put_header(const struct field_writer *writer, const struct jit_dump *dump)
{
    if (writer->json) {
        json_begin_object(writer->json, NULL);
        json_flag(writer->json, "header", true);
    } else {
        printf("header");
    }
    put_number(writer, "version", dump->version);
    put_number(writer, "total_size", dump->header_bytes);
    put_number(writer, "elf_mach", dump->elf_mach);
    put_number(writer, "pid", dump->pid);
    put_number(writer, "timestamp", dump->timestamp);
    put_number(writer, "flags", dump->flags);
    put_text(writer, "byte_order", dump->big_endian ? "big" : "little");
    put_quirks(writer, dump->quirks);
    end_record(writer);
}

/* Print RECORD on a line.  Returns whether it is sound. */
static bool print_record(const struct field_writer *writer, const struct jit_record *record,
                         bool verbose)
{
    put_prefix(writer, record);
    const char *wrong = put_fields(writer, record, verbose || writer->json);
    if (wrong)
        put_text(writer, "wrong", wrong);
    if (!record->broken)
        put_quirks(writer, record->quirks);
    end_record(writer);
    return !wrong && (record->broken || !(record->quirks & quirk_bit(QUIRK_RECORD_TORN)));
}

/* A stretch without records, and where they go on. */
static void print_torn(const struct field_writer *writer, const struct jit_record *record,
                       bool repeated)
{
    if (writer->json) {
        json_begin_object(writer->json, NULL);
        json_flag(writer->json, repeated ? "repeated" : "torn", true);
        json_number(writer->json, "offset", record->offset);
        json_number(writer->json, "bytes", record->extent);
        json_end_object(writer->json);
    } else {
        printf("     -  0x%08" PRIx64 "  %s %" PRIu64 " byte%s\n", record->offset,
               repeated ? "the same as in front of it:" : "no record in", record->extent,
               plural(record->extent));
    }
}

static void print_cut(const struct jit_dump *dump, const struct jit_record *record)
{
    fflush(stdout);
    printable_line(stderr,
                   "perfjit: %s: record %" PRIu64 " at 0x%" PRIx64 ": %" PRIu32
                   " bytes long by its prefix, %" PRIu64 " are left",
                   dump->path, record->number, record->offset, record->total_size,
                   (uint64_t)dump->size - record->offset);
}

/* Print every record of DUMP.  Returns how many were not sound. */
static uint64_t print_records(const struct jit_dump *dump, const struct dump_options *options)
{
    struct json_writer json = {.stream = stdout};
    struct field_writer writer = {options->json ? &json : NULL};
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    uint64_t unsound = 0;
    put_header(&writer, dump);
    for (;;) {
        switch (jit_dump_next(&walk, &record)) {
        case JIT_DUMP_MORE:
            unsound += !print_record(&writer, &record, options->verbose);
            break;
        case JIT_DUMP_TWICE:
            print_torn(&writer, &record, true);
            break;
        case JIT_DUMP_TORN:
            print_torn(&writer, &record, false);
            unsound++;
            break;
        case JIT_DUMP_CUT:
            print_cut(dump, &record);
            return unsound + 1;
        case JIT_DUMP_WHOLE:
            return unsound;
        }
    }
}

/* ---- Options ---- */

enum option_key { KEY_JSON = 256 };

static const struct argp_option option_table[] = {
    {"json", KEY_JSON, 0, 0, "One JSON object a line, the header first", 0},
    {"verbose", 'v', 0, 0, "Print the lines and inlined calls of functions, too", 0},
    {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct dump_options *options = state->input;
    switch (key) {
    case KEY_JSON:
        options->json = true;
        return 0;
    case 'v':
        options->verbose = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->path)
            argp_error(state, "only one file can be given: '%s' is a second one",
                       printable_copy(argument));
        options->path = argument;
        return 0;
    case ARGP_KEY_END:
        if (!options->path)
            argp_error(state, "which file?");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp dump_argp = {.options = option_table,
                               .parser = parse_option,
                               .args_doc = "FILE.dump",
                               .doc = "Print a jitdump file, record by record.\v"
                                      "Exit status:\n"
                                      "  0  every record is sound\n"
                                      "  1  the file can't be read\n"
                                      "  2  wrong usage\n"
                                      "  3  some records are not sound\n"};

int dump_command(int argc, char **argv)
{
    struct dump_options options = {0};
    struct jit_dump dump;
    char cause[256];
    struct findings findings = {0};
    if (help_parse(&dump_argp, argc, argv, 0,
                   &options)) { /* it ends by itself for anything but this */
        printable_line(stderr, "perfjit: out of memory");
        return EXIT_UNREADABLE;
    }
    interruption_watch_files();
    if (jit_dump_open(&dump, options.path, cause, sizeof cause)) {
        printable_line(stderr, "perfjit: %s: %s", options.path, cause);
        jit_dump_close(&dump);
        return EXIT_UNREADABLE;
    }
    uint64_t unsound = print_records(&dump, &options);
    free(newest_records_print(&dump));
    jit_dump_close(&dump);
    if (interruption_check(&findings)) {
        printable_line(stderr, "perfjit: %s: %s", options.path, findings.failure);
        return EXIT_UNREADABLE;
    }
    if (fflush(stdout) || ferror(stdout)) {
        printable_line(stderr, "perfjit: standard output: can't write it: %s", strerror(errno));
        return EXIT_UNREADABLE;
    }
    if (unsound)
        printable_line(stderr, "perfjit: %s: %" PRIu64 " record%s %s not sound", options.path,
                       unsound, plural(unsound), is_or_are(unsound));
    return unsound ? EXIT_DAMAGED : EXIT_SOUND;
}
