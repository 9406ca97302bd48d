/* See dump_survey.h. */
#include "injector/check/dump_survey.h"

#include "injector/arrays/address_map.h"
#include "injector/history/timeline/timeline.h"
#include "injector/log/code/log_reader.h"
#include "injector/log/lines/code_lines.h"

#include <stdlib.h>
#include <string.h>

/* A runtime opens its dump when it starts; a first function a day later is more likely to be of
 * another clock. */
#define DAY_NS UINT64_C(86400000000000)

/* Some take the header's time when they have logged already: JSC's is 0.5 to 1 ms after its first
 * record. */
#define HEADER_LATE_NS UINT64_C(10000000)

/* V8 and CPython write microseconds of the wall clock there: from September 2001 on. */
#define WALL_FIRST_US UINT64_C(1000000000000000)
#define WALL_LAST_US  (UINT64_C(4100) * 1000000000000)

enum { MANY_RECORDS = 16 };

/* ---- Records, one after another ---- */

static enum record_kind kind_of(const struct jit_record *record)
{
    if (record->broken)
        return RECORD_BROKEN;
    switch (record->id) {
    case JIT_CODE_LOAD:
        return RECORD_LOAD;
    case JIT_CODE_MOVE:
        return RECORD_MOVE;
    case JIT_CODE_UNLOAD:
        return RECORD_UNLOAD;
    case JIT_CODE_DEBUG_INFO:
        return RECORD_DEBUG_INFO;
    case JIT_CODE_INLINE_INFO:
        return RECORD_INLINE_INFO;
    case JIT_CODE_PIECE:
        return RECORD_PIECE;
    case JIT_INTERPRETED_FUNCTION:
        return RECORD_INTERPRETED;
    case JIT_CODE_UNWINDING_INFO:
        return RECORD_UNWINDING_INFO;
    case JIT_CODE_CLOSE:
        return RECORD_CLOSE;
    default:
        return jit_record_name(record->id) ? RECORD_OTHER : RECORD_UNKNOWN;
    }
}

/* A filler may be without a time, and a header has that of its own clock. */
static bool has_time(const struct jit_record *record)
{
    return !record->broken && jit_record_has_time(record->id) && jit_record_name(record->id);
}

static void take_time(struct dump_survey *survey, const struct jit_record *record, uint64_t *before)
{
    if (!has_time(record))
        return;
    uint64_t time = record->timestamp;
    survey->backwards += survey->timed && time < *before;
    if (!survey->timed || time < survey->first_time)
        survey->first_time = time;
    if (!survey->timed || time > survey->last_time)
        survey->last_time = time;
    survey->timed = true;
    *before = time;
}

static void take_end(struct dump_survey *survey, const struct jit_dump *dump,
                     const struct jit_dump_walk *walk, enum jit_dump_end end)
{
    uint64_t left = dump->size - walk->offset;
    if (end == JIT_DUMP_CUT)
        survey->cut_bytes = left;
    else
        survey->unused_bytes = left;
}

static void walk_records(struct dump_survey *survey, const struct jit_dump *dump)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    uint64_t before = 0;
    enum jit_dump_end end;
    while (jit_dump_goes_on(end = jit_dump_next(&walk, &record))) {
        if (end == JIT_DUMP_TWICE)
            survey->repeated_bytes += record.extent;
        if (end == JIT_DUMP_TORN) {
            survey->torn_parts++;
            survey->torn_bytes += record.extent;
        }
        if (end != JIT_DUMP_MORE)
            continue;
        survey->record_count++;
        survey->records[kind_of(&record)]++;
        if (record.extent > survey->largest_bytes && record.id != JIT_FILLER)
            survey->largest_bytes = record.extent;
        take_time(survey, &record, &before);
    }
    take_end(survey, dump, &walk, end);
}

static void judge_times(struct dump_survey *survey, const struct jit_dump *dump)
{
    bool cycles = dump->flags & JITDUMP_FLAG_ARCH_TIMESTAMP;
    uint64_t header = dump->timestamp, first = survey->first_time;
    survey->header_agrees = !survey->timed || (header <= first ? cycles || first - header <= DAY_NS
                                                               : header - first <= HEADER_LATE_NS);
    survey->header_is_wall =
        !survey->header_agrees && header >= WALL_FIRST_US && header <= WALL_LAST_US;
    survey->stands_still =
        survey->record_count >= MANY_RECORDS && survey->first_time == survey->last_time;
}

/* ---- What is live when ---- */

static bool is_same_function(const struct jit_function *a, const struct jit_function *b)
{
    return a->addr == b->addr && a->size == b->size && a->name && b->name &&
           strcmp(a->name, b->name) == 0 && a->code && b->code &&
           memcmp(a->code, b->code, (size_t)a->size) == 0;
}

/* Function INDEX of LOG is at its addresses now. */
static int settle(struct dump_survey *survey, struct address_map *live, const struct code_log *log,
                  uint32_t index)
{
    const struct jit_function *function = &log->functions[index];
    uint64_t end = function->addr + function->size;
    struct address_place place;
    if (function->size == 0)
        return 0;
    const struct address_range *range = address_map_find(live, function->addr, &place);
    if (range && range->start < end) {
        bool repeated = range->start == function->addr && range->end == end &&
                        is_same_function(&log->functions[range->value], function);
        repeated ? survey->repeated++ : survey->overlaps++;
    }
    return address_map_set(live, function->addr, end, index);
}

static int leave(struct address_map *live, uint64_t addr, uint64_t size)
{
    return size ? address_map_clear(live, addr, addr + size) : 0;
}

/* The function that an unload is of, with its other pieces where they were loaded. */
static int leave_function(struct address_map *live, const struct code_log *log,
                          const struct code_unload *unload)
{
    struct address_place place;
    const struct address_range *range = address_map_find(live, unload->addr, &place);
    const struct jit_function *first = range ? &log->functions[range->value] : NULL;
    const struct jit_function *end = log->functions + log->function_count;
    bool whole = first && first->piece == 1 && first->addr == unload->addr;
    for (const struct jit_function *piece = first; whole && ++piece < end;)
        if (piece->piece <= 1 || jit_function_first_index(piece) != first->code_index)
            break;
        else if (leave(live, piece->addr, piece->size))
            return -1;
    return leave(live, unload->addr, unload->size);
}

static int play_event(struct dump_survey *survey, struct address_map *live,
                      const struct code_log *log, const struct code_event *event)
{
    const struct code_move *move;
    switch (event->kind) {
    case CODE_EVENT_LOAD:
        return settle(survey, live, log, event->index);
    case CODE_EVENT_MOVE:
        move = &log->moves[event->index];
        return leave(live, move->old_addr, log->functions[move->function].size) ||
                       settle(survey, live, log, move->function)
                   ? -1
                   : 0;
    case CODE_EVENT_UNLOAD:
    case CODE_EVENT_END:
        return leave_function(live, log, &log->unloads[event->index]);
    }
    return -1;
}

static int play_events(struct dump_survey *survey, const struct code_log *log)
{
    struct address_map live = {0};
    int result = 0;
    for (size_t i = 0; !result && i < log->event_count; i++)
        result = play_event(survey, &live, log, &log->events[i]);
    address_map_free(&live);
    return result;
}

/* ---- Functions ---- */

/* FUNCTION: they are of one that is not counted yet. */
static void count_lines(struct dump_survey *survey, const struct code_lines *lines, bool function)
{
    survey->with_lines += function && lines->entries;
    survey->lines += lines->entries ? lines->entries->nr_entry : 0;
    survey->with_inlines += function && lines->inlines;
    if (!lines->inlines)
        return;
    survey->inlines += lines->inlines->nr_inline;
    survey->spans += lines->inlines->nr_span;
}

static int compare_functions(const void *left, const void *right)
{
    const struct jit_function *const *a = left, *const *b = right;
    int order = strcmp((*a)->name, (*b)->name);
    return order ? order : (*a)->addr < (*b)->addr ? -1 : (*a)->addr > (*b)->addr;
}

static int count_functions(struct dump_survey *survey, const struct code_log *log)
{
    const struct jit_function **named = malloc((log->function_count + 1) * sizeof *named);
    size_t count = 0;
    if (!named)
        return -1;
    for (size_t i = 0; i < log->function_count; i++) {
        const struct jit_function *function = &log->functions[i];
        if (!function->name) /* the target of a move */
            continue;
        if (function->lines)
            count_lines(survey, function->lines, jit_function_is_first(function));
        if (!jit_function_is_first(function))
            continue;
        named[count++] = function;
        survey->with_cfi += function->fde_count > 0;
    }
    survey->functions = count;
    qsort(named, count, sizeof *named, compare_functions);
    for (size_t i = 1; i < count; i++)
        survey->named_alike +=
            strcmp(named[i]->name, named[i - 1]->name) == 0 && named[i]->addr != named[i - 1]->addr;
    free(named);
    return 0;
}

/* A timeline without a recording says which moves and unloads are of code that was never there.
 * Without one it may be a parent's, and that is no loss. */
static int play_timeline(struct dump_survey *survey, const struct code_log *log,
                         const struct jit_dump *dump)
{
    struct findings findings = {.quiet = true};
    struct jit_dump copy = *dump;
    char *path = (char *)(uintptr_t)dump->path;
    struct jit_process process = {.dumps = &copy,
                                  .dump_paths = &path,
                                  .dump_count = 1,
                                  .next = {UINT64_MAX, UINT64_MAX},
                                  .log = *log};
    struct timeline timeline;
    int result = timeline_play(&timeline, &process, NULL, NULL, NULL, 0, &findings);
    survey->strangers = findings.count[FINDING_CODE_LOST];
    timeline_free(&timeline);
    findings_free(&findings);
    return result;
}

static int read_log(struct dump_survey *survey, const struct jit_dump *dump)
{
    static const struct jit_clock as_it_is;
    struct code_log log = {0};
    struct findings *findings = &survey->findings;
    int result = code_log_read(&log, dump, 0, &as_it_is, true, findings) ||
                         code_log_sort(&log, findings) || count_functions(survey, &log) ||
                         frame_survey_take(&survey->frames, &log, dump->elf_mach) ||
                         play_events(survey, &log) || play_timeline(survey, &log, dump)
                     ? -1
                     : 0;
    code_log_free(&log);
    return result;
}

int dump_survey_take(struct dump_survey *survey, const struct jit_dump *dump)
{
    *survey = (struct dump_survey){.findings.quiet = true};
    walk_records(survey, dump);
    if (read_log(survey, dump))
        return report_failure(&survey->findings, "out of memory");
    judge_times(survey, dump);
    return 0;
}

uint64_t dump_survey_lost(const struct dump_survey *survey)
{
    return findings_lost(&survey->findings) + survey->stands_still + survey->frames.wrong;
}

void dump_survey_free(struct dump_survey *survey)
{
    frame_survey_free(&survey->frames);
    findings_free(&survey->findings);
}
