/* trampoline [SECONDS]: what a call through a trampoline costs beside one without, and what making
 * one costs.
 *
 * Prints a line for each function that is called, one that adds and one that interprets a little,
 * "call NAME ENTRY_NS OFF_NS ON_NS", with the nanoseconds of a call of it by a pointer, of what
 * jitdump_trampoline returns where no dump is open, and of a trampoline; then "make NS add NS free
 * NS bytes N" for MANY functions: making one, logging as large a function with line and tables by
 * jitdump_add_code, freeing one, and the memory for each.  The shortest of many rounds, all in
 * turns.
 */
#include "jitdump/trampoline.h"
#include "jitdump/cfi.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 20000, MANY = 100000, LOOPS = 20, WAYS = 3 };

typedef long function(long);

static long adds(long x)
{
    return x + 1;
}

/* As much as a short function of an interpreter does. */
static long interprets(long x)
{
    static const unsigned char program[] = {0, 1, 2, 1, 0, 2, 1, 1, 0, 2};
    for (int round = 0; round < LOOPS; round++)
        for (size_t i = 0; i < sizeof program; i++) {
            switch (((volatile const unsigned char *)program)[i]) {
            case 0:
                x += round;
                break;
            case 1:
                x ^= x >> 3;
                break;
            default:
                x *= 5;
            }
        }
    return x;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double call_ns(function *volatile *call)
{
    double start = now_ns();
    long sum = 0;
    for (long i = 0; i < CALLS; i++)
        sum += (*call)(sum + i);
    __asm__ volatile("" : : "r"(sum));
    return (now_ns() - start) / CALLS;
}

static function *trampoline_to(struct jitdump *dump, const char *name, function *entry)
{
    return (function *)jitdump_trampoline(dump, name, "bench.src", 1, (jitdump_entry *)entry);
}

static void compare_calls(struct jitdump *dump, const char *name, function *entry, double seconds)
{
    function *volatile calls[WAYS] = {entry, trampoline_to(NULL, name, entry),
                                      trampoline_to(dump, name, entry)};
    double best[WAYS] = {1e18, 1e18, 1e18}, end = now_ns() + seconds * 1e9;
    for (int turn = 0; now_ns() < end; turn = (turn + 1) % WAYS) {
        double ns = call_ns(&calls[turn]);
        best[turn] = ns < best[turn] ? ns : best[turn];
    }
    printf("call %s %.2f %.2f %.2f\n", name, best[0], best[1], best[2]);
}

static long resident_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        exit(EXIT_FAILURE);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static const char *name_of(char name[64], int number)
{
    snprintf(name, 64, "org.example.Class%d.method_%d", number / 10, number);
    return name;
}

static void add_one(struct jitdump *dump, const struct jitdump_unwind *unwind, const char *name)
{
    static const unsigned char bytes[24];
    const struct jitdump_line line = {(uint64_t)(uintptr_t)bytes, "bench.src", 1, 0};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = (uint64_t)(uintptr_t)bytes;
    code.code_size = sizeof bytes;
    code.bytes = bytes;
    code.lines = &line;
    code.line_count = 1;
    code.unwind = unwind;
    jitdump_add_code(dump, &code, NULL);
}

/* The names take their time in each. */
static double naming_ns(void)
{
    char name[64];
    double start = now_ns();
    for (int i = 0; i < MANY; i++) {
        name_of(name, i);
        __asm__ volatile("" : : "r"(name) : "memory");
    }
    return now_ns() - start;
}

static void measure_making(struct jitdump *dump)
{
    const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    struct jitdump_unwind unwind;
    char name[64];
    jitdump_cfi_frame(cfi, &frame);
    if (jitdump_cfi_finish(cfi, 24, &unwind) != 0)
        exit(EXIT_FAILURE);
    double naming = naming_ns(), start = now_ns();
    for (int i = 0; i < MANY; i++)
        add_one(dump, &unwind, name_of(name, i));
    double added = now_ns() - start - naming;
    long before = resident_bytes();
    start = now_ns();
    for (int i = 0; i < MANY; i++)
        trampoline_to(dump, name_of(name, i), adds);
    double made = now_ns() - start - naming;
    long taken = resident_bytes() - before;
    start = now_ns();
    jitdump_trampolines_free(dump);
    double freed = now_ns() - start;
    printf("make %.0f add %.0f free %.0f bytes %ld\n", made / MANY, added / MANY, freed / MANY,
           taken / MANY);
    jitdump_cfi_free(cfi);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    char dir[] = "/tmp/trampoline.XXXXXX", command[64];
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jitdump *dump;
    options.flags = JITDUMP_ALWAYS;
    options.dir = mkdtemp(dir);
    if (!options.dir || jitdump_open(&dump, &options) != 0)
        return EXIT_FAILURE;
    compare_calls(dump, "adds", adds, seconds);
    compare_calls(dump, "interprets", interprets, seconds);
    measure_making(dump);
    int error = jitdump_close(dump);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return error || system(command) != 0;
}
