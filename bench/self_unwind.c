/* self_unwind: what it costs a process to walk its own stack, through JIT code with tables.
 *
 *     self_unwind [ROUNDS]
 *
 * Prints a line for each way: "WAY FRAMES NS", the frames that it found and the nanoseconds of CPU
 * time of a walk, the median of ROUNDS rounds in which all ways take turns.  The stack has
 * JIT_FRAMES frames of JIT code, and those of main below.  The ways:
 *
 *     jitunwind  jitunwind_backtrace
 *     libgcc     backtrace(3), with the functions' tables registered by __register_frame
 *     libunwind  unw_backtrace, if libunwind.so.8 is installed; it knows no tables of the JIT code,
 * and goes by frame pointers
 */
#include "jitdump/cfi.h"
#include "jitunwind/jitunwind.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { JIT_FRAMES = 50, STEP = 64, MOST = 128, WALKS = 2000, TABLE_ROOM = 4096 };

extern void __register_frame(void *eh_frame);

typedef int backtrace_call(void **addresses, int most);

static backtrace_call *libunwind;

static size_t by_jitunwind(void)
{
    static struct jitunwind_frame frames[MOST];
    return jitunwind_backtrace(NULL, frames, MOST, 0);
}

static size_t by_libgcc(void)
{
    static void *addresses[MOST];
    return (size_t)backtrace(addresses, MOST);
}

static size_t by_libunwind(void)
{
    static void *addresses[MOST];
    return (size_t)libunwind(addresses, MOST);
}

static const struct way {
    const char *name;
    size_t (*walk)(void);
} ways[] = {{"jitunwind", by_jitunwind}, {"libgcc", by_libgcc}, {"libunwind", by_libunwind}};

enum { WAYS = sizeof ways / sizeof ways[0] };

static double *costs_ns[WAYS];
static size_t found[WAYS], rounds = 21;

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Called by the innermost function. */
static void measure(void)
{
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < WAYS; i++) {
            if (ways[i].walk == by_libunwind && !libunwind)
                continue;
            double began_ns = now_ns();
            for (int walk = 0; walk < WALKS; walk++)
                found[i] = ways[i].walk();
            costs_ns[i][round] = (now_ns() - began_ns) / WALKS;
        }
}

/* push rbp; mov rbp, rsp; mov rax, CALLEE; call rax; pop rbp; ret */
static uint64_t emit(uint8_t *at, uint64_t callee)
{
    static const uint8_t head[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8};
    static const uint8_t tail[] = {0xff, 0xd0, 0x5d, 0xc3};
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, &callee, sizeof callee);
    memcpy(at + sizeof head + sizeof callee, tail, sizeof tail);
    return sizeof head + sizeof callee + sizeof tail;
}

/* Tell both registries of the function; its table stays for libgcc. */
static int announce(struct jitunwind *arena, uint8_t *addr, uint64_t bytes)
{
    static const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER};
    uint64_t epilogue = bytes - 2;
    struct jitdump_frame own = frame;
    struct jitdump_unwind unwind;
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    own.epilogues = &epilogue;
    own.epilogue_count = 1;
    jitdump_cfi_frame(cfi, &own);
    if (jitdump_cfi_finish(cfi, bytes, &unwind))
        return -1;
    size_t eh_frame_bytes = unwind.unwinding_size - unwind.eh_frame_hdr_size;
    code.addr = (uint64_t)(uintptr_t)addr;
    code.bytes = bytes;
    code.eh_frame = unwind.data;
    code.eh_frame_bytes = eh_frame_bytes;
    if (jitunwind_add(arena, &code))
        return -1;
    uint8_t *table = addr + (bytes + 7) / 8 * 8; /* where its addresses are relative to */
    memcpy(table, unwind.data, eh_frame_bytes);
    memset(table + eh_frame_bytes, 0, 4);
    __register_frame(table);
    jitdump_cfi_free(cfi);
    return 0;
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

int main(int argc, char **argv)
{
    enum { ARENA = 1 << 20, APART = 1024 };
#ifndef __x86_64__
    fputs("self_unwind: its code is for x86-64\n", stderr);
    return 1;
#endif
    if (argc > 1)
        rounds = strtoul(argv[1], NULL, 10);
    uint8_t *base =
        mmap(NULL, ARENA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind *arena;
    options.start = (uint64_t)(uintptr_t)base;
    options.bytes = ARENA;
    if (rounds == 0 || base == MAP_FAILED || jitunwind_open(&arena, &options))
        return 1;
    uint64_t callee = (uint64_t)(uintptr_t)measure;
    for (size_t i = 0; i < JIT_FRAMES; i++) {
        uint8_t *addr = base + i * APART;
        if (announce(arena, addr, emit(addr, callee)))
            return 1;
        callee = (uint64_t)(uintptr_t)addr;
    }
    void *library = dlopen("libunwind.so.8", RTLD_NOW);
    if (library)
        *(void **)&libunwind = dlsym(library, "unw_backtrace");
    for (size_t i = 0; i < WAYS; i++)
        costs_ns[i] = calloc(rounds, sizeof *costs_ns[i]);
    ((void (*)(void))(uintptr_t)callee)();
    for (size_t i = 0; i < WAYS; i++) {
        qsort(costs_ns[i], rounds, sizeof *costs_ns[i], compare);
        printf("%s %zu %.0f\n", ways[i].name, found[i], costs_ns[i][rounds / 2]);
    }
    return 0;
}
