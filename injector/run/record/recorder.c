/* See recorder.h.
 *
 *     perfjit ─┬─ command   waits for a byte through the gate, then execs
 *              └─ perf      -p COMMAND -D -1 --control: "enable" ▶ "ack", ... "stop"
 *
 * perf 5.10 and later have --control, and 5.13 "stop"; SIGINT ends any. */
#include "injector/run/record/recorder.h"

#include "injector/arrays/array.h"
#include "injector/debug/command_line.h"
#include "injector/files/full_write.h"
#include "injector/files/interruption.h"
#include "injector/files/pipe_ends.h"
#include "injector/files/undo_list.h"
#include "injector/recording/host/live_process.h"
#include "injector/run/record/growing_recording.h"
#include "injector/run/record/run_progress.h"
#include "injector/text/printable_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct processor_use processor_use_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct processor_use use = {.time_ns =
                                    (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec};
    unsigned long long times[8] = {0};
    uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    FILE *file = fopen("/proc/stat", "re");
    /* user, nice, system, idle, iowait, irq, softirq, steal */
    if (file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &times[0], &times[1],
                       &times[2], &times[3], &times[4], &times[5], &times[6], &times[7]) == 8) {
        use.busy_ns = (times[0] + times[1] + times[2] + times[5] + times[6]) * tick_ns;
        use.stolen_ns = times[7] * tick_ns;
    }
    if (file)
        fclose(file);
    return use;
}

/* ---- The processes of a run that go on ---- */

struct run_processes {
    pid_t *pids;
    size_t count, capacity;
};

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

/* A process that made a session of its own is to go on without its parent (a build server, epmd):
 * Ctrl-C on the terminal does not reach it either. */
static bool is_daemon(pid_t pid, pid_t command)
{
    pid_t session = getsid(pid);
    return session > 0 && session != getsid(0) && (!command || session != getsid(command));
}

/* Find the processes in RECORDING that belong to the run.  They were started by COMMAND (0: it has
 * ended), or they began with the variable MARK, "NAME=VALUE" of this run alone, in their
 * environment.  COMMAND and processes with a session of their own are left out.  Without memory
 * some are missing.  Free with run_processes_free. */
static void run_processes_find(struct run_processes *processes,
                               const struct growing_recording *recording, pid_t command,
                               const char *mark)
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

/* Send SIGNAL_NUMBER to each. */
static void run_processes_signal(const struct run_processes *processes, int signal_number)
{
    for (size_t i = 0; i < processes->count; i++)
        kill(processes->pids[i], signal_number);
}

static bool run_processes_go_on(const struct run_processes *processes)
{
    for (size_t i = 0; i < processes->count; i++)
        if (live_process_goes_on((uint32_t)processes->pids[i]))
            return true;
    return false;
}

static void run_processes_free(struct run_processes *processes)
{
    free(processes->pids);
    *processes = (struct run_processes){0};
}

enum {
    NOT_STARTED = 127,
    TICK_MS = 200,
    START_MS = 300000, /* for perf to begin: 30 s are too few where 25 others want a processor */
    STOP_MS = 3000,    /* for perf to take "stop" before it gets a signal */
    LEAVE_MS = 5000,   /* for the command to end by itself after Ctrl-C, then after SIGTERM */
    MESSAGE_BYTES = 600,
};

struct recording_run {
    const struct recorder_request *request;
    struct growing_recording *recording;
    struct recorder_end *end;
    struct pipe_ends gate, trouble, order, answer;
    pid_t command, perf; /* 0: has ended, or there is none */
    uint64_t undo_perf;  /* undo_list.h */
    int perf_status;     /* of one that has ended */
    sigset_t signals, old_signals;
    int64_t start_ns;                      /* of the command */
    int64_t start_ms, shown_ms, ending_ms; /* ending: when the command was to end; 0: not yet */
    struct run_processes others;           /* that still ran at the request to end */
    bool is_over, terminated, is_late;     /* late: perf did not begin in time */
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- Pipes ---- */

static int open_pipes(struct recording_run *run, struct findings *findings)
{
    struct pipe_ends *all[] = {&run->gate, &run->trouble, &run->order, &run->answer};
    int result = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && !result; i++)
        result = pipe_ends_open(all[i], findings);
    return result;
}

static void close_pipes(struct recording_run *run)
{
    struct pipe_ends *all[] = {&run->gate, &run->trouble, &run->order, &run->answer};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        pipe_ends_close(all[i]);
}

/* ---- The command ---- */

static void use_processor(int number)
{
    cpu_set_t only;
    CPU_ZERO(&only);
    if (number < 0)
        return;
    CPU_SET((size_t)number, &only);
    sched_setaffinity(0, sizeof only, &only);
}

static void become_command(struct recording_run *run)
{
    const struct recorder_request *request = run->request;
    char byte;
    pipe_ends_close_one(&run->gate, WRITE_END);
    pipe_ends_close_one(&run->order, READ_END); /* that perf has ended is seen by these */
    pipe_ends_close_one(&run->answer, WRITE_END);
    sigprocmask(SIG_SETMASK, &run->old_signals, NULL);
    if (read(run->gate.fd[READ_END], &byte, 1) != 1)
        _exit(NOT_STARTED);
    use_processor(request->processor);
    execve(request->program, (char *const *)(uintptr_t)request->words, request->variables);
    if (errno == ENOEXEC) /* a script without a first line: execvpe gives it to the shell */
        execvpe(request->program, (char *const *)(uintptr_t)request->words, request->variables);
    full_write(run->trouble.fd[WRITE_END], WRITE_WHERE_IT_STANDS, &errno, sizeof errno);
    _exit(NOT_STARTED);
}

static int start_command(struct recording_run *run, struct findings *findings)
{
    if (!run->request->words)
        return 0;
    run->command = fork();
    if (run->command == 0)
        become_command(run);
    if (run->command < 0)
        return report_failure(findings, "can't start a process: %s", strerror(errno));
    growing_recording_add_pid(run->recording, (uint32_t)run->command);
    pipe_ends_close_one(&run->gate, READ_END);
    pipe_ends_close_one(&run->trouble, WRITE_END);
    return 0;
}

/* Let the command go.  Returns 0, or -1: it could not be run. */
static int open_gate(struct recording_run *run, struct findings *findings)
{
    int error;
    if (!run->command)
        return 0;
    pipe_ends_meet(run->request->ready, run->request->go);
    run->end->before = processor_use_now();
    full_write(run->gate.fd[WRITE_END], WRITE_WHERE_IT_STANDS, "", 1);
    pipe_ends_close_one(&run->gate, WRITE_END);
    if (read(run->trouble.fd[READ_END], &error, sizeof error) == sizeof error)
        return report_failure(findings, "%s: can't run it: %s", run->request->program,
                              strerror(error));
    return 0;
}

/* ---- perf ---- */

static void become_perf(struct recording_run *run, const struct command_line *line, pid_t parent)
{
    int nothing = open("/dev/null", O_RDONLY);
    int messages = open(run->request->messages, O_WRONLY | O_CREAT | O_EXCL, 0600);
    prctl(PR_SET_PDEATHSIG, SIGINT);
    setpgid(0, 0); /* keys on the terminal are not for perf */
    if (getppid() != parent || nothing < 0 || messages < 0)
        _exit(NOT_STARTED);
    dup2(nothing, STDIN_FILENO);
    dup2(messages, STDOUT_FILENO);
    dup2(messages, STDERR_FILENO);
    fcntl(run->order.fd[READ_END], F_SETFD, 0);
    fcntl(run->answer.fd[WRITE_END], F_SETFD, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(line->items[0], line->items);
    dprintf(STDERR_FILENO, "%s: %s\n", line->items[0], strerror(errno));
    _exit(NOT_STARTED);
}

static void perf_words(const struct recorder_request *request, struct command_line *line,
                       const char *pid, const char *control)
{
    /* For BPF programs perf, of root, would wait up to a second at its end. */
    static const char *const first[] = {"record", "-N", "--no-bpf-event", "-k", "mono", "-D", "-1"};
    command_line_add(line, request->perf);
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        command_line_add(line, first[i]);
    command_line_add_option(line, "-e", request->event);
    command_line_add_option(line, "-e", request->switches);
    if (request->has_switches)
        command_line_add(line, "--switch-events");
    command_line_add_option(line, "-F", request->hz);
    command_line_add_option(line, "--call-graph", request->stacks);
    command_line_add_option(line, "-o", request->output);
    command_line_add_option(line, "-p", pid);
    command_line_add_option(line, "--control", control);
}

static int start_perf(struct recording_run *run, struct findings *findings)
{
    struct command_line line = {0};
    char pid[16], control[48];
    pid_t self = getpid();
    snprintf(pid, sizeof pid, "%d", (int)run->command);
    snprintf(control, sizeof control, "fd:%d,%d", run->order.fd[READ_END],
             run->answer.fd[WRITE_END]);
    perf_words(run->request, &line, run->command ? pid : run->request->pids, control);
    run->perf = line.failed ? -1 : fork();
    if (run->perf == 0)
        become_perf(run, &line, self);
    free(line.items);
    pipe_ends_close_one(&run->order, READ_END);
    pipe_ends_close_one(&run->answer, WRITE_END);
    if (run->perf < 0) {
        run->perf = 0;
        return report_failure(findings, "can't start a process: %s", strerror(errno));
    }
    run->undo_perf = undo_list_add_process(run->perf);
    return 0;
}

/* Whether perf says it in every recording. */
static bool is_usual(const char *line)
{
    static const char *const usual[] = {"[ perf record: ", "Events ", "info: "};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (strncmp(line, usual[i], strlen(usual[i])) == 0)
            return true;
    return *line == '\0';
}

/* The messages of perf without those that it always prints, on one line; to be freed, or NULL. */
static char *read_messages(const char *path)
{
    static const char usage[] = " Usage: perf record"; /* as if the user had called it */
    char text[MESSAGE_BYTES + 1], *rest = NULL, *said = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, text, MESSAGE_BYTES) : 0;
    if (fd >= 0)
        close(fd);
    text[bytes > 0 ? bytes : 0] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *longer = NULL;
        if (strncmp(line, usage, sizeof usage - 1) == 0)
            break;
        if (is_usual(line) ||
            asprintf(&longer, "%s%s%s", said ? said : "", said ? " " : "", line) < 0)
            continue;
        free(said);
        said = longer;
    }
    return said;
}

/* End perf, also if it ignores signals.  Returns its status. */
static int end_perf(struct recording_run *run)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int64_t start = now_ms();
    int status = 0;
    kill(run->perf, SIGINT);
    while (waitpid(run->perf, &status, WNOHANG) == 0) {
        if (now_ms() - start > STOP_MS)
            kill(run->perf, SIGKILL);
        nanosleep(&pause, NULL);
    }
    run->perf = 0;
    return status;
}

/* perf reads each process's mappings, and may end without a word if it can't.  SIGINT and SIGKILL
 * are what ended one that did not answer. */
static void report_silence(const struct recording_run *run, int status, struct findings *findings)
{
    char path[64];
    for (const char *pid = run->request->pids; pid && *pid; pid += *pid == ',') {
        int bytes = (int)strcspn(pid, ",");
        snprintf(path, sizeof path, "/proc/%.*s/maps", bytes, pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT) {
            report_failure(findings,
                           "perf record could not begin: -p %.*s: %s: %s: it is another user's, or "
                           "has more rights than this program: who records it needs those to trace "
                           "it (root, CAP_SYS_PTRACE)",
                           bytes, pid, path, strerror(errno));
            return;
        }
        if (fd >= 0)
            close(fd);
        pid += bytes;
    }
    if (run->is_late)
        report_failure(findings,
                       "perf record could not begin: it did not in %d s, and says nothing",
                       START_MS / 1000);
    else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGINT && WTERMSIG(status) != SIGKILL)
        report_failure(findings,
                       "perf record could not begin: signal %d (%s) ended it, and it says nothing",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WIFEXITED(status) && WEXITSTATUS(status))
        report_failure(findings,
                       "perf record could not begin: it ended with status %d, and says nothing",
                       WEXITSTATUS(status));
    else
        report_failure(findings, "perf record could not begin: it says nothing");
}

/* Whether there are named processes, and none of them is left. */
static bool all_have_ended(const char *pids)
{
    for (const char *pid = pids; pid && *pid; pid += *pid == ',') {
        if (live_process_goes_on((uint32_t)strtoul(pid, NULL, 10)))
            return false;
        pid += strcspn(pid, ",");
    }
    return pids && *pids;
}

static int perf_failed(struct recording_run *run, struct findings *findings)
{
    int status = end_perf(run);
    char *said = read_messages(run->request->messages);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED)
        report_failure(findings,
                       "%s: can't run it: install perf (Debian: linux-perf), or name it with "
                       "--perf FILE",
                       run->request->perf);
    else if (all_have_ended(run->request->pids))
        report_failure(findings, "perf record could not begin: -p %s: %s meanwhile",
                       run->request->pids,
                       strchr(run->request->pids, ',') ? "they have ended" : "it has ended");
    else if (said)
        report_failure(findings, "perf record could not begin: %s", said);
    else
        report_silence(run, status, findings);
    free(said);
    return -1;
}

/* Whether there is a request to end. */
static bool is_asked(const struct recording_run *run)
{
    sigset_t pending;
    sigpending(&pending);
    sigdelset(&pending, SIGCHLD);
    if (run->command)
        sigdelset(&pending, SIGQUIT);
    sigandset(&pending, &pending, &run->signals);
    return !sigisemptyset(&pending);
}

/* Give perf the ORDER.  One that has ended does not read it: the SIGPIPE of that is not from
 * outside.
 */
static bool order_failed(const struct recording_run *run, const char *order)
{
    const struct timespec at_once = {0, 0};
    sigset_t pipe, pending;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    bool failed =
        full_write(run->order.fd[WRITE_END], WRITE_WHERE_IT_STANDS, order, strlen(order)) != 0;
    if (failed && !was_pending)
        sigtimedwait(&pipe, NULL, &at_once);
    return failed;
}

/* Wait until perf says that it records. */
static int enable(struct recording_run *run, struct findings *findings)
{
    char answer[16];
    struct pollfd wait = {.fd = run->answer.fd[READ_END], .events = POLLIN};
    int64_t start = now_ms();
    bool failed = order_failed(run, "enable\n");
    while (!failed && poll(&wait, 1, TICK_MS) != 1) {
        if (is_asked(run))
            return report_failure(findings, "interrupted before perf record had begun");
        failed = run->is_late = now_ms() - start > START_MS;
    }
    if (failed || read(wait.fd, answer, sizeof answer) <= 0)
        return perf_failed(run, findings);
    return 0;
}

/* ---- While it runs ---- */

static void show_progress(struct recording_run *run)
{
    int64_t now = now_ms();
    if (!run->request->shows_progress || now - run->shown_ms < 1000)
        return;
    run->shown_ms = now;
    run_progress_show(run->recording, (now - run->start_ms) / 1000);
}

static void take_command_end(struct recording_run *run, int status, const struct rusage *usage)
{
    run->command = 0;
    run->end->status = status;
    run->end->after = processor_use_now();
    run->end->cpu_ns = (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000 +
                       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

/* Take the end of perf or the command, if one of them ended.  By itself perf ends after the
 * command, and is checked first: if the command goes on then, perf has failed.  One that leaves has
 * closed perf's events before it can be waited for. */
static void reap(struct recording_run *run)
{
    int status = 0, command_status;
    struct rusage usage;
    bool perf_ended = run->perf && waitpid(run->perf, &status, WNOHANG) == run->perf;
    bool goes_on = perf_ended && run->command && live_process_goes_on((uint32_t)run->command);
    if (run->command && wait4(run->command, &command_status, WNOHANG, &usage) == run->command)
        take_command_end(run, command_status, &usage);
    if (!perf_ended)
        return;
    run->perf = 0;
    run->perf_status = status;
    if (!run->ending_ms)
        run->end->perf_failed = goes_on || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    else if (WIFSIGNALED(status) ? WTERMSIG(status) != SIGINT : WEXITSTATUS(status) != 0)
        run->end->perf_failed = run->end->perf_failed_late = true;
}

const char *recorder_failure(const struct recorder_end *end)
{
    return end->perf_failed_late ? "perf record failed when it was to end"
                                 : "perf record ended before the command did";
}

/* What ended perf, if it has said nothing; to be freed, or NULL. */
static char *perf_signal(const struct recording_run *run)
{
    char *text;
    const int number = WIFSIGNALED(run->perf_status) ? WTERMSIG(run->perf_status) : 0;
    if (!number || asprintf(&text, "%s",
                            number == SIGXFSZ ? "its file came to the file size limit (ulimit -f)"
                                              : strsignal(number)) < 0)
        return NULL;
    return text;
}

/* Wait for a signal, at most a tick; true if it requests the end. */
static bool wait_tick(struct recording_run *run)
{
    const struct timespec tick = {0, TICK_MS * 1000000L};
    siginfo_t info;
    int signal_number = sigtimedwait(&run->signals, &info, &tick);
    reap(run);
    if (signal_number <= 0 || signal_number == SIGCHLD)
        return false;
    if (run->command && info.si_code <= 0 && /* the terminal tells the command itself */
        signal_number != SIGPIPE)
        kill(run->command, signal_number);
    if (signal_number == SIGQUIT && run->request->words)
        return false;
    run->end->signal = signal_number;
    return true;
}

static bool is_over(const struct recording_run *run)
{
    const struct recorder_request *request = run->request;
    return request->seconds > 0 && (double)(now_ms() - run->start_ms) >= request->seconds * 1000;
}

/* Until the command, or perf, has ended, or there is a request to end. */
static void watch(struct recording_run *run)
{
    while (run->request->words ? run->command != 0 : run->perf != 0) {
        if (wait_tick(run)) {
            run->end->interrupted = true;
            return;
        }
        run->is_over = is_over(run);
        if (run->is_over)
            return;
        show_progress(run);
    }
}

static void stop_perf(struct recording_run *run)
{
    int64_t start = now_ms();
    bool signalled = false;
    run->ending_ms = start;
    order_failed(run, "stop\n");
    while (run->perf) {
        bool asked = wait_tick(run);
        if (run->perf && !signalled && now_ms() - start > STOP_MS) {
            kill(run->perf, SIGINT);
            signalled = true;
        } else if (run->perf && signalled && asked) { /* once more: it won't, or takes too long */
            kill(run->perf, SIGKILL);
            run->end->perf_failed = true;
        }
    }
}

static void find_others(struct recording_run *run)
{
    static const char name[] = "JITDUMPDIR="; /* of a folder that is this run's */
    char *const *variable = run->request->variables;
    while (*variable && strncmp(*variable, name, sizeof name - 1))
        variable++;
    run_processes_free(&run->others);
    run_processes_find(&run->others, run->recording, run->command, *variable ? *variable : name);
}

/* A shell passes no signals on: all processes of the run get it. */
static void terminate(struct recording_run *run)
{
    find_others(run);
    if (run->command)
        kill(run->command, SIGTERM);
    run_processes_signal(&run->others, SIGTERM);
    run->terminated = true;
}

/* A Java VM, say, writes its map when it ends. */
static void wait_for_command(struct recording_run *run)
{
    int64_t start = now_ms();
    if (run->is_over)
        terminate(run);
    else if (run->end->interrupted)
        find_others(run);
    while ((run->command || run_processes_go_on(&run->others)) && now_ms() - start < 2 * LEAVE_MS) {
        wait_tick(run);
        if (!run->terminated && now_ms() - start > LEAVE_MS)
            terminate(run);
    }
    run->end->still_runs = run->command != 0;
    run->end->command = run->command;
    run_processes_free(&run->others);
}

/* ---- A run ---- */

static int begin(struct recording_run *run, struct findings *findings)
{
    if (open_pipes(run, findings) || start_command(run, findings) || start_perf(run, findings) ||
        enable(run, findings) || open_gate(run, findings))
        return -1;
    run->start_ms = run->shown_ms = now_ms();
    return 0;
}

/* The command, at its gate, reads the end of the pipe. */
static void give_up(struct recording_run *run)
{
    close_pipes(run);
    if (run->perf > 0)
        end_perf(run);
    if (run->command > 0)
        waitpid(run->command, NULL, 0);
}

void recorder_ending_signals(sigset_t *signals)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct sigaction old;
    sigemptyset(signals);
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++)
        if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaddset(signals, ending[i]);
}

/* A signal that came while the run ended, or before it began, does not end this program.  For one
 * recording it has no other purpose.  A caller that makes several recordings has to know of it. */
static void take_late_signals(struct recording_run *run)
{
    const struct timespec at_once = {0, 0};
    int number;
    while ((number = sigtimedwait(&run->signals, NULL, &at_once)) > 0)
        if (number != SIGCHLD && number != SIGQUIT)
            run->end->signal = number;
}

static void stay(int number)
{
    (void)number;
}

/* A signal with a handler, unlike an ignored one, has its default in a program that is started. */
void recorder_leave_quit(void)
{
    struct sigaction action = {.sa_handler = stay, .sa_flags = SA_RESTART}, old;
    if (sigaction(SIGQUIT, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(SIGQUIT, &action, NULL);
}

int recorder_run(const struct recorder_request *request, struct growing_recording *recording,
                 struct recorder_end *end, struct findings *findings)
{
    static const struct pipe_ends closed = PIPE_ENDS_CLOSED;
    struct recording_run run = {request, recording, end, closed, closed, closed, closed, .perf = 0};
    *end = (struct recorder_end){0};
    recorder_ending_signals(&run.signals);
    sigaddset(&run.signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &run.signals, &run.old_signals);
    /* A signal that was held until now, while the command was examined, is not seen any more. */
    int result = interruption_check(findings) ? -1 : begin(&run, findings);
    if (!result) {
        watch(&run);
        stop_perf(&run);
        growing_recording_read(recording);
        if (request->words)
            wait_for_command(&run);
        end->perf_said = read_messages(request->messages);
        if (end->perf_failed && !end->perf_said)
            end->perf_said = perf_signal(&run);
    } else {
        give_up(&run);
    }
    if (request->shows_progress)
        run_progress_end();
    close_pipes(&run);
    undo_list_done(run.undo_perf);
    take_late_signals(&run);
    sigprocmask(SIG_SETMASK, &run.old_signals, NULL);
    return result;
}
