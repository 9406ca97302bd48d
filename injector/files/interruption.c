/* See interruption.h. */
#include "injector/files/interruption.h"

#include "injector/arrays/array.h"
#include "injector/files/undo_list.h"

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile sig_atomic_t signal_that_came, file_shrank, spare_shrank;

/* A mapped file, or one that was cut. */
struct spare_file {
    const uint8_t *bytes;
    size_t size;
    dev_t dev;
    ino_t ino;
    char *path; /* owned; NULL: its size does not matter */
    size_t lasting;
    volatile sig_atomic_t shrank;
};

/* The handler reads them: a page is missing only for code that reads a file. */
static struct spare_file *spares, *cut_files;
static size_t spare_count, spare_capacity, cut_count, cut_capacity;

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

static struct spare_file *spare_at(const uint8_t *byte)
{
    for (size_t i = 0; i < spare_count; i++)
        if (byte >= spares[i].bytes && (size_t)(byte - spares[i].bytes) < spares[i].size)
            return &spares[i];
    return NULL;
}

static void note_shorter_file(const uint8_t *byte)
{
    struct spare_file *spare = spare_at(byte);
    if (spare)
        spare->shrank = spare_shrank = 1;
    else
        file_shrank = 1;
}

/* mmap is a bare system call on Linux, and as good as async-signal-safe. */
static void replace_page(int number, siginfo_t *info, void *context)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t page = (uintptr_t)info->si_addr / page_bytes * page_bytes;
    (void)context;
    note_shorter_file(info->si_addr);
    if (info->si_code != BUS_ADRERR ||
        mmap((void *)page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            MAP_FAILED)
        signal(number, SIG_DFL); /* and the instruction tries again */
}

void interruption_end_unread(void)
{
    struct pollfd reader = {.fd = STDERR_FILENO};
    struct stat status;
    if (fstat(STDERR_FILENO, &status) == 0 && S_ISFIFO(status.st_mode) &&
        poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR))
        raise(SIGPIPE);
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
    if (file_shrank || spare_shrank)
        return report_failure(findings,
                              "a file became shorter while it was read; does its process still "
                              "run?  Try again when it has ended");
    return 0;
}

bool interruption_came(void)
{
    return signal_that_came || file_shrank || spare_shrank;
}

/* Without memory the file is not spare. */
void interruption_spare(const void *bytes, size_t size, const struct stat *file)
{
    if (array_reserve(spares, spare_count, spare_capacity))
        return;
    spares[spare_count++] =
        (struct spare_file){.bytes = bytes, .size = size, .dev = file->st_dev, .ino = file->st_ino};
}

void interruption_spare_lasts(const void *bytes, const char *path, size_t lasting)
{
    struct spare_file *spare = spare_at(bytes);
    if (!spare || lasting == 0)
        return;
    spare->path = strdup(path);
    spare->lasting = lasting;
}

void interruption_look(void)
{
    struct stat status;
    for (size_t i = 0; i < spare_count; i++)
        if (spares[i].path && stat(spares[i].path, &status) == 0 &&
            status.st_dev == spares[i].dev && status.st_ino == spares[i].ino &&
            (uint64_t)status.st_size < spares[i].lasting)
            spares[i].shrank = spare_shrank = 1;
}

void interruption_spare_end(const void *bytes)
{
    size_t i = 0;
    while (i < spare_count && spares[i].bytes != bytes)
        i++;
    if (i == spare_count)
        return;
    struct spare_file spare = spares[i];
    spares[i] = spares[--spare_count];
    free(spare.path);
    if (spare_count == 0) { /* nothing of it stays for valgrind to find */
        free(spares);
        spares = NULL;
        spare_capacity = 0;
    }
    if (!spare.shrank)
        return;
    if (array_reserve(cut_files, cut_count, cut_capacity))
        file_shrank = 1;
    else
        cut_files[cut_count++] = spare;
}

bool interruption_has_cut(const struct stat *file)
{
    for (size_t i = 0; i < cut_count; i++)
        if (cut_files[i].dev == file->st_dev && cut_files[i].ino == file->st_ino)
            return true;
    return false;
}

bool interruption_begin_anew(void)
{
    bool may = spare_shrank && !file_shrank && !signal_that_came;
    if (may)
        spare_shrank = 0;
    return may;
}

void interruption_pass_on(void)
{
    if (!signal_that_came)
        return;
    undo_list_end();
    signal(signal_that_came, SIG_DFL);
    raise(signal_that_came);
}

bool interruption_by_signal(void)
{
    return signal_that_came;
}
