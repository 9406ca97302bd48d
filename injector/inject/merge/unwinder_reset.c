/* See unwinder_reset.h. */
#include "injector/inject/merge/unwinder_reset.h"

#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/tracepoints.h"

/* Linux gives out no pid of 2^22 or more. */
#define CLONE_PID_BIT (UINT32_C(1) << 30)

/* Maps and threads, times resets.  perf 6.1 copies about 3 million maps a second. */
#define MAX_MAP_COPIES (UINT64_C(4) << 20)

/* ---- When ---- */

enum reset_policy unwinder_reset_policy(const struct perf_file *file)
{
    if (!perf_file_has_stacks(file))
        return RESET_NEVER;
    return tracepoints_are_counted(file) ? RESET_BY_COMM : RESET_BY_FORKS;
}

void unwinder_reset_open(struct unwinder_reset *reset, struct thread_sweep *threads,
                         const struct jit_process *process, uint32_t process_index,
                         const struct timeline *timeline, enum reset_policy policy)
{
    uint64_t copies = process->map_count + (threads->end - threads->next), moments = 0;
    for (size_t i = 0; i < timeline->change_count; i++) {
        const struct change *change = &timeline->changes[i];
        moments += i == 0 || change->time_ns != change[-1].time_ns;
        copies += change->kind == CHANGE_FUNCTION;
    }
    *reset = (struct unwinder_reset){threads, process_index, process->pid,
                                     policy == RESET_BY_COMM || copies * moments > MAX_MAP_COPIES};
}

/* One reset, and where its records go. */
struct reset_moment {
    const struct unwinder_reset *reset;
    struct added_records *added;
    uint64_t time_ns;
};

static int append(const struct reset_moment *moment, uint32_t kind, uint32_t tid, uint64_t event)
{
    return added_records_append(moment->added,
                                (struct added_record){moment->time_ns, event, event, 0,
                                                      moment->reset->process, tid, kind, 0, 0});
}

static int add_namespaces(const struct reset_moment *moment, const struct live_thread *thread)
{
    return thread->namespaces == THREAD_NO_NAMESPACES
               ? 0
               : append(moment, ADDED_NAMESPACES, thread->tid, thread->namespaces);
}

/* A thread made anew has its process's name; it may have had another. */
static int add_thread(const struct reset_moment *moment, const struct live_thread *thread)
{
    if (thread->tid != moment->reset->pid && (append(moment, ADDED_THREAD, thread->tid, 0) ||
                                              append(moment, ADDED_NAME, thread->tid, 0)))
        return -1;
    return add_namespaces(moment, thread);
}

static int add_forks(const struct reset_moment *moment, struct thread_sweep *threads)
{
    uint32_t pid = moment->reset->pid;
    if (append(moment, ADDED_CLONE, thread_sweep_speaker(threads), 0) ||
        append(moment, ADDED_RETURN, pid, 0))
        return -1;
    for (size_t i = 0; i < threads->count; i++)
        if (add_thread(moment, &threads->threads[i]))
            return -1;
    return threads->main_ended ? append(moment, ADDED_EXIT, pid, 0) : 0;
}

int unwinder_reset_add(struct unwinder_reset *reset, struct added_records *added, uint64_t time_ns)
{
    const struct reset_moment moment = {reset, added, time_ns};
    return reset->by_comm ? append(&moment, ADDED_COMM, thread_sweep_speaker(reset->threads), 0)
                          : add_forks(&moment, reset->threads);
}

/* ---- The records ---- */

/* A FORK, or an EXIT, which is laid out alike. */
static int put_task(const struct added_record *map, const struct added_record_source *source,
                    struct byte_sink *sink, uint32_t type, const uint32_t pid_ppid_tid_ptid[4])
{
    size_t start = added_record_begin(sink, type, 0);
    for (size_t i = 0; i < 4; i++)
        sink_u32(sink, pid_ppid_tid_ptid[i]);
    sink_u64(sink, map->time_ns);
    added_record_trailer(sink, map, source, &source->processes[map->process].trailer_record);
    return added_record_end(sink, start);
}

/* A record of TYPE with BYTES after the pid and tid of MAP's thread. */
static int put_thread(const struct added_record *map, const struct added_record_source *source,
                      struct byte_sink *sink, uint32_t type, uint16_t misc, const void *bytes,
                      size_t size)
{
    size_t start = added_record_begin(sink, type, misc);
    sink_u32(sink, source->processes[map->process].pid);
    sink_u32(sink, map->tid);
    sink_bytes(sink, bytes, size);
    added_record_trailer(sink, map, source, &source->processes[map->process].trailer_record);
    return added_record_end(sink, start);
}

enum { IDS_BYTES = PERF_RECORD_HEADER_BYTES + 8 }; /* header, pid, tid */

/* The name in the record COMM, for MAP's thread; nothing if COMM is too short to hold one. */
static int put_name_of(const struct added_record *map, const struct added_record_source *source,
                       struct byte_sink *sink, const struct perf_record *comm, uint16_t misc)
{
    const struct sample_format *format;
    bool has_trailer = perf_record_trailer(source->records->file, comm, &format) != NULL;
    const size_t trailer_bytes = has_trailer ? format->id_bytes : 0;
    if (comm->size <= IDS_BYTES + trailer_bytes)
        return 0;
    return put_thread(map, source, sink, PERF_RECORD_COMM, misc, comm->bytes + IDS_BYTES,
                      comm->size - IDS_BYTES - trailer_bytes);
}

static int put_number(const struct added_record *map, const struct added_record_source *source,
                      struct byte_sink *sink, uint16_t misc)
{
    char name[THREAD_NUMBER_BYTES] = "";
    thread_names_number(name, map->tid);
    return put_thread(map, source, sink, PERF_RECORD_COMM, misc, name, sizeof name);
}

/* Nothing for a process if the profile does not tell its name. */
static int put_name(const struct added_record *map, const struct added_record_source *source,
                    struct byte_sink *sink, uint16_t misc)
{
    uint32_t pid = source->processes[map->process].pid;
    const struct perf_record *comm =
        thread_names_comm(&source->records->names, pid, map->tid, map->time_ns);
    if (comm)
        return put_name_of(map, source, sink, comm, misc);
    return map->tid == pid ? 0 : put_number(map, source, sink, misc);
}

static int put_namespaces(const struct added_record *map, const struct added_record_source *source,
                          struct byte_sink *sink)
{
    const struct perf_record *record = &source->threads->events[map->start].record;
    return put_thread(map, source, sink, PERF_RECORD_NAMESPACES, 0, record->bytes + IDS_BYTES,
                      thread_namespaces_bytes(record));
}

int unwinder_reset_put(const struct added_record *map, const struct added_record_source *source,
                       struct byte_sink *sink)
{
    uint32_t pid = source->processes[map->process].pid, clone = pid | CLONE_PID_BIT;
    uint32_t tid = map->tid;
    switch (map->kind) {
    case ADDED_CLONE:
        return put_task(map, source, sink, PERF_RECORD_FORK, (uint32_t[]){clone, pid, clone, tid});
    case ADDED_RETURN:
        return put_task(map, source, sink, PERF_RECORD_FORK, (uint32_t[]){pid, clone, pid, clone});
    case ADDED_THREAD:
        return put_task(map, source, sink, PERF_RECORD_FORK, (uint32_t[]){pid, pid, tid, pid});
    case ADDED_EXIT:
        return put_task(map, source, sink, PERF_RECORD_EXIT, (uint32_t[]){pid, pid, tid, pid});
    case ADDED_NAMESPACES:
        return put_namespaces(map, source, sink);
    case ADDED_NAME:
        return put_name(map, source, sink, 0);
    default:
        return put_name(map, source, sink, PERF_MISC_COMM_EXEC);
    }
}
