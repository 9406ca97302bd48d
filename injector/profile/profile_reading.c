/* See profile_reading.h. */
#include "injector/profile/profile_reading.h"

#include "injector/arrays/array.h"
#include "injector/files/interruption.h"
#include "injector/history/process/inlined_calls.h"
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

/* The number of the owner of PC in SPACE; NULL: the process is not known. */
static uint32_t what_is_at(const struct address_space *space, uint64_t pc)
{
    return space ? address_space_at(space, pc) : SPACE_NOTHING;
}

/* ---- Addresses of a stack ---- */

/* A sample's stack: its chain, then what was walked of its copy. */
struct whole_stack {
    struct profile_run *run;
    const struct perf_sample *sample;
    const struct address_space *space;
    struct stack_reading reading;
    struct stack_address address; /* the one at hand */
    size_t walked;                /* so many have been taken of walker.ips */
};

/* The next address.  Returns false if there is none. */
static bool take_next(struct whole_stack *stack)
{
    const struct stack_walker *walker = &stack->run->walker;
    const struct perf_sample *sample = stack->sample;
    bool begun = stack->reading.begun || stack->walked;
    if (stack_reading_next(&stack->reading, &stack->address))
        return true;
    if (stack->walked == walker->ip_count)
        return false;
    stack->address =
        (struct stack_address){.ip = walker->ips[stack->walked++], .mode = PERF_MISC_USER};
    if (!begun && (sample->has & PERF_SAMPLE_IP) && perf_sample_mode(sample) == PERF_MISC_USER)
        stack->address.seen = sample->ip;
    return true;
}

/* The frames at PC, of MODE. */
static int name(const struct whole_stack *stack, unsigned mode, uint64_t pc,
                struct address_frames *found)
{
    struct address_names *names = &stack->run->names;
    if (mode == PERF_MISC_USER)
        return address_names_of_user(names, what_is_at(stack->space, pc), pc, found);
    if (mode == PERF_MISC_KERNEL)
        return address_names_of_kernel(names, pc, stack->run->moment, found);
    return address_names_of_mode(names, mode, found);
}

static int name_ip(const struct whole_stack *stack, struct address_frames *found)
{
    return name(stack, perf_sample_mode(stack->sample), stack->sample->ip, found);
}

/* The function itself, without what is inlined in it. */
static uint32_t function_of(const struct address_frames *found)
{
    return found->frames[found->count - 1].frame;
}

/* Whether inject put it there, in front of the function in which it is inlined. */
static bool stands_in(const struct address_frames *found)
{
    return found->frames[found->count - 1].stands_in;
}

/* What inject put in front of a caller is named by its own address, which is no return address. */
static int name_address(const struct whole_stack *stack, struct address_frames *found)
{
    const struct stack_address *address = &stack->address;
    if (address->called && address->ip % INLINED_CALL_BYTES == 0) {
        if (name(stack, address->mode, address->ip, found))
            return -1;
        if (stands_in(found))
            return 0;
    }
    return name(stack, address->mode, address->called ? address->ip - 1 : address->ip, found);
}

/* The frames of the address at hand, at SEEN if that is of the same function. */
static int name_exactly(const struct whole_stack *stack, uint64_t seen,
                        struct address_frames *found)
{
    struct address_frames exact;
    if (name_address(stack, found))
        return -1;
    if (!seen || (seen == stack->address.ip && !stack->address.called) || stands_in(found))
        return 0;
    uint32_t function = function_of(found);
    if (name(stack, stack->address.mode, seen, &exact))
        return -1;
    if (function_of(&exact) != function)
        return name_address(stack, found);
    *found = exact;
    return 0;
}

/* Whether the sample's own address is the first one that STACK, of which none was taken, has in a
 * function: 1 or 0, or -1 without memory.  A precise event tells where the processor was before the
 * interrupt: that may have been a call or a return ago. */
static int begins_at_ip(struct whole_stack stack)
{
    struct address_frames found;
    bool first = true;
    uint32_t function;
    do {
        if (!take_next(&stack) || stack.address.mode != perf_sample_mode(stack.sample))
            return 0;
        if (first && stack.address.seen == stack.address.ip)
            return 1;
        first = false;
        if (name_address(&stack, &found))
            return -1;
    } while (stands_in(&found));
    function = function_of(&found);
    if (name_ip(&stack, &found))
        return -1;
    return function_of(&found) == function;
}

/* Add the frames of STACK, the sample's own address in front. */
static int add_stack(struct profile_run *run, struct whole_stack *stack)
{
    struct address_frames found;
    bool has_ip = stack->sample->has & PERF_SAMPLE_IP;
    int begins = has_ip ? begins_at_ip(*stack) : 1;
    uint64_t seen = 0;
    if (begins < 0 || (!begins && (name_ip(stack, &found) || add_frames(run, &found))))
        return -1;
    while (run->frame_count < MOST_FRAMES && take_next(stack)) {
        if (stack->address.seen)
            seen = stack->address.seen;
        if (name_exactly(stack, seen, &found) || add_frames(run, &found))
            return -1;
        if (!stands_in(&found))
            seen = 0;
    }
    if (!run->frame_count && (name_ip(stack, &found) || add_frames(run, &found)))
        return -1;
    return 0;
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
    run->walker.ip_count = 0;
    bool whole = user_stacks_read(&sample, format, &record);
    run->to->has_long_chains |= whole && cut_chains_may_be(&sample);
    if (!whole)
        sample.chain.count = 0;
    else if (space && run->unwinds && sample_type_has_stack(format->sample_type) &&
             sample.user_registers.values)
        stack_walk(&run->walker, &sample, space, MOST_FRAMES);
    struct whole_stack stack = {run, &sample, space, stack_reading_begin(&sample), {0}, 0};
    if (run->walker.no_memory || add_stack(run, &stack))
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
