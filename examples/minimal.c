/* The smallest JIT that Linux perf knows as well as native code: names, source lines, whole stacks,
 * and code that is freed.  Read it from main() upwards; what libjitdump needs is in describe(),
 * log_function() and three lines of main().  x86-64.
 *
 *     make
 *     PERFJIT=dump perf record -k mono --call-graph dwarf build/minimal
 *     build/perfjit inject && perf report -i perf.jit.data
 *
 * The language: a function of x in postfix notation, a piece on each line.  "x x *" is x * x.
 */
#include "jitdump/cfi.h"
#include "jitdump/jitdump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { ARENA_BYTES = 4096, PIECES = 3 };

struct source {
    const char *name;
    unsigned line; /* in this file, of the first piece */
    const char *pieces[PIECES];
};

/* Each piece has a line of its own: it is the line that perf shows. */
/* clang-format off */
static const struct source sources[] = {
    {"square", __LINE__ + 1, {
        "x x *"}},
    {"polynomial", __LINE__ + 1, {
        "x x * x *",
        "3 x * +",
        "7 -"}},
    {"twice_and_one", __LINE__ + 1, {
        "x 2 *",
        "1 +"}},
};
/* clang-format on */
enum { FUNCTIONS = sizeof sources / sizeof *sources };

/* A piece of machine code that is being written, and what is known of it. */
struct code {
    unsigned char *at; /* the next byte */
    unsigned char *start;
    uint64_t epilogue; /* its offset */
    struct jitdump_line lines[PIECES];
    size_t line_count;
    uint64_t index; /* libjitdump's number for it */
};

static void emit(struct code *code, const char *bytes, size_t count)
{
    memcpy(code->at, bytes, count);
    code->at += count;
}
#define EMIT(code, bytes) emit(code, bytes, sizeof(bytes) - 1)

/* ---- The compiler: x is in rbx, values are pushed ---- */

static void compile_word(struct code *code, const char *word)
{
    int number = atoi(word);
    if (*word == 'x') {
        EMIT(code, "\x53"); /* push rbx */
        return;
    }
    if (*word >= '0' && *word <= '9') {
        EMIT(code, "\x68"); /* push number */
        emit(code, (const char *)&number, sizeof number);
        return;
    }
    EMIT(code, "\x59\x58"); /* pop rcx; pop rax */
    if (*word == '+')
        EMIT(code, "\x48\x01\xc8"); /* add rax, rcx */
    else if (*word == '-')
        EMIT(code, "\x48\x29\xc8"); /* sub rax, rcx */
    else
        EMIT(code, "\x48\x0f\xaf\xc1"); /* imul rax, rcx */
    EMIT(code, "\x50");                 /* push rax */
}

static void compile_piece(struct code *code, const char *piece, unsigned line)
{
    code->lines[code->line_count++] =
        (struct jitdump_line){(uint64_t)(uintptr_t)code->at, __FILE__, line, 0};
    for (const char *word = piece; word; word = strchr(word, ' '))
        compile_word(code, word += *word == ' ');
}

static void compile(struct code *code, const struct source *source)
{
    code->start = code->at;
    code->line_count = 0;
    EMIT(code, "\x55\x48\x89\xe5");     /* push rbp; mov rbp, rsp */
    EMIT(code, "\x53\x48\x83\xec\x08"); /* push rbx; sub rsp, 8 */
    EMIT(code, "\x48\x89\xfb");         /* mov rbx, rdi */
    for (unsigned i = 0; i < PIECES && source->pieces[i]; i++)
        compile_piece(code, source->pieces[i], source->line + i);
    EMIT(code, "\x58"); /* pop rax */
    code->epilogue = (uint64_t)(code->at - code->start);
    EMIT(code, "\x48\x8d\x65\xf8"); /* lea rsp, [rbp-8] */
    EMIT(code, "\x5b\x5d\xc3");     /* pop rbx; pop rbp; ret */
}

/* ---- What perf is told ---- */

/* The frame, in one line: which prologue and epilogue the code has (jitdump/cfi.h lists them). */
static int describe(struct jitdump_cfi *cfi, const struct code *code, struct jitdump_unwind *unwind)
{
    const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER,
                                        .flags = JITDUMP_FRAME_DYNAMIC, /* pushes move rsp */
                                        JITDUMP_SAVED(JITDUMP_RBX),
                                        .stack_bytes = 8,
                                        .epilogues = &code->epilogue,
                                        .epilogue_count = 1};
    uint64_t bytes = (uint64_t)(code->at - code->start);
    jitdump_cfi_reset(cfi);
    jitdump_cfi_frame(cfi, &frame);
    if (jitdump_cfi_check(cfi, code->start, bytes) != 0) /* for while you write the compiler */
        fprintf(stderr, "minimal: %s%s\n", jitdump_cfi_error(cfi), jitdump_cfi_checked(cfi));
    return jitdump_cfi_finish(cfi, bytes, unwind);
}

/* Before the code first runs. */
static void log_function(struct jitdump *dump, struct jitdump_cfi *cfi, const char *name,
                         struct code *code)
{
    struct jitdump_code record = JITDUMP_CODE_INIT;
    struct jitdump_unwind unwind;
    if (!dump)
        return;
    record.name = name;
    record.code_addr = (uint64_t)(uintptr_t)code->start;
    record.code_size = (uint64_t)(code->at - code->start);
    record.bytes = code->start;
    record.lines = code->lines;
    record.line_count = code->line_count;
    if (describe(cfi, code, &unwind) == 0)
        record.unwind = &unwind;
    jitdump_add_code(dump, &record, &code->index);
}

/* ---- The runtime ---- */

/* Compile all functions into ARENA, run them, free them: the next round uses the same memory. */
static long run_round(unsigned char *arena, struct jitdump *dump, struct jitdump_cfi *cfi)
{
    struct code codes[FUNCTIONS];
    unsigned char *at = arena;
    long sum = 0;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        codes[i].at = at;
        compile(&codes[i], &sources[i]);
        log_function(dump, cfi, sources[i].name, &codes[i]);
        at = codes[i].at;
    }
    for (long x = 0; x < 1000000; x++)
        for (size_t i = 0; i < FUNCTIONS; i++)
            sum += ((long (*)(long))(uintptr_t)codes[i].start)(x);
    for (size_t i = 0; i < FUNCTIONS && dump; i++) /* before the memory is used again */
        jitdump_unload_code(dump, codes[i].index, (uint64_t)(uintptr_t)codes[i].start,
                            (uint64_t)(codes[i].at - codes[i].start));
    return sum;
}

/* minimal [SECONDS]: of processor time */
int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    unsigned char *arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct jitdump *dump;
    long sum = 0;
    if (arena == MAP_FAILED)
        return 1;
    if (jitdump_open(&dump, NULL) != 0) { /* NULL, and no cost, unless PERFJIT=dump is set */
        fprintf(stderr, "minimal: %s\n", jitdump_error(dump));
        jitdump_close(dump);
        return 1;
    }
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    while ((double)clock() / CLOCKS_PER_SEC < seconds)
        sum = run_round(arena, dump, cfi);
    printf("%ld\n", sum);
    jitdump_cfi_free(cfi);
    if (*jitdump_error(dump)) /* what was lost, or what PERFJIT=dump,check found */
        fprintf(stderr, "minimal: %s\n", jitdump_error(dump));
    return jitdump_close(dump) != 0;
}
