/* both_libraries DIR [tsc]: libjitdump and libperfmap with threads and forks, and nothing that depends on the machine.
 *
 *     main ── each kind of record ──┬─ thread 0 to 3: functions ─┬─ close
 *                                   └─ fork ─ child: functions ── fork ─ grandchild: functions
 *
 * No function runs, and their addresses and bytes are made up; so all that programs of two machines write must be the same, but for
 * the machine's number, pids, times, and the order of the threads.  Prints who is who, and a checksum of each unwind table.  With
 * tsc the dump's times are the CPU's counter.
 */
#include "jitdump/cfi.h"
#include "perfmap/perfmap.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, FUNCTIONS = 200, CODE_BYTES = 64, STEP_BYTES = 128 };

struct libraries {
    struct jitdump *dump;
    struct perfmap *map;
};

/* A thread, or a process, and where its functions are. */
struct worker {
    const struct libraries *libraries;
    const char *name;
    uint64_t first_addr;
    pthread_t thread;
};

static void fail(const char *what)
{
    fprintf(stderr, "both_libraries: %s\n", what);
    exit(EXIT_FAILURE);
}

static void check_dump(const struct libraries *libraries, int result)
{
    if (result)
        fail(jitdump_error(libraries->dump));
}

static void check_map(const struct libraries *libraries, int result)
{
    if (result)
        fail(perfmap_error(libraries->map));
}

static const uint8_t *pattern(uint64_t addr)
{
    static _Thread_local uint8_t bytes[CODE_BYTES];
    for (size_t i = 0; i < CODE_BYTES; i++)
        bytes[i] = (uint8_t)(addr / STEP_BYTES * 7 + i);
    return bytes;
}

static struct jitdump_code code_at(uint64_t addr, const char *name)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = addr;
    code.code_size = CODE_BYTES;
    code.bytes = pattern(addr);
    return code;
}

/* ---- Unwind tables ---- */

static struct jitdump_frame frame_of(enum jitdump_arch arch, unsigned number)
{
    static const struct jitdump_frame x86_64 = {
        .kind = JITDUMP_FRAME_POINTER, JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12), .stack_bytes = 16};
    static const struct jitdump_frame aarch64 = {
        .kind = JITDUMP_FRAME_STACK, JITDUMP_SAVED(JITDUMP_X30, JITDUMP_D8), .stack_bytes = 4112};
    struct jitdump_frame frame = arch == JITDUMP_X86_64 ? x86_64 : aarch64;
    frame.prologue = number % 4 * 4;
    return frame;
}

static struct jitdump_cfi *describe(enum jitdump_arch arch, unsigned number,
                                    struct jitdump_unwind *unwind)
{
    struct jitdump_frame frame = frame_of(arch, number);
    struct jitdump_cfi *cfi = jitdump_cfi_new(arch);
    jitdump_cfi_frame(cfi, &frame);
    if (jitdump_cfi_finish(cfi, CODE_BYTES, unwind))
        fail(jitdump_cfi_error(cfi));
    return cfi;
}

static uint64_t checksum(const struct jitdump_unwind *unwind)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < unwind->unwinding_size; i++)
        sum = (sum ^ ((const uint8_t *)unwind->data)[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void add_with_unwinding(const struct libraries *libraries, uint64_t addr,
                               enum jitdump_arch arch)
{
    struct jitdump_unwind unwind;
    struct jitdump_code code = code_at(addr, "with_unwinding");
    struct jitdump_cfi *cfi = describe(arch, 1, &unwind);
    printf("tables for machine %d: %016" PRIx64 "\n", arch, checksum(&unwind));
    code.unwind = &unwind;
    check_dump(libraries, jitdump_add_code(libraries->dump, &code, NULL));
    jitdump_cfi_free(cfi);
}

/* ---- Records ---- */

/* One with all that a function can have. */
static void add_whole(const struct worker *worker, unsigned number)
{
    char name[64];
    uint64_t addr = worker->first_addr + (uint64_t)number * STEP_BYTES;
    snprintf(name, sizeof name, "%s_%u", worker->name, number);
    struct jitdump_code code = code_at(addr, name);
    const struct jitdump_line lines[] = {{addr, worker->name, number, 1},
                                         {addr + 8, "other.src", number + 1, 2}};
    struct jitdump_unwind unwind;
    struct jitdump_cfi *cfi =
        describe(number % 2 ? JITDUMP_X86_64 : JITDUMP_AARCH64, number, &unwind);
    code.lines = lines;
    code.line_count = 2;
    code.unwind = &unwind;
    check_dump(worker->libraries, jitdump_add_code(worker->libraries->dump, &code, NULL));
    check_map(worker->libraries, perfmap_add(worker->libraries->map, addr, CODE_BYTES, name));
    jitdump_cfi_free(cfi);
}

static void add_each_kind(const struct libraries *libraries)
{
    struct jitdump *dump = libraries->dump;
    uint64_t moved, addr = 0x10000;
    struct jitdump_code code = code_at(addr, "moved and unloaded");
    check_dump(libraries, jitdump_add_code(dump, &code, &moved));
    check_dump(libraries, jitdump_move_code(dump, moved, addr, addr + 0x1000, CODE_BYTES));
    check_dump(libraries, jitdump_unload_code(dump, moved, addr + 0x1000, CODE_BYTES));
    code = code_at(addr + 0x2000, "without bytes");
    code.bytes = NULL;
    check_dump(libraries, jitdump_add_code(dump, &code, NULL));
    code = code_at(UINT64_C(0xffff800000000000), "gr\xc3\xb6\xc3\x9f"
                                                 "e\n\xff");
    check_dump(libraries, jitdump_add_code(dump, &code, NULL));
    check_map(libraries, perfmap_add(libraries->map, code.code_addr, CODE_BYTES, code.name));
    add_with_unwinding(libraries, addr + 0x3000, JITDUMP_X86_64);
    add_with_unwinding(libraries, addr + 0x4000, JITDUMP_AARCH64);
}

/* ---- Threads and processes ---- */

static void *work(void *argument)
{
    const struct worker *worker = argument;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        add_whole(worker, i);
    return NULL;
}

static void say_who(const char *name)
{
    printf("%s %d\n", name, (int)getpid());
    fflush(stdout);
}

/* What NAME wrote to its perf map must be what the reader finds there. */
static void read_map_back(const struct libraries *libraries, uint64_t addr, const char *name)
{
    struct perfmap_table *table;
    char error[256];
    if (perfmap_read(&table, perfmap_path(libraries->map), error, sizeof error))
        fail(error);
    const struct perfmap_entry *entry = perfmap_find(table, addr + CODE_BYTES - 1);
    if (!entry || entry->addr != addr || strcmp(entry->name, name) || perfmap_bad_lines(table))
        fail("the perf map is not as it was written");
    perfmap_free(table);
}

static void close_both(const struct libraries *libraries)
{
    if (jitdump_lost(libraries->dump) || perfmap_lost(libraries->map))
        fail("something was lost");
    check_dump(libraries, jitdump_close(libraries->dump));
    check_map(libraries, perfmap_close(libraries->map));
}

static void wait_for(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        fail("a child failed");
}

/* A child that writes as well, and DEPTH generations after it. */
static pid_t fork_child(const struct libraries *libraries, int depth)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct worker self = {.libraries = libraries,
                          .name = depth ? "child" : "grandchild",
                          .first_addr = depth ? 0x20000000 : 0x30000000};
    char last[64];
    say_who(self.name);
    add_whole(&self, 0);
    if (depth)
        wait_for(fork_child(libraries, depth - 1));
    for (unsigned i = 1; i < FUNCTIONS; i++)
        add_whole(&self, i);
    snprintf(last, sizeof last, "%s_%d", self.name, FUNCTIONS - 1);
    read_map_back(libraries, self.first_addr + (FUNCTIONS - 1) * STEP_BYTES, last);
    close_both(libraries);
    exit(EXIT_SUCCESS);
}

static void run_threads(const struct libraries *libraries)
{
    static const char *const names[THREADS] = {"thread0", "thread1", "thread2", "thread3"};
    struct worker workers[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){
            .libraries = libraries, .name = names[i], .first_addr = 0x1000000 * (i + 1)};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            fail("there is no thread to be had");
    }
    pid_t child = fork_child(libraries, 1);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    wait_for(child);
}

int main(int argc, char **argv)
{
    struct libraries libraries;
    struct jitdump_options dump_options = JITDUMP_OPTIONS_INIT;
    struct perfmap_options map_options = PERFMAP_OPTIONS_INIT;
    if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "tsc")))
        fail("usage: both_libraries DIR [tsc]");
    dump_options.dir = map_options.dir = argv[1];
    dump_options.flags = JITDUMP_ALWAYS | (argc == 3 ? JITDUMP_TSC : 0);
    map_options.flags = PERFMAP_ALWAYS;
    check_dump(&libraries, jitdump_open(&libraries.dump, &dump_options));
    check_map(&libraries, perfmap_open(&libraries.map, &map_options));
    say_who("main");
    add_each_kind(&libraries);
    run_threads(&libraries);
    close_both(&libraries);
    return EXIT_SUCCESS;
}
