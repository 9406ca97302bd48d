/* See record_times.h. */
#include "injector/recording/perf_data/record_times.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_sample.h"
#include "injector/recording/perf_data/perf_time.h"
#include "injector/text/plural.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIZE_AT = 6,             /* in a record */
    STACK_FIELDS_BYTES = 16, /* around the bytes of a copied stack */
};

#define NOT_TOLD UINT32_MAX
#define NEAR_NS  UINT64_C(10000000)
#define FAR_PART 10 /* one sample in so many may be further away */

/* What a record tells of its time, and of the buffer that it came through. */
struct told {
    uint64_t time_ns; /* 0: nothing */
    uint32_t round;   /* how often the buffers had been emptied before */
    uint32_t cpu, tid;
    uint32_t after; /* the next record of its round that tells a time, + 1; 0: there is none */
    uint32_t
        stead;    /* if nothing has a time: the record of its round and turn whose number it has */
    uint8_t turn; /* if nothing has a time: an enum turn */
    bool asks;    /* a sample without a time */
};

/* When it comes among those of its round.  A buffer may hold a process's end, and another one that
 * is written later its samples, or its beginning. */
enum turn { TURN_FIRST, TURN_AS_WRITTEN, TURN_LAST };

/* A process becomes a program, or the program maps something. */
struct beginning {
    uint32_t pid;
    bool execs;
    size_t index; /* of the record */
};

/* A process or thread is forked. */
struct birth {
    uint64_t time_ns; /* the kernel writes it into each FORK */
    uint32_t tid, parent, round;
    size_t index;   /* of the record */
    size_t from;    /* the first record that must not stand in front of it, or its own */
    uint32_t depth; /* so many forks, each in front of its parent's in the file, led to it */
};

/* A record that comes first in its round, and what it is sorted by there. */
struct first {
    size_t index, from;
    uint32_t round, depth;
    bool is_birth;
};

struct giving {
    const struct perf_file *file;
    struct perf_plain *plain;
    struct findings *findings;
    struct sample_format *formats; /* by event: with times */
    struct told *told;             /* by record */
    size_t count, capacity;
    size_t *rounds; /* their first records */
    size_t round_count, round_capacity;
    struct beginning *beginnings; /* by process, then in file order */
    size_t beginning_count, beginning_capacity;
    struct birth *births; /* in file order, then by thread */
    size_t birth_count, birth_capacity;
    size_t before_all;      /* so many records were written before the recording began */
    bool has_times;         /* some record has a time, and most samples have one, or one nearby */
    size_t samples, asking; /* all, and those without a time */
    uint8_t *record;        /* room for one */
};

/* ---- What is there ---- */

static bool is_of_kernel(const struct perf_record *record)
{
    return record->type < PERF_RECORD_USER_TYPE_START;
}

static void tell_sample(struct giving *giving, const struct perf_record *record, struct told *told)
{
    uint64_t word;
    if (perf_record_front(giving->file, record, SAMPLE_TID, &word))
        told->tid = (uint32_t)(word >> 32);
    if (perf_record_front(giving->file, record, SAMPLE_CPU, &word))
        told->cpu = (uint32_t)word;
    if (perf_record_front(giving->file, record, SAMPLE_TIME, &told->time_ns))
        giving->has_times |= told->time_ns != 0;
    else
        told->asks = true;
    giving->samples++;
    giving->asking += told->asks;
}

/* FORK and EXIT have a time in their bodies, too, which -T has no part in. */
static void tell_other(struct giving *giving, const struct perf_record *record, struct told *told)
{
    struct perf_sample id;
    struct perf_task task;
    if (perf_record_task(giving->file, record, &task)) {
        told->tid = task.tid;
        told->time_ns = task.time_ns;
    }
    if (!perf_sample_id_read(&id, giving->file, record))
        return;
    if (id.has & PERF_SAMPLE_TID)
        told->tid = id.tid;
    if (id.has & PERF_SAMPLE_CPU)
        told->cpu = id.cpu;
    if (id.has & PERF_SAMPLE_TIME) {
        told->time_ns = id.time_ns;
        giving->has_times |= id.time_ns != 0;
    }
}

static int add_beginning(struct giving *giving, const struct perf_record *record)
{
    struct perf_task task;
    struct perf_map map;
    struct beginning beginning = {.index = giving->count};
    if (perf_record_map(giving->file, record, &map)) {
        beginning.pid = map.pid;
    } else if (record->type == PERF_RECORD_COMM && record->misc & PERF_MISC_COMM_EXEC &&
               perf_record_task(giving->file, record, &task)) {
        beginning.pid = task.pid;
        beginning.execs = true;
    } else {
        return 0;
    }
    if (array_reserve(giving->beginnings, giving->beginning_count, giving->beginning_capacity))
        return -1;
    giving->beginnings[giving->beginning_count++] = beginning;
    return 0;
}

static int add_birth(struct giving *giving, const struct perf_record *record)
{
    struct perf_task task;
    if (record->type != PERF_RECORD_FORK || !perf_record_task(giving->file, record, &task))
        return 0;
    if (array_reserve(giving->births, giving->birth_count, giving->birth_capacity))
        return -1;
    giving->births[giving->birth_count++] =
        (struct birth){.time_ns = task.time_ns,
                       .tid = task.tid,
                       .parent = task.parent_pid,
                       .round = (uint32_t)giving->round_count - 1,
                       .index = giving->count,
                       .from = giving->count};
    return 0;
}

static enum turn turn_of(const struct perf_record *record)
{
    return record->type == PERF_RECORD_FORK   ? TURN_FIRST
           : record->type == PERF_RECORD_EXIT ? TURN_LAST
                                              : TURN_AS_WRITTEN;
}

/* The record that comes next begins a round. */
static int begin_round(struct giving *giving)
{
    if (array_reserve(giving->rounds, giving->round_count, giving->round_capacity))
        return -1;
    giving->rounds[giving->round_count++] = giving->count;
    return 0;
}

static int collect(struct giving *giving)
{
    struct perf_walk walk = perf_walk_begin(giving->file);
    struct perf_record record;
    bool sampled = false;
    if (begin_round(giving))
        return -1;
    while (perf_walk_next(&walk, &record, NULL)) {
        if (array_reserve(giving->told, giving->count, giving->capacity) ||
            add_beginning(giving, &record) || add_birth(giving, &record))
            return -1;
        struct told *told = &giving->told[giving->count++];
        *told = (struct told){.round = (uint32_t)giving->round_count - 1,
                              .cpu = NOT_TOLD,
                              .tid = NOT_TOLD,
                              .stead = (uint32_t)giving->count - 1,
                              .turn = (uint8_t)turn_of(&record)};
        if (record.type == PERF_RECORD_FINISHED_ROUND && begin_round(giving))
            return -1;
        sampled |= record.type == PERF_RECORD_SAMPLE;
        if (record.type == PERF_RECORD_FINISHED_INIT && !sampled)
            giving->before_all = giving->count;
        if (record.type == PERF_RECORD_SAMPLE)
            tell_sample(giving, &record, told);
        else if (is_of_kernel(&record))
            tell_other(giving, &record, told);
    }
    return begin_round(giving);
}

static int compare_beginnings(const void *left, const void *right)
{
    const struct beginning *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* What a program maps in the round in which it begins comes first there, unless it is one of
 * several that the process became in this round. */
static void find_first_turns(struct giving *giving)
{
    const struct beginning *items = giving->beginnings;
    if (giving->beginning_count)
        qsort(giving->beginnings, giving->beginning_count, sizeof *items, compare_beginnings);
    for (size_t i = 0, next; i < giving->beginning_count; i = next) {
        const uint32_t round = giving->told[items[i].index].round;
        size_t end = i, execs = 0;
        for (next = i; next < giving->beginning_count && items[next].pid == items[i].pid; next++)
            if (giving->told[items[next].index].round == round) {
                execs += items[next].execs;
                end = next + 1;
            }
        if (items[i].index >= giving->before_all && execs <= 1)
            for (size_t at = i; at < end; at++)
                giving->told[items[at].index].turn = TURN_FIRST;
    }
}

/* ---- Forks, if nothing has a time ---- */

static int compare_times(const void *left, const void *right)
{
    const struct birth *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static int compare_births(const void *left, const void *right)
{
    const struct birth *a = left, *b = right;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* The one birth of TID in ROUND; NULL: there is none, or several. */
static struct birth *find_birth(const struct giving *giving, uint32_t tid, uint32_t round)
{
    struct birth *births = giving->births;
    size_t at, end;
    array_bisect(at, giving->birth_count,
                 births[at].tid < tid || (births[at].tid == tid && births[at].round < round));
    array_bisect(end, giving->birth_count,
                 births[end].tid < tid || (births[end].tid == tid && births[end].round <= round));
    return end == at + 1 ? &births[at] : NULL;
}

/* The birth of the process that BEGINNING is one of, if both come first in the same round. */
static struct birth *birth_of(const struct giving *giving, const struct beginning *beginning)
{
    const struct told *told = &giving->told[beginning->index];
    return told->turn == TURN_FIRST && beginning->index >= giving->before_all
               ? find_birth(giving, beginning->pid, told->round)
               : NULL;
}

static void order_births(struct giving *giving, struct birth *by_time)
{
    const size_t count = giving->birth_count;
    qsort(giving->births, count, sizeof *by_time, compare_births);
    for (size_t i = 0; i < giving->beginning_count; i++) {
        struct birth *birth = birth_of(giving, &giving->beginnings[i]);
        if (birth && giving->beginnings[i].index < birth->from)
            birth->from = giving->beginnings[i].index;
    }
    memcpy(by_time, giving->births, count * sizeof *by_time);
    qsort(by_time, count, sizeof *by_time, compare_times);
    for (size_t i = 0; i < count; i++) {
        const uint32_t round = by_time[i].round;
        struct birth *birth = find_birth(giving, by_time[i].tid, round);
        const struct birth *parent = find_birth(giving, by_time[i].parent, round);
        if (birth && parent && parent != birth)
            birth->depth = parent->depth + (birth->from < parent->from);
    }
}

static int compare_firsts(const void *left, const void *right)
{
    const struct first *a = left, *b = right;
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return b->is_birth - a->is_birth;
}

/* Sort FIRSTS, and let each have the number of the one that stood in its place in the file. */
static void put_in_order(struct giving *giving, struct first *firsts, size_t count, size_t *places)
{
    for (size_t i = 0; i < count; i++)
        places[i] = firsts[i].index;
    qsort(firsts, count, sizeof *firsts, compare_firsts);
    for (size_t i = 0; i < count; i++)
        giving->told[firsts[i].index].stead = (uint32_t)places[i];
}

static size_t find_firsts(struct giving *giving, struct first *firsts)
{
    size_t count = 0;
    for (size_t i = giving->before_all; i < giving->count; i++)
        if (giving->told[i].turn == TURN_FIRST) {
            giving->told[i].stead = (uint32_t)count;
            firsts[count++] = (struct first){.index = i, .from = i, .round = giving->told[i].round};
        }
    for (size_t i = 0; i < giving->birth_count; i++)
        if (giving->births[i].index >= giving->before_all) {
            struct first *first = &firsts[giving->told[giving->births[i].index].stead];
            first->from = giving->births[i].from;
            first->depth = giving->births[i].depth;
            first->is_birth = true;
        }
    for (size_t i = 0; i < giving->beginning_count; i++) {
        const struct birth *birth = birth_of(giving, &giving->beginnings[i]);
        if (birth)
            firsts[giving->told[giving->beginnings[i].index].stead].depth = birth->depth;
    }
    return count;
}

/* A process is forked on one processor, and may become a program, or fork, on another one, whose
 * buffer was written earlier: its fork comes in front of that.  perf gives the child what its
 * parent has at that moment, and what a process had before its fork is gone. */
static int order_first_turns(struct giving *giving)
{
    struct birth *by_time = malloc((giving->birth_count + 1) * sizeof *by_time);
    struct first *firsts = malloc((giving->count + 1) * sizeof *firsts);
    size_t *places = malloc((giving->count + 1) * sizeof *places);
    const bool has_room = by_time && firsts && places;
    if (has_room && giving->birth_count) {
        order_births(giving, by_time);
        put_in_order(giving, firsts, find_firsts(giving, firsts), places);
    }
    free(by_time);
    free(firsts);
    free(places);
    return has_room ? 0 : -1;
}

static void find_next_times(struct giving *giving)
{
    size_t after = 0;
    for (size_t i = giving->count; i-- > 0;) {
        struct told *told = &giving->told[i];
        if (after && giving->told[after - 1].round != told->round)
            after = 0;
        told->after = (uint32_t)after;
        if (told->time_ns)
            after = i + 1;
    }
}

/* ---- Which time ---- */

/* Whether most samples have a time, or lie between two times that are close to each other.  If not,
 * too much may have happened meanwhile: a function was compiled, and another one freed.  A few page
 * faults that are far from all else do not take the others' times away. */
static bool are_near(const struct giving *giving)
{
    const struct told *before = NULL;
    size_t far = 0;
    for (size_t i = 0; i < giving->count; i++) {
        const struct told *told = &giving->told[i];
        const struct told *after = told->after ? &giving->told[told->after - 1] : NULL;
        if (told->asks)
            far += !before || before->round != told->round || !after ||
                   perf_time_apart(before->time_ns, after->time_ns) > NEAR_NS;
        if (told->time_ns)
            before = told;
    }
    return far <= giving->samples / FAR_PART;
}

static bool is_one_buffer(const struct told *a, const struct told *b)
{
    if (a->cpu != NOT_TOLD && b->cpu != NOT_TOLD)
        return a->cpu == b->cpu;
    return a->tid == b->tid && a->tid != NOT_TOLD;
}

/* The time of record INDEX, which tells none; BEFORE is the last that told one, or NULL, and
 * LATEST_NS the latest time so far. */
static uint64_t time_of(const struct giving *giving, size_t index, const struct told *before,
                        uint64_t latest_ns)
{
    const struct told *own = &giving->told[index];
    const struct told *after = own->after ? &giving->told[own->after - 1] : NULL;
    if (index < giving->before_all)
        return 0;
    if (!giving->has_times) {
        const size_t first = giving->rounds[own->round];
        const size_t count = giving->rounds[own->round + 1] - first;
        return (TURN_LAST + 1) * first + own->turn * count + (own->stead - first) + 1;
    }
    if (own->time_ns)
        return own->time_ns;
    if (before && before->round == own->round &&
        (!after || is_one_buffer(before, own) || !is_one_buffer(after, own)))
        return before->time_ns;
    return after ? after->time_ns - 1 : latest_ns;
}

/* ---- Records with times ---- */

/* Put what is behind AT of SAMPLE, with a copy of the stack that is BYTES shorter. */
static void put_with_less_stack(const struct perf_sample *sample, size_t at, size_t bytes,
                                struct byte_sink *sink)
{
    const uint8_t *record = sample->record->bytes;
    const size_t stack = perf_sample_place(sample, SAMPLE_STACK_USER);
    const size_t behind = perf_sample_place(sample, SAMPLE_BEHIND_STACK);
    const size_t copied = behind - stack - STACK_FIELDS_BYTES - bytes;
    sink_bytes(sink, record + at, stack - at);
    sink_u64(sink, copied);
    sink_bytes(sink, record + stack + 8, copied);
    sink_u64(sink, sample->user_stack.size < copied ? sample->user_stack.size : copied);
    sink_bytes(sink, record + behind, sample->record->size - behind);
}

static bool can_lose(const struct perf_sample *sample, size_t bytes)
{
    return sample->user_stack.bytes && perf_sample_place(sample, SAMPLE_BEHIND_STACK) -
                                               perf_sample_place(sample, SAMPLE_STACK_USER) >
                                           STACK_FIELDS_BYTES + bytes;
}

static int leave_out(const struct giving *giving, const struct perf_record *record)
{
    report_finding(giving->findings, FINDING_SAMPLE_BROKEN,
                   "%s: record %" PRIu64 " at 0x%" PRIx64 ": has no room for a time",
                   giving->file->path, record->number, record->offset);
    return 0;
}

static int add_made(struct giving *giving, const struct byte_sink *made)
{
    struct byte_sink size = byte_sink_over(giving->record + SIZE_AT, 2);
    sink_u16(&size, (uint16_t)made->size);
    return perf_plain_add(giving->plain, giving->record, made->size);
}

static int add_as_it_is(struct giving *giving, const struct perf_record *record)
{
    return perf_plain_add(giving->plain, record->bytes, (size_t)record->span);
}

static int add_sample(struct giving *giving, const struct perf_record *record, uint64_t time_ns)
{
    const uint32_t event = perf_sample_event(giving->file, record);
    const struct sample_format *format = &giving->file->events[event].format;
    const size_t at = giving->formats[event].front[SAMPLE_TIME];
    struct perf_sample sample;
    struct byte_sink sink = byte_sink_over(giving->record, PERF_RECORD_MOST_BYTES);
    const bool has_time = format->front[SAMPLE_TIME] != 0;
    if (record->size < at + (has_time ? 8 : 0) || (has_time && giving->has_times))
        return add_as_it_is(giving, record);
    sink_bytes(&sink, record->bytes, at);
    sink_u64(&sink, time_ns);
    if (has_time) {
        sink_bytes(&sink, record->bytes + at + 8, record->size - at - 8);
        return add_made(giving, &sink);
    }
    if (record->size + 8u <= PERF_RECORD_MOST_BYTES)
        sink_bytes(&sink, record->bytes + at, record->size - at);
    else if (perf_sample_read(&sample, format, record, SAMPLE_STACK_USER) && can_lose(&sample, 8))
        put_with_less_stack(&sample, at, 8, &sink);
    else
        return leave_out(giving, record);
    return add_made(giving, &sink);
}

/* What is said of a record's thread where it has no sample_id. */
static struct perf_sample id_of(const struct giving *giving, size_t event,
                                const struct perf_record *record)
{
    const struct perf_section *ids = &giving->file->events[event].ids;
    const uint64_t id = ids->size ? perf_get_u64(giving->file->data + ids->offset) : 0;
    struct perf_sample made = {.identifier = id, .id = id};
    struct perf_task task;
    struct perf_map map;
    if (perf_record_task(giving->file, record, &task)) {
        made.pid = task.pid;
        made.tid = task.tid;
    } else if (perf_record_map(giving->file, record, &map)) {
        made.pid = map.pid;
        made.tid = map.tid;
    }
    return made;
}

static int add_other(struct giving *giving, const struct perf_record *record, uint64_t time_ns)
{
    const struct sample_format *format;
    struct perf_sample id;
    const bool has_id = perf_record_trailer(giving->file, record, &format) != NULL;
    if (!format ||
        (format->sample_id_all && (!has_id || (format->front[SAMPLE_TIME] && giving->has_times))))
        return add_as_it_is(giving, record);
    const struct perf_event *event =
        (const void *)((const uint8_t *)format - offsetof(struct perf_event, format));
    const size_t number = (size_t)(event - giving->file->events);
    const struct sample_format *timed = &giving->formats[number];
    if (!has_id)
        id = id_of(giving, number, record);
    else if (!perf_sample_id_read(&id, giving->file, record))
        return -1;
    id.time_ns = time_ns;
    const size_t body = record->size - (has_id ? format->id_bytes : 0u);
    if (body + timed->id_bytes > PERF_RECORD_MOST_BYTES)
        return leave_out(giving, record);
    struct byte_sink sink = byte_sink_over(giving->record, PERF_RECORD_MOST_BYTES);
    sink_bytes(&sink, record->bytes, body);
    perf_sample_put_id(&id, timed, &sink);
    return add_made(giving, &sink);
}

static int add_records(struct giving *giving)
{
    struct perf_walk walk = perf_walk_begin(giving->file);
    struct perf_record record;
    const struct told *before = NULL;
    uint64_t latest_ns = 0;
    int result = 0;
    for (size_t i = 0; !result && perf_walk_next(&walk, &record, giving->findings); i++) {
        const struct told *told = &giving->told[i];
        const uint64_t time_ns = time_of(giving, i, before, latest_ns);
        if (record.type == PERF_RECORD_SAMPLE)
            result = add_sample(giving, &record, time_ns);
        else if (is_of_kernel(&record))
            result = add_other(giving, &record, time_ns);
        else
            result = add_as_it_is(giving, &record);
        if (told->time_ns) {
            before = told;
            latest_ns = told->time_ns > latest_ns ? told->time_ns : latest_ns;
        }
    }
    return result;
}

/* ---- Attributes with times ---- */

static void give_attr(const struct giving *giving, uint8_t *attr)
{
    uint64_t flags = perf_get_u64(attr + PERF_ATTR_FLAGS) | PERF_ATTR_SAMPLE_ID_ALL;
    perf_put_u64(attr + PERF_ATTR_SAMPLE_TYPE,
                 perf_get_u64(attr + PERF_ATTR_SAMPLE_TYPE) | PERF_SAMPLE_TIME);
    if (!giving->has_times) {
        struct byte_sink clock = byte_sink_over(attr + PERF_ATTR_CLOCKID, 4);
        sink_u32(&clock, (uint32_t)PERF_CLOCK_NONE);
        flags |= PERF_ATTR_USE_CLOCKID;
    }
    perf_put_u64(attr + PERF_ATTR_FLAGS, flags);
}

/* Begin PLAIN; an attribute of an old perf may have no room for the clock. */
static int begin(struct giving *giving)
{
    const struct perf_file *file = giving->file;
    const size_t bytes = file->events[0].attr.size > PERF_ATTR_REGS_INTR
                             ? (size_t)file->events[0].attr.size
                             : PERF_ATTR_REGS_INTR;
    struct perf_attr *attrs = calloc(file->event_count, sizeof *attrs);
    uint8_t *room = calloc(file->event_count, bytes);
    int result = attrs && room ? 0 : -1;
    for (size_t i = 0; !result && i < file->event_count; i++) {
        const struct perf_event *event = &file->events[i];
        uint8_t *attr = room + i * bytes;
        struct byte_sink size = byte_sink_over(attr + PERF_ATTR_SIZE, 4);
        memcpy(attr, file->data + event->attr.offset, (size_t)event->attr.size);
        if (event->attr.size < bytes)
            sink_u32(&size, (uint32_t)bytes);
        give_attr(giving, attr);
        giving->formats[i] = sample_format_of_attr(attr, bytes);
        attrs[i] = (struct perf_attr){attr, bytes, file->data + event->ids.offset,
                                      (size_t)event->ids.size};
    }
    result = result || perf_plain_begin(giving->plain, attrs, file->event_count) ? -1 : 0;
    free(attrs);
    free(room);
    return result;
}

/* ---- All of it ---- */

static void report(const struct giving *giving)
{
    if (!giving->has_times && giving->samples)
        report_finding(giving->findings, FINDING_TIMES_ABSENT, "%s", giving->file->path);
    else if (giving->asking)
        report_finding(giving->findings, FINDING_TIMES_GUESSED, "%s: %zu sample%s",
                       giving->file->path, giving->asking, plural(giving->asking));
}

int record_times_give(struct perf_plain *plain, const struct perf_file *file,
                      struct findings *findings)
{
    struct giving giving = {.file = file, .plain = plain, .findings = findings};
    giving.record = malloc(PERF_RECORD_MOST_BYTES);
    giving.formats = calloc(file->event_count, sizeof *giving.formats);
    int result = !giving.record || !giving.formats || collect(&giving) ? -1 : 0;
    if (!result) {
        find_next_times(&giving);
        giving.has_times = giving.has_times && are_near(&giving);
        find_first_turns(&giving);
        if (!giving.has_times && order_first_turns(&giving))
            result = -1;
        struct perf_features features = file->features;
        if (!giving.has_times) /* that it tells the time of day by is none, too */
            perf_features_remove(&features, PERF_FEATURE_CLOCK_DATA);
        result =
            result || begin(&giving) || add_records(&giving) || perf_plain_end(plain, &features);
    }
    report(&giving);
    free(giving.record);
    free(giving.formats);
    free(giving.told);
    free(giving.rounds);
    free(giving.beginnings);
    free(giving.births);
    return result ? report_failure(findings, "out of memory") : 0;
}
