/* ring_churn: a server that compiles for ever, and logs it within a bound.
 *
 *     PERFJIT=dump,ring=64M ring_churn FUNCTIONS LIVE SPELLS TRUTH
 *
 * FUNCTIONS are logged as fast as it goes, each in the place of one of the LIVE ones that are there
 * at a time; but for the first PERMANENT, which stay for ever.  SPELLS times in between, and at the
 * end, it runs some of what is there, old and new, and notes that down in TRUTH, in the form of
 * run_log.h.  Prints the path of the dump, the longest call of jitdump_add_code in µs, and the
 * largest that the dump's files were together.  Exit status 1 if a call failed.
 */
#include "jitdump/jitdump.h"
#include "tests/producers/loop_code.h"
#include "tests/producers/run_log.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PERMANENT = 100, FUNCTION_BYTES = 256, ROUNDS = 20000, SPELL_NS = 60000000 };

static struct jitdump *dump;
static struct run_log *truth;
static uint8_t *arena;
static uint32_t *names; /* of what is in each place */
static size_t live;
static uint64_t longest_ns, largest_bytes;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "ring_churn: %s: %s\n", what, jitdump_error(dump));
    exit(EXIT_FAILURE);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t random_below(uint64_t limit)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

static void add(uint32_t number, size_t place)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    uint8_t *at = arena + place * FUNCTION_BYTES;
    char name[RUN_NAME_BYTES];
    snprintf(name, sizeof name, "r%u", number);
    loop_code_put(at, number % LOOP_FILLINGS);
    code.name = name;
    code.code_addr = (uint64_t)(uintptr_t)at;
    code.code_size = FUNCTION_BYTES;
    code.bytes = at;
    uint64_t start_ns = now_ns(CLOCK_MONOTONIC);
    if (jitdump_add_code(dump, &code, NULL))
        fail("jitdump_add_code");
    uint64_t took_ns = now_ns(CLOCK_MONOTONIC) - start_ns;
    longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
    names[place] = number;
}

static void run_one(size_t place)
{
    uint8_t *at = arena + place * FUNCTION_BYTES;
    struct run run = {.pid = getpid(),
                      .tid = (int)syscall(SYS_gettid),
                      .addr = (uintptr_t)at,
                      .bytes = FUNCTION_BYTES};
    loop_code *code;
    memcpy(&code, &at, sizeof code);
    loop_code_ready(at, LOOP_BLOCK_BYTES);
    snprintf(run.kind, sizeof run.kind, "%s", place < PERMANENT ? "permanent" : "other");
    snprintf(run.name, sizeof run.name, "r%u", names[place]);
    run.start_ns = now_ns(CLOCK_MONOTONIC);
    code(ROUNDS);
    run.end_ns = now_ns(CLOCK_MONOTONIC);
    if (run_log_add(truth, &run))
        fail("the log of runs is full");
}

static uint64_t bytes_of(const char *path)
{
    struct stat status;
    return stat(path, &status) ? 0 : (uint64_t)status.st_size;
}

static void look_at_size(void)
{
    char stage[4096];
    const char *body = jitdump_path(dump), *name = strrchr(body, '/');
    snprintf(stage, sizeof stage, "%.*s/stage%s", (int)(name - body), body, name);
    uint64_t bytes = bytes_of(body) + bytes_of(stage);
    largest_bytes = bytes > largest_bytes ? bytes : largest_bytes;
}

static void run_some(void)
{
    uint64_t end_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) + SPELL_NS;
    while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < end_ns) {
        run_one(random_below(PERMANENT));
        run_one(PERMANENT + random_below(live - PERMANENT));
    }
}

static void write_truth(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        fail(path);
    fprintf(file, "# runs\n# arena %jx %jx\n", (uintmax_t)(uintptr_t)arena,
            (uintmax_t)(uintptr_t)(arena + live * FUNCTION_BYTES));
    run_log_write(truth, file);
    if (fclose(file))
        fail(path);
}

int main(int argc, char **argv)
{
    if (argc < 5 || jitdump_open(&dump, NULL) || !dump)
        fail("usage: PERFJIT=dump,ring=SIZE ring_churn FUNCTIONS LIVE SPELLS TRUTH");
    size_t functions = strtoul(argv[1], NULL, 10), spells = strtoul(argv[3], NULL, 10);
    live = strtoul(argv[2], NULL, 10);
    arena = mmap(NULL, live * FUNCTION_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    names = calloc(live, sizeof *names);
    truth = run_log_open();
    if (arena == MAP_FAILED || !names || !truth || live <= PERMANENT || functions < live)
        fail("no memory, or no sense");
    for (size_t i = 0; i < functions; i++) {
        add((uint32_t)i, i < live ? i : PERMANENT + random_below(live - PERMANENT));
        if (i % 10000 == 0)
            look_at_size();
        if (i % (functions / spells) == functions / spells - 1)
            run_some();
    }
    run_some();
    look_at_size();
    printf("%s %ju %ju\n", jitdump_path(dump), (uintmax_t)longest_ns / 1000,
           (uintmax_t)largest_bytes);
    if (jitdump_lost(dump) || jitdump_close(dump))
        fail("something was lost");
    write_truth(argv[4]);
    return EXIT_SUCCESS;
}
