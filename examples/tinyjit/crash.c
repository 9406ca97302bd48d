/* See crash.h. */
#include "examples/tinyjit/crash.h"

#include "jitunwind/jitunwind.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A stack that is full has no room for its report. */
enum { HANDLER_STACK_BYTES = 128 << 10 };
static char handler_stack[HANDLER_STACK_BYTES];

static void report(int number, siginfo_t *info, void *ucontext)
{
    static const char head[] = "tinyjit crashed\n";
    (void)info;
    if (write(STDERR_FILENO, head, sizeof head - 1) > 0)
        jitunwind_print_crash(STDERR_FILENO, ucontext);
    signal(number, SIG_DFL); /* the instruction is run again, and ends the process */
}

int crash_report_on(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    const stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    int result = sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0] && result == 0; i++)
        result = sigaction(signals[i], &action, NULL);
    if (result < 0)
        perror("tinyjit: no crash reports");
    return result;
}

void crash_now(int64_t value)
{
    static volatile int64_t *volatile nowhere; /* not known to the compiler to be NULL */
    *nowhere = value;
}

__attribute__((noinline)) void stop_now(void)
{
    raise(SIGTRAP);
}
