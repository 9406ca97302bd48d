/* See live_snapshot.h. */
#include "injector/debug/snapshot/live_snapshot.h"

#include "injector/recording/host/live_process.h"
#include "injector/recording/perf_data/perf_format.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

/* The limit for a thread's stack: larger than any that was not made to be endless. */
enum { MOST_STACK_BYTES = 64 << 20, MOST_WORDS = 64 };

/* The limits for a handler's own stack: the kernel allows none below MINSIGSTKSZ, and no program
 * makes it larger than this.
 */
enum { LEAST_HANDLER_BYTES = 2048, MOST_HANDLER_BYTES = 1 << 20 };

/* ---- Threads ---- */

/* Stop TID.  Returns false if it can't be, with errno; *SIGNAL is one that it has to be given when
 * it goes on. */
static bool stop_thread(pid_t tid, int *signal)
{
    int status = 0;
    *signal = 0;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
        return false;
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) || waitpid(tid, &status, __WALL) != tid ||
        !WIFSTOPPED(status)) {
        errno = ESRCH;
        return false;
    }
    if (status >> 16 == 0)
        *signal = WSTOPSIG(status);
    return true;
}

static bool is_known(const struct snapshot *snapshot, uint32_t tid)
{
    for (size_t i = 0; i < snapshot->thread_count; i++)
        if (snapshot->threads[i].tid == tid)
            return true;
    return false;
}

/* Stop the threads that are not stopped yet.  Returns how many were, or -1 with errno. */
static int stop_more(struct snapshot *snapshot)
{
    char path[64];
    int stopped = 0, signal;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/task", snapshot->pid);
    DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks && stopped >= 0 && (entry = readdir(tasks));) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (tid == 0 || is_known(snapshot, tid))
            continue;
        if (!stop_thread((pid_t)tid, &signal)) {
            stopped = errno == ESRCH ? stopped : -1; /* a thread that has ended meanwhile */
            continue;
        }
        struct snapshot_thread *thread = snapshot_add_thread(snapshot);
        if (!thread) {
            ptrace(PTRACE_DETACH, (pid_t)tid, NULL, (void *)(intptr_t)signal);
            errno = ENOMEM;
            stopped = -1;
            continue;
        }
        thread->tid = tid;
        thread->signal = (uint32_t)signal; /* until it goes on */
        stopped++;
    }
    int error = errno;
    if (tasks)
        closedir(tasks);
    errno = error;
    return tasks ? stopped : -1;
}

static void let_go(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        ptrace(PTRACE_DETACH, (pid_t)snapshot->threads[i].tid, NULL,
               (void *)(uintptr_t)snapshot->threads[i].signal);
        snapshot->threads[i].signal = 0;
    }
}

static void read_registers(struct snapshot_thread *thread, const struct machine *machine)
{
    uint64_t words[MOST_WORDS];
    struct iovec where = {words, sizeof words};
    if (ptrace(PTRACE_GETREGSET, (pid_t)thread->tid, (void *)(uintptr_t)NT_PRSTATUS, &where) == 0 &&
        where.iov_len >= 8U * machine->word_count)
        snapshot_take_registers(thread, machine, (const uint8_t *)words);
}

/* A copy of the mapped bytes from START to the end of the map, or NULL.  To be freed. */
static uint8_t *copy_from(const struct snapshot *snapshot, uint64_t start, size_t *size)
{
    const struct snapshot_map *map = snapshot_map_at(snapshot, start);
    if (!map)
        return NULL;
    *size =
        map->end - start < MOST_STACK_BYTES ? (size_t)(map->end - start) : (size_t)MOST_STACK_BYTES;
    uint8_t *copy = malloc(*size);
    if (copy && snapshot_read(snapshot, start, copy, *size))
        return copy;
    free(copy);
    return NULL;
}

/* The stack pointer that a signal interrupted, if its handler runs on a stack of its own; 0: none
 * is found.  The kernel puts a ucontext on the handler's stack, which says where that stack is. */
static uint64_t interrupted_sp(const struct snapshot_thread *thread, const struct machine *machine)
{
    const size_t own_stack = 16, own_bytes = 32; /* uc_stack.ss_sp and ss_size */
    size_t end =
        thread->stack_bytes < MOST_HANDLER_BYTES ? thread->stack_bytes : (size_t)MOST_HANDLER_BYTES;
    for (size_t at = 0; at + machine->context_sp + 8 <= end; at += 8) {
        uint64_t start = perf_get_u64(thread->stack + at + own_stack);
        uint64_t bytes = perf_get_u64(thread->stack + at + own_bytes);
        uint64_t addr = thread->stack_start + at;
        uint64_t sp = perf_get_u64(thread->stack + at + machine->context_sp);
        if (bytes >= LEAST_HANDLER_BYTES && addr - start < bytes && sp - start >= bytes)
            return sp;
    }
    return 0;
}

/* Copy from the stack pointer to the end of the mapped bytes there.  The stack behind a handler's
 * is copied, too.
 */
static void copy_stack(const struct snapshot *snapshot, struct snapshot_thread *thread)
{
    if (thread->has_registers)
        thread->copy = copy_from(snapshot, thread->stack_start, &thread->stack_bytes);
    thread->stack = thread->copy;
    thread->stack_bytes = thread->copy ? thread->stack_bytes : 0;
    thread->interrupted_start = interrupted_sp(thread, snapshot->machine);
    if (thread->interrupted_start)
        thread->interrupted =
            copy_from(snapshot, thread->interrupted_start, &thread->interrupted_bytes);
}

/* ---- Maps ---- */

static int take_line(struct snapshot *snapshot, const char *line)
{
    char flags[8];
    int path_at = 0;
    struct snapshot_map map = {0};
    if (sscanf(
            line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
            &map.start, &map.end, flags, &map.offset, &map.maj, &map.min, &map.ino, &path_at) < 7)
        return 0;
    map.executable = flags[2] == 'x';
    size_t length = path_at ? strcspn(line + path_at, "\n") : 0;
    struct snapshot_map *place = snapshot_add_map(snapshot);
    if (!place)
        return -1;
    *place = map;
    place->path = length ? strndup(line + path_at, length) : NULL;
    return length && !place->path ? -1 : 0;
}

static int read_maps(struct snapshot *snapshot)
{
    char path[64], *line = NULL;
    size_t capacity = 0;
    int result = 0;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", snapshot->pid);
    FILE *maps = fopen(path, "re");
    while (maps && !result && getline(&line, &capacity, maps) > 0)
        result = take_line(snapshot, line);
    free(line);
    if (maps)
        fclose(maps);
    return maps ? result : -1;
}

static void read_name(struct snapshot *snapshot)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/comm", snapshot->pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(snapshot->name, sizeof snapshot->name, file))
        snapshot->name[strcspn(snapshot->name, "\n")] = '\0';
    if (file)
        fclose(file);
}

/* ---- The whole ---- */

static int nothing_mapped(const struct snapshot *snapshot, struct findings *findings)
{
    return report_failure(
        findings, "process %" PRIu32 ": nothing is mapped in it: it has ended, or is the kernel's",
        snapshot->pid);
}

static int fail(const struct snapshot *snapshot, struct findings *findings)
{
    const int cause = errno;
    const bool is_refused = cause == EPERM || cause == EACCES;
    if (is_refused && !live_process_goes_on(snapshot->pid)) /* a zombie can't be debugged */
        return nothing_mapped(snapshot, findings);
    const char *advice =
        is_refused ? ": another program debugs it already, or it is another user's" : "";
    return report_failure(findings, "process %" PRIu32 ": can't read it: %s%s", snapshot->pid,
                          strerror(cause), advice);
}

/* All its threads stand still from here on. */
static int stop(struct snapshot *snapshot)
{
    int more;
    do {
        more = stop_more(snapshot);
    } while (more > 0);
    return more;
}

static int take(struct snapshot *snapshot, bool stacks, struct findings *findings)
{
    if (stacks && stop(snapshot))
        return fail(snapshot, findings);
    if (read_maps(snapshot))
        return fail(snapshot, findings);
    snapshot_complete(snapshot);
    for (size_t i = 0; stacks && i < snapshot->thread_count; i++) {
        read_registers(&snapshot->threads[i], snapshot->machine);
        copy_stack(snapshot, &snapshot->threads[i]);
    }
    if (!snapshot->map_count)
        return nothing_mapped(snapshot, findings);
    return 0;
}

/* Returns 0, or -1 with the failure text set: the registers of MACHINE can't be read. */
static int check_machine(const struct machine *machine, uint32_t pid, bool stacks,
                         struct findings *findings)
{
    if (!machine)
        return report_failure(findings,
                              "process %" PRIu32 ": can't read it: this machine is not known", pid);
    if (stacks && !machine_has_words(machine))
        return report_failure(
            findings,
            "process %" PRIu32
            ": can't read the registers of its threads: their layout on %s is not known",
            pid, machine->names[0]);
    return 0;
}

int live_snapshot_take(struct snapshot *snapshot, const char *path, uint32_t pid,
                       const struct machine *machine, bool stacks, uint64_t *taken_ns,
                       struct findings *findings)
{
    struct timespec now;
    *snapshot = (struct snapshot){.path = path, .pid = pid, .live = true, .machine = machine};
    if (check_machine(machine, pid, stacks, findings))
        return -1;
    int result = take(snapshot, stacks, findings);
    clock_gettime(CLOCK_MONOTONIC, &now);
    *taken_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
    if (stacks)
        let_go(snapshot);
    read_name(snapshot);
    if (!stacks && !result && !snapshot_add_thread(snapshot))
        result = report_failure(findings, "out of memory");
    if (!stacks && !result)
        snapshot->threads[0].tid = pid; /* without registers: its sample is the moment */
    return result;
}
