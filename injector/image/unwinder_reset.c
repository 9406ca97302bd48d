/* See unwinder_reset.h. */
#include "injector/image/unwinder_reset.h"

#include "injector/image/added_record.h"
#include "injector/perf_data/perf_format.h"

/* Linux gives out no pid of 2^22 or more. */
#define CLONE_PID_BIT (UINT32_C(1) << 30)

/* Maps times resets.  perf 6.1 copies about 3 million maps a second. */
#define MAX_MAP_COPIES (UINT64_C(4) << 20)

/* ---- When ---- */

void unwinder_reset_open(struct unwinder_reset *reset, const struct thread_list *threads,
                         const struct jit_process *process, uint32_t process_index,
                         const struct timeline *timeline)
{
    uint64_t maps = process->map_count, moments = 0;
    *reset = (struct unwinder_reset){thread_sweep_begin(threads, process->pid), process_index,
                                     process->pid, false};
    for (size_t i = 0; i < timeline->change_count; i++) {
        const struct change *change = &timeline->changes[i];
        moments += i == 0 || change->time_ns != change[-1].time_ns;
        maps += change->kind == CHANGE_FUNCTION;
    }
    reset->by_comm = maps * moments > MAX_MAP_COPIES;
}

void unwinder_reset_close(struct unwinder_reset *reset)
{
    thread_sweep_end(&reset->threads);
}

static int append(struct unwinder_reset *reset, struct added_maps *added, uint64_t time_ns,
                  uint32_t kind, uint32_t index, uint64_t event)
{
    return added_maps_append(
        added, (struct added_map){time_ns, event, event, reset->process, kind, index, 0});
}

/* A thread made anew has its process's name; it may have had another. */
static int add_threads(struct unwinder_reset *reset, struct added_maps *added, uint64_t time_ns)
{
    if (thread_sweep_to(&reset->threads, time_ns))
        return -1;
    for (size_t i = 0; i < reset->threads.count; i++) {
        const struct live_thread *thread = &reset->threads.threads[i];
        if (thread->tid == reset->pid)
            continue;
        if (append(reset, added, time_ns, ADDED_THREAD, thread->tid, 0) ||
            (thread->name != THREAD_NO_NAME &&
             append(reset, added, time_ns, ADDED_THREAD_NAME, thread->tid, thread->name)))
            return -1;
    }
    return 0;
}

int unwinder_reset_add(struct unwinder_reset *reset, struct added_maps *added, uint64_t time_ns)
{
    if (reset->by_comm)
        return append(reset, added, time_ns, ADDED_COMM, 0, 0);
    return append(reset, added, time_ns, ADDED_CLONE, 0, 0) ||
                   append(reset, added, time_ns, ADDED_RETURN, 0, 0) ||
                   add_threads(reset, added, time_ns)
               ? -1
               : 0;
}

/* ---- The records ---- */

static int put_fork(const struct added_map *map, const struct added_map_source *source,
                    struct byte_sink *sink, const uint32_t pid_ppid_tid_ptid[4])
{
    size_t start = added_record_begin(sink, PERF_RECORD_FORK, 0);
    for (size_t i = 0; i < 4; i++)
        sink_u32(sink, pid_ppid_tid_ptid[i]);
    sink_u64(sink, map->time_ns);
    added_record_trailer(sink, map, source, &source->processes[map->process].witness);
    return added_record_end(sink, start);
}

/* The name in the record COMM, for thread TID of the process; nothing if COMM is too short to hold one. */
static int put_name(const struct added_map *map, const struct added_map_source *source,
                    struct byte_sink *sink, const struct perf_record *comm, uint32_t tid,
                    uint16_t misc)
{
    const struct perf_record *witness = &source->processes[map->process].witness;
    const struct sample_layout *layout;
    bool has_trailer = perf_record_trailer(source->profile->file, witness, &layout) != NULL;
    const size_t trailer_bytes = has_trailer ? layout->trailer_bytes : 0;
    const size_t ids_bytes = PERF_RECORD_HEADER_BYTES + 8; /* header, pid, tid */
    if (comm->size < ids_bytes + trailer_bytes)
        return 0;
    size_t start = added_record_begin(sink, PERF_RECORD_COMM, misc);
    sink_u32(sink, source->processes[map->process].pid);
    sink_u32(sink, tid);
    sink_bytes(sink, comm->bytes + ids_bytes, comm->size - ids_bytes - trailer_bytes);
    added_record_trailer(sink, map, source, witness);
    return added_record_end(sink, start);
}

/* The record that named PROCESS, or that it has inherited its name from, last before TIME_NS. */
static const struct perf_record *find_comm(const struct profile *profile,
                                           const struct jit_process *process, uint64_t time_ns)
{
    for (; process; process = process->parent) {
        const struct perf_record *comm =
            profile_comm_of(profile, process->pid, process->begin.time_ns, time_ns);
        if (comm || !process->parent)
            return comm;
        time_ns = process->forked.time_ns;
    }
    return NULL;
}

int unwinder_reset_put(const struct added_map *map, const struct added_map_source *source,
                       struct byte_sink *sink)
{
    uint32_t pid = source->processes[map->process].pid, clone = pid | CLONE_PID_BIT;
    const struct perf_record *comm;
    switch (map->kind) {
    case ADDED_CLONE:
        return put_fork(map, source, sink, (uint32_t[]){clone, pid, clone, pid});
    case ADDED_RETURN:
        return put_fork(map, source, sink, (uint32_t[]){pid, clone, pid, clone});
    case ADDED_THREAD:
        return put_fork(map, source, sink, (uint32_t[]){pid, pid, map->index, pid});
    case ADDED_THREAD_NAME:
        return put_name(map, source, sink, &source->threads->events[map->start].record, map->index,
                        0);
    default:
        comm = find_comm(source->profile, &source->processes[map->process], map->time_ns);
        return comm ? put_name(map, source, sink, comm, pid, PERF_MISC_COMM_EXEC) : 0;
    }
}
