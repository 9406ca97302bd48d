/* lying_clock: a small JIT whose dump has the times that you ask for, whatever they are worth.
 *
 *     lying_clock DUMP_DIR HEADER_CLOCK RECORD_CLOCK FLAG [MS [WAIT_MS]]
 *
 * Clocks: mono, raw, boottime, realtime, tai (ns), wallus (microseconds, as V8 and CPython have them in the header),
 * cycles, zero, one (1 ns after the start of time, always), count (1, 2, 3...).  FLAG is what the header says: ns or cycles.
 *
 * It runs functions spin_0 to spin_3 for MS (default 300) milliseconds: 0 and 1 at addresses of their own, 2 and 3 one after
 * the other at the same.  Each is logged right before it first runs.  It maps the dump WAIT_MS (0) after the header's time, as if
 * it had waited for a processor.
 */
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/jitdump_format.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, FUNCTION_BYTES = 256 };

static const struct {
    const char *name;
    clockid_t id;
} clocks[] = {
    {"mono", CLOCK_MONOTONIC},    {"raw", CLOCK_MONOTONIC_RAW}, {"boottime", CLOCK_BOOTTIME},
    {"realtime", CLOCK_REALTIME}, {"tai", CLOCK_TAI},           {"wallus", CLOCK_REALTIME},
};

static void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static uint64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t cycles(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
#endif
}

static uint64_t stamp(const char *clock)
{
    static uint64_t counted;
    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++)
        if (strcmp(clocks[i].name, clock) == 0)
            return read_clock(clocks[i].id) / (strcmp(clock, "wallus") == 0 ? 1000 : 1);
    if (strcmp(clock, "cycles") == 0)
        return cycles();
    if (strcmp(clock, "count") == 0)
        return ++counted;
    if (strcmp(clock, "one") == 0)
        return 1;
    if (strcmp(clock, "zero") == 0)
        return 0;
    fprintf(stderr, "lying_clock: no clock %s\n", clock);
    exit(2);
}

/* ---- The dump ---- */

struct dump {
    int fd;
    const char *clock; /* of its records */
    uint64_t next_index;
};

static void write_all(int fd, const struct byte_sink *sink)
{
    if (sink->overflow || write(fd, sink->data, sink->size) != (ssize_t)sink->size)
        fail("lying_clock: writing");
}

static void open_dump(struct dump *dump, const char *dir, const char *header_clock,
                      const char *clock, bool cycles_flag, unsigned wait_ms)
{
    char path[4096];
    uint8_t bytes[JITHEADER_BYTES];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    snprintf(path, sizeof path, "%s/jit-%d.dump", dir, (int)getpid());
    *dump = (struct dump){open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), clock, 0};
    if (dump->fd < 0)
        fail(path);
    sink_u32(&sink, JITDUMP_MAGIC);
    sink_u32(&sink, JITDUMP_FILE_VERSION);
    sink_u32(&sink, JITHEADER_BYTES);
    sink_u32(&sink, EM_X86_64);
    sink_u32(&sink, 0);
    sink_u32(&sink, (uint32_t)getpid());
    sink_u64(&sink, stamp(header_clock));
    sink_u64(&sink, cycles_flag ? JITDUMP_FLAG_ARCH_TIMESTAMP : 0);
    write_all(dump->fd, &sink);
    usleep(wait_ms * 1000);
    if (mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump->fd, 0) == MAP_FAILED)
        fail("lying_clock: mapping the dump");
}

static void log_function(struct dump *dump, const uint8_t *code, const char *name)
{
    uint8_t bytes[512];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    sink_u32(&sink, JIT_CODE_LOAD);
    sink_u32(&sink, (uint32_t)(56 + strlen(name) + 1 + FUNCTION_BYTES));
    sink_u64(&sink, stamp(dump->clock));
    sink_u32(&sink, (uint32_t)getpid());
    sink_u32(&sink, (uint32_t)getpid());
    sink_u64(&sink, (uint64_t)(uintptr_t)code);
    sink_u64(&sink, (uint64_t)(uintptr_t)code);
    sink_u64(&sink, FUNCTION_BYTES);
    sink_u64(&sink, dump->next_index++);
    sink_cstr(&sink, name);
    sink_bytes(&sink, code, FUNCTION_BYTES);
    write_all(dump->fd, &sink);
}

/* ---- The code ---- */

/* Counts its argument down, with PADDING nops in front of the loop, so that no two functions have equal bytes. */
static void make_function(uint8_t *code, unsigned padding)
{
    static const uint8_t loop[] = {
        0x89, 0xf9, /* mov %edi, %ecx */
        0xff, 0xc9, /* dec %ecx */
        0x75, 0xfc, /* jnz back to dec */
        0xc3,       /* ret */
    };
    memset(code, 0x90, FUNCTION_BYTES);
    memcpy(code + padding, loop, sizeof loop);
}

static void run(const uint8_t *code, unsigned ms)
{
    void (*spin)(int);
    memcpy(&spin, &code, sizeof spin);
    clock_t end = clock() + (clock_t)ms * (CLOCKS_PER_SEC / 1000); /* of its own time */
    while (clock() < end)
        spin(10000);
}

int main(int argc, char **argv)
{
    struct dump dump;
    if (argc < 5 || argc > 7) {
        fprintf(stderr, "usage: lying_clock DUMP_DIR HEADER_CLOCK RECORD_CLOCK ns|cycles [MS [WAIT_MS]]\n");
        return 2;
    }
    unsigned ms = argc > 5 ? (unsigned)atoi(argv[5]) : 300;
    uint8_t *arena = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED)
        fail("lying_clock: memory");
    open_dump(&dump, argv[1], argv[2], argv[3], strcmp(argv[4], "cycles") == 0,
              argc > 6 ? (unsigned)atoi(argv[6]) : 0);
    for (unsigned i = 0; i < 4; i++) {
        static const unsigned slots[] = {0, 1, 2, 2};
        uint8_t *code = arena + slots[i] * FUNCTION_BYTES;
        char name[16];
        snprintf(name, sizeof name, "spin_%u", i);
        make_function(code, i);
        log_function(&dump, code, name);
        run(code, ms / 4);
    }
    return EXIT_SUCCESS;
}
