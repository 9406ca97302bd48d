/* See inlined_calls.h. */
#include "injector/history/process/inlined_calls.h"

#include "injector/arrays/array.h"
#include "injector/arrays/hash.h"
#include "injector/history/process/unused_addresses.h"
#include "injector/log/code/jit_name.h"
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/jitdump_format.h"

#include <stdio.h>
#include <stdlib.h>

/* Names are looked up without their mark. */
static const char mark[] = " (inlined)";
enum { MARK_BYTES = sizeof mark - 1 };

/* ---- Names ---- */

static bool is_named(const struct inlined_name *name, const struct inlined_name *wanted)
{
    return name->hash == wanted->hash && name->bytes == wanted->bytes &&
           name->line == wanted->line && memcmp(name->text, wanted->text, name->bytes) == 0 &&
           line_text_same(line_text_of(name->file), line_text_of(wanted->file));
}

static size_t slot_of(const struct inlined_calls *calls, const struct inlined_name *wanted)
{
    size_t slot = (size_t)wanted->hash & (calls->size - 1);
    while (calls->numbers[slot] && !is_named(&calls->names[calls->numbers[slot] - 1], wanted))
        slot = (slot + 1) & (calls->size - 1);
    return slot;
}

static int enlarge(struct inlined_calls *calls)
{
    size_t size = calls->size ? calls->size * 2 : 256;
    uint32_t *numbers = calloc(size, sizeof *numbers);
    if (!numbers)
        return -1;
    free(calls->numbers);
    calls->numbers = numbers;
    calls->size = size;
    for (size_t i = 0; i < calls->count; i++) {
        numbers[slot_of(calls, &calls->names[i])] = (uint32_t)i + 1;
    }
    return 0;
}

static void free_name(struct inlined_name *name)
{
    free(name->text);
    free(name->file);
    free(name->entry);
}

/* The name of CALL, without its mark.  Returns 0, or -1 without memory; free_name in either case.
 */
static int name_of(struct inlined_name *name, const struct line_inline *call)
{
    const bool is_placed = call->decl_file.bytes && call->decl_line;
    *name = (struct inlined_name){
        .text = jit_name_shown(call->name.text ? call->name.text : "", call->name.bytes),
        .file = is_placed ? strndup(call->decl_file.text, call->decl_file.bytes) : NULL,
        .line = is_placed ? call->decl_line : 0};
    if (!name->text || (is_placed && !name->file))
        return -1;
    name->bytes = strlen(name->text);
    name->hash = XXH3_64bits_withSeed(name->text, name->bytes, name->line);
    return 0;
}

/* The place as the one entry of a record, for the function's first byte. */
static int make_entry(struct inlined_name *name)
{
    if (!name->file)
        return 0;
    const size_t file_bytes = strlen(name->file), bytes = JR_DEBUG_ENTRY_BYTES + file_bytes + 1;
    struct byte_sink sink = byte_sink_over(malloc(bytes), bytes);
    if (!sink.data)
        return -1;
    jit_debug_entry_put(&sink, 0, name->line, name->file, file_bytes);
    name->entry = sink.data;
    name->entries = (struct jit_debug_info){
        .nr_entry = 1, .entries = sink.data, .entries_bytes = bytes, .big_endian = sink.big_endian};
    return 0;
}

/* Add NAME, which is the list's from now on: it gets its mark.  Returns 0, or -1 without memory. */
static int append(struct inlined_calls *calls, struct inlined_name *name)
{
    char *text = realloc(name->text, name->bytes + MARK_BYTES + 1);
    name->text = text ? text : name->text;
    if (!text || make_entry(name) || array_reserve(calls->names, calls->count, calls->capacity)) {
        free_name(name);
        return -1;
    }
    memcpy(text + name->bytes, mark, sizeof mark);
    calls->names[calls->count++] = *name;
    return 0;
}

/* The number of CALL's name, given to it if it has none.  UINT32_MAX without memory. */
static uint32_t number_of(struct inlined_calls *calls, const struct line_inline *call)
{
    struct inlined_name name;
    if ((2 * (calls->count + 1) > calls->size && enlarge(calls)))
        return UINT32_MAX;
    if (name_of(&name, call)) {
        free_name(&name);
        return UINT32_MAX;
    }
    size_t slot = slot_of(calls, &name);
    if (calls->numbers[slot]) {
        free_name(&name);
        return calls->numbers[slot] - 1;
    }
    if (append(calls, &name))
        return UINT32_MAX;
    calls->numbers[slot] = (uint32_t)calls->count;
    return (uint32_t)calls->count - 1;
}

uint64_t inlined_call_addr(const struct inlined_calls *calls, const struct line_inline *call)
{
    struct inlined_name name = {.text = NULL};
    uint32_t number = 0;
    if (calls->count && name_of(&name, call) == 0)
        number = calls->numbers[slot_of(calls, &name)];
    free_name(&name);
    return number ? calls->base + (number - UINT64_C(1)) * INLINED_CALL_BYTES : 0;
}

/* ---- Functions ---- */

/* The inlined calls that one process needs. */
struct process_calls {
    struct jit_process *process;
    uint32_t *seen; /* by name: the last process that needs it, its number + 1 */
    size_t seen_count;
    uint32_t number;
};

/* A function for name NUMBER, whose address is set when all names are known: dump DUMP tells its
 * machine. */
static int add_function(struct process_calls *own, uint32_t number, uint32_t dump)
{
    struct code_log *log = &own->process->log;
    struct jit_function *function = code_log_add_function(log, dump);
    if (!function)
        return -1;
    function->code_index = number;
    return code_log_add_event(log, log->events[0].time_ns, CODE_EVENT_LOAD,
                              log->function_count - 1);
}

static int note_name(struct inlined_calls *calls, struct process_calls *own,
                     const struct line_inline *call, uint32_t dump)
{
    uint32_t number = number_of(calls, call);
    if (number == UINT32_MAX)
        return -1;
    while (own->seen_count <= number) {
        size_t room = own->seen_count ? own->seen_count * 2 : 256;
        uint32_t *seen = realloc(own->seen, room * sizeof *seen);
        if (!seen)
            return -1;
        memset(seen + own->seen_count, 0, (room - own->seen_count) * sizeof *seen);
        own->seen = seen;
        own->seen_count = room;
    }
    if (own->seen[number] == own->number + 1)
        return 0;
    own->seen[number] = own->number + 1;
    calls->added++;
    return add_function(own, number, dump);
}

static int add_process(struct inlined_calls *calls, struct process_calls *own)
{
    struct line_table table = {0};
    struct code_log *log = &own->process->log;
    int result = 0;
    for (size_t i = 0, count = log->function_count; log->event_count && i < count && !result; i++) {
        const struct jit_function function = log->functions[i];
        if (!function.lines || !function.lines->inlines || function.dump == NO_DUMP)
            continue;
        result = code_lines_decode(function.lines, function.size, &table);
        for (size_t n = 0; n < table.inline_count && !result; n++)
            result = note_name(calls, own, &table.inlines[n], function.dump);
    }
    line_table_free(&table);
    return result;
}

/* Let process number INDEX's functions from FIRST on be where their names are. */
static void place(const struct inlined_calls *calls, struct code_log *log, size_t first)
{
    for (size_t f = first; f < log->function_count; f++) {
        struct jit_function *function = &log->functions[f];
        struct inlined_name *name = &calls->names[function->code_index];
        function->addr = calls->base + function->code_index * INLINED_CALL_BYTES;
        function->size = INLINED_CALL_BYTES;
        function->code_index = 0;
        jit_function_set_name(function, name->text, name->bytes + MARK_BYTES);
        if (!name->entry)
            continue;
        name->lines = (struct code_lines){.entries = &name->entries,
                                          .extent = line_extent_of_nothing(),
                                          .name = name->text,
                                          .big_endian = name->entries.big_endian};
        line_extent_add(&name->lines.extent, 0, true);
        function->lines = &name->lines;
    }
}

static int place_all(struct inlined_calls *calls, struct jit_processes *processes,
                     const size_t *firsts, const struct records *records, struct findings *findings)
{
    calls->base = unused_addresses_find(processes, records, calls->count * INLINED_CALL_BYTES);
    if (!calls->base)
        return report_failure(findings, "no addresses are free for inlined calls: say "
                                        "--inlines dwarf");
    for (size_t i = 0; i < processes->count; i++) {
        place(calls, &processes->items[i].log, firsts[i]);
        if (code_log_sort(&processes->items[i].log, findings))
            return -1;
    }
    return 0;
}

int inlined_calls_add(struct inlined_calls *calls, struct jit_processes *processes,
                      const struct records *records, struct findings *findings)
{
    struct process_calls own = {0};
    size_t *firsts = calloc(processes->count + 1, sizeof *firsts);
    int result = firsts ? 0 : -1;
    *calls = (struct inlined_calls){0};
    for (size_t i = 0; i < processes->count && !result; i++) {
        own.process = &processes->items[i];
        own.number = (uint32_t)i;
        firsts[i] = own.process->log.function_count;
        result = add_process(calls, &own);
    }
    result = result ? report_failure(findings, "out of memory")
                    : place_all(calls, processes, firsts, records, findings);
    free(own.seen);
    free(firsts);
    return result;
}

void inlined_calls_free(struct inlined_calls *calls)
{
    for (size_t i = 0; i < calls->count; i++)
        free_name(&calls->names[i]);
    free(calls->names);
    free(calls->numbers);
    *calls = (struct inlined_calls){0};
}
