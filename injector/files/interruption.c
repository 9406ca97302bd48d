/* See interruption.h. */
#include "injector/files/interruption.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile sig_atomic_t signal_that_came, file_shrank;

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

enum { ENDING_SIGNALS = sizeof ending_signals / sizeof ending_signals[0] };

static void note_signal(int number)
{
    signal_that_came = number;
}

void interruption_note(int number)
{
    signal_that_came = number;
}

/* mmap is a bare system call on Linux, and as good as async-signal-safe. */
static void replace_page(int number, siginfo_t *info, void *context)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t page = (uintptr_t)info->si_addr / page_bytes * page_bytes;
    (void)context;
    file_shrank = 1;
    if (info->si_code != BUS_ADRERR ||
        mmap((void *)page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            MAP_FAILED)
        signal(number, SIG_DFL); /* and the instruction tries again */
}

void interruption_watch_files(void)
{
    struct sigaction action = {.sa_sigaction = replace_page, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* Without SA_RESTART: a write into a pipe without a reader must end, too. */
void interruption_hold_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal}, old;
    for (int i = 0; i < ENDING_SIGNALS; i++)
        if (sigaction(ending_signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(ending_signals[i], &action, NULL);
}

int interruption_check(struct findings *findings)
{
    if (signal_that_came)
        return report_failure(findings, "interrupted (%s); nothing was written",
                              strsignal(signal_that_came));
    if (file_shrank)
        return report_failure(findings,
                              "a file became shorter while it was read; does its process still "
                              "run?  Try again when it has ended");
    return 0;
}

bool interruption_came(void)
{
    return signal_that_came || file_shrank;
}

void interruption_pass_on(void)
{
    if (!signal_that_came)
        return;
    signal(signal_that_came, SIG_DFL);
    raise(signal_that_came);
}
