/* See shared_code.h. */
#include "injector/history/process/shared_code.h"

#include <stdlib.h>

int shared_code_begin(struct shared_code *code, const struct jit_processes *processes,
                      const uint32_t *order, const bool *has_child, const struct records *records)
{
    code->has_child = has_child;
    struct shared_memory *memory = &code->memory;
    if (shared_memory_find(memory, &processes->lives, order, records))
        return -1;
    if (memory->count == 0)
        return 0;
    struct address_span *spans = malloc(memory->count * sizeof *spans);
    if (!spans)
        return -1;
    for (size_t i = 0; i < memory->count; i++)
        spans[i] = (struct address_span){memory->holds[i].start, memory->holds[i].end};
    size_t count = address_spans_join(spans, memory->count);
    code->all_sampled = perf_file_has_feature(records->file, PERF_FEATURE_AUXTRACE);
    int result = code->all_sampled ? 0
                                   : sampled_addresses_read(&code->sampled, records->file,
                                                            &processes->lives, spans, count);
    sampled_addresses_sort(&code->sampled);
    free(spans);
    return result;
}

/* The addresses that EVENT changes. */
static struct address_span extent_of(const struct code_log *log, const struct code_event *event)
{
    const struct jit_function *function = code_event_function(log, event);
    if (function)
        return (struct address_span){function->addr, function->addr + function->size};
    const struct code_unload *unload = &log->unloads[event->index];
    return (struct address_span){unload->addr, unload->addr + unload->size};
}

/* A perf map has no times: its functions are its process's alone. */
static bool is_of_perf_map(const struct jit_process *process, const struct code_event *event)
{
    const struct jit_function *function = code_event_function(&process->log, event);
    return process->perf_map && function && function->dump < process->dump_count &&
           !process->dumps[function->dump].data;
}

const struct shared_hold *shared_code_hold(const struct shared_code *code,
                                           const struct jit_process *process,
                                           const struct code_event *event, uint32_t life)
{
    if (code->memory.count == 0 || is_of_perf_map(process, event))
        return NULL;
    struct address_span extent = extent_of(&process->log, event);
    return shared_memory_at(&code->memory, life, extent.start, extent.end, event->time_ns);
}

bool shared_code_is_of(const struct shared_hold *member, const struct code_log *log,
                       struct code_event *event)
{
    struct address_span extent = extent_of(log, event);
    if (extent.start < member->start || extent.end > member->end || event->time_ns >= member->to_ns)
        return false;
    if (event->time_ns > member->from_ns || !member->from_ns)
        return true;
    event->time_ns = member->from_ns + 1;
    return !member->inherited; /* else the earlier code came with the fork */
}

/* Moved functions must be there.  An unload of the first piece is an unload of all pieces. */
bool shared_code_is_sampled(const struct shared_code *code, uint32_t life,
                            const struct code_log *log, const struct code_event *event)
{
    const struct jit_function *function = code_event_function(log, event);
    struct address_span extent = extent_of(log, event);
    return code->all_sampled || log->move_count || (function && function->piece) ||
           sampled_addresses_meet(&code->sampled, code->has_child[life] ? NO_LIFE : life,
                                  extent.start, extent.end);
}

void shared_code_mark(struct code_log *log, const struct code_event *event)
{
    struct jit_function *function = code_event_function(log, event);
    if (function)
        function->shared = true;
    else
        log->unloads[event->index].shared = true;
}

bool shared_code_is_marked(const struct code_log *log, const struct code_event *event)
{
    const struct jit_function *function = code_event_function(log, event);
    return function ? function->shared : log->unloads[event->index].shared;
}

void shared_code_free(struct shared_code *code)
{
    shared_memory_free(&code->memory);
    sampled_addresses_free(&code->sampled);
}
