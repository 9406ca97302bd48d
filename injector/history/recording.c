/* See recording.h. */
#include "injector/history/recording.h"

#include "injector/arrays/array.h"
#include "injector/files/input_guard.h"
#include "injector/files/interruption.h"
#include "injector/history/process/interpreted_functions.h"
#include "injector/recording/host/recording_host.h"
#include "injector/recording/moved_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static error_t add_file(struct given_file **files, size_t *count, size_t *capacity,
                        struct given_file file)
{
    if (array_reserve(*files, *count, *capacity))
        return ENOMEM;
    (*files)[(*count)++] = file;
    return 0;
}

static error_t add_dump(struct recording_request *request, struct given_file file)
{
    return add_file(&request->dumps, &request->dump_count, &request->dump_capacity, file);
}

error_t recording_request_add_dump(struct recording_request *request, const char *path)
{
    return add_dump(request, (struct given_file){path, path, 0});
}

error_t recording_request_take(struct recording_request *request, int key, char *argument)
{
    switch (key) {
    case KEY_ROOT:
        request->root = argument;
        return 0;
    case KEY_PERF_MAP:
        return add_file(&request->perf_maps, &request->perf_map_count, &request->perf_map_capacity,
                        given_file_of(argument));
    case KEY_JITDUMP:
        return add_dump(request, given_file_of(argument));
    case KEY_V8_LOG:
        return add_file(&request->v8_logs, &request->v8_log_count, &request->v8_log_capacity,
                        (struct given_file){argument, argument, 0});
    case KEY_SOURCE_MAPS:
        request->source_maps = argument;
        return 0;
    case KEY_NO_SOURCE_MAPS:
        request->no_source_maps = true;
        return 0;
    case KEY_NO_PERF_MAP:
        request->no_perf_map = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

bool recording_request_gives(const struct recording_request *request)
{
    return request->dump_count || request->perf_map_count;
}

void recording_request_free(struct recording_request *request)
{
    free(request->dumps);
    free(request->perf_maps);
    free(request->v8_logs);
}

/* A wrong root would be no root: dumps would be looked for on this machine. */
static int check_root(const char *root, struct findings *findings)
{
    struct stat status;
    if (!root || (stat(root, &status) == 0 && S_ISDIR(status.st_mode)))
        return 0;
    return report_failure(findings, "--root %s: not a directory that can be read", root);
}

/* The files that were mapped are inputs, whether any of their bytes are needed or not. */
static void guard_mapped(const struct records *records)
{
    const char *last = "";
    for (size_t i = 0; input_guard_is_needed() && i < records->map_count; i++) {
        const char *path = records->maps[i].map.filename;
        if (path[0] == '/' && strcmp(path, last) != 0)
            input_guard_input_at(path);
        last = path;
    }
}

/* Read the contents of the opened input. */
static enum recording_result read_input(struct recording *recording,
                                        const struct recording_request *request,
                                        struct findings *findings)
{
    const struct jit_processes_request wanted = {
        request->dumps,
        request->dump_count,
        {request->root, request->any_owner, request->no_lines, request->unwritten},
        {request->no_perf_map, request->perf_maps, request->perf_map_count, request->root},
        {request->no_lines ? NULL : request->v8_logs, request->no_lines ? 0 : request->v8_log_count,
         request->root},
        {request->source_maps, request->root, request->no_source_maps || request->no_lines}};
    recording_machine_report(&recording->input.file, machine_here(), findings);
    if (records_read(&recording->records, &recording->input.file, findings))
        return RECORDING_FAILED;
    guard_mapped(&recording->records);
    enum recording_result result =
        jit_processes_read(&recording->processes, &recording->records, &wanted, findings);
    if (result != RECORDING_FAILED &&
        moved_text_find(&recording->records, &recording->processes.lives, findings))
        return RECORDING_FAILED;
    if (result == RECORDING_OPEN &&
        interpreted_functions_add(&recording->processes, &recording->records, findings))
        return RECORDING_FAILED;
    return result;
}

enum recording_result recording_open(struct recording *recording, const char *path,
                                     const struct recording_request *request,
                                     struct findings *findings)
{
    if (recording->input.file.data) /* it is done anew */
        return read_input(recording, request, findings);
    if (check_root(request->root, findings) || perf_input_open(&recording->input, path, findings))
        return RECORDING_FAILED;
    recording->mark = findings_mark(findings);
    return read_input(recording, request, findings);
}

enum recording_result recording_view(struct recording *recording, const char *path,
                                     const uint8_t *bytes, size_t size,
                                     const struct recording_request *request,
                                     struct findings *findings)
{
    if (check_root(request->root, findings) ||
        perf_input_view(&recording->input, path, bytes, size, findings))
        return RECORDING_FAILED;
    return read_input(recording, request, findings);
}

/* The timeline that PROCESS's begins with, or NULL; it has been played before. */
static const struct timeline *parent_timeline(const struct recording *recording,
                                              const struct jit_process *process)
{
    return process->parent ? &recording->timelines[process->parent - recording->processes.items]
                           : NULL;
}

int recording_print_names(struct recording *recording, struct findings *findings)
{
    for (size_t i = 0; i < recording->processes.count; i++)
        if (code_log_print_names(&recording->processes.items[i].log))
            return report_failure(findings, "out of memory");
    return 0;
}

int recording_play(struct recording *recording, struct findings *findings)
{
    const struct jit_processes *processes = &recording->processes;
    size_t inherited = 0;
    recording->timelines = calloc(processes->count + 1, sizeof *recording->timelines);
    if (!recording->timelines)
        return report_failure(findings, "out of memory");
    for (size_t i = 0; i < processes->count; i++)
        if (timeline_play(&recording->timelines[i], &processes->items[i],
                          parent_timeline(recording, &processes->items[i]), &inherited,
                          recording->records.sample_times_ns, recording->records.sample_count,
                          findings))
            return -1;
    return 0;
}

/* Release all but the input. */
static void free_made(struct recording *recording)
{
    for (size_t i = 0; recording->timelines && i < recording->processes.count; i++)
        timeline_free(&recording->timelines[i]);
    free(recording->timelines);
    jit_processes_free(&recording->processes);
    records_free(&recording->records);
}

bool recording_begin_anew(struct recording *recording, struct findings *findings)
{
    free_made(recording);
    *recording = (struct recording){.input = recording->input, .mark = recording->mark};
    if (!interruption_begin_anew())
        return false;
    findings_return(findings, &recording->mark);
    return true;
}

void recording_free(struct recording *recording)
{
    free_made(recording);
    perf_input_close(&recording->input);
}
