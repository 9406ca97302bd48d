/* perf_map_code: a JIT that names its code in a perf map only, with all the oddities that such maps have.
 *
 *     [PERFJIT=dump] perf_map_code KIND [SECONDS [TRUTH]]
 *
 * KIND  anon   one arena, writable and executable from the start
 *       memfd  one arena, mapped a second time to write to it
 *       flip   the arena's protection is flipped before each function, so that it is mapped again and again
 *       grow   the arena becomes executable page by page
 *       file   the arena is a mapped ELF file, perf-map-KIND.elf, that has symbols for every third function
 *       again  the same file, mapped a second time over memory that was reserved for code, as V8 maps its builtins
 *       dump   as anon; and every other function is logged in a jitdump too (with PERFJIT=dump), under another name
 *
 * Writes /tmp/perf-<pid>.map by itself, prints its pid, and then calls its functions in turn.  TRUTH receives, for each
 * function, its first address, the one behind its end, and the name that it must have in the end.
 */
#include "jitdump/jitdump.h"
#include "tests/producers/symbol_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SLOT_BYTES = 1024, PAGE_BYTES = 4096, FUNCTIONS = 40, ROUNDS = 60000 };

typedef void function_code(void);

struct arena {
    uint8_t *code; /* where it runs */
    uint8_t *copy; /* where it is written */
    size_t bytes;
};

static void check(int wrong, const char *what)
{
    if (wrong) {
        perror(what);
        exit(EXIT_FAILURE);
    }
}

/* A function that counts down, padded to BYTES with code that never runs.  Returns its size. */
static size_t emit_loop(uint8_t *to)
{
#if defined(__x86_64__)
    const uint32_t rounds = ROUNDS;
    uint8_t code[] = {0xb9, 0,    0, 0, 0, /* mov ecx, ROUNDS */
                      0xff, 0xc9,          /* dec ecx */
                      0x75, 0xfc,          /* jnz to the dec */
                      0xc3};               /* ret */
    memcpy(code + 1, &rounds, sizeof rounds);
#elif defined(__aarch64__)
    const uint32_t code[] = {0x52800000 | (ROUNDS & 0xffff) << 5, /* mov w0, ROUNDS */
                             0x71000400,                          /* subs w0, w0, 1 */
                             0x54ffffe1,                          /* b.ne to the subs */
                             0xd65f03c0};                         /* ret */
#else
#error "no loop for this machine yet"
#endif
    memcpy(to, code, sizeof code);
    return sizeof code;
}

/* Those that the arena's file names by itself, too. */
static int is_in_file(const char *kind, size_t number)
{
    return (strcmp(kind, "file") == 0 || strcmp(kind, "again") == 0) && number % 3 == 0;
}

static void *map_file(void *at, int fd, size_t bytes)
{
    void *code = mmap(at, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd,
                      SYMBOL_FILE_CODE_AT);
    check(code == MAP_FAILED, "mmap");
    return code;
}

/* Write the file, and map it.  Other memory is executable, too: else nobody looks for code. */
static struct arena open_file_arena(const char *kind)
{
    char path[64];
#if defined(__x86_64__)
    const uint16_t machine = EM_X86_64;
#else
    const uint16_t machine = EM_AARCH64;
#endif
    struct arena arena = {.bytes = (size_t)FUNCTIONS * SLOT_BYTES};
    struct file_symbol symbols[FUNCTIONS];
    char names[FUNCTIONS][64];
    size_t count = 0;
    uint8_t *code = calloc(1, arena.bytes);
    snprintf(path, sizeof path, "perf-map-%s.elf", kind);
    check(!code, "calloc");
    for (size_t i = 0; i < FUNCTIONS; i++) {
        size_t bytes = emit_loop(code + i * SLOT_BYTES);
        snprintf(names[i], sizeof names[i], "symbol_%02zu", i);
        if (is_in_file(kind, i))
            symbols[count++] = (struct file_symbol){names[i], i * SLOT_BYTES, bytes,
                                                    STT_FUNC, STV_DEFAULT,    SYMBOL_FILE_TEXT};
    }
    check(write_symbol_file(path, machine, code, arena.bytes, symbols, count, SHT_SYMTAB), path);
    int fd = open(path, O_RDONLY);
    check(fd < 0, path);
    uint8_t *memory = mmap(NULL, 3 * arena.bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory == MAP_FAILED, "mmap");
    arena.code = map_file(NULL, fd, arena.bytes);
    if (strcmp(kind, "again") == 0)
        arena.code = map_file(memory + arena.bytes, fd, arena.bytes);
    arena.copy = code;
    return arena;
}

static struct arena open_arena(const char *kind)
{
    if (strcmp(kind, "file") == 0 || strcmp(kind, "again") == 0)
        return open_file_arena(kind);
    struct arena arena = {.bytes = (size_t)FUNCTIONS * SLOT_BYTES};
    int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS, fd = -1;
    if (strcmp(kind, "memfd") == 0) {
        fd = memfd_create("doublemapper", 0);
        flags = MAP_SHARED;
        check(fd < 0 || ftruncate(fd, (off_t)arena.bytes), "memfd_create");
        protection = PROT_READ | PROT_EXEC;
    } else if (strcmp(kind, "flip") && strcmp(kind, "grow")) {
        protection |= PROT_EXEC;
    }
    void *code = mmap(NULL, arena.bytes, protection, flags, fd, 0);
    void *copy = fd < 0 ? code : mmap(NULL, arena.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(code == MAP_FAILED || copy == MAP_FAILED, "mmap");
    arena.code = code;
    arena.copy = copy;
    return arena;
}

/* The names that a map can hold; perf before 7 drops the first two. */
static void name_of(size_t number, char name[64])
{
    static const char *const odd[] = {"f", "op", "name with spaces (int, char *)", "_Zero", "3rd"};
    if (number < sizeof odd / sizeof odd[0])
        snprintf(name, 64, "%s", odd[number]);
    else
        snprintf(name, 64, "function_%02zu", number);
}

static void log_to_dump(struct jitdump *dump, const uint8_t *at, size_t bytes, char name[64])
{
    size_t length = strlen(name);
    snprintf(name + length, 64 - length, " in the dump");
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = (uintptr_t)at;
    code.code_size = bytes;
    code.bytes = at;
    check(jitdump_add_code(dump, &code, NULL), "jitdump_add_code");
}

/* Lines for one function: the name of an earlier one there, and its own, in the forms that runtimes use. */
static void write_lines(FILE *map, uintptr_t at, size_t bytes, size_t number, const char *name)
{
    if (number % 7 == 3)
        fprintf(map, "%" PRIxPTR " %zx an older name\n", at, bytes);
    fprintf(map, number % 2 ? "%" PRIxPTR " %zx %s\n" : "0x%016" PRIxPTR " 0x%016zx %s\n", at,
            bytes, name);
}

/* What must do no harm: code that is nowhere, a line without a size, one that reaches out of the arena. */
static void write_odd_lines(FILE *map, const struct arena *arena)
{
    uintptr_t end = (uintptr_t)arena->code + arena->bytes;
    fprintf(map, "10000 100 interpreted\n");
    fprintf(map, "%" PRIxPTR " 0 no size\n", end - 256);
    fprintf(map, "%" PRIxPTR " 100000 reaches out\n", end - 128);
}

/* Make what KIND asks for so that slot NUMBER can be written to, or (WRITABLE 0) run. */
static void protect(const char *kind, const struct arena *arena, size_t number, int writable)
{
    const int written = PROT_READ | PROT_WRITE, run = PROT_READ | PROT_EXEC;
    size_t pages = (number * SLOT_BYTES / PAGE_BYTES + 1) * PAGE_BYTES;
    if (strcmp(kind, "flip") == 0)
        check(mprotect(arena->code, arena->bytes, writable ? written : run), "mprotect");
    else if (strcmp(kind, "grow") == 0)
        check(mprotect(arena->code, pages, writable ? written | PROT_EXEC : run), "mprotect");
}

static void make_functions(const char *kind, const struct arena *arena, FILE *map, FILE *truth)
{
    struct jitdump *dump = NULL;
    check(strcmp(kind, "dump") == 0 && jitdump_open(&dump, NULL), "jitdump_open");
    for (size_t i = 0; i < FUNCTIONS; i++) {
        char name[64];
        size_t offset = i * SLOT_BYTES;
        uintptr_t at = (uintptr_t)arena->code + offset;
        protect(kind, arena, i, 1);
        size_t bytes = emit_loop(arena->copy + offset);
        protect(kind, arena, i, 0);
        name_of(i, name);
        write_lines(map, at, bytes, i, name);
        if (dump && i % 2)
            log_to_dump(dump, arena->copy + offset, bytes, name);
        if (is_in_file(kind, i))
            snprintf(name, sizeof name, "symbol_%02zu", i);
        if (truth)
            fprintf(truth, "%" PRIxPTR " %" PRIxPTR " %s\n", at, at + bytes, name);
    }
    write_odd_lines(map, arena);
    check(jitdump_close(dump), "jitdump_close");
}

/* For SECONDS of the CPU, so that on a busy machine there are as many samples. */
static void call_in_turn(const struct arena *arena, double seconds)
{
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    do
        for (size_t i = 0; i < FUNCTIONS; i++)
            ((function_code *)(uintptr_t)(arena->code + i * SLOT_BYTES))();
    while (clock() < end);
}

int main(int argc, char **argv)
{
    char path[64];
    if (argc < 2)
        return 2;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w"), *truth = argc > 3 ? fopen(argv[3], "w") : NULL;
    check(!map || (argc > 3 && !truth), "perf_map_code");
    struct arena arena = open_arena(argv[1]);
    make_functions(argv[1], &arena, map, truth);
    check(fclose(map) || (truth && fclose(truth)), "perf_map_code");
    printf("%d\n", (int)getpid());
    fflush(stdout);
    call_in_turn(&arena, argc > 2 ? strtod(argv[2], NULL) : 0.5);
    return 0;
}
