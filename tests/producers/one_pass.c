/* A compiler in one pass, as libjitdump sees one: it emits functions into a buffer, with rows and
 * frames by offset as it goes, copies them to an arena that is mapped twice (never writable and
 * executable at one address), and patches them there.  One function is in two pieces, hot and cold,
 * far apart.
 *
 *     one_pass slots|pointer DIR SECONDS          outer calls middle, whose cold part calls inner
 *     one_pass life DIR SECONDS                   then middle moves, a child unloads it, it is
 * unloaded one_pass hold DIR                           stays in inner, called from the cold part
 *
 * slots: no frame pointers, registers saved by stores, rbp among them; outer's frame is as MIR's.
 * pointer: frames that perf record -g can follow.
 *
 * Each phase is printed: its name, pid, beginning and end (CLOCK_MONOTONIC, ns). */
#include "jitdump/cfi.h"
#include "jitdump/format/byte_sink.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__

/* ---- The arena ---- */

enum {
    ARENA_BYTES = 1 << 20,
    COLD_START = ARENA_BYTES / 2,
    MOVED_BYTES = ARENA_BYTES / 4, /* from each place to its next */
    SPIN = 20000,
    FOREVER = 0x7fffffff,
};

static struct {
    uint8_t *writable, *runs;
} arena;

static void make_arena(void)
{
    int fd = memfd_create("arena", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, ARENA_BYTES))
        err(1, "memfd");
    arena.writable = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    arena.runs = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    if (arena.writable == MAP_FAILED || arena.runs == MAP_FAILED)
        err(1, "mmap");
    close(fd);
}

/* ---- The compiler ---- */

enum { FUNCTION_ROWS = 4 };

/* A piece of code in the buffer, and where it was copied to. */
struct emitted {
    uint64_t start, end, at;
    size_t first_row, row_count;
    struct jitdump_unwind unwind;
    uint64_t call, jump, back; /* offsets in it: of an address, of a rel32, of what is jumped to */
};

static struct {
    uint8_t bytes[4096];
    struct byte_sink code;
    struct jitdump_line rows[4 * FUNCTION_ROWS];
    size_t row_count;
    struct jitdump_cfi *cfi;
    struct emitted inner, middle, cold, outer;
    bool pointer;
    uint32_t inner_rounds;
} compiler;

static void put(const char *hex)
{
    unsigned byte;
    for (; *hex; hex += 2 + (hex[2] == ' ')) {
        sscanf(hex, "%2x", &byte);
        sink_u8(&compiler.code, (uint8_t)byte);
    }
}

static void row(uint32_t line)
{
    compiler.rows[compiler.row_count++] =
        (struct jitdump_line){compiler.code.size, "one_pass.src", line, 1};
}

static void begin(struct emitted *function)
{
    function->start = compiler.code.size;
    function->first_row = compiler.row_count;
    jitdump_cfi_begin(compiler.cfi, function->start);
}

/* What the function's frame is, is known at its end. */
static void end(struct emitted *function, const struct jitdump_frame *frame, uint64_t epilogue)
{
    struct jitdump_frame complete = *frame;
    complete.epilogues = &epilogue;
    complete.epilogue_count = epilogue != 0;
    function->end = compiler.code.size;
    function->row_count = compiler.row_count - function->first_row;
    jitdump_cfi_frame(compiler.cfi, &complete);
    if (jitdump_cfi_end(compiler.cfi, function->end, &function->unwind))
        errx(1, "%s", jitdump_cfi_error(compiler.cfi));
    put("cc cc cc"); /* not aligned */
}

/* mov ecx, ROUNDS; dec ecx; jnz */
static void spin(uint32_t rounds)
{
    put("b9");
    sink_u32(&compiler.code, rounds);
    put("ff c9 75 fc");
}

/* mov rax, an address to be patched; call rax */
static void call(struct emitted *function)
{
    put("48 b8");
    function->call = compiler.code.size - function->start;
    sink_u64(&compiler.code, 0);
    put("ff d0");
}

/* jmp, to be patched */
static void jump(struct emitted *function)
{
    put("e9");
    function->jump = compiler.code.size - function->start;
    sink_u32(&compiler.code, 0);
}

static const struct jitdump_frame inner_frames[] = {{.kind = JITDUMP_FRAME_LEAF},
                                                    {.kind = JITDUMP_FRAME_POINTER}};
static const struct jitdump_frame middle_frames[] = {
    {.kind = JITDUMP_FRAME_STACK,
     .stack_bytes = 0x28,
     JITDUMP_SLOTS({JITDUMP_RBX, 8}, {JITDUMP_R12, 16}, {JITDUMP_RBP, 24})},
    {.kind = JITDUMP_FRAME_POINTER,
     .stack_bytes = 0x20,
     JITDUMP_SLOTS({JITDUMP_RBX, -8}, {JITDUMP_R12, -16})}};
static const struct jitdump_frame outer_frames[] = {
    {.kind = JITDUMP_FRAME_POINTER,
     .flags = JITDUMP_FRAME_RED_ZONE,
     .stack_bytes = 0x28,
     JITDUMP_SLOTS({JITDUMP_RBX, -0x20})},
    {.kind = JITDUMP_FRAME_POINTER, JITDUMP_SAVED(JITDUMP_RBX), .stack_bytes = 0x28}};

static void compile_inner(void)
{
    struct emitted *inner = &compiler.inner;
    begin(inner);
    row(10);
    put(compiler.pointer ? "55 48 89 e5" : "90");
    row(11);
    spin(compiler.inner_rounds);
    uint64_t epilogue = compiler.pointer ? compiler.code.size : 0;
    put(compiler.pointer ? "5d c3" : "c3");
    end(inner, &inner_frames[compiler.pointer], epilogue);
}

static void compile_middle(void)
{
    struct emitted *middle = &compiler.middle, *cold = &compiler.cold;
    bool pointer = compiler.pointer;
    begin(middle);
    row(20);
    put(pointer ? "55 48 89 e5 48 83 ec 20 48 89 5d f8 4c 89 65 f0"
                : "48 83 ec 28 48 89 5c 24 08 4c 89 64 24 10 48 89 6c 24 18");
    put("bb 07 00 00 00 45 31 e4"); /* mov ebx, 7; xor r12d, r12d */
    put(pointer ? "90" : "31 ed");  /* xor ebp, ebp */
    row(21);
    spin(SPIN);
    jump(middle);
    middle->back = compiler.code.size - middle->start;
    row(22);
    spin(SPIN);
    uint64_t epilogue = compiler.code.size;
    put(pointer ? "48 8b 5d f8 4c 8b 65 f0 48 83 c4 20 5d c3"
                : "48 8b 5c 24 08 4c 8b 64 24 10 48 8b 6c 24 18 48 83 c4 28 c3");
    end(middle, &middle_frames[pointer], epilogue);
    struct jitdump_frame frame = middle_frames[pointer];
    frame.flags |= JITDUMP_FRAME_ENTERED;
    begin(cold);
    row(29);
    spin(SPIN);
    call(cold);
    jump(cold);
    end(cold, &frame, 0);
}

static void compile_outer(void)
{
    struct emitted *outer = &compiler.outer;
    bool pointer = compiler.pointer;
    begin(outer);
    row(30);
    put(pointer ? "55 48 89 e5 53 48 83 ec 28"
                : "48 89 6c 24 f8 48 8d 6c 24 f8 48 83 ec 28 48 89 5d e0");
    put("bb 09 00 00 00"); /* mov ebx, 9 */
    spin(SPIN);
    call(outer);
    row(31);
    uint64_t epilogue = compiler.code.size;
    put(pointer ? "48 83 c4 28 5b 5d c3" : "48 8b 5d e0 48 8d 65 08 48 8b 6c 24 f8 c3");
    end(outer, &outer_frames[pointer], epilogue);
}

/* ---- The linker ---- */

static uint64_t runs_at(const struct emitted *function)
{
    return (uint64_t)(uintptr_t)arena.runs + function->at;
}

static void copy_to(struct emitted *function, uint64_t at)
{
    function->at = at;
    memcpy(arena.writable + at, compiler.bytes + function->start, function->end - function->start);
}

static void patch_call(const struct emitted *from, const struct emitted *to)
{
    const uint64_t address = runs_at(to);
    memcpy(arena.writable + from->at + from->call, &address, sizeof address);
}

static void patch_jump(const struct emitted *from, const struct emitted *to, uint64_t offset)
{
    const int64_t distance = (int64_t)(to->at + offset) - (int64_t)(from->at + from->jump + 4);
    const int32_t rel = (int32_t)distance;
    memcpy(arena.writable + from->at + from->jump, &rel, sizeof rel);
}

static void link_middle(uint64_t hot_at, uint64_t cold_at)
{
    copy_to(&compiler.middle, hot_at);
    copy_to(&compiler.cold, cold_at);
    patch_jump(&compiler.middle, &compiler.cold, 0);
    patch_jump(&compiler.cold, &compiler.middle, compiler.middle.back);
    patch_call(&compiler.cold, &compiler.inner);
    patch_call(&compiler.outer, &compiler.middle);
}

static void link_all(void)
{
    copy_to(&compiler.inner, 0);
    copy_to(&compiler.outer, 0x401);
    link_middle(0x803, COLD_START + 0x107);
}

/* ---- The profiler's part ---- */

static struct jitdump_code code_of(const struct emitted *function, const char *name)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = runs_at(function);
    code.code_size = function->end - function->start;
    code.bytes = arena.writable + function->at;
    code.lines = compiler.rows + function->first_row;
    code.line_count = function->row_count;
    code.unwind = &function->unwind;
    code.flags = JITDUMP_RELATIVE;
    code.buffer_offset = function->start;
    return code;
}

/* Returns the index of middle. */
static uint64_t add_all(struct jitdump *dump)
{
    const struct jitdump_code inner = code_of(&compiler.inner, "inner");
    const struct jitdump_code outer = code_of(&compiler.outer, "outer");
    const struct jitdump_code cold = code_of(&compiler.cold, NULL);
    struct jitdump_code middle = code_of(&compiler.middle, "middle");
    uint64_t index;
    middle.pieces = &cold;
    middle.piece_count = 1;
    if (jitdump_add_code(dump, &inner, NULL) || jitdump_add_code(dump, &middle, &index) ||
        jitdump_add_code(dump, &outer, NULL))
        errx(1, "%s", jitdump_error(dump));
    return index;
}

static void move_middle(struct jitdump *dump, uint64_t index)
{
    struct emitted *parts[] = {&compiler.middle, &compiler.cold};
    struct jitdump_piece_move moves[2];
    for (size_t i = 0; i < 2; i++) {
        moves[i].old_code_addr = runs_at(parts[i]);
        moves[i].code_size = parts[i]->end - parts[i]->start;
        memset(arena.writable + parts[i]->at, 0xcc, moves[i].code_size);
    }
    link_middle(compiler.middle.at + MOVED_BYTES, compiler.cold.at + MOVED_BYTES + 0x40);
    for (size_t i = 0; i < 2; i++)
        moves[i].new_code_addr = runs_at(parts[i]);
    if (jitdump_move_pieces(dump, index, moves, 2))
        errx(1, "%s", jitdump_error(dump));
}

static void unload_middle(struct jitdump *dump, uint64_t index)
{
    const struct emitted *middle = &compiler.middle;
    if (jitdump_unload_code(dump, index, runs_at(middle), middle->end - middle->start))
        errx(1, "%s", jitdump_error(dump));
}

/* ---- The program ---- */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

__attribute__((noinline)) static void run_chain(void)
{
    ((void (*)(void))(uintptr_t)runs_at(&compiler.outer))();
    __asm__ volatile(""); /* no tail call */
}

static void phase(const char *name, double seconds)
{
    const uint64_t start = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    while ((double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) < seconds * 1e9)
        for (unsigned i = 0; i < 50; i++) /* some 5 ms without a system call */
            run_chain();
    printf("%s %d %" PRIu64 " %" PRIu64 "\n", name, (int)getpid(), start,
           clock_ns(CLOCK_MONOTONIC));
    fflush(stdout);
}

static void live(struct jitdump *dump, uint64_t index, double seconds)
{
    phase("loaded", seconds);
    move_middle(dump, index);
    phase("moved", seconds);
    pid_t child = fork();
    if (child == 0) {
        unload_middle(dump, index);
        phase("child", seconds);
        _exit(jitdump_close(dump) != 0);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        errx(1, "the child failed");
    phase("after_child", seconds);
    unload_middle(dump, index);
    phase("unloaded", seconds);
}

int main(int argc, char **argv)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jitdump *dump;
    bool hold = argc == 3 && strcmp(argv[1], "hold") == 0;
    if (argc != 4 && !hold)
        errx(2, "usage: one_pass slots|pointer|life DIR SECONDS, or hold DIR");
    options.dir = argv[2];
    options.flags = JITDUMP_ALWAYS;
    if (jitdump_open(&dump, &options))
        errx(1, "%s", jitdump_error(dump));
    compiler.code = byte_sink_over(compiler.bytes, sizeof compiler.bytes);
    compiler.cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    compiler.pointer = strcmp(argv[1], "pointer") == 0;
    compiler.inner_rounds = hold ? FOREVER : SPIN;
    make_arena();
    compile_inner();
    compile_middle();
    compile_outer();
    link_all();
    uint64_t index = add_all(dump);
    jitdump_cfi_free(compiler.cfi);
    while (hold)
        run_chain();
    if (strcmp(argv[1], "life") == 0)
        live(dump, index, atof(argv[3]));
    else
        phase("loaded", atof(argv[3]));
    if (jitdump_close(dump))
        errx(1, "%s", jitdump_error(dump));
    return 0;
}

#else

int main(void)
{
    errx(77, "x86-64 only");
}

#endif
