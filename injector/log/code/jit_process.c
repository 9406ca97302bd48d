/* See jit_process.h. */
#include "injector/log/code/jit_process.h"

#include "injector/arrays/array.h"
#include "injector/log/jitdump/dump_name.h"
#include "perfmap/perfmap.h"

/* A runtime that logs from another thread stamps a function late: Java's agent about 0.1 ms, and a
 * thread may have to wait for a processor. */
#define LOAD_SLACK_NS UINT64_C(2000000)

static int index_lives(struct jit_processes *processes)
{
    size_t count = processes->lives.count;
    processes->by_life = malloc(count * sizeof *processes->by_life);
    for (size_t i = 0; processes->by_life && i < count; i++)
        processes->by_life[i] = NO_PROCESS;
    return processes->by_life ? 0 : -1;
}

static struct jit_process *add_process(struct jit_processes *processes, uint32_t life)
{
    const struct process_life *begun = &processes->lives.items[life];
    if (array_reserve(processes->items, processes->count, processes->capacity))
        return NULL;
    processes->by_life[life] = (uint32_t)processes->count;
    struct jit_process *process = &processes->items[processes->count++];
    *process = (struct jit_process){.pid = begun->pid,
                                    .life = life,
                                    .load_slack_ns = LOAD_SLACK_NS,
                                    .begin = begun->begin,
                                    .next = begun->next,
                                    .execed = begun->execed};
    return process;
}

struct jit_process *jit_process_of_life(struct jit_processes *processes, uint32_t life)
{
    if (!processes->by_life && index_lives(processes))
        return NULL;
    uint32_t known = processes->by_life[life];
    return known == NO_PROCESS ? add_process(processes, life) : &processes->items[known];
}

const struct jit_process *jit_processes_find(const struct jit_processes *processes, uint32_t life)
{
    if (!processes->by_life || processes->by_life[life] == NO_PROCESS)
        return NULL;
    return &processes->items[processes->by_life[life]];
}

size_t jit_process_own_functions(const struct jit_process *process)
{
    size_t count = 0;
    for (size_t i = 0; i < process->log.function_count; i++) {
        const struct jit_function *function = &process->log.functions[i];
        count += function->dump != NO_DUMP && !function->shared && jit_function_is_first(function);
    }
    return count - process->log.interpreted.shown_count;
}

int jit_process_add_dump(struct jit_process *process, const struct jit_dump *dump, char *path)
{
    if (array_reserve(process->dumps, process->dump_count, process->dump_capacity))
        return -1;
    if (array_reserve(process->dump_paths, process->dump_count, process->path_capacity))
        return -1;
    process->dumps[process->dump_count] = *dump;
    process->dump_paths[process->dump_count++] = path;
    return 0;
}

bool jit_process_dumps_are_one(const struct jit_process *process, uint32_t stage, uint32_t body)
{
    if (stage >= process->dump_count || body >= process->dump_count)
        return false;
    char *const *paths = process->dump_paths;
    return jit_dump_name_is_stage_of(paths[stage], paths[body]) ||
           jit_dump_name_is_stage_of(paths[body], paths[stage]);
}

void jit_processes_clear(struct jit_processes *processes)
{
    for (size_t i = 0; i < processes->count; i++) {
        struct jit_process *process = &processes->items[i];
        for (size_t d = 0; d < process->dump_count - process->borrowed_count; d++) {
            jit_dump_close(&process->dumps[d]);
            free(process->dump_paths[d]);
        }
        free(process->dumps);
        free(process->dump_paths);
        free(process->forks);
        free(process->touched);
        code_log_free(&process->log);
        perfmap_free(process->perf_map);
    }
    free(processes->items);
    free(processes->by_life);
    processes->items = NULL;
    processes->by_life = NULL;
    processes->count = processes->capacity = 0;
}

void jit_processes_free(struct jit_processes *processes)
{
    jit_processes_clear(processes);
    free(processes->marker_offsets);
    free(processes->refused);
    free(processes->no_code);
    source_maps_free(&processes->source_maps);
    process_lives_free(&processes->lives);
}
