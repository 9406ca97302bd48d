/* See bench_together.h. */
#include "injector/run/bench/bench_together.h"

#include "injector/files/full_write.h"
#include "injector/files/interruption.h"
#include "injector/files/pipe_ends.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 100, MEETINGS = 2 };

/* The report of a partner's process on its run.  It is less than a pipe takes at once. */
struct answer {
    uint64_t numbers[RUN_NUMBERS], found[FINDING_KINDS];
    struct bench_leftover leftover;
    bool failed, interrupted;
    char failure[1024];
};

struct runner {
    struct bench_partner *partner;
    struct answer answer;
    size_t answered; /* bytes of it */
    struct pipe_ends ready, go, said;
    pid_t process; /* 0: there is none */
};

/* The last one that this process may use: interrupts are mostly the first one's.  -1: unknown. */
static int last_processor(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return -1;
    int processor = CPU_SETSIZE - 1;
    while (processor >= 0 && !CPU_ISSET((size_t)processor, &allowed))
        processor--;
    return processor;
}

/* ---- In a partner's process ---- */

static _Noreturn void run_and_answer(struct runner *runner, pid_t parent,
                                     const struct findings *usual)
{
    struct answer answer = {.failed = true};
    struct findings own = {.verbose = usual->verbose, .quiet = usual->quiet};
    struct bench_command *command = &runner->partner->command;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    command->record.processor = last_processor();
    command->record.ready = runner->ready.fd[WRITE_END];
    command->record.go = runner->go.fd[READ_END];
    if (getppid() == parent)
        answer.failed = bench_run_go(answer.numbers, &answer.leftover, command, &own);
    answer.interrupted = interruption_came();
    if (own.verbose || (findings_lost(&own) && !own.quiet))
        findings_print(&own, stderr);
    memcpy(answer.found, own.count, sizeof answer.found);
    memcpy(answer.failure, own.failure, sizeof answer.failure);
    full_write(runner->said.fd[WRITE_END], WRITE_WHERE_IT_STANDS, &answer, sizeof answer);
    _exit(EXIT_SUCCESS);
}

/* ---- In this one ---- */

static int start(struct runner *runner, struct findings *findings)
{
    pid_t self = getpid();
    if (pipe_ends_open(&runner->ready, findings) || pipe_ends_open(&runner->go, findings) ||
        pipe_ends_open(&runner->said, findings))
        return -1;
    runner->process = fork();
    if (runner->process == 0)
        run_and_answer(runner, self, findings);
    pipe_ends_close_one(&runner->ready, WRITE_END);
    pipe_ends_close_one(&runner->go, READ_END);
    pipe_ends_close_one(&runner->said, WRITE_END);
    if (runner->process > 0)
        return 0;
    runner->process = 0;
    return report_failure(findings, "can't start a process: %s", strerror(errno));
}

static bool is_readable(int fd, int ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, ms) > 0;
}

/* Whether RUNNER has come so far, before it or the other one has failed. */
static bool has_come(const struct runner *runner, const struct runner runners[BENCH_SIDES])
{
    char byte;
    while (!is_readable(runner->ready.fd[READ_END], TICK_MS))
        if (interruption_came() || is_readable(runners[0].said.fd[READ_END], 0) ||
            is_readable(runners[1].said.fd[READ_END], 0))
            return false;
    return read(runner->ready.fd[READ_END], &byte, 1) == 1;
}

/* By a byte: the other partner's process may hold this end, too. */
static void let_go(struct runner runners[BENCH_SIDES])
{
    for (int i = 0; i < BENCH_SIDES; i++)
        if (runners[i].go.fd[WRITE_END] >= 0)
            full_write(runners[i].go.fd[WRITE_END], WRITE_WHERE_IT_STANDS, "", 1);
}

/* They wait for each other at the start, and again at the end, before they read their results.  If
 * one has failed, the other one goes on alone. */
static void let_meet(struct runner runners[BENCH_SIDES])
{
    for (int meeting = 0; meeting < MEETINGS; meeting++) {
        if (has_come(&runners[0], runners))
            has_come(&runners[1], runners);
        let_go(runners);
    }
}

/* Returns whether there is more to come. */
static bool read_answer(struct runner *runner)
{
    ssize_t bytes = read(runner->said.fd[READ_END], (char *)&runner->answer + runner->answered,
                         sizeof runner->answer - runner->answered);
    if (bytes < 0 && errno == EINTR)
        return true;
    if (bytes > 0)
        runner->answered += (size_t)bytes;
    return bytes > 0 && runner->answered < sizeof runner->answer;
}

/* If one failed, or the user ends the bench, the other has nothing to run for. */
static void wait_for_answers(struct runner runners[BENCH_SIDES])
{
    bool waits[BENCH_SIDES] = {true, true}, ended = false;
    while (waits[0] || waits[1]) {
        bool over = interruption_came();
        for (int i = 0; i < BENCH_SIDES; i++) {
            if (waits[i] && is_readable(runners[i].said.fd[READ_END], TICK_MS / BENCH_SIDES))
                waits[i] = read_answer(&runners[i]);
            over |= !waits[i] &&
                    (runners[i].answered < sizeof runners[i].answer || runners[i].answer.failed);
        }
        for (int i = 0; i < BENCH_SIDES && over && !ended; i++)
            if (waits[i])
                kill(runners[i].process, SIGTERM);
        ended |= over;
    }
}

/* The partner's work is counted as other work on the machine. */
static void take_numbers(struct bench_partner *partner, const struct runner *own,
                         const struct runner *other)
{
    uint64_t *beside_ns = &partner->numbers[RUN_BESIDE_NS];
    memcpy(partner->numbers, own->answer.numbers, sizeof partner->numbers);
    partner->leftover = own->answer.leftover;
    uint64_t others_ns = other->answer.numbers[RUN_CPU_NS];
    *beside_ns -= *beside_ns < others_ns ? *beside_ns : others_ns;
}

static int take_answer(const struct runner *own, const struct runner *other,
                       struct findings *findings)
{
    const char *place = own->partner->command.place;
    if (own->answered < sizeof own->answer)
        return report_failure(findings, "%s: perfjit itself ended; nothing was written", place);
    for (int kind = 0; kind < FINDING_KINDS; kind++) {
        if (!own->answer.found[kind])
            continue;
        report_finding(findings, (enum finding_kind)kind, "%s", place);
        findings->count[kind] += own->answer.found[kind] - 1;
    }
    if (own->answer.failed)
        return report_failure(findings, "%.*s", (int)sizeof own->answer.failure - 1,
                              own->answer.failure);
    take_numbers(own->partner, own, other);
    return 0;
}

static void end(struct runner *runner, bool at_once)
{
    pipe_ends_close(&runner->ready);
    pipe_ends_close(&runner->go);
    pipe_ends_close(&runner->said);
    if (at_once && runner->process)
        kill(runner->process, SIGTERM);
    while (runner->process && waitpid(runner->process, NULL, 0) < 0 && errno == EINTR)
        continue;
}

int bench_together_go(struct bench_partner partners[BENCH_SIDES], struct findings *findings)
{
    struct runner runners[BENCH_SIDES];
    int result = 0;
    for (int i = 0; i < BENCH_SIDES; i++)
        runners[i] = (struct runner){.partner = &partners[i],
                                     .answer = {.failed = true},
                                     .ready = PIPE_ENDS_CLOSED,
                                     .go = PIPE_ENDS_CLOSED,
                                     .said = PIPE_ENDS_CLOSED};
    for (int i = 0; i < BENCH_SIDES && !result; i++)
        result = start(&runners[i], findings);
    interruption_watch_files(); /* only the commands have these signals as they were */
    if (!result) {
        let_meet(runners);
        wait_for_answers(runners);
    }
    for (int i = 0; i < BENCH_SIDES; i++)
        end(&runners[i], result != 0);
    /* One that was interrupted says so, but the reason is the other's. */
    int first = runners[0].answer.failed && !runners[0].answer.interrupted ? 0 : 1;
    for (int i = 0; i < BENCH_SIDES && !result; i++) {
        int own = i == 0 ? first : 1 - first;
        result = take_answer(&runners[own], &runners[1 - own], findings);
    }
    return result ? -1 : 0;
}
