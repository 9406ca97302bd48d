/* perfjit: the command.  Picks the subcommand; each has its own options and its own file in
 * commands/. */
#include "injector/arrays/array.h"
#include "injector/commands/commands.h"
#include "injector/text/printable_text.h"
#include "jitdump/jitdump.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command {
    const char *name;
    char full_name[20]; /* what messages call it */
    int (*run)(int argc, char **argv);
    const char *what;
};

static struct command commands[] = {
    {"record", "perfjit record", record_command,
     "run a command, its JIT code logged, and record it with perf"},
    {"attach", "perfjit attach", attach_command,
     "have a running process log its JIT code, all that is alive first"},
    {"detach", "perfjit detach", detach_command, "have it close that dump again"},
    {"bench", "perfjit bench", bench_command,
     "run two commands in turns, and keep a small profile of each run for perfjit diff"},
    {"report", "perfjit report", report_command, "say where the time of a recording went"},
    {"flamegraph", "perfjit flamegraph", flamegraph_command,
     "draw a recording: a page that opens in any browser"},
    {"export", "perfjit export", export_command,
     "write a recording for flamegraph.pl, pprof, speedscope, ..."},
    {"diff", "perfjit diff", diff_command,
     "say what got slower between two sets of recordings, and whether that is noise"},
    {"inject", "perfjit inject", inject_command,
     "rewrite a recording so that perf report names JIT code"},
    {"check", "perfjit check", check_command,
     "say what is wrong with a recording or a dump, and what to do"},
    {"dump", "perfjit dump", dump_command, "print a jitdump file, record by record"},
    {"bt", "perfjit bt", bt_command, "print the stacks of a core or a process, JIT code named"},
    {"symbols", "perfjit symbols", symbols_command,
     "write ELF files of the code that is alive in a core or a process"},
    {"gdb", "perfjit gdb", gdb_command, "start gdb on a core or a process, JIT code in its stacks"},
    {"lldb", "perfjit lldb", lldb_command,
     "start lldb on a core or a process, JIT code in its stacks"},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *stream)
{
    fprintf(stream, "Usage: perfjit COMMAND [OPTION...]\n\n");
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].what);
    fprintf(stream, "\nperfjit COMMAND --help tells the options of a command, perfjit --version "
                    "the version.\n");
}

/* Large arrays that grow are copied less, and memory that is free again is used again, instead of
 * given back and asked for once more: pages that the system must fill with zeros are a tenth of the
 * time of a large profile.  Not what a million functions have: it is given back as soon as it is
 * free. */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_BYTES);
    mallopt(M_TOP_PAD, 16 << 20);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

/* Where standard streams were closed, what is opened first would be written to as if it were
 * one. */
static void keep_streams_free(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

int main(int argc, char **argv)
{
    keep_memory();
    keep_streams_free();
    const char *word = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(word, commands[i].name) == 0) {
            argv[1] = commands[i].full_name;
            return commands[i].run(argc - 1, argv + 1);
        }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_usage(stdout);
        return EXIT_SUCCESS;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("perfjit %s\n", JITDUMP_VERSION);
        return EXIT_SUCCESS;
    }
    if (*word)
        printable_line(stderr, "perfjit: there is no command '%s'", word);
    print_usage(stderr);
    return 2;
}
