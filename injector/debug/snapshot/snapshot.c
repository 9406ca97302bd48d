/* See snapshot.h. */
#include "injector/debug/snapshot/snapshot.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/native/mapped_build_id.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_record.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

/* ---- Registers ---- */

void snapshot_take_registers(struct snapshot_thread *thread, const struct machine *machine,
                             const uint8_t *words)
{
    uint64_t mask = machine_perf_mask(machine);
    for (unsigned i = 0; i < PERF_REGISTERS; i++)
        if (mask >> i & 1)
            thread->registers[i] = perf_get_u64(words + (size_t)8 * machine->word_of_perf[i]);
    thread->has_registers = true;
    thread->stack_start = thread->registers[machine_perf_of_dwarf(machine, machine->sp)];
}

/* ---- Maps and threads ---- */

struct snapshot_map *snapshot_add_map(struct snapshot *snapshot)
{
    if (array_reserve(snapshot->maps, snapshot->map_count, snapshot->map_capacity))
        return NULL;
    struct snapshot_map *map = &snapshot->maps[snapshot->map_count++];
    *map = (struct snapshot_map){0};
    return map;
}

struct snapshot_thread *snapshot_add_thread(struct snapshot *snapshot)
{
    if (array_reserve(snapshot->threads, snapshot->thread_count, snapshot->thread_capacity))
        return NULL;
    struct snapshot_thread *thread = &snapshot->threads[snapshot->thread_count++];
    *thread = (struct snapshot_thread){0};
    return thread;
}

const struct snapshot_map *snapshot_map_at(const struct snapshot *snapshot, uint64_t addr)
{
    size_t behind;
    array_bisect(behind, snapshot->map_count, snapshot->maps[behind].start <= addr);
    return behind && addr < snapshot->maps[behind - 1].end ? &snapshot->maps[behind - 1] : NULL;
}

bool snapshot_map_is_file(const struct snapshot_map *map)
{
    return map && map->path && map->path[0] == '/' && !perf_map_name_is_memory(map->path);
}

static int compare_maps(const void *left, const void *right)
{
    const struct snapshot_map *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

static void find_stack(const struct snapshot *snapshot, struct snapshot_thread *thread)
{
    const struct snapshot_map *map = snapshot_map_at(snapshot, thread->stack_start);
    if (thread->stack || !map || thread->stack_start - map->start >= map->byte_count)
        return;
    thread->stack = map->bytes + (thread->stack_start - map->start);
    thread->stack_bytes = (size_t)(map->byte_count - (thread->stack_start - map->start));
}

/* The later maps of a file have the build-id of its first. */
static void find_build_ids(struct snapshot *snapshot)
{
    const struct snapshot_map *first = NULL;
    for (size_t i = 0; i < snapshot->map_count; i++) {
        struct snapshot_map *map = &snapshot->maps[i];
        bool same = first && first->path && map->path && strcmp(first->path, map->path) == 0;
        if (snapshot_map_is_file(map) && map->offset == 0 && map->byte_count)
            mapped_build_id_read(&map->build_id, map->bytes, (size_t)map->byte_count);
        if (same && !map->build_id.size)
            map->build_id = first->build_id;
        if (!same && map->path)
            first = map;
    }
}

void snapshot_complete(struct snapshot *snapshot)
{
    if (snapshot->map_count)
        qsort(snapshot->maps, snapshot->map_count, sizeof *snapshot->maps, compare_maps);
    for (size_t i = 0; i < snapshot->thread_count; i++)
        find_stack(snapshot, &snapshot->threads[i]);
    find_build_ids(snapshot);
}

/* ---- Memory ---- */

static bool read_live(const struct snapshot *snapshot, uint64_t addr, void *bytes, size_t count)
{
    struct iovec here = {bytes, count}, there = {(void *)(uintptr_t)addr, count};
    return process_vm_readv((pid_t)snapshot->pid, &here, 1, &there, 1, 0) == (ssize_t)count;
}

bool snapshot_read(const struct snapshot *snapshot, uint64_t addr, void *bytes, size_t count)
{
    if (snapshot->live)
        return read_live(snapshot, addr, bytes, count);
    const struct snapshot_map *map = snapshot_map_at(snapshot, addr);
    if (!map || addr - map->start > map->byte_count ||
        count > map->byte_count - (addr - map->start))
        return false;
    if (count)
        memcpy(bytes, map->bytes + (addr - map->start), count);
    return true;
}

void snapshot_free(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->map_count; i++)
        free(snapshot->maps[i].path);
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        free(snapshot->threads[i].copy);
        free(snapshot->threads[i].interrupted);
    }
    free(snapshot->maps);
    free(snapshot->threads);
    if (snapshot->core)
        munmap((void *)(uintptr_t)snapshot->core, snapshot->core_bytes);
    *snapshot = (struct snapshot){0};
}
