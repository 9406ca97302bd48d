/* See profile_reading.h. */
#include "injector/profile/profile_reading.h"

#include "injector/arrays/array.h"
#include "injector/files/interruption.h"
#include "injector/profile/address_names.h"
#include "injector/profile/group_counts.h"
#include "injector/profile/profile_events.h"
#include "injector/profile/thread_names.h"
#include "injector/recording/host/recording_host.h"
#include "injector/unwind/addresses/life_walk.h"
#include "injector/unwind/stacks/stack_walk.h"
#include "injector/unwind/stacks/user_stacks.h"

#include <stdlib.h>
#include <string.h>

#define LOWEST_CONTEXT ((uint64_t)-4095)
#define CONTEXT_KERNEL ((uint64_t)-128)
#define CONTEXT_USER   ((uint64_t)-512)

enum { MOST_FRAMES = 8192, MOST_STEPS_AHEAD = 1 << 20 };

/* The fields in front of a SAMPLE's chain. */
struct sample_fields {
    uint64_t ip, time_ns, period;
    uint32_t pid, tid;
};

struct profile_run {
    const struct profile_source *source;
    struct call_profile *to;
    struct sample_formats formats;
    struct space_source space_source;
    struct stack_walker walker;
    struct address_names names;
    struct thread_names threads;
    struct group_counts counts;
    struct walk_sample *asked; /* of those in a life that is known */
    size_t asked_count, asked_capacity;
    struct address_frame *frames; /* of the stack at hand, the innermost first */
    size_t frame_count, frame_capacity;
    uint32_t place; /* in the first of these */
    struct {
        const struct recorded_map *last; /* that had a sample */
        size_t steps;                    /* taken to find it */
    } ahead;
    bool unwinds;
};

/* ---- Frames of a stack ---- */

/* The line of the frame just added is that of the first inlined call that stands in front of it;
 * where the others were called is not known. */
static void hand_line_on(struct profile_run *run)
{
    struct address_frame *caller = &run->frames[run->frame_count - 1];
    size_t first = run->frame_count - 1;
    while (first && run->frames[first - 1].stands_in)
        first--;
    if (caller->stands_in || first == run->frame_count - 1)
        return;
    run->frames[first].line =
        address_names_line(run->to, run->frames[first].frame, caller->at_file, caller->at_line);
    for (size_t i = first + 1; i < run->frame_count; i++)
        run->frames[i].line = 0;
}

static int add_frames(struct profile_run *run, const struct address_frames *found)
{
    if (!run->frame_count)
        run->place = found->place;
    for (size_t i = 0; i < found->count; i++) {
        if (array_reserve(run->frames, run->frame_count, run->frame_capacity))
            return -1;
        run->frames[run->frame_count++] = found->frames[i];
        hand_line_on(run);
    }
    return 0;
}

static int add_user(struct profile_run *run, uint32_t what, uint64_t pc)
{
    struct address_frames found;
    return address_names_of_user(&run->names, what, pc, &found) || add_frames(run, &found) ? -1 : 0;
}

static int add_kernel(struct profile_run *run, uint64_t pc)
{
    struct address_frames found;
    return address_names_of_kernel(&run->names, pc, &found) || add_frames(run, &found) ? -1 : 0;
}

/* What is at PC in SPACE; NULL: the process is not known. */
static uint32_t what_is_at(const struct address_space *space, uint64_t pc)
{
    return space ? address_space_at(space, pc) : SPACE_NOTHING;
}

/* The chain in SAMPLE, as it was recorded: the first address behind a mark is where it was, those
 * behind it are return addresses. */
static int add_chain(struct profile_run *run, const struct user_sample *sample,
                     const struct address_space *space)
{
    const uint8_t *entries = sample->record->bytes + sample->chain_at + 8;
    size_t count =
        sample->chain_end > sample->chain_at ? (sample->chain_end - sample->chain_at) / 8 - 1 : 0;
    uint64_t context = CONTEXT_USER;
    bool innermost = true;
    for (size_t i = 0; i < count && run->frame_count < MOST_FRAMES; i++) {
        uint64_t ip = perf_get_u64(entries + 8 * i), pc = innermost ? ip : ip - 1;
        if (ip >= LOWEST_CONTEXT) {
            context = ip;
            innermost = true;
            continue;
        }
        innermost = false;
        if (context == CONTEXT_KERNEL ? add_kernel(run, pc)
                                      : add_user(run, what_is_at(space, pc), pc))
            return -1;
    }
    return 0;
}

/* The user's stack in SAMPLE, which is walked now. */
static int add_walked(struct profile_run *run, const struct user_sample *sample,
                      const struct address_space *space)
{
    stack_walk(&run->walker, sample, space, MOST_FRAMES);
    for (size_t i = 0; !run->walker.no_memory && i < run->walker.ip_count; i++)
        if (add_user(run, run->walker.frames[i].what, run->walker.ips[i]))
            return -1;
    return run->walker.no_memory ? -1 : 0;
}

/* Where it was taken, if there is no more. */
static int add_ip(struct profile_run *run, const struct perf_record *record, uint64_t ip,
                  const struct address_space *space)
{
    unsigned mode = record->misc & PERF_MISC_CPUMODE_MASK;
    return mode == PERF_MISC_USER ? add_user(run, what_is_at(space, ip), ip) : add_kernel(run, ip);
}

/* ---- A sample ---- */

static uint32_t event_of(const struct profile_run *run, const struct sample_format *format)
{
    return (uint32_t)(format - run->formats.items);
}

static struct sample_fields read_fields(const struct profile_run *run,
                                        const struct perf_record *record)
{
    const struct sample_format *format = sample_format_of(&run->formats, record);
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    struct sample_fields fields = {.period = 0};
    const uint64_t type = format->sample_type;
    cursor_bytes(&cursor, PERF_RECORD_HEADER_BYTES + (type & PERF_SAMPLE_IDENTIFIER ? 8 : 0));
    if (type & PERF_SAMPLE_IP)
        fields.ip = cursor_u64(&cursor);
    if (type & PERF_SAMPLE_TID) {
        fields.pid = cursor_u32(&cursor);
        fields.tid = cursor_u32(&cursor);
    }
    if (type & PERF_SAMPLE_TIME)
        fields.time_ns = cursor_u64(&cursor);
    static const uint64_t passed[] = {PERF_SAMPLE_ADDR, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID,
                                      PERF_SAMPLE_CPU};
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
        cursor_skip(&cursor, type & passed[i] ? 8 : 0);
    uint64_t fixed = profile_event_period(run->formats.file, event_of(run, format));
    fields.period = type & PERF_SAMPLE_PERIOD ? cursor_u64(&cursor) : fixed ? fixed : 1;
    return fields;
}

static uint32_t thread_name(struct profile_run *run, const char *name)
{
    return call_profile_add_text(run->to, name, strlen(name));
}

static uint32_t thread_of(struct profile_run *run, uint32_t life,
                          const struct sample_fields *fields)
{
    const struct profile_thread thread = {
        fields->pid, fields->tid,
        thread_name(
            run, thread_names_at(&run->threads, life, fields->pid, fields->tid, fields->time_ns)),
        thread_name(
            run, thread_names_at(&run->threads, life, fields->pid, fields->pid, fields->time_ns))};
    if (thread.name == PROFILE_NOTHING || thread.process == PROFILE_NOTHING)
        return PROFILE_NOTHING;
    return call_profile_add_thread(run->to, &thread);
}

/* The record at OFFSET of the file, which has been walked over before. */
static struct perf_record record_at(const struct perf_file *file, uint64_t offset)
{
    struct findings none = {.quiet = true};
    struct perf_walk walk = {file, offset, 0};
    struct perf_record record = {0};
    perf_walk_next(&walk, &record, &none);
    findings_free(&none);
    return record;
}

/* Give the sample that ASKED is of its stack, in SPACE; NULL: nothing is known of the process. */
static int find_stack(struct profile_run *run, const struct walk_sample *asked,
                      const struct address_space *space)
{
    struct perf_record record = record_at(run->formats.file, asked->offset);
    const struct sample_format *format = sample_format_of(&run->formats, &record);
    struct user_sample sample;
    uint32_t node = 0;
    run->frame_count = 0;
    run->place = 0;
    if (user_sample_read(&sample, format, &record)) {
        if (add_chain(run, &sample, space) ||
            (space && run->unwinds && sample.registers && add_walked(run, &sample, space)))
            return -1;
    }
    if (!run->frame_count && add_ip(run, &record, read_fields(run, &record).ip, space))
        return -1;
    for (size_t i = run->frame_count; i--;)
        if ((node = call_profile_add_line(run->to, node, run->frames[i].frame,
                                          run->source->lines ? run->frames[i].line : 0)) ==
            PROFILE_NOTHING)
            return -1;
    run->to->samples[asked->number].node = node;
    run->to->samples[asked->number].place = run->place;
    return 0;
}

static int visit(void *context, const struct walk_sample *asked, const struct address_space *space)
{
    return find_stack(context, asked, space);
}

/* ---- What will be asked for ---- */

/* The map of the process that has PC, whenever it was there; NULL: none.  Looks at the last one
 * first. */
static const struct recorded_map *map_with(struct profile_run *run, uint32_t pid, uint64_t pc)
{
    const struct recorded_map *last = run->ahead.last;
    if (last && last->map.pid == pid && pc - last->map.start < last->map.len)
        return last;
    size_t count;
    const struct recorded_map *maps = records_maps_of(run->source->records, pid, &count);
    for (size_t i = count; i-- && run->ahead.steps < MOST_STEPS_AHEAD; run->ahead.steps++)
        if (pc - maps[i].map.start < maps[i].map.len)
            return run->ahead.last = &maps[i];
    return NULL;
}

/* Begin to read the names that the sample with FIELDS needs.  A wrong guess costs time, no more. */
static int look_ahead(struct profile_run *run, const struct perf_record *record,
                      const struct sample_fields *fields)
{
    if ((record->misc & PERF_MISC_CPUMODE_MASK) != PERF_MISC_USER)
        return address_names_expect_kernel(&run->names, fields->ip);
    const struct recorded_map *map = map_with(run, fields->pid, fields->ip);
    return map && map->map.filename[0] == '/'
               ? address_names_expect_user(&run->names,
                                           (uint32_t)(map - run->source->records->maps))
               : 0;
}

/* ---- All of them ---- */

/* Add what EVENT has of RECORD to the profile, with no stack yet, and ask for that. */
static int add_to_event(struct profile_run *run, const struct perf_record *record,
                        const struct sample_fields *fields, uint32_t event)
{
    const struct process_lives *lives = &run->source->processes->lives;
    struct walk_sample asked = {
        .time_ns = fields->time_ns,
        .offset = record->offset,
        .life = process_life_at(lives, fields->pid,
                                (struct life_moment){fields->time_ns, record->number}),
        .number = (uint32_t)run->to->sample_count};
    const struct call_sample sample = {.time_ns = fields->time_ns,
                                       .period = fields->period,
                                       .event = event,
                                       .thread = thread_of(run, asked.life, fields)};
    if (sample.thread == PROFILE_NOTHING || call_profile_add_sample(run->to, &sample))
        return -1;
    if (asked.life == NO_LIFE)
        return find_stack(run, &asked, NULL);
    if (array_reserve(run->asked, run->asked_count, run->asked_capacity))
        return -1;
    run->asked[run->asked_count++] = asked;
    return 0;
}

/* The count at VALUE, of an event's that RECORD, of FORMAT, has; what grew by nothing is no sample
 * of that event. */
static int add_count(struct profile_run *run, const struct perf_record *record,
                     const struct sample_format *format, struct sample_fields fields,
                     const uint8_t *value)
{
    uint64_t id = perf_get_u64(value + 8);
    uint32_t event;
    if (!sample_formats_event_of(&run->formats, id, &event))
        return 0;
    if (group_counts_set(&run->counts, id, format->inherits ? fields.tid : 0, perf_get_u64(value),
                         &fields.period))
        return -1;
    return fields.period ? add_to_event(run, record, &fields, event) : 0;
}

/* A sample that has more counts than there are events is damaged; each would be a stack. */
static int add_sample(struct profile_run *run, const struct perf_record *record)
{
    const struct sample_format *format = sample_format_of(&run->formats, record);
    const struct sample_fields fields = read_fields(run, record);
    struct sample_counts counts;
    int result = look_ahead(run, record, &fields);
    if (!sample_counts_read(&counts, format, record) ||
        counts.count > run->formats.file->event_count)
        return result ? result : add_to_event(run, record, &fields, event_of(run, format));
    for (size_t i = 0; !result && i < counts.count; i++)
        result = add_count(run, record, format, fields, counts.values + i * counts.value_bytes);
    return result;
}

static int add_samples(struct profile_run *run)
{
    struct findings known = {.quiet = true}; /* damage was reported when it was read first */
    struct perf_walk walk = perf_walk_begin(run->formats.file);
    struct perf_record record;
    int result = 0;
    while (!result && perf_walk_next(&walk, &record, &known))
        if (record.type == PERF_RECORD_SAMPLE)
            result = add_sample(run, &record);
    findings_free(&known);
    return result;
}

/* ---- A run ---- */

static int begin(struct profile_run *run)
{
    const struct profile_source *source = run->source;
    const struct perf_file *file = source->records->file;
    static const struct machine unknown; /* no native file is of it */
    const struct machine *machine = recording_machine(file, machine_here());
    run->unwinds = machine_unwinds(machine);
    if (!machine)
        machine = &unknown;
    if (call_profile_begin(run->to) || profile_events_add(run->to, file) ||
        sample_formats_read(&run->formats, file) ||
        thread_names_begin(&run->threads, &source->records->threads, &source->processes->lives) ||
        space_source_begin(&run->space_source, source->records, source->processes,
                           source->timelines) ||
        stack_walker_begin(&run->walker, &run->space_source, source->root, machine))
        return -1;
    return address_names_begin(&run->names, run->to, &run->space_source, &run->walker.files);
}

static void end(struct profile_run *run)
{
    address_names_end(&run->names);
    stack_walker_end(&run->walker);
    space_source_free(&run->space_source);
    thread_names_free(&run->threads);
    group_counts_free(&run->counts);
    sample_formats_free(&run->formats);
    free(run->asked);
    free(run->frames);
}

int profile_reading_go(struct call_profile *to, const struct profile_source *source,
                       struct findings *findings)
{
    struct profile_run run = {.source = source, .to = to};
    int result = begin(&run) || add_samples(&run);
    if (!result) {
        struct life_walk walk = {&run.space_source, run.asked, run.asked_count, &run, visit};
        result = life_walk_go(&walk);
        run.asked = walk.samples;
    }
    bool wrong = false;
    result = result || profile_events_check_periods(to, &wrong);
    end(&run);
    if (wrong)
        report_note(findings, "the samples' periods add up to more than any counter can count");
    return result ? report_failure(findings, "out of memory") : interruption_check(findings);
}
