/* functions: a JIT whose functions have the sizes and names of a real runtime's: many small ones
 * and few large.
 *
 *     PERFJIT=dump functions -n FUNCTIONS [-m NAMES] [-r SEED] [-s SECONDS]
 *
 * Each is logged as it is made, with samples being taken meanwhile; then all are called in turn for
 * SECONDS.  Half of them have 32 to 95 bytes, a quarter twice as many, and so on up to 24 KiB:
 * about 300 bytes in the mean.  With NAMES there are only so many different ones, as where a
 * runtime compiles the same functions again and again.
 */
#include "jitdump/jitdump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    SMALLEST_BYTES = 32,
    SPREAD_BYTES = 64, /* of the smallest class */
    SIZE_CLASSES = 9,
    ALIGN_BYTES = 16,
    LOOP_BYTES = 10,
    LARGEST_BYTES = (SMALLEST_BYTES + SPREAD_BYTES) << (SIZE_CLASSES - 1),
    NAME_BYTES = 96,
    CALLS_BETWEEN_LOOKS = 1000
};

struct arena {
    uint8_t *base;
    size_t bytes, used;
};

struct options {
    size_t functions;
    size_t names; /* 0: as many as functions */
    uint64_t seed;
    double seconds;
};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "functions: %s\n", what);
    exit(EXIT_FAILURE);
}

/* Marsaglia's xorshift64*: the same functions for the same seed everywhere. */
static uint32_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * 2685821657736338717u) >> 32);
}

static size_t next_size(uint64_t *state)
{
    uint32_t bits = next_random(state);
    unsigned class = 0;
    while (class < SIZE_CLASSES - 1 && (bits >> class & 1))
        class ++;
    return (SMALLEST_BYTES + next_random(state) % SPREAD_BYTES) << class;
}

/* Names as runtimes give them: where from, which class, which method; 20 to 60 characters. */
static void next_name(uint64_t *state, size_t number, char name[NAME_BYTES])
{
    static const char *const places[] = {"app", "node:internal/streams", "org.example.server.http",
                                         "vendor/templates/page"};
    static const char *const verbs[] = {"get", "set", "visitNode", "handleRequest",
                                        "serializeChildren"};
    snprintf(name, NAME_BYTES, "%s.Class%u.%s_%zu", places[next_random(state) % 4],
             next_random(state) % 5000, verbs[next_random(state) % 5], number);
}

/* A short loop and, behind its return, bytes that nothing runs: a size costs nothing when it is
 * called. */
static void emit(uint8_t *to, size_t bytes, uint64_t *state)
{
#if defined(__x86_64__)
    static const uint8_t code[LOOP_BYTES] = {0xb9, 0x80, 0, 0, 0, /* mov ecx, 128 */
                                             0xff, 0xc9,          /* dec ecx */
                                             0x75, 0xfc,          /* jnz to the dec */
                                             0xc3};               /* ret */
    size_t used = sizeof code;
#elif defined(__aarch64__)
    static const uint32_t code[] = {0x52801000,  /* mov w0, 128 */
                                    0x71000400,  /* subs w0, w0, 1 */
                                    0x54ffffe1,  /* b.ne to the subs */
                                    0xd65f03c0}; /* ret */
    size_t used = sizeof code;
#else
#error "no loop for this machine yet"
#endif
    memcpy(to, code, used);
    for (; used < bytes; used++)
        to[used] = (uint8_t)next_random(state);
}

static void log_function(struct jitdump *dump, const char *name, const uint8_t *at, size_t bytes)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = (uintptr_t)at;
    code.code_size = bytes;
    code.bytes = at;
    if (jitdump_add_code(dump, &code, NULL))
        fail(jitdump_error(dump));
}

/* Room for COUNT functions with SEED: their sizes are drawn once more when they are made. */
static struct arena open_arena(size_t count)
{
    struct arena arena = {.bytes = count * 640 + 64 * (size_t)LARGEST_BYTES};
    arena.base = mmap(NULL, arena.bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena.base == MAP_FAILED)
        fail("no memory");
    return arena;
}

static uint8_t *make_function(struct jitdump *dump, struct arena *arena, size_t number,
                              struct options *options)
{
    uint64_t *state = &options->seed, of_name = number % (options->names ? options->names : 1) + 1;
    char name[NAME_BYTES];
    size_t bytes = next_size(state);
    uint8_t *at = arena->base + arena->used;
    if (bytes > arena->bytes - arena->used)
        fail("the arena is too small for this seed");
    if (options->names)
        next_name(&of_name, number % options->names, name);
    else
        next_name(state, number, name);
    emit(at, bytes, state);
    __builtin___clear_cache((char *)at, (char *)at + bytes);
    log_function(dump, name, at, bytes);
    arena->used += (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    return at;
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void call_in_turn(uint8_t *const *entries, const struct options *options)
{
    double end = now_seconds() + options->seconds;
    for (size_t i = 0, calls = 0;; i = (i + 1) % options->functions, calls++) {
        ((void (*)(void))(uintptr_t)entries[i])();
        if (calls % CALLS_BETWEEN_LOOKS == 0 && now_seconds() >= end)
            return;
    }
}

static struct options parse(int argc, char **argv)
{
    struct options options = {.functions = 1000, .seed = 1, .seconds = 1};
    for (int option; (option = getopt(argc, argv, "n:m:r:s:")) != -1;) {
        if (option == 'n')
            options.functions = strtoul(optarg, NULL, 10);
        else if (option == 'm')
            options.names = strtoul(optarg, NULL, 10);
        else if (option == 'r')
            options.seed = strtoull(optarg, NULL, 10);
        else if (option == 's')
            options.seconds = strtod(optarg, NULL);
        else
            exit(2);
    }
    if (optind < argc || !options.functions || !options.seed)
        fail("usage: functions -n FUNCTIONS [-m NAMES] [-r SEED] [-s SECONDS]");
    return options;
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    struct arena arena = open_arena(options.functions);
    uint8_t **entries = calloc(options.functions, sizeof *entries);
    struct jitdump *dump;
    if (!entries)
        fail("no memory");
    if (jitdump_open(&dump, NULL))
        fail(jitdump_error(dump));
    for (size_t i = 0; i < options.functions; i++)
        entries[i] = make_function(dump, &arena, i, &options);
    if (jitdump_close(dump))
        fail("the dump is not whole");
    call_in_turn(entries, &options);
    free(entries);
    return EXIT_SUCCESS;
}
