/* attach PERFJIT [ROUNDS]: what a program pays that can be asked for its dump.
 *
 * Prints "poll NULL_NS OFF_NS ON_NS", the nanoseconds of a jitdump_poll with no handle, of one that
 * nobody has asked, and of one whose dump is open; then for each number of functions that are alive
 * "all COUNT POLL_MS ADD_MS CLOSE_MS": the poll that opens the dump and logs them all, adding as
 * many to a dump that was open from the start, and the poll that closes it.  PERFJIT attaches and
 * detaches.  Medians of ROUNDS, all ways in turns.
 */
#include "jitdump/jitdump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { POLLS = 2000000, MOST = 100000, ROUNDS_MAX = 101, CODE_BYTES = 256 };

static uint8_t code_bytes[CODE_BYTES];
static uint64_t alive;

static double now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void log_all(struct jitdump *dump, void *nothing)
{
    (void)nothing;
    for (uint64_t i = 0; i < alive; i++) {
        struct jitdump_code code = JITDUMP_CODE_INIT;
        char name[32];
        snprintf(name, sizeof name, "function_%d", (int)i);
        code.name = name;
        code.code_addr = UINT64_C(0x7f0000000000) + i * CODE_BYTES;
        code.code_size = CODE_BYTES;
        code.bytes = code_bytes;
        if (jitdump_add_code(dump, &code, NULL))
            exit(1);
    }
}

static struct jitdump *open_dump(uint32_t flags)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jitdump *dump;
    options.flags = flags;
    if (jitdump_open(&dump, &options)) {
        fprintf(stderr, "attach: %s\n", jitdump_error(dump));
        exit(1);
    }
    return dump;
}

static char folder[] = "/tmp/attach_bench.XXXXXX";

/* A dump that was detached has no path any more. */
static void close_dump(struct jitdump *dump)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    if (jitdump_close(dump) || system(command))
        exit(1);
}

/* Returns what PERFJIT says when it is done; it waits for the poll meanwhile. */
static FILE *start(const char *perfjit, const char *word)
{
    char command[4096];
    snprintf(command, sizeof command, "exec '%s' %s -q %d", perfjit, word, (int)getpid());
    FILE *asker = popen(command, "r");
    if (!asker)
        exit(1);
    return asker;
}

/* The milliseconds of the poll that does something. */
static double answer(struct jitdump *dump, const char *perfjit, const char *word)
{
    FILE *asker = start(perfjit, word);
    const char *before = jitdump_path(dump);
    double began;
    do {
        began = now_ns(CLOCK_MONOTONIC);
        jitdump_poll(dump, log_all, NULL);
    } while (jitdump_path(dump) == before);
    double ms = (now_ns(CLOCK_MONOTONIC) - began) / 1e6;
    if (pclose(asker))
        exit(1);
    return ms;
}

static double poll_ns(struct jitdump *volatile dump)
{
    double began = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < POLLS; i++)
        jitdump_poll(dump, log_all, NULL);
    return (now_ns(CLOCK_PROCESS_CPUTIME_ID) - began) / POLLS;
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static void time_polls(const char *perfjit, int rounds)
{
    double none[ROUNDS_MAX], off[ROUNDS_MAX], on[ROUNDS_MAX];
    alive = 0;
    for (int i = 0; i < rounds; i++) {
        struct jitdump *dump = open_dump(JITDUMP_ATTACHABLE);
        none[i] = poll_ns(NULL);
        off[i] = poll_ns(dump);
        answer(dump, perfjit, "attach");
        on[i] = poll_ns(dump);
        close_dump(dump);
    }
    printf("poll %.2f %.2f %.2f\n", median(none, rounds), median(off, rounds), median(on, rounds));
}

static void time_all(const char *perfjit, int rounds, uint64_t count)
{
    double poll[ROUNDS_MAX], add[ROUNDS_MAX], end[ROUNDS_MAX];
    alive = count;
    for (int i = 0; i < rounds; i++) {
        struct jitdump *dump = open_dump(JITDUMP_ATTACHABLE);
        poll[i] = answer(dump, perfjit, "attach");
        end[i] = answer(dump, perfjit, "detach");
        close_dump(dump);
        dump = open_dump(JITDUMP_ALWAYS);
        double began = now_ns(CLOCK_MONOTONIC);
        log_all(dump, NULL);
        add[i] = (now_ns(CLOCK_MONOTONIC) - began) / 1e6;
        close_dump(dump);
    }
    printf("all %d %.2f %.2f %.2f\n", (int)count, median(poll, rounds), median(add, rounds),
           median(end, rounds));
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 7;
    if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX || !mkdtemp(folder) ||
        setenv("JITDUMPDIR", folder, 1))
        return 2;
    time_polls(argv[1], rounds);
    for (uint64_t count = 1000; count <= MOST; count *= 10)
        time_all(argv[1], rounds, count);
    return rmdir(folder) != 0;
}
