/* See run_processes.h.
 *
 * /proc/PID/environ  "NAME=VALUE", each up to a NUL, as it was at the exec */
#include "injector/run/record/run_processes.h"

#include "injector/arrays/array.h"
#include "injector/recording/host/live_process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANCESTORS_MOST = 64 };

static bool descends(pid_t pid, pid_t command)
{
    for (unsigned i = 0; command && pid > 1 && i < ANCESTORS_MOST; i++)
        if ((pid = (pid_t)live_process_parent((uint32_t)pid)) == command)
            return true;
    return false;
}

static bool has_mark(pid_t pid, const char *mark)
{
    char path[64], *variable = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && !found && getdelim(&variable, &room, '\0', file) > 0)
        found = strcmp(variable, mark) == 0;
    free(variable);
    if (file)
        fclose(file);
    return found;
}

/* Who made a session of its own is to go on without its parent (a build server, epmd): Ctrl-C on
 * the terminal does not reach it either. */
static bool is_daemon(pid_t pid, pid_t command)
{
    pid_t session = getsid(pid);
    return session > 0 && session != getsid(0) && (!command || session != getsid(command));
}

void run_processes_find(struct run_processes *processes, const struct growing_recording *recording,
                        pid_t command, const char *mark)
{
    *processes = (struct run_processes){0};
    for (uint32_t i = 2; recording->pids && i < GROWING_PIDS; i++) {
        pid_t pid = (pid_t)i;
        if (!growing_recording_has_pid(recording, i) || pid == command ||
            !live_process_goes_on(i) || is_daemon(pid, command) ||
            !(descends(pid, command) || has_mark(pid, mark)))
            continue;
        if (array_reserve(processes->pids, processes->count, processes->capacity))
            return;
        processes->pids[processes->count++] = pid;
    }
}

void run_processes_signal(const struct run_processes *processes, int signal_number)
{
    for (size_t i = 0; i < processes->count; i++)
        kill(processes->pids[i], signal_number);
}

bool run_processes_go_on(const struct run_processes *processes)
{
    for (size_t i = 0; i < processes->count; i++)
        if (live_process_goes_on((uint32_t)processes->pids[i]))
            return true;
    return false;
}

void run_processes_free(struct run_processes *processes)
{
    free(processes->pids);
    *processes = (struct run_processes){0};
}
