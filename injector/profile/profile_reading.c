/* See profile_reading.h. */
#include "injector/profile/profile_reading.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/files/interruption.h"
#include "injector/history/process/inlined_calls.h"
#include "injector/log/code/deopt_text.h"
#include "injector/profile/address_names.h"
#include "injector/profile/group_counts.h"
#include "injector/profile/profile_events.h"
#include "injector/profile/shared_callers.h"
#include "injector/recording/cut_chains.h"
#include "injector/recording/host/recording_host.h"
#include "injector/recording/injected_map.h"
#include "injector/recording/thread_switches.h"
#include "injector/unwind/addresses/life_walk.h"
#include "injector/unwind/stacks/stack_walk.h"
#include "injector/unwind/stacks/user_stacks.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_FRAMES = 8192 };

/* Fields behind this one are not read, and are 0. */
static const enum sample_field last_field = SAMPLE_READ;

/* A caller in the user's part of the stack at hand. */
struct user_caller {
    uint64_t ip;
    size_t first; /* of its frames */
};

/* A thread by the names that records give it and its process. */
struct named_thread {
    const char *name, *process;
    uint32_t pid, tid;
    uint32_t number; /* in the profile */
};

enum { KNOWN_THREADS = 256 };

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
    struct user_caller *callers; /* that a later stack may share, the innermost first */
    size_t caller_count, caller_capacity;
    struct shared_callers shared;
    struct thread_switches switches;
    uint64_t *offsets; /* by sample: its record's, if threads waited */
    size_t offset_count, offset_capacity;
    struct named_thread threads[KNOWN_THREADS]; /* each replaces another one of its place */
    uint32_t place;                             /* in the first of the frames */
    struct life_moment moment;                  /* of the sample at hand */
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

/* ---- Addresses of a stack ---- */

/* A sample's stack: its chain, then what was walked of its copy. */
struct whole_stack {
    struct profile_run *run;
    const struct perf_sample *sample;
    const struct address_space *space;
    struct stack_reading reading;
    struct stack_address address; /* the one at hand */
    size_t walked;                /* so many have been taken of walker.ips */
    struct caller_steps *steps;   /* the thread's */
    size_t equal;                 /* so many of them are the chain's outermost entries */
    struct caller_step shared;    /* behind the frames; depth 0: none is */
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
        return address_names_of_user(names, stack->space, pc, found);
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

/* ---- Callers that are shared ---- */

/* Whether all of STACK that has not been taken is what its thread's last stack had there.  SEEN,
 * and an inlined call that waits for its caller's line, make the next address another one. */
static bool share_callers(const struct profile_run *run, struct whole_stack *stack, uint64_t seen)
{
    const struct stack_reading *reading = &stack->reading;
    const size_t left = stack->sample->chain.count - reading->next;
    if (!left || left > stack->equal || !stack_reading_in_user_callers(reading) || seen ||
        run->frames[run->frame_count - 1].stands_in)
        return false;
    const struct caller_step *step = &stack->steps->items[left - 1];
    if (run->frame_count + step->depth > MOST_FRAMES)
        return false;
    stack->shared = *step;
    stack->steps->count = left;
    return true;
}

/* The frames of the address at hand come next, which SEEN has a part in. */
static int note_caller(struct profile_run *run, const struct whole_stack *stack, uint64_t seen)
{
    if (seen || !stack_reading_in_user_callers(&stack->reading) || !stack->address.called) {
        run->caller_count = 0;
        return 0;
    }
    if (array_reserve(run->callers, run->caller_count, run->caller_capacity))
        return -1;
    run->callers[run->caller_count++] = (struct user_caller){stack->address.ip, run->frame_count};
    return 0;
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
    while (run->frame_count < MOST_FRAMES && !share_callers(run, stack, seen) && take_next(stack)) {
        if (stack->address.seen)
            seen = stack->address.seen;
        if (note_caller(run, stack, seen) || name_exactly(stack, seen, &found) ||
            add_frames(run, &found))
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

/* The thread of SAMPLE in LIFE. */
static uint32_t thread_of(struct profile_run *run, uint32_t life, const struct perf_sample *sample)
{
    const struct thread_names *names = &run->source->records->names;
    const struct process_lives *lives = &run->source->processes->lives;
    const struct life_moment end = {UINT64_MAX, UINT64_MAX};
    const struct life_moment next = life == NO_LIFE ? end : lives->items[life].next;
    const struct named_thread wanted = {
        .pid = sample->pid,
        .tid = sample->tid,
        .name = thread_names_at(names, sample->pid, sample->tid, sample->time_ns),
        .process = thread_names_of_process(names, sample->pid, next)};
    struct named_thread *known = &run->threads[sample->tid % KNOWN_THREADS];
    if (known->name == wanted.name && known->process == wanted.process &&
        known->pid == wanted.pid && known->tid == wanted.tid)
        return known->number;
    const struct profile_thread thread = {sample->pid, sample->tid,
                                          thread_name(run, wanted.name, sample->tid),
                                          thread_name(run, wanted.process, sample->pid)};
    if (thread.name == PROFILE_NOTHING || thread.process == PROFILE_NOTHING)
        return PROFILE_NOTHING;
    *known = wanted;
    return known->number = call_profile_add_thread(run->to, &thread);
}

/* Add the nodes of STACK's frames, and keep its callers for the thread's next stack. *NODE is the
 * innermost. */
static int add_nodes(struct profile_run *run, const struct whole_stack *stack, uint32_t *node)
{
    const bool ends_here = stack->shared.depth || stack->reading.next == stack->sample->chain.count;
    size_t callers = ends_here && !run->walker.ip_count ? run->caller_count : 0;
    if (!stack->shared.depth)
        stack->steps->count = 0;
    *node = stack->shared.node;
    for (size_t i = run->frame_count; i--;) {
        *node = call_profile_add_line(run->to, *node, run->frames[i].frame,
                                      run->source->lines ? run->frames[i].line : 0);
        if (*node == PROFILE_NOTHING)
            return -1;
        if (!callers || run->callers[callers - 1].first != i)
            continue;
        callers--;
        if (caller_steps_add(
                stack->steps,
                (struct caller_step){run->callers[callers].ip, *node,
                                     stack->shared.depth + (uint32_t)(run->frame_count - i)}))
            return -1;
    }
    return 0;
}

/* Give the sample of ASKED its stack, in SPACE; NULL: nothing is known of the process. */
static int find_stack(struct profile_run *run, const struct walk_sample *asked,
                      const struct address_space *space)
{
    const struct perf_file *file = file_of(run);
    struct perf_record record = perf_record_at(file, asked->offset);
    const struct sample_format *format = &file->events[perf_sample_event(file, &record)].format;
    struct perf_sample sample;
    run->frame_count = 0;
    run->caller_count = 0;
    run->place = 0;
    run->moment = (struct life_moment){asked->time_ns, UINT64_MAX};
    run->walker.ip_count = 0;
    bool whole = perf_sample_read_stack(&sample, format, &record);
    run->to->has_long_chains |= whole && cut_chains_may_be(&sample);
    if (!whole)
        sample.chain.count = 0;
    else if (space && run->unwinds && sample_type_has_stack(format->sample_type) &&
             sample.user_registers.values) {
        stack_walk(&run->walker, &sample, space, MOST_FRAMES);
        sample.ip = stack_walk_ip(&run->walker, &sample);
    }
    struct whole_stack stack = {.run = run,
                                .sample = &sample,
                                .space = space,
                                .reading = stack_reading_begin(&sample),
                                .steps = shared_callers_of(&run->shared, sample.tid, asked->life,
                                                           space ? space->version : 0)};
    stack.equal = run->walker.ip_count ? 0 : caller_steps_equal(stack.steps, &sample.chain);
    if (run->walker.no_memory || add_stack(run, &stack) ||
        add_nodes(run, &stack, &run->to->samples[asked->number].node))
        return -1;
    run->to->samples[asked->number].place = run->place;
    return 0;
}

static int visit(void *context, const struct walk_sample *asked, const struct address_space *space)
{
    return find_stack(context, asked, space);
}

/* ---- Waits ---- */

static int keep_offset(struct profile_run *run, uint64_t offset)
{
    if (!run->switches.wait_count)
        return 0;
    if (array_reserve(run->offsets, run->offset_count, run->offset_capacity))
        return -1;
    run->offsets[run->offset_count++] = offset;
    return 0;
}

/* The node of the stack that WAIT has, with what tells that the thread was kept from running. */
static uint32_t node_of_wait(struct profile_run *run, const struct thread_wait *wait)
{
    static const char preempted[] = "[preempted]", module[] = "[kernel]";
    struct call_frame frame = {.kind = FRAME_KERNEL};
    uint32_t node = 0;
    size_t at;
    array_bisect(at, run->offset_count, run->offsets[at] < wait->stack);
    if (wait->stack && at < run->offset_count && run->offsets[at] == wait->stack)
        node = run->to->samples[at].node;
    if (!wait->preempted)
        return node;
    frame.name = call_profile_add_string(run->to, preempted, sizeof preempted - 1);
    frame.module = call_profile_add_string(run->to, module, sizeof module - 1);
    if (frame.name == PROFILE_NOTHING || frame.module == PROFILE_NOTHING)
        return PROFILE_NOTHING;
    const uint32_t number = call_profile_add_frame(run->to, &frame);
    return number == PROFILE_NOTHING ? number : call_profile_add_node(run->to, node, number);
}

static int add_wait(struct profile_run *run, const struct thread_wait *wait)
{
    const struct perf_sample sample = {
        .pid = wait->pid, .tid = wait->tid, .time_ns = wait->from_ns};
    const uint32_t life = process_life_at(&run->source->processes->lives, wait->pid,
                                          (struct life_moment){wait->from_ns, UINT64_MAX});
    const struct call_sample added = {.time_ns = wait->from_ns,
                                      .period = wait->to_ns - wait->from_ns,
                                      .event = (uint32_t)run->to->event_count - 1,
                                      .thread = thread_of(run, life, &sample),
                                      .node = node_of_wait(run, wait),
                                      .waits = true};
    return added.thread == PROFILE_NOTHING || added.node == PROFILE_NOTHING
               ? -1
               : call_profile_add_sample(run->to, &added);
}

/* Where perf recorded off-CPU time itself, that is it. */
static int read_switches(struct profile_run *run)
{
    struct thread_switches *switches = &run->switches;
    const struct perf_file *file = file_of(run);
    if (!thread_switches_are_in(file))
        return 0;
    if (thread_switches_read(switches, file))
        return -1;
    if (file->has_off_cpu)
        switches->wait_count = 0;
    run->to->has_running = switches->source == SWITCHES_RECORDED;
    run->to->waits =
        (struct profile_waits){.count = switches->wait_count,
                               .by_last_sample = switches->wait_count - switches->exact_count -
                                                 switches->without_stack_count,
                               .without_stack = switches->without_stack_count,
                               .open = switches->open_count,
                               .endless = switches->endless_count,
                               .not_all = switches->not_all && switches->source == SWITCHES_NONE,
                               .of_processors = switches->of_processors};
    return switches->wait_count ? profile_events_add_waiting(run->to) : 0;
}

/* All stacks are known. */
static int add_waits(struct profile_run *run)
{
    int result = 0;
    for (size_t i = 0; !result && i < run->switches.wait_count; i++)
        result = add_wait(run, &run->switches.waits[i]);
    return result;
}

/* ---- Deopts ---- */

static uint32_t text_of(struct call_profile *to, struct line_text text)
{
    return call_profile_add_text(to, text.text, text.bytes);
}

static int add_deopt(struct profile_run *run, const struct told_deopt *deopt)
{
    struct call_profile *to = run->to;
    const struct profile_deopt added = {.time_ns = deopt->time_ns,
                                        .pid = deopt->pid,
                                        .frame =
                                            address_names_of_symbol(&run->names, deopt->function),
                                        .kind = text_of(to, deopt->kind),
                                        .place = text_of(to, deopt->place),
                                        .reason = text_of(to, deopt->reason)};
    if (added.frame == PROFILE_NOTHING || added.kind == PROFILE_NOTHING ||
        added.place == PROFILE_NOTHING || added.reason == PROFILE_NOTHING ||
        array_reserve(to->deopts, to->deopt_count, to->deopt_capacity))
        return -1;
    to->deopts[to->deopt_count++] = added;
    return 0;
}

static int add_logged_deopts(struct profile_run *run)
{
    const struct jit_processes *processes = run->source->processes;
    for (size_t i = 0; i < processes->count; i++) {
        const struct jit_process *process = &processes->items[i];
        for (size_t at = 0; at < process->log.deopt_count; at++) {
            const struct told_deopt deopt =
                told_deopt_of(&process->log, &process->log.deopts[at], process->pid);
            if (add_deopt(run, &deopt))
                return -1;
        }
    }
    return 0;
}

static int add_deopts_of_image(struct profile_run *run, struct native_file *file)
{
    struct told_deopt deopt;
    uint64_t addr;
    size_t size;
    const uint8_t *bytes = elf_view_section(&file->view, DEOPT_SECTION_NAME, &size, &addr);
    struct line_text text = {(const char *)bytes, size <= UINT32_MAX ? (uint32_t)size : 0};
    for (int read; bytes && (read = deopt_text_next(&text, &deopt)) >= 0;)
        if (read && add_deopt(run, &deopt))
            return -1;
    return 0;
}

/* What inject kept. */
static int add_kept_deopts(struct profile_run *run)
{
    const struct records *records = run->source->records;
    struct native_files *files = &run->walker.files;
    bool *seen = calloc(records->map_count + 1, sizeof *seen); /* by file: they are no more */
    int result = seen ? 0 : -1;
    for (uint32_t i = 0; !result && i < records->map_count; i++) {
        if (!injected_image_is(records->maps[i].map.filename))
            continue;
        struct native_file *file = native_file_of(files, i);
        if (!file)
            result = -1;
        else if (file->number <= records->map_count && !seen[file->number]) {
            seen[file->number] = true;
            result = add_deopts_of_image(run, file);
        }
    }
    free(seen);
    return result;
}

static int compare_deopts(const void *left, const void *right)
{
    const struct profile_deopt *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->frame < b->frame ? -1 : a->frame > b->frame;
}

static int add_deopts(struct profile_run *run)
{
    struct call_profile *to = run->to;
    if (to->timeless)
        return 0;
    if (add_logged_deopts(run) || add_kept_deopts(run))
        return -1;
    if (to->deopt_count)
        qsort(to->deopts, to->deopt_count, sizeof *to->deopts, compare_deopts);
    return 0;
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
    struct call_sample added = {
        .time_ns = run->to->timeless ? 0 : sample->time_ns,
        .period = period,
        .event = event,
        .thread = thread_of(run, asked.life, sample),
        .running = thread_switches_running(&run->switches, sample->time_ns, record->offset)};
    if (sample->format->off_cpu && sample->time_ns <= INT64_MAX && period < sample->time_ns) {
        added.waits = true; /* it was taken when the thread was back */
        added.time_ns -= period;
    }
    if (added.thread == PROFILE_NOTHING || call_profile_add_sample(run->to, &added) ||
        keep_offset(run, record->offset))
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
    if (!(sample.has & PERF_SAMPLE_READ) || !counts->ids || counts->count > file->event_count)
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
    if (call_profile_begin(run->to))
        return -1;
    run->to->timeless = !perf_file_has_times(file);
    if (profile_events_add(run->to, file) ||
        space_source_begin(&run->space_source, source->records, source->processes,
                           source->timelines) ||
        stack_walker_begin(&run->walker, &run->space_source, machine, &walk) || read_switches(run))
        return -1;
    return address_names_begin(&run->names, run->to, &run->space_source, &run->walker.files);
}

static void end(struct profile_run *run)
{
    address_names_end(&run->names);
    stack_walker_end(&run->walker);
    space_source_free(&run->space_source);
    group_counts_free(&run->counts);
    shared_callers_free(&run->shared);
    thread_switches_free(&run->switches);
    free(run->offsets);
    free(run->asked);
    free(run->frames);
    free(run->callers);
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
    result = result || add_waits(&run) || add_deopts(&run);
    bool wrong = false;
    result = result || profile_events_check_periods(to, &wrong);
    native_files_report(&run.walker.files, findings);
    end(&run);
    interruption_look();
    if (wrong)
        report_note(findings, "the samples' periods add up to more than any counter can count");
    return result ? report_failure(findings, "out of memory") : interruption_check(findings);
}
