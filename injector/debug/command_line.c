/* See command_line.h. */
#include "injector/debug/command_line.h"

#include "injector/files/interruption.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { EXIT_FAILED = 1 };

extern char **environ;

void command_line_add(struct command_line *line, const char *word)
{
    char **items = realloc(line->items, (line->count + 2) * sizeof *items);
    if (items) {
        line->items = items;
        items[line->count] = (char *)(uintptr_t)word;
        items[line->count + 1] = NULL;
        line->count++;
    }
    line->failed = line->failed || !items;
}

void command_line_add_option(struct command_line *line, const char *option, const char *value)
{
    if (!value)
        return;
    command_line_add(line, option);
    command_line_add(line, value);
}

/* ---- Signals while it runs ---- */

static volatile pid_t running;

/* It may have more to end than this program knows of. */
static void pass_on(int number)
{
    interruption_note(number);
    if (running > 0)
        kill(running, number);
}

static void pass_signals_on(void)
{
    static const int passed[] = {SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = pass_on}, old;
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
        if (sigaction(passed[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(passed[i], &action, NULL);
}

int command_line_run(const struct command_line *line, int *status, bool *is_missing,
                     struct findings *findings)
{
    pid_t child;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGQUIT);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    pass_signals_on();
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawnp(&child, line->items[0], NULL, &attributes, line->items, environ);
    posix_spawnattr_destroy(&attributes);
    *is_missing = error == ENOENT;
    if (*is_missing)
        return -1;
    if (error)
        return report_failure(findings, "%s: can't run it: %s", line->items[0], strerror(error));
    running = child;
    if (interruption_by_signal()) /* it came before that */
        kill(child, SIGTERM);
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
    running = 0;
    *status = WIFEXITED(*status) ? WEXITSTATUS(*status) : EXIT_FAILED;
    return 0;
}
