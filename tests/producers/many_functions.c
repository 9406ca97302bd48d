/* many_functions: a JIT that makes many small functions, tells libjitdump about each, and calls them in turn.
 *
 *     PERFJIT=dump many_functions [-n FUNCTIONS] [-b BYTES] [-s SECONDS] [-t TRUTH]
 *
 * BYTES: each function is so long, most of it never run.
 * All functions are complete and logged before the arena becomes executable, as in a runtime with W^X memory: the
 * mapping that perf records is newer than the code.  TRUTH receives, independently of libjitdump, which function is
 * where, in the form of tinyjit --truth.
 */
#include "jitdump/jitdump.h"
#include "tests/producers/loop_code.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SLOT_BYTES = 32, NAME_BYTES = 32, ROUNDS_BETWEEN_LOOKS = 1000 };

typedef void function_code(void);

struct options {
    size_t functions;
    size_t function_bytes; /* 0: what it takes */
    double seconds;
    const char *truth;
};

struct arena {
    uint8_t *base;
    size_t bytes;
};

static void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static size_t slot_bytes(const struct options *options)
{
    return options->function_bytes > SLOT_BYTES ? options->function_bytes : SLOT_BYTES;
}

static void log_function(struct jitdump *dump, FILE *truth, const uint8_t *at, size_t bytes,
                         size_t number)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "function_%05zu", number);
    if (truth)
        fprintf(truth, "%" PRIu64 " load %" PRIxPTR " %zu %s\n", now_ns(), (uintptr_t)at, bytes,
                name);
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = (uintptr_t)at;
    code.code_size = bytes;
    code.bytes = at;
    if (jitdump_add_code(dump, &code, NULL)) {
        fprintf(stderr, "many_functions: %s\n", jitdump_error(dump));
        exit(EXIT_FAILURE);
    }
}

static void make_functions(const struct options *options, const struct arena *arena)
{
    struct jitdump *dump;
    FILE *truth = options->truth ? fopen(options->truth, "w") : NULL;
    if (options->truth && !truth)
        fail(options->truth);
    if (jitdump_open(&dump, NULL)) {
        fprintf(stderr, "many_functions: %s\n", jitdump_error(dump));
        exit(EXIT_FAILURE);
    }
    if (truth)
        fprintf(truth, "# pid %d, arena %" PRIxPTR " to %" PRIxPTR "\n", (int)getpid(),
                (uintptr_t)arena->base, (uintptr_t)(arena->base + arena->bytes));
    for (size_t i = 0; i < options->functions; i++) {
        uint8_t *at = arena->base + i * slot_bytes(options);
        size_t bytes = loop_code_put_counted(at, 2000 + (uint32_t)i);
        log_function(dump, truth, at,
                     bytes > options->function_bytes ? bytes : options->function_bytes, i);
    }
    if (jitdump_close(dump) || (truth && fclose(truth)))
        fail("many_functions");
}

static struct arena open_arena(const struct options *options)
{
    struct arena arena = {.bytes = options->functions * slot_bytes(options)};
    void *base =
        mmap(NULL, arena.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        fail("mmap");
    arena.base = base;
    return arena;
}

/* For so many seconds of the CPU, so that on a busy machine there are as many samples. */
static void call_in_turn(const struct options *options, const struct arena *arena)
{
    clock_t end = clock() + (clock_t)(options->seconds * CLOCKS_PER_SEC);
    for (size_t i = 0, calls = 0;; i = (i + 1) % options->functions, calls++) {
        ((function_code *)(uintptr_t)(arena->base + i * slot_bytes(options)))();
        if (calls % ROUNDS_BETWEEN_LOOKS == 0 && clock() >= end)
            return;
    }
}

static struct options parse(int argc, char **argv)
{
    struct options options = {.functions = 15000, .seconds = 1.5};
    for (int option; (option = getopt(argc, argv, "n:b:s:t:")) != -1;) {
        if (option == 'n')
            options.functions = strtoul(optarg, NULL, 10);
        else if (option == 'b')
            options.function_bytes = strtoul(optarg, NULL, 10);
        else if (option == 's')
            options.seconds = strtod(optarg, NULL);
        else if (option == 't')
            options.truth = optarg;
        else
            exit(2);
    }
    if (optind < argc || options.functions == 0 || options.functions > 60000) {
        fprintf(stderr,
                "usage: many_functions [-n FUNCTIONS] [-b BYTES] [-s SECONDS] [-t TRUTH]\n");
        exit(2);
    }
    return options;
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    struct arena arena = open_arena(&options);
    make_functions(&options, &arena);
    if (mprotect(arena.base, arena.bytes, PROT_READ | PROT_EXEC))
        fail("mprotect");
    __builtin___clear_cache((char *)arena.base, (char *)arena.base + arena.bytes);
    call_in_turn(&options, &arena);
    return EXIT_SUCCESS;
}
