/* See commands.h.
 *
 * Exit status: 0 logging is as wanted, also if it was before.  3 only for some of the JITs in the
 * process.  1 for none.  2 usage. */
#include "injector/commands/commands.h"

#include "injector/run/attach/attachment.h"
#include "injector/run/attach/java_agent.h"
#include "injector/text/help_text.h"
#include "injector/text/printable_text.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_SKIPPED = 3 };
enum { KEY_TIMEOUT = 1024 };

#define REQUEST_OPTIONS                                                                            \
    {                                                                                              \
        "timeout",                                                                                 \
        KEY_TIMEOUT,                                                                               \
        "SECONDS",                                                                                 \
        0,                                                                                         \
        "How long to wait for the process to poll (default: 10)",                                  \
        0},                                                                                        \
        OPTION_QUIET

struct attach_options {
    struct attachment_request request;
    bool quiet;
};

static const struct argp_option attach_table[] = {
    {"dir", 'd', "DIR", 0,
     "The dump's directory, as the process sees it (default: the one that its program or "
     "JITDUMPDIR names, else /tmp; if that is mounted noexec, /tmp, /var/tmp or the current one)",
     0},
    REQUEST_OPTIONS,
    {0}};

static const struct argp_option detach_table[] = {REQUEST_OPTIONS, {0}};

static double take_number(const char *argument, const char *what, double most,
                          struct argp_state *state)
{
    char *end;
    double value = strtod(argument, &end);
    if (*end || end == argument || !(value > 0) || value > most)
        argp_error(state, "%s: not '%s'", what, printable_copy(argument));
    return value;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct attach_options *options = state->input;
    switch (key) {
    case 'd':
        if (*argument != '/')
            argp_error(state, "--dir must be absolute: it is a path as the process sees it");
        options->request.dir = argument;
        return 0;
    case KEY_TIMEOUT:
        options->request.seconds = take_number(argument, "--timeout", 1e6, state);
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->request.pid)
            argp_error(state, "one process at a time, not '%s' as well", printable_copy(argument));
        options->request.pid = (pid_t)take_number(argument, "PID", 1 << 22, state);
        return 0;
    case ARGP_KEY_END:
        if (!options->request.pid)
            argp_error(state, "name a process");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

#define STATUS_DOC                                                                                 \
    "The process must link libjitdump and have been started with PERFJIT=attach in its "           \
    "environment, or open its handle with JITDUMP_ATTACHABLE; a JVM loads perfjit's agent.  "      \
    "Only its user and root can do this.\n\n"                                                      \
    "Exit status:\n"                                                                               \
    "  0  done, or it was so already\n"                                                            \
    "  1  not done\n"                                                                              \
    "  2  wrong usage\n"                                                                           \
    "  3  done for some of several JITs in the process\n"

const struct argp attach_argp = {
    .options = attach_table,
    .parser = parse_option,
    .args_doc = "PID",
    .doc = "Make a running process log its JIT code: first all live code, then new code.  "
           "perfjit record -p PID does that by itself.\v" STATUS_DOC};

const struct argp detach_argp = {
    .options = detach_table,
    .parser = parse_option,
    .args_doc = "PID",
    .doc = "Make a running process close the dump of its JIT code.\v" STATUS_DOC};

/* A JVM has no libjitdump of its own.  False: it can't load the agent, and that is said. */
static bool load_agent(const struct attach_options *options)
{
    char text[JVM_TEXT_BYTES];
    const pid_t pid = options->request.pid;
    const char *agent = java_agent_for(pid);
    if (!agent || java_agent_load(pid, agent, text) == 0)
        return true;
    printable_line(stderr, "perfjit: %d: it can't load the agent for Java: %s", (int)pid, text);
    return false;
}

static int run(const struct attach_options *options)
{
    struct attachment attachment;
    struct findings findings = {0};
    int status = EXIT_FAILED;
    const bool can_ask = options->request.wanted == ATTACH_OFF || load_agent(options);
    if (attachment_ask(&attachment, &options->request, &findings)) {
        if (can_ask)
            printable_line(stderr, "perfjit: %s", findings.failure);
    } else {
        size_t good = attachment_good(&attachment);
        if (!options->quiet || good < attachment.count)
            attachment_tell(&attachment, &options->request);
        if (good)
            status = good == attachment.count ? EXIT_DONE : EXIT_SKIPPED;
    }
    attachment_free(&attachment);
    findings_free(&findings);
    return status;
}

static int parse_and_run(const struct argp *argp, enum attach_wanted wanted, int argc, char **argv)
{
    struct attach_options options = {.request = {.wanted = wanted, .seconds = ATTACHMENT_SECONDS}};
    help_parse(argp, argc, argv, 0, &options);
    return run(&options);
}

int attach_command(int argc, char **argv)
{
    return parse_and_run(&attach_argp, ATTACH_ON, argc, argv);
}

int detach_command(int argc, char **argv)
{
    return parse_and_run(&detach_argp, ATTACH_OFF, argc, argv);
}
