/* See thread_switches.h. */
#include "injector/recording/thread_switches.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/recording/perf_data/event_names.h"
#include "injector/recording/perf_data/perf_record.h"
#include "injector/recording/perf_data/perf_sample.h"
#include "injector/recording/perf_data/trace_fields.h"

#include <stdlib.h>

enum {
    SOFTWARE_CONTEXT_SWITCHES = 3, /* the config of the event */
    DEAD_STATES = 0x30,            /* of prev_state */
    STATES = 0xff                  /* in which a thread has nothing to do */
};

/* ---- Events that tell of switches ---- */

enum switch_event { TELLS_NOTHING, TELLS_TRACED, TELLS_COUNTED };

static uint64_t attr_word(const struct perf_file *file, size_t event, size_t at)
{
    return perf_get_u64(file->data + file->events[event].attr.offset + at);
}

static enum switch_event event_tells(const struct perf_file *file, size_t event, const char *name,
                                     size_t bytes)
{
    const uint32_t type = file->events[event].type;
    if (type == PERF_TYPE_TRACEPOINT && event_name_is(name, bytes, "sched:sched_switch"))
        return TELLS_TRACED;
    return type == PERF_TYPE_SOFTWARE &&
                   attr_word(file, event, PERF_ATTR_CONFIG) == SOFTWARE_CONTEXT_SWITCHES
               ? TELLS_COUNTED
               : TELLS_NOTHING;
}

/* One of 4000 switches is a sample of a thread like any other. */
static bool is_sampled(const struct perf_file *file, size_t event)
{
    return attr_word(file, event, PERF_ATTR_FLAGS) & PERF_ATTR_FREQ ||
           attr_word(file, event, PERF_ATTR_PERIOD) > 1;
}

static bool has_records(const struct perf_file *file)
{
    for (size_t i = 0; i < file->event_count; i++)
        if (attr_word(file, i, PERF_ATTR_FLAGS) & PERF_ATTR_SWITCHES)
            return true;
    return false;
}

/* What each event tells, into TELLS, unless that is NULL.  Returns whether any tells something. */
static bool find_events(const struct perf_file *file, uint8_t *tells)
{
    struct event_names names = event_names_begin(&file->features);
    bool any = false;
    for (size_t i = 0; i < file->event_count; i++) {
        size_t bytes = 0;
        const char *name = event_names_next(&names, &bytes);
        const enum switch_event told = event_tells(file, i, name, bytes);
        any |= told != TELLS_NOTHING;
        if (tells)
            tells[i] = (uint8_t)told;
    }
    return any;
}

bool thread_switches_are_in(const struct perf_file *file)
{
    return perf_file_has_times(file) && (has_records(file) || find_events(file, NULL));
}

/* ---- What is read of the records ---- */

enum turn_kind {
    TURN_BIRTH,
    TURN_NAMED,  /* it comes: another thread's sample says so */
    TURN_COMES,  /* it comes: a record says so */
    TURN_SAMPLE, /* it runs */
    TURN_GOING,  /* a sample, taken when it goes */
    TURN_GOES,   /* a record says so */
    TURN_EXIT
};

struct turn {
    uint64_t time_ns, offset;
    uint32_t pid, tid;
    uint8_t kind;
    bool preempted, dead;
    bool is_kernels; /* tid is the kernel's own number */
};

/* A thread's number as the kernel has it outside of all namespaces, and as perf has it. */
struct thread_number {
    uint32_t kernels, tid;
};

struct switch_reading {
    struct thread_switches *to;
    const struct perf_file *file;
    uint8_t *tells; /* by event: an enum switch_event */
    struct trace_field prev_pid, prev_state, next_pid;
    struct turn *turns;
    size_t turn_count, turn_capacity;
    struct thread_number *numbers; /* of those that went, if they differ */
    size_t number_count, number_capacity;
    bool has_records, has_traced;
};

/* What sched_switch has had on 64-bit Linux ever since, for a recording that lost its formats. */
static struct trace_field field_or(const struct perf_file *file, const char *name,
                                   struct trace_field usual)
{
    const struct trace_field field = trace_field_find(&file->features, "sched_switch", name);
    return field.bytes ? field : usual;
}

static int add_turn(struct switch_reading *reading, const struct turn *turn)
{
    if (array_reserve(reading->turns, reading->turn_count, reading->turn_capacity))
        return -1;
    reading->turns[reading->turn_count++] = *turn;
    return 0;
}

/* The idle task is no thread, and threads of other namespaces are 0 too; -1 has ended. */
static bool is_thread(uint32_t tid)
{
    return tid && tid != UINT32_MAX;
}

static int take_switch(struct switch_reading *reading, const struct perf_record *record)
{
    struct perf_sample id;
    if (!perf_sample_id_read(&id, reading->file, record) || !(id.has & PERF_SAMPLE_TIME) ||
        !(id.has & PERF_SAMPLE_TID))
        return 0;
    reading->has_records = true;
    reading->to->of_processors |= record->type == PERF_RECORD_SWITCH_CPU_WIDE;
    const struct turn turn = {.time_ns = id.time_ns,
                              .offset = record->offset,
                              .pid = id.pid,
                              .tid = id.tid,
                              .kind = record->misc & PERF_MISC_SWITCH_OUT ? TURN_GOES : TURN_COMES,
                              .preempted = record->misc & PERF_MISC_SWITCH_OUT_PREEMPT};
    return add_turn(reading, &turn);
}

static int take_task(struct switch_reading *reading, const struct perf_record *record)
{
    struct perf_task task;
    if (!perf_record_task(reading->file, record, &task) || !task.time_ns)
        return 0;
    const struct turn turn = {.time_ns = task.time_ns,
                              .offset = record->offset,
                              .pid = task.pid,
                              .tid = task.tid,
                              .kind = record->type == PERF_RECORD_EXIT ? TURN_EXIT : TURN_BIRTH};
    return add_turn(reading, &turn);
}

/* A sample of sched_switch, of the thread that goes: TURN is of it, and the thread that comes has a
 * turn at the same time.  A thread may be preempted while it ends, when it has no number but the
 * kernel's. */
static int take_traced(struct switch_reading *reading, const struct perf_sample *sample,
                       struct turn *turn)
{
    const struct sample_bytes *raw = &sample->raw;
    const uint32_t went = (uint32_t)trace_field_value(&reading->prev_pid, raw->bytes, raw->size);
    const uint64_t state = trace_field_value(&reading->prev_state, raw->bytes, raw->size);
    struct turn next = {
        .time_ns = turn->time_ns, .offset = turn->offset, .kind = TURN_NAMED, .is_kernels = true};
    next.tid = (uint32_t)trace_field_value(&reading->next_pid, raw->bytes, raw->size);
    turn->preempted = raw->bytes && !(state & STATES);
    turn->dead = state & DEAD_STATES;
    if (turn->tid == UINT32_MAX && raw->bytes) {
        turn->tid = went;
        turn->is_kernels = true;
    } else if (went != turn->tid && is_thread(turn->tid)) {
        if (array_reserve(reading->numbers, reading->number_count, reading->number_capacity))
            return -1;
        reading->numbers[reading->number_count++] = (struct thread_number){went, turn->tid};
    }
    return is_thread(next.tid) ? add_turn(reading, &next) : 0;
}

static int take_sample(struct switch_reading *reading, const struct perf_record *record)
{
    const struct perf_file *file = reading->file;
    const uint32_t event = perf_sample_event(file, record);
    const enum switch_event told = (enum switch_event)reading->tells[event];
    struct perf_sample sample;
    perf_sample_read(&sample, &file->events[event].format, record,
                     told == TELLS_TRACED ? SAMPLE_RAW : SAMPLE_TIME);
    if (!(sample.has & PERF_SAMPLE_TIME) || !(sample.has & PERF_SAMPLE_TID))
        return 0;
    struct turn turn = {.time_ns = sample.time_ns,
                        .offset = record->offset,
                        .pid = sample.pid,
                        .tid = sample.tid,
                        .kind = told == TELLS_NOTHING ? TURN_SAMPLE : TURN_GOING};
    const bool is_part = told != TELLS_NOTHING && is_sampled(file, event);
    reading->to->not_all |= is_part;
    reading->has_traced |= told == TELLS_TRACED && !is_part;
    if (told == TELLS_TRACED && take_traced(reading, &sample, &turn))
        return -1;
    return is_thread(turn.tid) ? add_turn(reading, &turn) : 0;
}

static int take_all(struct switch_reading *reading)
{
    struct perf_walk walk = perf_walk_begin(reading->file);
    struct perf_record record;
    int result = 0;
    while (!result && perf_walk_next(&walk, &record, NULL))
        switch (record.type) {
        case PERF_RECORD_SAMPLE:
            result = take_sample(reading, &record);
            break;
        case PERF_RECORD_SWITCH:
        case PERF_RECORD_SWITCH_CPU_WIDE:
            result = take_switch(reading, &record);
            break;
        case PERF_RECORD_FORK:
        case PERF_RECORD_EXIT:
            result = take_task(reading, &record);
            break;
        default:
            break;
        }
    return result;
}

/* ---- Numbers ---- */

static int compare_numbers(const void *left, const void *right)
{
    const struct thread_number *a = left, *b = right;
    return a->kernels < b->kernels ? -1 : a->kernels > b->kernels;
}

/* sched_switch has the kernel's own numbers of the threads that come, and of those that end.  Those
 * that never went need no number: nobody waits for their end. */
static void number_as_perf(struct switch_reading *reading)
{
    const size_t count = reading->number_count;
    struct thread_number *numbers = reading->numbers;
    if (!count)
        return;
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    for (size_t i = 0; i < reading->turn_count; i++) {
        struct turn *turn = &reading->turns[i];
        size_t at;
        if (!turn->is_kernels)
            continue;
        array_bisect(at, count, numbers[at].kernels < turn->tid);
        if (at < count && numbers[at].kernels == turn->tid)
            turn->tid = numbers[at].tid;
    }
}

/* ---- How many threads run ---- */

static int compare_times(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* perf report --latency counts so, whichever thread a record is of: one thread runs when the
 * recording begins, a thread that ends goes. */
static int count_running(struct switch_reading *reading)
{
    struct thread_switches *to = reading->to;
    struct thread_count now = {.running = 1};
    for (size_t i = 0; i < reading->turn_count; i++) {
        const struct turn *turn = &reading->turns[i];
        if (turn->kind != TURN_COMES && turn->kind != TURN_GOES && turn->kind != TURN_EXIT)
            continue;
        now.running += turn->kind == TURN_COMES ? 1 : -1;
        now.time_ns = turn->time_ns;
        now.offset = turn->offset;
        if (array_reserve(to->counts, to->count_count, to->count_capacity))
            return -1;
        to->counts[to->count_count++] = now;
    }
    return 0;
}

/* ---- Waits ---- */

static int compare_threads(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    const int order = compare_times(left, right);
    return order ? order : (int)a->kind - (int)b->kind;
}

/* A thread at one of its turns. */
struct thread_state {
    struct thread_wait wait; /* the one that has begun; from_ns 0: it runs, or that is unknown */
    uint64_t sample;         /* offset of its last SAMPLE; 0: none */
    bool sample_goes;        /* it was taken as the thread went, and it has not come back since */
    bool ended;              /* but for what the kernel does to end it */
};

static int end_wait(struct thread_switches *to, struct thread_state *state, uint64_t time_ns)
{
    struct thread_wait *wait = &state->wait;
    state->sample_goes = false;
    if (wait->from_ns && time_ns > wait->from_ns) {
        if (array_reserve(to->waits, to->wait_count, to->wait_capacity))
            return -1;
        wait->to_ns = time_ns;
        to->exact_count += wait->exact;
        to->without_stack_count += !wait->stack;
        to->waits[to->wait_count++] = *wait;
    }
    wait->from_ns = 0;
    return 0;
}

static void forget_wait(struct thread_switches *to, struct thread_state *state)
{
    to->endless_count++;
    state->wait.from_ns = 0;
}

static void begin_wait(struct thread_state *state, const struct turn *turn)
{
    state->wait = (struct thread_wait){.from_ns = turn->dead ? 0 : turn->time_ns,
                                       .pid = turn->pid,
                                       .tid = turn->tid,
                                       .stack = state->sample,
                                       .exact = state->sample_goes,
                                       .preempted = turn->preempted};
}

/* Where records tell when threads come and go, a sample tells nothing of that.  Else it tells that
 * its thread is back, but not since when. */
static int take_turn(struct thread_switches *to, struct thread_state *state,
                     const struct turn *turn)
{
    const bool recorded = to->source == SWITCHES_RECORDED;
    switch ((enum turn_kind)turn->kind) {
    case TURN_SAMPLE:
    case TURN_GOING:
        if (!recorded && state->wait.from_ns)
            forget_wait(to, state);
        state->sample = turn->offset;
        state->sample_goes = turn->kind == TURN_GOING;
        if (!recorded && state->sample_goes)
            begin_wait(state, turn);
        return 0;
    case TURN_NAMED:
        return recorded ? 0 : end_wait(to, state, turn->time_ns);
    case TURN_COMES:
        return end_wait(to, state, turn->time_ns);
    case TURN_GOES:
        if (state->wait.from_ns)
            forget_wait(to, state);
        begin_wait(state, turn);
        return 0;
    case TURN_BIRTH:
        *state = (struct thread_state){.sample = 0};
        return 0;
    case TURN_EXIT:
        state->ended = true;
        return 0;
    }
    return 0;
}

static int compare_waits(const void *left, const void *right)
{
    const struct thread_wait *a = left, *b = right;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static int find_waits(struct switch_reading *reading)
{
    struct thread_switches *to = reading->to;
    struct thread_state state = {.sample = 0};
    int result = 0;
    for (size_t i = 0; !result && i < reading->turn_count; i++) {
        const struct turn *turn = &reading->turns[i];
        if (i && turn->tid != turn[-1].tid) {
            to->open_count += state.wait.from_ns && !state.ended;
            state = (struct thread_state){.sample = 0};
        }
        if (is_thread(turn->tid))
            result = take_turn(to, &state, turn);
    }
    to->open_count += state.wait.from_ns && !state.ended;
    if (to->wait_count)
        qsort(to->waits, to->wait_count, sizeof *to->waits, compare_waits);
    return result;
}

/* ---- All of it ---- */

static int read_turns(struct switch_reading *reading)
{
    struct thread_switches *to = reading->to;
    if (take_all(reading))
        return -1;
    to->source = reading->has_records  ? SWITCHES_RECORDED
                 : reading->has_traced ? SWITCHES_TRACED
                                       : SWITCHES_NONE;
    if (to->source == SWITCHES_NONE)
        return 0;
    number_as_perf(reading);
    qsort(reading->turns, reading->turn_count, sizeof *reading->turns, compare_times);
    if (to->source == SWITCHES_RECORDED && count_running(reading))
        return -1;
    qsort(reading->turns, reading->turn_count, sizeof *reading->turns, compare_threads);
    return find_waits(reading);
}

int thread_switches_read(struct thread_switches *switches, const struct perf_file *file)
{
    struct switch_reading reading = {
        .to = switches,
        .file = file,
        .tells = calloc(file->event_count + 1, 1),
        .prev_pid = field_or(file, "prev_pid", (struct trace_field){24, 4}),
        .prev_state = field_or(file, "prev_state", (struct trace_field){32, 8}),
        .next_pid = field_or(file, "next_pid", (struct trace_field){56, 4})};
    *switches = (struct thread_switches){.source = SWITCHES_NONE};
    int result = -1;
    if (reading.tells) {
        find_events(file, reading.tells);
        result = read_turns(&reading);
    }
    free(reading.tells);
    free(reading.turns);
    free(reading.numbers);
    return result;
}

uint32_t thread_switches_running(const struct thread_switches *switches, uint64_t time_ns,
                                 uint64_t offset)
{
    const struct thread_count *counts = switches->counts;
    size_t at;
    if (switches->source != SWITCHES_RECORDED)
        return 0;
    array_bisect(at, switches->count_count,
                 counts[at].time_ns < time_ns ||
                     (counts[at].time_ns == time_ns && counts[at].offset < offset));
    const int64_t running = at ? counts[at - 1].running : 1;
    return running < 1 ? 1 : running > UINT32_MAX ? UINT32_MAX : (uint32_t)running;
}

void thread_switches_free(struct thread_switches *switches)
{
    free(switches->waits);
    free(switches->counts);
    *switches = (struct thread_switches){.source = SWITCHES_NONE};
}
