/* See code_log.h. */
#include "injector/log/code/code_log.h"

#include "injector/arrays/array.h"
#include "injector/arrays/hash.h"
#include "injector/arrays/run_sort.h"
#include "injector/log/code/jit_name.h"
#include "injector/log/script/v8_place.h"
#include "injector/text/character.h"
#include "injector/text/code_name.h"
#include "injector/text/printable_text.h"

#include <string.h>

/* Whether RECORD is empty. */
static bool is_empty(const struct jit_record *record)
{
    return record->id == JIT_CODE_DEBUG_INFO ? record->debug_info.nr_entry == 0
                                             : record->inline_info.nr_span == 0;
}

int line_records_keep(struct line_records *records, const struct jit_record *record,
                      size_t next_function)
{
    if (is_empty(record))
        return 0;
    if (array_reserve(records->items, records->count, records->capacity))
        return -1;
    records->items[records->count++] = (struct line_record){*record, next_function};
    return 0;
}

void line_blocks_free(struct line_block *block)
{
    while (block) {
        struct line_block *next = block->next;
        named_files_free(&block->files);
        free(block->lines);
        free(block->records.items);
        free(block->calls);
        free(block->made);
        free(block);
        block = next;
    }
}

struct jit_function *code_log_add_function(struct code_log *log, uint32_t dump_index)
{
    if (array_reserve(log->functions, log->function_count, log->function_capacity) ||
        log->function_count >= NO_FUNCTION)
        return NULL;
    struct jit_function *function = &log->functions[log->function_count++];
    *function = (struct jit_function){.dump = dump_index};
    return function;
}

void jit_function_set_name(struct jit_function *function, const char *name, size_t bytes)
{
    function->name = name;
    function->name_bytes = (uint32_t)bytes;
    function->name_hash = XXH3_64bits(name, bytes);
    function->plain_name = characters_are_plain_ascii(name, bytes);
    function->placed_name = v8_place_may_be(name, bytes);
}

int code_log_add_event(struct code_log *log, uint64_t time_ns, enum code_event_kind kind,
                       size_t index)
{
    if (array_reserve(log->events, log->event_count, log->event_capacity))
        return -1;
    log->events[log->event_count++] = (struct code_event){time_ns, kind, (uint32_t)index};
    return 0;
}

static bool same_fields(const struct eh_cie *a, const struct eh_cie *b)
{
    return a->code_align == b->code_align && a->data_align == b->data_align &&
           a->return_register == b->return_register && a->signal_frame == b->signal_frame &&
           a->b_key == b->b_key && a->instructions_bytes == b->instructions_bytes;
}

static bool same_cie(const struct eh_cie *a, const struct eh_cie *b)
{
    return same_fields(a, b) &&
           memcmp(a->instructions, b->instructions, a->instructions_bytes) == 0;
}

/* The very same one, which need not be compared byte by byte for each of its FDEs. */
static bool is_cie(const struct eh_cie *a, const struct eh_cie *b)
{
    return a->instructions == b->instructions && same_fields(a, b);
}

enum { CIE_LOOK_BACK = 16 }; /* CIEs compared before an equal one is stored again */

uint32_t code_log_intern_cie(struct code_log *log, const struct eh_cie *cie)
{
    size_t oldest = log->cie_count > CIE_LOOK_BACK ? log->cie_count - CIE_LOOK_BACK : 0;
    for (size_t i = log->cie_count; i-- > oldest;)
        if (is_cie(&log->cies[i], cie))
            return (uint32_t)i;
    for (size_t i = log->cie_count; i-- > oldest;)
        if (same_cie(&log->cies[i], cie))
            return (uint32_t)i;
    if (array_reserve(log->cies, log->cie_count, log->cie_capacity))
        return UINT32_MAX;
    log->cies[log->cie_count] = *cie;
    return (uint32_t)log->cie_count++;
}

struct stamp_range code_log_stamps(const struct code_log *log)
{
    struct stamp_range stamps = {0};
    for (size_t i = 0; i < log->event_count; i++)
        if (log->events[i].kind != CODE_EVENT_END)
            stamp_range_add(&stamps, log->events[i].time_ns);
    return stamps;
}

const struct jit_function *code_log_first_piece(const struct code_log *log,
                                                const struct jit_function *function)
{
    size_t back = function->piece ? function->piece - 1 : 0;
    if (back > (size_t)(function - log->functions))
        return function;
    const struct jit_function *first = function - back;
    return first->piece == 1 && first->dump == function->dump &&
                   first->code_index == jit_function_first_index(function)
               ? first
               : function;
}

void code_log_convert(struct code_log *log, const struct jit_clock *clock)
{
    for (size_t i = 0; i < log->event_count; i++)
        log->events[i].time_ns = jit_clock_to_perf(clock, log->events[i].time_ns);
    interpreted_code_convert(&log->interpreted, clock);
    if (log->history.begin_ns)
        log->history.begin_ns = jit_clock_to_perf(clock, log->history.begin_ns);
}

/* Keep NAME, which may be NULL, as long as LOG.  Returns it, or NULL without memory. */
static char *keep_name(struct code_log *log, char *name)
{
    if (!name || array_reserve(log->names, log->name_count, log->name_capacity)) {
        free(name);
        return NULL;
    }
    return log->names[log->name_count++] = name;
}

const char *code_log_keep_text(struct code_log *log, const char *text, size_t bytes)
{
    return keep_name(log, code_name_printable(text, bytes));
}

const char *code_log_shown_name(struct code_log *log, const char *name, size_t *bytes, bool usable)
{
    char *plain = jit_name_demangled(name, *bytes);
    if (!plain && usable)
        return name;
    char *clean = keep_name(log, plain ? code_name_printable(plain, strlen(plain))
                                       : code_name_printable(name, *bytes));
    free(plain);
    if (clean)
        *bytes = strlen(clean);
    return clean;
}

int code_log_print_names(struct code_log *log)
{
    for (size_t i = 0; i < log->function_count; i++) {
        struct jit_function *function = &log->functions[i];
        if (!function->name || function->plain_name || printable_is(function->name))
            continue;
        const char *name = keep_name(log, printable_copy(function->name));
        if (!name)
            return -1;
        jit_function_set_name(function, name, strlen(name));
    }
    return 0;
}

int code_log_add_named(struct code_log *log, uint32_t dump_index, uint64_t time_ns, uint64_t addr,
                       uint64_t size, const char *name)
{
    struct jit_function *function = code_log_add_function(log, dump_index);
    if (!function)
        return -1;
    function->addr = addr;
    function->size = size;
    jit_function_set_name(function, name, strlen(name));
    return code_log_add_event(log, time_ns, CODE_EVENT_LOAD, log->function_count - 1);
}

struct jit_function *code_event_function(const struct code_log *log, const struct code_event *event)
{
    switch (event->kind) {
    case CODE_EVENT_LOAD:
        return &log->functions[event->index];
    case CODE_EVENT_MOVE:
        return &log->functions[log->moves[event->index].function];
    case CODE_EVENT_UNLOAD:
    case CODE_EVENT_END:
        return NULL;
    }
    return NULL;
}

static bool sorted(const struct code_log *log)
{
    for (size_t i = 1; i < log->event_count; i++)
        if (log->events[i].time_ns < log->events[i - 1].time_ns)
            return false;
    return true;
}

int code_log_sort(struct code_log *log, struct findings *findings)
{
    if (sorted(log))
        return 0;
    struct code_event *room = malloc(log->event_count * sizeof *room);
    if (!room)
        return report_failure(findings, "out of memory");
    run_sort(log->events, room, log->event_count, sizeof *room); /* by time_ns */
    free(room);
    return 0;
}

/* ---- What two dumps have ---- */

static bool same_code(const struct jit_function *a, const struct jit_function *b)
{
    bool alike = a->dump != b->dump && a->addr == b->addr && a->size == b->size &&
                 a->code_index == b->code_index && a->pid == b->pid;
    if (!alike || !a->name || !b->name) /* the target of a move has none */
        return alike && a->name == b->name;
    return a->name_bytes == b->name_bytes && memcmp(a->name, b->name, a->name_bytes) == 0 &&
           !a->code == !b->code && (!a->code || memcmp(a->code, b->code, a->size) == 0);
}

static bool same_event(const struct code_log *log, const struct code_event *a,
                       const struct code_event *b)
{
    if (a->time_ns != b->time_ns || a->kind != b->kind)
        return false;
    if (a->kind == CODE_EVENT_LOAD)
        return same_code(code_event_function(log, a), code_event_function(log, b));
    if (a->kind == CODE_EVENT_MOVE)
        return log->moves[a->index].old_addr == log->moves[b->index].old_addr &&
               same_code(code_event_function(log, a), code_event_function(log, b));
    const struct code_unload *unload = &log->unloads[a->index], *other = &log->unloads[b->index];
    return unload->dump != other->dump && unload->addr == other->addr &&
           unload->size == other->size && unload->code_index == other->code_index &&
           unload->pid == other->pid;
}

/* No two records of libjitdump have one time, so the same record of both dumps has two copies that
 * stand next to each other.  Other records can stand between the copies only if times from a faster
 * clock became equal in the conversion. */
static bool is_repeated(const struct code_log *log, size_t count, const struct code_event *event)
{
    enum { LOOKED_AT = 16 };
    for (size_t i = count; i > 0 && count - i < LOOKED_AT; i--) {
        if (log->events[i - 1].time_ns != event->time_ns)
            return false;
        if (same_event(log, &log->events[i - 1], event))
            return true;
    }
    return false;
}

void code_log_drop_repeated(struct code_log *log)
{
    size_t count = 0;
    for (size_t i = 0; i < log->event_count; i++) {
        const struct code_event *event = &log->events[i];
        if (!is_repeated(log, count, event))
            log->events[count++] = *event;
        else if (event->kind == CODE_EVENT_LOAD || event->kind == CODE_EVENT_MOVE)
            code_event_function(log, event)->dump = NO_DUMP; /* it does not count, either */
    }
    log->event_count = count;
}

void code_log_free(struct code_log *log)
{
    free(log->functions);
    free(log->events);
    free(log->moves);
    free(log->unloads);
    line_blocks_free(log->line_blocks);
    interpreted_code_free(&log->interpreted);
    free(log->cies);
    free(log->fdes);
    free(log->deopts);
    for (size_t i = 0; i < log->name_count; i++)
        free(log->names[i]);
    free(log->names);
    *log = (struct code_log){0};
}
