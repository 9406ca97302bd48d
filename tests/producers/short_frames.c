/* short_frames: trampolines with frames of all kinds, named in a perf map only, of which so neither
 * tables nor bytes are known.
 *
 *     short_frames [SECONDS [pointers]]
 *
 * Each calls `leaf`, which spins, and is called by `caller`, through a pointer, and that by main.
 * In front of each call `caller` calls others, whose return addresses stay below its frame;
 * pointers: they call each other through pointers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noipa))

enum { PAGE_BYTES = 4096, SLOT_BYTES = 128, SPINS = 2000 };

typedef void leaf_code(void);
typedef void trampoline_code(leaf_code *leaf);

/* Frames: PUSHES registers, and BYTES more. */
static const struct {
    const char *name;
    int pushes, bytes;
} kinds[] = {{"tramp_0", 0, 0},       {"tramp_8", 0, 8},       {"tramp_16", 0, 16},
             {"tramp_24", 0, 24},     {"tramp_40", 0, 40},     {"tramp_push1", 1, 0},
             {"tramp_push2", 2, 0},   {"tramp_push2_8", 2, 8}, {"tramp_push3", 3, 0},
             {"tramp_push4_8", 4, 8}, {"tramp_push5", 5, 0},   {"tramp_push6_8", 6, 8}};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static volatile unsigned counter;

static APART void leaf(void)
{
    for (int i = 0; i < SPINS; i++)
        counter++;
}

/* Calls that are over when a trampoline is called. */
static APART void others_3(void)
{
    counter++;
}

static void (*volatile pointer_3)(void) = others_3;

static APART void others_2(void)
{
    others_3();
    counter++;
}

static APART void others_2_by_pointer(void)
{
    pointer_3();
    counter++;
}

static void (*volatile pointer_2)(void) = others_2_by_pointer;

static APART void others_1(void)
{
    others_2();
    counter++;
}

static APART void others_1_by_pointer(void)
{
    pointer_2();
    counter++;
}

static void (*volatile others)(void) = others_1;

static APART void caller(trampoline_code *trampoline)
{
    others();
    trampoline(leaf);
    counter++;
}

/* push rbx, rbp, r12 to r15, which they use; sub rsp; call rdi; add rsp; pops; ret. */
static uint8_t *emit(uint8_t *to, int pushes, int bytes)
{
    static const uint8_t push[6][2] = {{0x53},       {0x55},       {0x41, 0x54},
                                       {0x41, 0x55}, {0x41, 0x56}, {0x41, 0x57}};
    for (int i = 0; i < pushes; i++)
        for (int j = 0; j < 2 && push[i][j]; j++)
            *to++ = push[i][j];
    if (bytes) {
        memcpy(to, (uint8_t[]){0x48, 0x83, 0xec, (uint8_t)bytes}, 4);
        to += 4;
    }
    memcpy(to, (uint8_t[]){0xff, 0xd7}, 2);
    to += 2;
    if (bytes) {
        memcpy(to, (uint8_t[]){0x48, 0x83, 0xc4, (uint8_t)bytes}, 4);
        to += 4;
    }
    for (int i = pushes; i-- > 0;)
        for (int j = 0; j < 2 && push[i][j]; j++)
            *to++ = (uint8_t)(push[i][j] + (push[i][j] == 0x41 ? 0 : 8));
    *to++ = 0xc3;
    return to;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    uint8_t *code = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char path[64];
    if (argc > 2 && strcmp(argv[2], "pointers") == 0)
        others = others_1_by_pointer;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    if (code == MAP_FAILED || !map) {
        perror("short_frames");
        return EXIT_FAILURE;
    }
    for (int i = 0; i < KINDS; i++) {
        uint8_t *start = code + i * SLOT_BYTES;
        uint8_t *end = emit(start, kinds[i].pushes, kinds[i].bytes);
        fprintf(map, "%lx %lx %s\n", (unsigned long)start, (unsigned long)(end - start),
                kinds[i].name);
    }
    fclose(map);
    while ((double)clock() / CLOCKS_PER_SEC < seconds)
        for (int i = 0; i < KINDS; i++)
            caller((trampoline_code *)(uintptr_t)(code + i * SLOT_BYTES));
    printf("%d\n", (int)getpid());
    return 0;
}
