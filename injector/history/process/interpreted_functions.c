/* See interpreted_functions.h. */
#include "injector/history/process/interpreted_functions.h"

#include "injector/history/process/unused_addresses.h"
#include "injector/recording/perf_data/perf_sample.h"
#include "injector/text/code_name.h"

#include <string.h>

enum { WORD_BYTES = 8 };

/* ---- Which of them there are ---- */

/* Let FUNCTION be one of LOG's, with its address still to come. */
static int show(struct code_log *log, struct interpreted_function *function)
{
    const struct jit_interpreted *record = &function->record;
    const struct code_lines *lines;
    size_t name_bytes = record->name_bytes;
    const char *name = code_log_shown_name(log, record->name, &name_bytes,
                                           code_name_is_printable(record->name, name_bytes));
    const uint64_t time_ns = log->event_count ? log->events[0].time_ns : function->time_ns;
    struct jit_function *shown = name ? code_log_add_function(log, function->dump) : NULL;
    if (!shown || interpreted_code_lines(&log->interpreted, function, &lines))
        return -1;
    jit_function_set_name(shown, name, name_bytes);
    shown->lines = lines;
    function->shown = (uint32_t)(log->function_count - 1);
    log->interpreted.shown_count++;
    return code_log_add_event(log, time_ns, CODE_EVENT_LOAD, function->shown);
}

int interpreted_functions_note(struct code_log *log, const uint8_t *stack, uint64_t start,
                               size_t bytes, uint64_t time_ns)
{
    const struct interpreted_code *code = &log->interpreted;
    if (!code->count || !code->interpreter_count)
        return 0;
    const uint64_t low = code->functions[0].record.function,
                   high = code->functions[code->count - 1].record.function;
    for (size_t at = -start % WORD_BYTES; at + WORD_BYTES <= bytes; at += WORD_BYTES) {
        uint64_t word;
        memcpy(&word, stack + at, sizeof word);
        struct interpreted_function *function =
            word - low <= high - low ? interpreted_code_find(code, word, time_ns) : NULL;
        for (; function; function = interpreted_code_late(code, function, time_ns))
            if (function->shown == NOT_SHOWN && show(log, function))
                return -1;
    }
    return 0;
}

/* ---- Of a recording ---- */

static bool any_interpreted(struct jit_processes *processes)
{
    bool any = false;
    for (size_t i = 0; i < processes->count; i++) {
        struct interpreted_code *code = &processes->items[i].log.interpreted;
        interpreted_code_sort(code);
        any = any || (code->count && code->interpreter_count);
    }
    return any;
}

static int note_sample(struct jit_processes *processes, const struct perf_file *file,
                       const struct perf_record *record)
{
    const struct sample_format *format = &file->events[perf_sample_event(file, record)].format;
    struct perf_sample sample;
    if (!sample_type_has_stack(format->sample_type) ||
        !perf_sample_read(&sample, format, record, SAMPLE_STACK_USER) || !sample.user_stack.bytes)
        return 0;
    const uint32_t life = process_life_at(&processes->lives, sample.pid,
                                          (struct life_moment){sample.time_ns, record->number});
    const uint32_t number = life == NO_LIFE ? NO_PROCESS : processes->by_life[life];
    if (number == NO_PROCESS)
        return 0;
    /* A stack begins where the stack pointer is, and that is where words begin. */
    return interpreted_functions_note(&processes->items[number].log, sample.user_stack.bytes, 0,
                                      sample.user_stack.size, sample.time_ns);
}

static int note_samples(struct jit_processes *processes, const struct records *records)
{
    struct findings known = {.quiet = true}; /* damage was reported when the profile was read */
    struct perf_walk walk = perf_walk_begin(records->file);
    struct perf_record record;
    int result = 0;
    while (!result && perf_walk_next(&walk, &record, &known))
        if (record.type == PERF_RECORD_SAMPLE)
            result = note_sample(processes, records->file, &record);
    findings_free(&known);
    return result;
}

/* ---- Where they are ---- */

static uint64_t room_bytes(const struct interpreted_code *code)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < code->count; i++)
        if (code->functions[i].shown != NOT_SHOWN)
            bytes += interpreted_room_bytes(&code->functions[i]);
    return bytes;
}

/* Let the shown functions of LOG have addresses from ADDR on.  Returns the end of these. */
static uint64_t place(struct code_log *log, uint64_t addr)
{
    const struct interpreted_code *code = &log->interpreted;
    for (size_t i = 0; i < code->count; i++) {
        if (code->functions[i].shown == NOT_SHOWN)
            continue;
        struct jit_function *shown = &log->functions[code->functions[i].shown];
        shown->addr = addr;
        shown->size = interpreted_room_bytes(&code->functions[i]);
        addr += shown->size;
    }
    return addr;
}

/* Without addresses they stay frames of the interpreter. */
int interpreted_functions_place(struct jit_processes *processes, const struct records *records,
                                struct findings *findings)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < processes->count; i++)
        bytes += room_bytes(&processes->items[i].log.interpreted);
    uint64_t addr = unused_addresses_find(processes, records, bytes);
    for (size_t i = 0; i < processes->count && addr; i++) {
        addr = place(&processes->items[i].log, addr);
        if (code_log_sort(&processes->items[i].log, findings))
            return -1;
    }
    return 0;
}

int interpreted_functions_add(struct jit_processes *processes, const struct records *records,
                              struct findings *findings)
{
    if (!any_interpreted(processes) || !perf_file_has_stacks(records->file))
        return 0;
    if (note_samples(processes, records))
        return report_failure(findings, "out of memory");
    return interpreted_functions_place(processes, records, findings);
}
