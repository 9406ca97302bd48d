/* See attached_processes.h.
 *
 * /proc/PID/task/TID/children    "PID PID ": what that thread has forked, as far as it still runs
 */
#include "injector/run/record/attached_processes.h"

#include "injector/files/undo_list.h"
#include "injector/run/attach/java_agent.h"
#include "injector/run/attach/java_map.h"
#include "injector/run/program/program.h"
#include "injector/text/printable_text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOLD_MOST = 64 };

/* ---- Children ---- */

static bool is_named(const struct record_options *options, int pid)
{
    for (size_t i = 0; i < options->pid_count; i++)
        if (options->pids[i] == pid)
            return true;
    return false;
}

/* Tell the processes that THREAD of PID forked, onto TOLD.  Returns how many there are. */
static size_t tell_forked(const struct record_options *options, pid_t pid, const char *thread,
                          size_t before, FILE *told)
{
    char path[300];
    int child;
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)pid, thread);
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%d", &child) == 1)
        if (!is_named(options, child) && before + count++ < TOLD_MOST)
            fprintf(told, ",%d", child);
    if (file)
        fclose(file);
    return count;
}

static size_t tell_all(const struct record_options *options, FILE *told)
{
    char path[64];
    size_t count = 0;
    for (size_t i = 0; i < options->pid_count; i++) {
        snprintf(path, sizeof path, "/proc/%d/task", (int)options->pids[i]);
        DIR *threads = opendir(path);
        const struct dirent *thread;
        while (threads && (thread = readdir(threads)))
            if (thread->d_name[0] != '.')
                count += tell_forked(options, options->pids[i], thread->d_name, count, told);
        if (threads)
            closedir(threads);
    }
    return count;
}

void attached_processes_tell_children(const struct record_options *options)
{
    char *text = NULL;
    size_t bytes, count;
    FILE *told = open_memstream(&text, &bytes);
    if (!told)
        return;
    count = tell_all(options, told);
    if (fclose(told) == 0 && count)
        printable_line(
            stderr, "perfjit: %zu child%s of %s run%s already and %s not recorded: -p %s%s%s",
            count, count == 1 ? "" : "ren", options->pid_text, count == 1 ? "s" : "",
            count == 1 ? "is" : "are", options->pid_text, text, count > TOLD_MOST ? ",..." : "");
    free(text);
}

/* ---- Dumps ---- */

/* Whether it was as it should be, or somebody is to hear of it. */
static bool is_told(const struct record_options *options, const struct attachment *attachment)
{
    return !options->quiet || attachment_good(attachment) < attachment->count;
}

/* Kinds of undo_list.h. */
static const char dump_kind[] = "attached", map_kind[] = "java-map";

static uint64_t add_undo(const char *kind, pid_t pid, const char *path)
{
    char *text = attachment_undo_text(pid, path);
    uint64_t number = text ? undo_list_add(kind, text) : 0;
    free(text);
    return number;
}

static void undo_map(const char *text)
{
    const char *none;
    pid_t pid = attachment_undo_pid(text, &none);
    if (pid)
        java_map_remove(pid);
}

void attached_processes_learn_undo(void)
{
    undo_list_learn(dump_kind, attachment_undo);
    undo_list_learn(map_kind, undo_map);
}

/* What others have on stays on if this recorder is killed: it is on the list only from now on. */
static void begin_undo(void *user)
{
    struct attached_process *process = user;
    if (!process->undo)
        process->undo = add_undo(dump_kind, process->attachment.pid, "");
}

/* A process that takes no requests may log by itself, or have a perf map. */
static void ask(const struct record_options *options, struct attached_process *process,
                struct findings *findings)
{
    struct attachment_request request = {.pid = process->attachment.pid,
                                         .wanted = ATTACH_ON,
                                         .seconds = ATTACHMENT_SECONDS,
                                         .passing = true,
                                         .holds = begin_undo,
                                         .user = process};
    struct findings trouble = {0};
    if (attachment_ask(&process->attachment, &request, &trouble))
        report_note(findings, "%s", trouble.failure);
    else if (is_told(options, &process->attachment))
        attachment_tell(&process->attachment, &request);
    findings_free(&trouble);
}

/* A JVM that can't load the agent writes all code that is alive: before perf begins, for it may end
 * meanwhile, and once more when perf has ended. */
static void ask_for_map(const struct record_options *options, struct attached_process *process)
{
    char text[JVM_TEXT_BYTES];
    const pid_t pid = process->attachment.pid;
    const struct runtime *runtime = program_of_process(pid);
    if (!runtime || !runtime->writes_map_on_request)
        return;
    const bool was_there = java_map_is_there(pid);
    process->map_undo = was_there ? 0 : add_undo(map_kind, pid, "");
    const bool failed = java_map_write(pid, text);
    if (!failed)
        process->map = was_there ? MAP_WAS_THERE : MAP_WRITTEN;
    if (options->quiet)
        return;
    if (failed)
        printable_line(stderr, "perfjit: -p %d: %s can't write its perf map: %s", (int)pid,
                       runtime->name, text);
    else
        printable_line(stderr,
                       "perfjit: -p %d: %s writes its perf map on request, now and at the end",
                       (int)pid, runtime->name);
}

/* Whether PID has the agent from now on. */
static bool load_agent(const struct record_options *options, pid_t pid)
{
    char text[JVM_TEXT_BYTES];
    const char *agent = options->no_runtime ? NULL : java_agent_for(pid);
    if (!agent)
        return false;
    if (java_agent_load(pid, agent, text) == 0)
        return true;
    if (!options->quiet)
        printable_line(stderr, "perfjit: -p %d: no agent in it, so no inlined calls: %s", (int)pid,
                       text);
    return false;
}

/* Once it is detached, it does not tell its dump any more. */
static void know_dump(struct attached_process *process)
{
    const struct attachment *attachment = &process->attachment;
    uint64_t known = 0;
    for (size_t i = 0; i < attachment->count && !known; i++)
        if (attachment->results[i].is_held)
            known = add_undo(dump_kind, attachment->pid, attachment->results[i].answer.path);
    if (attachment_holds(attachment) && !known)
        return;
    undo_list_done(process->undo);
    process->undo = known;
}

int attached_processes_begin(struct attached_processes *processes,
                             const struct record_options *options, struct findings *findings)
{
    *processes = (struct attached_processes){.options = options};
    processes->items = calloc(options->pid_count, sizeof *processes->items);
    if (!processes->items)
        return report_failure(findings, "out of memory");
    for (size_t i = 0; i < options->pid_count; i++) {
        struct attached_process *process = &processes->items[processes->count++];
        *process = (struct attached_process){.attachment = {options->pids[i], .root = -1}};
        const bool has_agent = load_agent(options, options->pids[i]);
        ask(options, process, findings);
        know_dump(process);
        if (!options->no_runtime && (!has_agent || !attachment_good(&process->attachment)))
            ask_for_map(options, process);
        if (process->attachment.interrupted)
            return report_failure(findings, "interrupted before perf record had begun");
    }
    return 0;
}

void attached_processes_end(const struct attached_processes *processes)
{
    char text[JVM_TEXT_BYTES];
    for (size_t i = 0; i < processes->count; i++) {
        const struct attached_process *process = &processes->items[i];
        if (process->map != MAP_NOT_ASKED) /* one that has ended has written the first */
            java_map_write(process->attachment.pid, text);
        struct attachment_request request = {.pid = process->attachment.pid,
                                             .wanted = ATTACH_OFF,
                                             .seconds = ATTACHMENT_SECONDS,
                                             .passing = true,
                                             .held = &process->attachment};
        struct attachment attachment;
        struct findings trouble = {0};
        if (!attachment_holds(&process->attachment))
            continue;
        if (attachment_ask(&attachment, &request, &trouble) == 0 &&
            is_told(processes->options, &attachment))
            attachment_tell(&attachment, &request);
        attachment_free(&attachment);
        findings_free(&trouble);
    }
}

void attached_processes_remove_dumps(const struct attached_processes *processes, const char *but)
{
    for (size_t i = 0; i < processes->count; i++) {
        attachment_remove_dumps(&processes->items[i].attachment, but);
        if (processes->items[i].map == MAP_WRITTEN)
            java_map_remove(processes->items[i].attachment.pid);
    }
}

void attached_processes_free(struct attached_processes *processes)
{
    for (size_t i = 0; i < processes->count; i++) {
        undo_list_done(processes->items[i].undo);
        undo_list_done(processes->items[i].map_undo);
        attachment_free(&processes->items[i].attachment);
    }
    free(processes->items);
    *processes = (struct attached_processes){0};
}
