/* perfjit: the command.  Picks the subcommand; each has its own options and its own file in
 * commands/. */
#include "injector/arrays/array.h"
#include "injector/commands/commands.h"
#include "injector/run/record/record.h"
#include "injector/run/record/stand_in.h"
#include "injector/text/printable_text.h"
#include "jitdump/jitdump.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_usage(FILE *stream)
{
    fprintf(stream, "Usage: perfjit COMMAND [OPTION...]\n\n");
    for (const struct command *command = commands; command->name; command++)
        fprintf(stream, "  %-10s %s\n", command->name, command->purpose);
    fprintf(stream, "\nperfjit COMMAND --help shows a command's options and exit statuses,\n"
                    "perfjit --version the version.\n");
}

/* Large arrays that grow are copied less.  Memory that is free is used again, instead of given back
 * and requested once more: pages that the system must fill with zeros are a tenth of the time of a
 * large profile.  The memory of a million functions is not kept: it is given back as soon as it is
 * free. */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_BYTES);
    mallopt(M_TOP_PAD, 16 << 20);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

/* If standard streams were closed, the first opened file would be written to as if it were one. */
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
    stand_in_become(argv);
    keep_memory();
    keep_streams_free();
    record_run_learn_undo();
    const char *word = argc > 1 ? argv[1] : "";
    for (const struct command *command = commands; command->name; command++)
        if (strcmp(word, command->name) == 0) {
            char full_name[32]; /* what messages call it */
            snprintf(full_name, sizeof full_name, "perfjit %s", word);
            argv[1] = full_name;
            return command->run(argc - 1, argv + 1);
        }
    if (strcmp(word, "manual") == 0)
        return manual_command(argc - 1, argv + 1);
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
