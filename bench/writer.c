/* writer: what it costs to log a function, with libjitdump and in the other ways that runtimes do
 * it.
 *
 *     writer DIR [-q]
 *
 * Prints a line for each way, code size and number of threads: "WAY BYTES THREADS WALL_NS CPU_NS
 * BEST_CPU_NS", the nanoseconds of a call, medians and the least of some rounds in which all ways
 * take turns.  Each round is a process of its own: what stdio takes depends on the process, up to
 * threefold, and stays the same in it.  The ways:
 *
 *     jitdump   jitdump_add_code
 *     ring      the same within 16 MiB, JITDUMP_RING
 *     unmapped  the same with JITDUMP_UNMAPPED: each record is written at once
 *     stdio     fwrite into a buffer of 2 MiB under a lock: loses up to 2 MiB when the process is
 * killed flush     fwrite of one record, and fflush after each: loses nothing writes    three write
 * calls a record under a lock, as several runtimes do floor     write calls of 64 KiB for the same
 * number of bytes off       jitdump_add_code on a dump that is switched off
 */
#include "jitdump/format/jitdump_format.h"
#include "jitdump/jitdump.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_THREADS = 4,
    MAX_ROUNDS = 9,
    MAX_CODE_BYTES = 4096,
    STDIO_BUFFER_BYTES = 2 << 20,
    FLOOR_BYTES = 64 << 10,
    RING_BYTES = 16 << 20,
    LIVE_FUNCTIONS = 500, /* then they are replaced */
    LOAD_BYTES = 56,      /* the fixed part of a CODE_LOAD */
    DATA_BYTES = 36 << 20 /* of records in one measurement: 100 000 with 256 bytes of code */
};

static const char function_name[] = "org.example.server.Class1234.handleRequest_567";

struct sink {
    const char *dir;
    struct jitdump *dump;
    FILE *file;
    int fd;
    char path[4096];
    char *buffer;
    pthread_mutex_t mutex;
};

struct job {
    const struct way *way;
    struct sink *sink;
    size_t code_bytes, calls;
};

struct way {
    const char *name;
    void (*open)(struct sink *sink);
    void (*put)(struct sink *sink, size_t code_bytes, size_t calls);
    void (*close)(struct sink *sink);
};

struct cost {
    double wall_ns, cpu_ns;
};

static uint8_t code_bytes_of_all[MAX_CODE_BYTES];

static _Noreturn void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

/* ---- libjitdump ---- */

static void open_with(struct sink *sink, uint32_t flags)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    options.dir = sink->dir;
    options.flags = JITDUMP_ALWAYS | flags;
    if (jitdump_open(&sink->dump, &options))
        fail(jitdump_error(sink->dump));
    snprintf(sink->path, sizeof sink->path, "%s", jitdump_path(sink->dump));
}

static void open_jitdump(struct sink *sink)
{
    open_with(sink, 0);
}

static void open_unmapped(struct sink *sink)
{
    open_with(sink, JITDUMP_UNMAPPED);
}

static void open_ring(struct sink *sink)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    options.dir = sink->dir;
    options.flags = JITDUMP_ALWAYS | JITDUMP_RING;
    options.max_bytes = RING_BYTES;
    if (jitdump_open(&sink->dump, &options))
        fail(jitdump_error(sink->dump));
    snprintf(sink->path, sizeof sink->path, "%s", jitdump_path(sink->dump));
}

static void open_nothing(struct sink *sink)
{
    sink->dump = NULL;
    sink->path[0] = '\0';
}

static void put_jitdump(struct sink *sink, size_t code_bytes, size_t calls)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = function_name;
    code.code_size = code_bytes;
    code.bytes = code_bytes_of_all;
    for (size_t i = 0; i < calls; i++) {
        struct jitdump *volatile dump = sink->dump; /* looked up, as a runtime does */
        code.code_addr = 0x10000 + i % LIVE_FUNCTIONS * code_bytes;
        if (jitdump_add_code(dump, &code, NULL))
            fail("jitdump_add_code");
    }
}

static void close_jitdump(struct sink *sink)
{
    if (jitdump_close(sink->dump))
        fail("jitdump_close");
}

/* ---- The others ---- */

static void open_fd(struct sink *sink)
{
    snprintf(sink->path, sizeof sink->path, "%s/writer.out", sink->dir);
    sink->fd = open(sink->path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    if (sink->fd < 0)
        fail(sink->path);
}

static void open_stdio(struct sink *sink)
{
    open_fd(sink);
    sink->file = fdopen(sink->fd, "w");
    if (!sink->file || setvbuf(sink->file, sink->buffer, _IOFBF, STDIO_BUFFER_BYTES))
        fail("fdopen");
}

static void close_fd(struct sink *sink)
{
    if (close(sink->fd))
        fail("close");
}

static void close_stdio(struct sink *sink)
{
    if (fclose(sink->file))
        fail("fclose");
}

/* The fixed part of a CODE_LOAD, with a time of its own. */
static void fill_load(uint64_t load[LOAD_BYTES / 8], size_t code_bytes, size_t number)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    load[0] = (LOAD_BYTES + sizeof function_name + code_bytes) << 32;
    load[1] = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    load[2] = 1 | (uint64_t)1 << 32;
    load[3] = load[4] = 0x10000 + number * code_bytes;
    load[5] = code_bytes;
    load[6] = number;
}

static void put_buffered(struct sink *sink, size_t code_bytes, size_t calls, bool flush)
{
    uint64_t load[LOAD_BYTES / 8];
    for (size_t i = 0; i < calls; i++) {
        pthread_mutex_lock(&sink->mutex);
        fill_load(load, code_bytes, i);
        fwrite_unlocked(load, 1, sizeof load, sink->file);
        fwrite_unlocked(function_name, 1, sizeof function_name, sink->file);
        fwrite_unlocked(code_bytes_of_all, 1, code_bytes, sink->file);
        if (flush)
            fflush_unlocked(sink->file);
        pthread_mutex_unlock(&sink->mutex);
    }
}

static void put_stdio(struct sink *sink, size_t code_bytes, size_t calls)
{
    put_buffered(sink, code_bytes, calls, false);
}

static void put_flushed(struct sink *sink, size_t code_bytes, size_t calls)
{
    put_buffered(sink, code_bytes, calls, true);
}

static void write_all(int fd, const void *bytes, size_t count)
{
    if (write(fd, bytes, count) != (ssize_t)count)
        fail("write");
}

static void put_writes(struct sink *sink, size_t code_bytes, size_t calls)
{
    uint64_t load[LOAD_BYTES / 8];
    for (size_t i = 0; i < calls; i++) {
        pthread_mutex_lock(&sink->mutex);
        fill_load(load, code_bytes, i);
        write_all(sink->fd, load, sizeof load);
        write_all(sink->fd, function_name, sizeof function_name);
        write_all(sink->fd, code_bytes_of_all, code_bytes);
        pthread_mutex_unlock(&sink->mutex);
    }
}

static void put_floor(struct sink *sink, size_t code_bytes, size_t calls)
{
    size_t left = (LOAD_BYTES + sizeof function_name + code_bytes) * calls;
    while (left > 0) {
        size_t count = left < FLOOR_BYTES ? left : FLOOR_BYTES;
        write_all(sink->fd, sink->buffer, count);
        left -= count;
    }
}

static const struct way ways[] = {{"jitdump", open_jitdump, put_jitdump, close_jitdump},
                                  {"ring", open_ring, put_jitdump, close_jitdump},
                                  {"unmapped", open_unmapped, put_jitdump, close_jitdump},
                                  {"stdio", open_stdio, put_stdio, close_stdio},
                                  {"flush", open_stdio, put_flushed, close_stdio},
                                  {"writes", open_fd, put_writes, close_fd},
                                  {"floor", open_fd, put_floor, close_fd},
                                  {"off", open_nothing, put_jitdump, close_jitdump}};

enum { WAYS = sizeof ways / sizeof ways[0] };

/* ---- Measuring ---- */

static double wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double cpu_ns(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return ((double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec) * 1e9 +
           ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec) * 1e3;
}

static void *work(void *context)
{
    struct job *job = context;
    job->way->put(job->sink, job->code_bytes, job->calls);
    return NULL;
}

/* Opening and closing belong to it: what is in a buffer is not written yet. */
static struct cost measure_here(const struct way *way, struct sink *sink, size_t code_bytes,
                                int threads, size_t calls)
{
    struct job job = {way, sink, code_bytes, calls / (size_t)threads};
    pthread_t ids[MAX_THREADS];
    double wall = wall_ns(), cpu = cpu_ns();
    way->open(sink);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, work, &job))
            fail("pthread_create");
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    way->close(sink);
    double done = (double)(job.calls * (size_t)threads);
    struct cost cost = {(wall_ns() - wall) / done, (cpu_ns() - cpu) / done};
    if (sink->path[0])
        unlink(sink->path);
    return cost;
}

static _Noreturn void measure_and_tell(int to, const struct way *way, const char *dir,
                                       size_t code_bytes, int threads, size_t calls)
{
    struct sink sink = {
        .dir = dir, .buffer = malloc(STDIO_BUFFER_BYTES), .mutex = PTHREAD_MUTEX_INITIALIZER};
    if (!sink.buffer)
        fail("malloc");
    memset(sink.buffer, 1, STDIO_BUFFER_BYTES);
    struct cost cost = measure_here(way, &sink, code_bytes, threads, calls);
    write_all(to, &cost, sizeof cost);
    _exit(EXIT_SUCCESS);
}

/* In a process of its own. */
static struct cost measure(const struct way *way, const char *dir, size_t code_bytes, int threads,
                           size_t calls)
{
    struct cost cost;
    int ends[2], status;
    if (pipe(ends))
        fail("pipe");
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0)
        measure_and_tell(ends[1], way, dir, code_bytes, threads, calls);
    close(ends[1]);
    ssize_t told = read(ends[0], &cost, sizeof cost);
    close(ends[0]);
    if (waitpid(child, &status, 0) != child || status || told != sizeof cost)
        fail(way->name);
    return cost;
}

static int compare_doubles(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void sort(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
}

static void compare_ways(const char *dir, size_t code_bytes, int threads, int rounds,
                         size_t data_bytes)
{
    double wall[WAYS][MAX_ROUNDS], cpu[WAYS][MAX_ROUNDS];
    size_t calls = data_bytes / (LOAD_BYTES + sizeof function_name + code_bytes);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < WAYS; i++) {
            /* A microsecond is the finest that the system tells of CPU time. */
            size_t times = strcmp(ways[i].name, "off") ? 1 : 100;
            struct cost cost = measure(&ways[i], dir, code_bytes, threads, calls * times);
            wall[i][round] = cost.wall_ns;
            cpu[i][round] = cost.cpu_ns;
        }
    for (int i = 0; i < WAYS; i++) {
        sort(wall[i], rounds);
        sort(cpu[i], rounds);
        printf("%s %zu %d %.1f %.1f %.1f\n", ways[i].name, code_bytes, threads, wall[i][rounds / 2],
               cpu[i][rounds / 2], cpu[i][0]);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {64, 256, 4096};
    static const int thread_counts[] = {1, 2, 4};
    bool quick = argc > 2 && !strcmp(argv[2], "-q");
    if (argc < 2)
        fail("usage: writer DIR [-q]");
    memset(code_bytes_of_all, 0x90, sizeof code_bytes_of_all);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t t = 0; t < sizeof thread_counts / sizeof thread_counts[0]; t++)
            if (!quick || (sizes[s] == 256 && thread_counts[t] == 1))
                compare_ways(argv[1], sizes[s], thread_counts[t], MAX_ROUNDS, DATA_BYTES);
    return EXIT_SUCCESS;
}
