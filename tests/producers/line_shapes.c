/* line_shapes SHAPE DIR SECONDS: run code of which the source lines and inlined calls are logged as SHAPE says.
 *
 *     lines-first    as most runtimes: the lines and inlined calls of a function, then its load
 *     all-before     as LLVM's ORC: those of all functions, in another order, then all loads
 *     loads-first    a function's load, then its lines
 *     biased         lines-first, all addresses 0x40 too high, as V8 and LLVM have them
 *     overwritten    biased, the first 16 bytes of files' names overwritten, as V8 in node 20; files are named by the functions
 *     in-front       lines-first, a function's first line 0x32 bytes in front of it and an end behind the last, as Erlang has them
 *     urls           lines-first, two of the three files named by file:// URLs, one by another URL, which is printed with _ for :
 *     broken         lines-first, and behind the sound functions some whose records contradict themselves
 *
 * What is so is printed, a line for each byte:
 *
 *     FUNCTION OFFSET NAME FILE LINE COLUMN[;NAME FILE LINE COLUMN]...
 *
 * innermost first; line 0: there is none, FILE and COLUMN are - then.  The dump is written by hand, because libjitdump would not write most of
 * these.
 */
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/jitdump_format.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    ARENA_BYTES = 1 << 18,
    DUMP_BYTES = 1 << 24,
    HUGE_ROWS = 100000,
    MAX_ROWS = 16,
    MAX_INLINES = 8,
    MAX_SPANS = 16,
    BIAS = 0x40,
    IN_FRONT = 0x32,
    OVERWRITTEN_BYTES = 16,
    NONE = -1,
    RETURN = 0xc3,
    NOP = 0x90,
};

struct row {
    int offset;
    unsigned line, column;
    const char *file;
};

struct inlined {
    int parent;
    const char *name, *call_file;
    unsigned call_line, call_column;
    const char *decl_file;
    unsigned decl_line;
};

struct span {
    int offset, inlined;
};

struct function {
    const char *name;
    int size;
    int row_count;
    struct row rows[MAX_ROWS];
    int inline_count;
    struct inlined inlines[MAX_INLINES];
    int span_count;
    struct span spans[MAX_SPANS];

    uint64_t addr;
};

/* Files are named by functions, too, for "overwritten"; /lines/a.c and /lines/c.c differ only where they are. */
#define A "/the/source/lines/a.c"
#define B "/the/other/lines/b.c"
#define C "/the/source/more/lines/c.c"

static struct function functions[] = {
    {.name = "plain " A ":1:1",
     .size = 64,
     .row_count = 4,
     .rows = {{0, 1, 1, A}, {5, 2, 7, A}, {9, 300, 2, A}, {40, 4, 1, A}}},
    {.name = "one " B ":1:1", .size = 32, .row_count = 1, .rows = {{0, 10, 3, B}}},
    {.name = "last " C ":1:1",
     .size = 80,
     .row_count = 2,
     .rows = {{0, 1, 1, C}, {79, 99, 200, C}}},
    {.name = "unsorted",
     .size = 70,
     .row_count = 5,
     .rows = {{20, 3, 1, A}, {0, 1, 1, A}, {69, 8, 1, A}, {40, 5, 1, A}, {10, 2, 1, A}}},
    {.name = "nested",
     .size = 66,
     .row_count = 6,
     .rows =
         {{0, 1, 1, A}, {10, 2, 1, A}, {20, 3, 1, B}, {30, 2, 1, A}, {60, 1, 1, A}, {30, 7, 5, A}}},
    {.name = "gap",
     .size = 90,
     .row_count = 5,
     .rows = {{0, 1, 1, A}, {30, 0, 0, A}, {50, 2, 1, A}, {60, 9, 9, ""}, {70, 3, 1, A}}},
    {.name = "late", .size = 100, .row_count = 2, .rows = {{16, 5, 1, A}, {80, 6, 1, A}}},
    {.name = "dummy",
     .size = 68,
     .row_count = 3,
     .rows = {{0, 1, 1, A}, {33, 2, 1, A}, {68, 0, 0, ""}}},
    {.name = "same",
     .size = 72,
     .row_count = 4,
     .rows = {{0, 1, 1, B}, {20, 2, 1, "\xff"}, {40, 3, 1, C}, {60, 4, 1, "\xff"}}},
    {.name = "unknown", .size = 64},
    {.name = "huge", .size = HUGE_ROWS},
    {.name = "tree " A ":100:1",
     .size = 120,
     .row_count = 9,
     .rows = {{0, 100, 1, A},
              {10, 11, 2, B},
              {20, 21, 3, C},
              {30, 31, 4, C},
              {40, 12, 5, B},
              {50, 101, 6, A},
              {60, 31, 7, C},
              {70, 22, 8, C},
              {90, 102, 9, A}},
     .inline_count = 4,
     .inlines = {{NONE, "outer", A, 105, 11, B, 10},
                 {0, "middle", B, 15, 12, C, 20},
                 {1, "inner", C, 25, 13, C, 30},
                 {NONE, "inner", A, 110, 14, C, 30}},
     .span_count = 8,
     .spans = {{10, 0}, {20, 1}, {30, 2}, {40, 0}, {50, NONE}, {60, 2}, {70, 1}, {90, NONE}}},
    {.name = "first",
     .size = 64,
     .row_count = 2,
     .rows = {{0, 31, 4, C}, {32, 32, 4, C}},
     .inline_count = 1,
     .inlines = {{NONE, "inner", A, 205, 11, C, 30}},
     .span_count = 1,
     .spans = {{0, 0}}},
};

static struct function broken_functions[] = {
    {.name = "outside", .size = 64, .row_count = 2, .rows = {{0, 1, 1, A}, {9000, 2, 1, A}}},
    {.name = "too-many-entries", .size = 64, .row_count = 1, .rows = {{0, 1, 1, A}}},
    {.name = "string-without-end", .size = 64, .row_count = 1, .rows = {{0, 1, 1, A}}},
    {.name = "cyclic",
     .size = 64,
     .row_count = 1,
     .rows = {{0, 1, 1, A}},
     .inline_count = 1,
     .inlines = {{0, "self", A, 1, 1, A, 1}},
     .span_count = 1,
     .spans = {{0, 0}}},
    {.name = "span-behind",
     .size = 64,
     .row_count = 1,
     .rows = {{0, 1, 1, A}},
     .inline_count = 1,
     .inlines = {{NONE, "self", A, 1, 1, A, 1}},
     .span_count = 1,
     .spans = {{64, 0}}},
};

enum {
    FUNCTIONS = sizeof functions / sizeof functions[0],
    BROKEN = sizeof broken_functions / sizeof broken_functions[0],
    SPINNING = FUNCTIONS - 2, /* tree */
};

static struct byte_sink dump;
static bool biased, overwritten, in_front, urls;

/* ---- How files are named ---- */

#define B_URL "wasm://other/lines/b.c"

/* FILE as the dump has it. */
static const char *logged(const char *file)
{
    if (!urls || strcmp(file, "\xff") == 0 || !*file)
        return file;
    return strcmp(file, A) == 0   ? "file://" A
           : strcmp(file, B) == 0 ? B_URL
                                  : "file://localhost/the/source/mor%65/lines/c%2Ec?v=%31#2";
}

/* FILE as tools are to show it. */
static const char *shown(const char *file)
{
    return urls && strcmp(file, B) == 0 ? "wasm_//other/lines/b.c" : file;
}

/* ---- What is so ---- */

/* The row that says where the instruction at OFFSET is from, or NULL. */
static const struct row *row_at(const struct function *function, int offset)
{
    const struct row *found = NULL;
    for (int i = 0; i < function->row_count; i++) {
        const struct row *row = &function->rows[i];
        if (row->offset <= offset && (!found || row->offset >= found->offset))
            found = row;
    }
    return found;
}

static const char *file_of(const struct function *function, const struct row *row)
{
    while (strcmp(row->file, "\xff") == 0 && row > function->rows)
        row--;
    return row->file;
}

static int inline_at(const struct function *function, int offset)
{
    int found = NONE;
    for (int i = 0; i < function->span_count; i++)
        if (function->spans[i].offset <= offset)
            found = function->spans[i].inlined;
    return found;
}

static void print_place(const char *name, const char *file, unsigned line, unsigned column)
{
    bool known = line && *file;
    printf("%s %s %u %u", name, known ? shown(file) : "-", known ? line : 0, known ? column : 0);
}

static void print_byte(const struct function *function, int offset)
{
    static const struct row nowhere = {0, 0, 0, ""};
    const struct row *row = row_at(function, offset);
    struct row made = {offset, 1u + (unsigned)offset % 1000u, 1u + (unsigned)offset % 77u,
                       offset % 3 ? A : B};
    if (function->size == HUGE_ROWS)
        row = &made;
    if (!row)
        row = &nowhere;
    char own_name[64];
    snprintf(own_name, sizeof own_name, "%.*s", (int)strcspn(function->name, " "), function->name);
    printf("%s %d ", own_name, offset);
    const char *file = row == &made ? made.file : row == &nowhere ? "" : file_of(function, row);
    unsigned line = row->line, column = row->column;
    for (int i = inline_at(function, offset); i != NONE; i = function->inlines[i].parent) {
        print_place(function->inlines[i].name, file, line, column);
        putchar(';');
        file = function->inlines[i].call_file;
        line = function->inlines[i].call_line;
        column = function->inlines[i].call_column;
    }
    print_place(own_name, file, line, column);
    putchar('\n');
}

/* ---- The dump ---- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void set_u32(size_t offset, uint32_t value)
{
    struct byte_sink patch = byte_sink_over(dump.data + offset, 4);
    sink_u32(&patch, value);
}

static size_t begin_record(uint32_t id)
{
    size_t start = dump.size;
    sink_u32(&dump, id);
    sink_u32(&dump, 0);
    sink_u64(&dump, now_ns());
    return start;
}

static void end_record(size_t start)
{
    set_u32(start + 4, (uint32_t)(dump.size - start));
}

static void put_name(const char *file)
{
    static const uint8_t list_of_free_memory[OVERWRITTEN_BYTES] = {
        0x6a, 0x67, 1, 0, 0, 0, 0, 0, 0xf6, 0x0e, 0x54, 0x96, 0x8f, 0x41, 0x65, 0x2d};
    size_t start = dump.size, bytes = strlen(file);
    sink_cstr(&dump, logged(file));
    if (overwritten && bytes > 1)
        memcpy(dump.data + start, list_of_free_memory,
               bytes < OVERWRITTEN_BYTES ? bytes : OVERWRITTEN_BYTES);
}

static void put_entry(const struct function *function, int offset, unsigned line, unsigned column,
                      const char *file)
{
    uint64_t addr = function->addr + (uint64_t)offset + (biased ? BIAS : 0);
    sink_u64(&dump, in_front && offset == 0 ? addr - IN_FRONT : addr);
    sink_u32(&dump, line);
    sink_u32(&dump, column);
    put_name(file);
}

static void put_debug_info(const struct function *function)
{
    bool huge = function->size == HUGE_ROWS;
    if (!huge && function->row_count == 0)
        return;
    size_t start = begin_record(JIT_CODE_DEBUG_INFO);
    bool too_many = strcmp(function->name, "too-many-entries") == 0;
    sink_u64(&dump, function->addr);
    uint64_t count = huge ? HUGE_ROWS : too_many ? 1000 : (uint64_t)function->row_count;
    sink_u64(&dump, count + in_front);
    for (int i = 0; i < function->row_count; i++) {
        const struct row *row = &function->rows[i];
        put_entry(function, row->offset, row->line, row->column, row->file);
    }
    for (int i = 0; huge && i < HUGE_ROWS; i++)
        put_entry(function, i, 1u + (unsigned)i % 1000u, 1u + (unsigned)i % 77u, i % 3 ? A : B);
    if (in_front)
        put_entry(function, function->size, 0, 0, "");
    if (strcmp(function->name, "string-without-end") == 0)
        dump.size--;
    end_record(start);
}

/* Strings, each anew: STRINGS is where they begin, and the result where this one is from there. */
static uint32_t string(struct byte_sink *strings, const char *text)
{
    uint32_t at = (uint32_t)strings->size;
    sink_cstr(strings, text);
    return at;
}

static void put_inline_info(const struct function *function)
{
    uint8_t bytes[2048];
    struct byte_sink strings = byte_sink_over(bytes, sizeof bytes);
    size_t start = begin_record(JIT_CODE_INLINE_INFO);
    sink_u64(&dump, function->addr);
    sink_u32(&dump, (uint32_t)function->inline_count);
    sink_u32(&dump, (uint32_t)function->span_count);
    size_t strings_bytes = dump.size;
    sink_u64(&dump, 0);
    for (int i = 0; i < function->inline_count; i++) {
        const struct inlined *call = &function->inlines[i];
        sink_u32(&dump, (uint32_t)call->parent);
        sink_u32(&dump, string(&strings, logged(call->call_file)));
        sink_u32(&dump, call->call_line);
        sink_u32(&dump, call->call_column);
        sink_u32(&dump, string(&strings, call->name));
        sink_u32(&dump, string(&strings, logged(call->decl_file)));
        sink_u32(&dump, call->decl_line);
    }
    for (int i = 0; i < function->span_count; i++) {
        sink_u32(&dump, (uint32_t)function->spans[i].offset);
        sink_u32(&dump, (uint32_t)function->spans[i].inlined);
    }
    sink_bytes(&dump, bytes, strings.size);
    set_u32(strings_bytes, (uint32_t)strings.size);
    end_record(start);
}

static void put_lines(const struct function *function)
{
    if (function->inline_count)
        put_inline_info(function);
    put_debug_info(function);
}

static void put_load(const struct function *function, uint64_t code_index)
{
    size_t start = begin_record(JIT_CODE_LOAD);
    sink_u32(&dump, (uint32_t)getpid());
    sink_u32(&dump, (uint32_t)getpid());
    sink_u64(&dump, function->addr);
    sink_u64(&dump, function->addr);
    sink_u64(&dump, (uint64_t)function->size);
    sink_u64(&dump, code_index);
    sink_cstr(&dump, function->name);
    sink_bytes(&dump, (const void *)(uintptr_t)function->addr, (size_t)function->size);
    end_record(start);
}

static void put_header(void)
{
    sink_u32(&dump, JITDUMP_MAGIC);
    sink_u32(&dump, JITDUMP_FILE_VERSION);
    sink_u32(&dump, JITHEADER_BYTES);
    sink_u32(&dump, EM_X86_64);
    sink_u32(&dump, 0);
    sink_u32(&dump, (uint32_t)getpid());
    sink_u64(&dump, now_ns());
    sink_u64(&dump, 0);
}

static void put_records(const char *shape, struct function *list, int count, uint64_t first_index)
{
    bool all_before = strcmp(shape, "all-before") == 0,
         loads_first = strcmp(shape, "loads-first") == 0;
    for (int i = count; all_before && i-- > 0;)
        put_lines(&list[i]);
    for (int i = 0; i < count; i++) {
        if (!all_before && !loads_first)
            put_lines(&list[i]);
        put_load(&list[i], first_index + (uint64_t)i);
        if (loads_first)
            put_lines(&list[i]);
    }
}

/* ---- The process ---- */

static void *open_dump(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/jit-%d.dump", dir, (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, DUMP_BYTES) ||
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
        return MAP_FAILED;
    void *bytes = mmap(NULL, DUMP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return bytes;
}

/* Where most samples will be: in tree, in inner in middle in outer. */
static void put_loop(const struct function *function)
{
    static const uint8_t loop[] = {0xb9, 100,  0, 0, 0, /* mov $100, %ecx */
                                   0xff, 0xc9,          /* dec %ecx */
                                   0x75, 0xfc};         /* jne, back to dec */
    memcpy((void *)(uintptr_t)(function->addr + 31), loop, sizeof loop);
}

/* Code that does nothing, 64 bytes between one function and the next. */
static uint64_t lay_out(struct function *list, int count, uint64_t addr)
{
    for (int i = 0; i < count; i++) {
        list[i].addr = addr;
        memset((void *)(uintptr_t)addr, NOP, (size_t)list[i].size);
        *(uint8_t *)(uintptr_t)(addr + (uint64_t)list[i].size - 1) = RETURN;
        addr += (uint64_t)list[i].size + 64;
    }
    return addr;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: line_shapes SHAPE DIR SECONDS\n");
        return 2;
    }
    const char *shape = argv[1];
    overwritten = strcmp(shape, "overwritten") == 0;
    biased = overwritten || strcmp(shape, "biased") == 0;
    in_front = strcmp(shape, "in-front") == 0;
    urls = strcmp(shape, "urls") == 0;
    void *arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *bytes = open_dump(argv[2]);
    if (arena == MAP_FAILED || bytes == MAP_FAILED) {
        perror("line_shapes");
        return 1;
    }
    dump = byte_sink_over(bytes, DUMP_BYTES);
    uint64_t next = lay_out(functions, FUNCTIONS, (uint64_t)(uintptr_t)arena);
    lay_out(broken_functions, BROKEN, next);
    put_loop(&functions[SPINNING]);
    put_header();
    put_records(shape, functions, FUNCTIONS, 1);
    if (strcmp(shape, "broken") == 0)
        put_records(shape, broken_functions, BROKEN, FUNCTIONS + 1);
    clock_t end = clock() + (clock_t)(atof(argv[3]) * CLOCKS_PER_SEC); /* of its own time */
    while (clock() < end)
        for (int i = 0; i < 1000; i++)
            ((void (*)(void))(uintptr_t)functions[SPINNING].addr)();
    for (int i = 0; i < FUNCTIONS; i++)
        for (int offset = 0; offset < functions[i].size; offset++)
            print_byte(&functions[i], offset);
    return dump.overflow ? 1 : 0;
}
