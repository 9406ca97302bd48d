/* See user_stacks.h. */
#include "injector/unwind/stacks/user_stacks.h"

#include "injector/arrays/array.h"
#include "injector/files/interruption.h"
#include "injector/recording/host/recording_host.h"
#include "injector/unwind/addresses/life_walk.h"

#include <stdlib.h>
#include <string.h>

/* One run over a recording. */
struct unwinding {
    struct user_stacks *stacks;
    const struct records *records;
    struct findings *findings;
    struct walk_sample *samples;
    size_t count, capacity;
};

bool user_stacks_possible(const struct perf_file *file)
{
    return machine_unwinds(recording_machine(file, machine_here()));
}

static int refuse(const struct perf_file *file, struct findings *findings)
{
    const struct machine *here = recording_machine(file, machine_here());
    struct recorded_machine said = recorded_machine_of(file);
    const char *name = said.name ? said.name
                       : here    ? here->names[0]
                                 : "a machine that is not known";
    return report_failure(findings,
                          "%s: it was recorded on %.*s: stacks of this machine can't be unwound "
                          "here: say --stacks keep",
                          file->path, (int)(said.name ? said.name_bytes : strlen(name)), name);
}

/* ---- Which samples ---- */

bool user_stacks_want(const struct user_stacks *stacks, const struct sample_format *format)
{
    return sample_type_has_stack(format->sample_type) ||
           (stacks->options.calls && sample_format_has_chain_alone(format));
}

size_t user_stacks_most_frames(const struct perf_sample *sample)
{
    enum { CHAIN_BYTES = 16 }; /* its length, and PERF_CONTEXT_USER */
    size_t replaced = perf_sample_place(sample, SAMPLE_BEHIND_CALLCHAIN) -
                      perf_sample_place(sample, SAMPLE_CALLCHAIN);
    if (sample_type_has_stack(sample->format->sample_type))
        replaced += perf_sample_place(sample, SAMPLE_BEHIND_STACK) -
                    perf_sample_place(sample, SAMPLE_REGS_USER);
    size_t used =
        sample->record->size - replaced + CHAIN_BYTES + 8 * perf_sample_user_entry(sample);
    return used < PERF_RECORD_MOST_BYTES ? (PERF_RECORD_MOST_BYTES - used) / 8 : 0;
}

static const struct sample_format *format_of(const struct perf_file *file,
                                             const struct perf_record *record)
{
    return &file->events[perf_sample_event(file, record)].format;
}

static int add_sample(struct unwinding *run, const struct perf_record *record)
{
    struct walk_sample *samples =
        array_room(run->samples, run->count, &run->capacity, sizeof *samples);
    uint32_t pid = 0;
    if (!samples)
        return -1;
    run->samples = samples;
    struct walk_sample sample = {
        .offset = record->offset, .number = (uint32_t)run->stacks->count++, .life = NO_LIFE};
    if (perf_record_time(run->records->file, record, &sample.time_ns) &&
        perf_record_sample(run->records->file, record, &pid, NULL))
        sample.life = process_life_at(&run->stacks->source.processes->lives, pid,
                                      (struct life_moment){sample.time_ns, record->number});
    if (sample.life != NO_LIFE)
        samples[run->count++] = sample;
    return 0;
}

static int collect_samples(struct unwinding *run)
{
    struct findings known = {.quiet = true}; /* damage was reported when the profile was read */
    struct perf_walk walk = perf_walk_begin(run->records->file);
    struct perf_record record;
    int result = 0;
    while (!result && perf_walk_next(&walk, &record, &known))
        if (record.type == PERF_RECORD_SAMPLE &&
            user_stacks_want(run->stacks, format_of(run->records->file, &record)))
            result = add_sample(run, &record);
    findings_free(&known);
    return result;
}

/* ---- Each of them ---- */

/* The chain of the stack that was walked, with its inlined calls, if they are wanted and it has
 * room for them. */
static uint32_t chain_of_stack(struct user_stacks *stacks, const struct perf_sample *sample)
{
    const struct stack_walker *walker = &stacks->walker;
    size_t count = 0;
    if (stacks->options.calls)
        count = inlined_frames_of_stack(&stacks->inlined, walker, stacks->ips,
                                        user_stacks_most_frames(sample));
    if (count == SIZE_MAX)
        return UINT32_MAX;
    return count ? chain_tree_add(&stacks->tree, stacks->ips, count)
                 : chain_tree_add(&stacks->tree, walker->ips, walker->ip_count);
}

/* A chain that was recorded is kept only if it gets longer. */
static int visit_chain(struct user_stacks *stacks, const struct walk_sample *asked,
                       const struct perf_sample *sample, const struct address_space *space)
{
    size_t count = inlined_frames_of_sample(&stacks->inlined, sample, space, stacks->ips,
                                            user_stacks_most_frames(sample));
    uint32_t chain =
        count == SIZE_MAX ? UINT32_MAX : chain_tree_add(&stacks->tree, stacks->ips, count);
    stacks->chains[asked->number] = chain;
    return chain == UINT32_MAX ? -1 : 0;
}

static int visit(void *context, const struct walk_sample *asked, const struct address_space *space)
{
    struct unwinding *run = context;
    struct user_stacks *stacks = run->stacks;
    struct perf_record record = perf_record_at(run->records->file, asked->offset);
    const struct sample_format *format = format_of(run->records->file, &record);
    struct perf_sample sample;
    if (!perf_sample_read_stack(&sample, format, &record))
        return 0; /* records_read has reported it */
    if (!sample_type_has_stack(format->sample_type))
        return visit_chain(stacks, asked, &sample, space);
    enum stack_end end =
        stack_walk(&stacks->walker, &sample, space, user_stacks_most_frames(&sample));
    const uint64_t thread = (uint64_t)asked->life << 32 | sample.tid;
    if (stacks->options.stitch) {
        enum stack_end found = end;
        end = stack_stitch(&stacks->stitches, &stacks->walker, thread, found);
        stacks->counts.inferred += found != end && end == STACK_WHOLE;
    }
    uint32_t chain = chain_of_stack(stacks, &sample);
    if (stacks->walker.no_memory || chain == UINT32_MAX || end == STACK_ENDS)
        return -1;
    stacks->chains[asked->number] = chain;
    const uint64_t ip = stack_walk_ip(&stacks->walker, &sample);
    stacks->firsts[asked->number] = ip == sample.ip ? 0 : ip;
    if (sample.user_registers.abi == SAMPLE_ABI_NONE)
        return 0; /* a kernel thread */
    if (stacks->options.walked && stacks->options.walked(stacks->options.context, &stacks->walker))
        return -1;
    if (sample.user_stack.cut && sample.user_stack.size > stacks->counts.copied_bytes)
        stacks->counts.copied_bytes = sample.user_stack.size;
    return stack_counts_add(&stacks->counts, &stacks->walker, thread, end);
}

static int unwind_all(struct unwinding *run)
{
    struct user_stacks *stacks = run->stacks;
    if (collect_samples(run))
        return -1;
    stacks->chains = calloc(stacks->count + 1, sizeof *stacks->chains);
    stacks->firsts = calloc(stacks->count + 1, sizeof *stacks->firsts);
    stacks->ips = malloc(CHAIN_MOST_IPS * sizeof *stacks->ips);
    if (!stacks->chains || !stacks->firsts || !stacks->ips)
        return -1;
    struct life_walk walk = {&stacks->source, run->samples, run->count, run, visit};
    int result = life_walk_go(&walk);
    run->samples = walk.samples;
    return result;
}

int user_stacks_unwind(struct user_stacks *stacks, const struct user_stacks_options *options,
                       const struct records *records, const struct jit_processes *processes,
                       const struct timeline *timelines, struct findings *findings)
{
    struct unwinding run = {.stacks = stacks, .records = records, .findings = findings};
    const struct machine *machine = recording_machine(records->file, machine_here());
    bool unwinds = machine_unwinds(machine);
    const struct stack_walk_options walk = {.root = options->root,
                                            .judges = options->walked != NULL};
    *stacks = (struct user_stacks){.options = *options};
    if (!unwinds && perf_file_has_stacks(records->file))
        return refuse(records->file, findings);
    int result = space_source_begin(&stacks->source, records, processes, timelines) ||
                 inlined_frames_begin(&stacks->inlined, &stacks->source, options->calls) ||
                 (unwinds && stack_walker_begin(&stacks->walker, &stacks->source, machine, &walk));
    result = result || unwind_all(&run);
    native_files_report(&stacks->walker.files, findings);
    free(run.samples);
    return result ? report_failure(findings, "out of memory") : interruption_check(findings);
}

void user_stacks_free(struct user_stacks *stacks)
{
    stack_walker_end(&stacks->walker);
    space_source_free(&stacks->source);
    chain_tree_free(&stacks->tree);
    stack_counts_free(&stacks->counts);
    stack_stitches_free(&stacks->stitches);
    inlined_frames_end(&stacks->inlined);
    free(stacks->ips);
    free(stacks->firsts);
    free(stacks->chains);
    *stacks = (struct user_stacks){0};
}
