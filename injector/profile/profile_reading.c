/* See profile_reading.h. */
#include "injector/profile/profile_reading.h"

#include "injector/arrays/array.h"
#include "injector/files/interruption.h"
#include "injector/profile/address_names.h"
#include "injector/profile/group_counts.h"
#include "injector/profile/profile_events.h"
#include "injector/recording/cut_chains.h"
#include "injector/recording/host/recording_host.h"
#include "injector/unwind/addresses/life_walk.h"
#include "injector/unwind/stacks/stack_walk.h"
#include "injector/unwind/stacks/user_stacks.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_FRAMES = 8192 };

/* Fields behind this one are not read, and are 0. */
static const enum sample_field last_field = SAMPLE_READ;

struct profile_run {
    const struct profile_source *source;
    struct call_profile *to;
    struct space_source space_source;
    struct stack_walker walker;
    struct address_names names;
    struct group_counts counts;
    struct walk_sample *asked; /* of those in a life that is known */
    size_t asked_count, asked_capacity;
    struct address_frame *frames; /* of the stack at hand, the innermost first */
    size_t frame_count, frame_capacity;
    uint32_t place;            /* in the first of these */
    struct life_moment moment; /* of the sample at hand */
    bool unwinds;
};

/* ---- Frames of a stack ---- */

/* The line of the frame just added is passed to the first inlined call in front of it.  The lines
 * at which the other calls were made are unknown. */
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
    return address_names_of_kernel(&run->names, pc, run->moment, &found) || add_frames(run, &found)
               ? -1
               : 0;
}

/* The number of the owner of PC in SPACE; NULL: the process is not known. */
static uint32_t what_is_at(const struct address_space *space, uint64_t pc)
{
    return space ? address_space_at(space, pc) : SPACE_NOTHING;
}

/* The chain in SAMPLE, as it was recorded: the first address behind a mark is where it was, those
 * behind it are return addresses. */
static int add_chain(struct profile_run *run, const struct perf_sample *sample,
                     const struct address_space *space)
{
    uint64_t context = PERF_CONTEXT_USER;
    bool innermost = true;
    for (size_t i = 0; i < sample->chain.count && run->frame_count < MOST_FRAMES; i++) {
        uint64_t ip = perf_get_u64(sample->chain.entries + 8 * i), pc = innermost ? ip : ip - 1;
        if (ip >= PERF_CONTEXT_LOWEST) {
            context = ip;
            innermost = true;
            continue;
        }
        innermost = false;
        if (context == PERF_CONTEXT_KERNEL ? add_kernel(run, pc)
                                           : add_user(run, what_is_at(space, pc), pc))
            return -1;
    }
    return 0;
}

/* The user's stack in SAMPLE, which is walked now. */
static int add_walked(struct profile_run *run, const struct perf_sample *sample,
                      const struct address_space *space)
{
    stack_walk(&run->walker, sample, space, MOST_FRAMES);
    for (size_t i = 0; !run->walker.no_memory && i < run->walker.ip_count; i++)
        if (add_user(run, run->walker.frames[i].what, run->walker.ips[i]))
            return -1;
    return run->walker.no_memory ? -1 : 0;
}

/* Add the sampled address, if the sample has no more. */
static int add_ip(struct profile_run *run, const struct perf_sample *sample,
                  const struct address_space *space)
{
    return perf_sample_mode(sample) == PERF_MISC_USER
               ? add_user(run, what_is_at(space, sample->ip), sample->ip)
               : add_kernel(run, sample->ip);
}

/* ---- A sample ---- */

static const struct perf_file *file_of(const struct profile_run *run)
{
    return run->source->records->file;
}

static uint64_t period_of(const struct profile_run *run, const struct perf_sample *sample,
                          uint32_t event)
{
    if ((sample->format->sample_type | sample->has) & PERF_SAMPLE_PERIOD)
        return sample->period;
    uint64_t fixed = profile_event_period(file_of(run), event);
    return fixed ? fixed : 1;
}

/* The string NAME, of thread TID; "": nothing names it. */
static uint32_t thread_name(struct profile_run *run, const char *name, uint32_t tid)
{
    char number[THREAD_NUMBER_BYTES];
    if (!*name)
        thread_names_number(number, tid);
    name = *name ? name : number;
    return call_profile_add_text(run->to, name, strlen(name));
}

static uint32_t thread_of(struct profile_run *run, uint32_t life, const struct perf_sample *sample)
{
    const struct thread_names *names = &run->source->records->names;
    const struct process_lives *lives = &run->source->processes->lives;
    const struct life_moment end = {UINT64_MAX, UINT64_MAX};
    const struct life_moment next = life == NO_LIFE ? end : lives->items[life].next;
    const struct profile_thread thread = {
        sample->pid, sample->tid,
        thread_name(run, thread_names_at(names, sample->pid, sample->tid, sample->time_ns),
                    sample->tid),
        thread_name(run, thread_names_of_process(names, sample->pid, next), sample->pid)};
    if (thread.name == PROFILE_NOTHING || thread.process == PROFILE_NOTHING)
        return PROFILE_NOTHING;
    return call_profile_add_thread(run->to, &thread);
}

/* Give the sample of ASKED its stack, in SPACE; NULL: nothing is known of the process. */
static int find_stack(struct profile_run *run, const struct walk_sample *asked,
                      const struct address_space *space)
{
    const struct perf_file *file = file_of(run);
    struct perf_record record = perf_record_at(file, asked->offset);
    const struct sample_format *format = &file->events[perf_sample_event(file, &record)].format;
    struct perf_sample sample;
    uint32_t node = 0;
    run->frame_count = 0;
    run->place = 0;
    run->moment = (struct life_moment){asked->time_ns, UINT64_MAX};
    if (user_stacks_read(&sample, format, &record)) {
        run->to->has_long_chains |= cut_chains_may_be(&sample);
        if (add_chain(run, &sample, space) ||
            (space && run->unwinds && sample_type_has_stack(format->sample_type) &&
             sample.user_registers.values && add_walked(run, &sample, space)))
            return -1;
    }
    if (!run->frame_count && add_ip(run, &sample, space))
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

/* ---- All of them ---- */

/* Add PERIOD, EVENT's part of SAMPLE, to the profile, with no stack yet, and request the stack. */
static int add_to_event(struct profile_run *run, const struct perf_sample *sample, uint32_t event,
                        uint64_t period)
{
    const struct process_lives *lives = &run->source->processes->lives;
    const struct perf_record *record = sample->record;
    struct walk_sample asked = {
        .time_ns = sample->time_ns,
        .offset = record->offset,
        .life = process_life_at(lives, sample->pid,
                                (struct life_moment){sample->time_ns, record->number}),
        .number = (uint32_t)run->to->sample_count};
    const struct call_sample added = {.time_ns = sample->time_ns,
                                      .period = period,
                                      .event = event,
                                      .thread = thread_of(run, asked.life, sample)};
    if (added.thread == PROFILE_NOTHING || call_profile_add_sample(run->to, &added))
        return -1;
    if (asked.life == NO_LIFE)
        return find_stack(run, &asked, NULL);
    if (array_reserve(run->asked, run->asked_count, run->asked_capacity))
        return -1;
    run->asked[run->asked_count++] = asked;
    return 0;
}

/* Count number INDEX in SAMPLE, of some event.  A count that did not grow is no sample of that
 * event. */
static int add_count(struct profile_run *run, const struct perf_sample *sample, size_t index)
{
    const struct sample_counts *counts = &sample->counts;
    uint64_t id = perf_get_u64(counts->ids + index * counts->value_bytes);
    uint64_t value = perf_get_u64(counts->values + index * counts->value_bytes);
    uint64_t period;
    uint32_t event;
    if (!perf_file_event_of(file_of(run), id, &event))
        return 0;
    if (group_counts_set(&run->counts, id, sample->format->inherits ? sample->tid : 0, value,
                         &period))
        return -1;
    return period ? add_to_event(run, sample, event, period) : 0;
}

/* A sample that has more counts than there are events is damaged; each would be a stack. */
static int add_sample(struct profile_run *run, const struct perf_record *record)
{
    const struct perf_file *file = file_of(run);
    uint32_t event = perf_sample_event(file, record);
    struct perf_sample sample;
    perf_sample_read(&sample, &file->events[event].format, record, last_field);
    const struct sample_counts *counts = &sample.counts;
    int result = 0;
    if (!(sample.has & PERF_SAMPLE_READ) || !counts->grouped || !counts->ids ||
        counts->count > file->event_count)
        return add_to_event(run, &sample, event, period_of(run, &sample, event));
    for (size_t i = 0; !result && i < counts->count; i++)
        result = add_count(run, &sample, i);
    return result;
}

static int add_samples(struct profile_run *run)
{
    struct findings known = {.quiet = true}; /* damage was reported when it was read first */
    struct perf_walk walk = perf_walk_begin(file_of(run));
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
    const struct stack_walk_options walk = {.root = source->root};
    static const struct machine unknown; /* no native file is of it */
    const struct machine *machine = recording_machine(file, machine_here());
    run->unwinds = machine_unwinds(machine);
    if (!machine)
        machine = &unknown;
    if (call_profile_begin(run->to) || profile_events_add(run->to, file) ||
        space_source_begin(&run->space_source, source->records, source->processes,
                           source->timelines) ||
        stack_walker_begin(&run->walker, &run->space_source, machine, &walk))
        return -1;
    return address_names_begin(&run->names, run->to, &run->space_source, &run->walker.files);
}

static void end(struct profile_run *run)
{
    address_names_end(&run->names);
    stack_walker_end(&run->walker);
    space_source_free(&run->space_source);
    group_counts_free(&run->counts);
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
    native_files_report(&run.walker.files, findings);
    end(&run);
    interruption_look();
    if (wrong)
        report_note(findings, "the samples' periods add up to more than any counter can count");
    return result ? report_failure(findings, "out of memory") : interruption_check(findings);
}
