/* See code_evidence.h. */
#include "injector/debug/code_evidence.h"

/* Of so many functions, evenly chosen, the first bytes. */
enum { MOST_COMPARED = 4096, FIRST_BYTES = 64 };

/* Code in a file is there whoever logged it, and memory that a core leaves out is not known. */
static bool can_be_compared(const struct snapshot *snapshot, const struct jit_function *function)
{
    const struct snapshot_map *map = snapshot_map_at(snapshot, function->addr);
    if (!function->code || !function->size || snapshot_map_is_file(map))
        return false;
    return !map || snapshot->live || map->byte_count;
}

static bool is_present(const struct snapshot *snapshot, const struct jit_function *function)
{
    uint8_t bytes[FIRST_BYTES];
    size_t count = function->size < FIRST_BYTES ? (size_t)function->size : (size_t)FIRST_BYTES;
    size_t equal = 0;
    if (!snapshot_read(snapshot, function->addr, bytes, count))
        return false;
    for (size_t i = 0; i < count; i++)
        equal += bytes[i] == function->code[i];
    return 2 * equal >= count;
}

struct code_evidence code_evidence_take(const struct snapshot *snapshot,
                                        const struct jit_processes *processes,
                                        const struct timeline *timelines)
{
    struct code_evidence evidence = {0};
    for (size_t i = 0; i < processes->count; i++) {
        const struct code_log *log = timelines[i].log;
        size_t step = log->function_count / MOST_COMPARED + 1;
        for (size_t j = 0; j < log->function_count; j += step) {
            if (!timelines[i].states[j].visible || !can_be_compared(snapshot, &log->functions[j]))
                continue;
            evidence.compared++;
            evidence.present += is_present(snapshot, &log->functions[j]);
        }
    }
    return evidence;
}
