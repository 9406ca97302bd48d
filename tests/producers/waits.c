/* waits: threads that work and wait in functions of a JIT, and say so in spans.
 *
 *     PERFJIT=dump waits
 *
 * Each of two workers answers requests, "GET /a" and "GET /b" in turns: a span of its own for each,
 * in which "computes" runs and "naps" calls the program, which sleeps.  The main thread computes in
 * a span of the process, "start", and waits for the workers. */
#include "jitdump/jitdump.h"
#include "tests/producers/loop_code.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    WORKERS = 2,
    REQUESTS = 6,
    ARENA_BYTES = 4096,
    ROUNDS = 40000,
    CALL_AT = 1024,
    NAP_NS = 4000000
};

/* Calls its argument, from a frame. */
#if defined(__x86_64__)
static const uint8_t calls[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#elif defined(__aarch64__)
static const uint32_t calls[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#else
#error "no code for this machine yet"
#endif

typedef void call_code(void (*)(void));

static struct jitdump *dump;
static uint8_t *arena;

static void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static void add(const char *name, size_t at, size_t bytes)
{
    loop_code_ready(arena + at, bytes);
    if (jitdump_add(dump, name, arena + at, bytes, NULL)) {
        fprintf(stderr, "waits: %s\n", jitdump_error(dump));
        exit(EXIT_FAILURE);
    }
}

static void make_code(void)
{
    arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
    if (arena == MAP_FAILED)
        fail("waits: mmap");
    loop_code_put(arena, 0);
    memcpy(arena + CALL_AT, calls, sizeof calls);
    add("computes", 0, LOOP_BLOCK_BYTES);
    add("naps", CALL_AT, sizeof calls);
}

/* This thread's own time, whoever else is on the machine. */
static void compute(double seconds)
{
    struct timespec now;
    double end = 0;
    do {
        ((loop_code *)(uintptr_t)arena)(ROUNDS);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        if (end == 0)
            end = (double)now.tv_sec + (double)now.tv_nsec / 1e9 + seconds;
    } while ((double)now.tv_sec + (double)now.tv_nsec / 1e9 < end);
}

/* With a frame, and no frame of the C library's between it and the kernel. */
static __attribute__((noinline, optimize("no-omit-frame-pointer"))) void sleep_a_while(void)
{
    const struct timespec nap = {0, NAP_NS};
    syscall(SYS_nanosleep, &nap, NULL);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static void *answer(void *nothing)
{
    struct jitdump_spans *spans;
    if (jitdump_spans_open(&spans, NULL, JITDUMP_SPANS_OF_THREAD))
        fail("waits: spans");
    for (int i = 0; i < REQUESTS; i++) {
        uint64_t begin_ns = jitdump_span_begin();
        compute(0.008);
        ((call_code *)(uintptr_t)(arena + CALL_AT))(sleep_a_while);
        if (jitdump_span_end(spans, begin_ns, i % 2 ? "GET /b" : "GET /a"))
            fail("waits: a span");
    }
    jitdump_spans_close(spans);
    return nothing;
}

int main(void)
{
    pthread_t workers[WORKERS];
    struct jitdump_spans *spans;
    if (jitdump_open(&dump, NULL) || jitdump_spans_open(&spans, NULL, 0))
        fail("waits: no dump");
    make_code();
    uint64_t begin_ns = jitdump_span_begin();
    compute(0.02);
    if (jitdump_span_end(spans, begin_ns, "start"))
        fail("waits: a span");
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&workers[i], NULL, answer, NULL))
            fail("waits: pthread_create");
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    jitdump_spans_close(spans);
    return jitdump_close(dump) ? EXIT_FAILURE : EXIT_SUCCESS;
}
