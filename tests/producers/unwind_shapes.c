/* unwind_shapes SHAPE DIR SECONDS: run code without frame pointers and log its unwind tables as
 * SHAPE says.
 *
 *     main ─▶ outer ─▶ middle ─▶ inner (spins)          main ─▶ solo (spins)
 *
 * outer sets rbp to rubbish, so that nobody gets through by frame pointers.  No function of the
 * program has more on the stack than perf copies of it, wherever a sample falls.  The dump is
 * written by hand, record by record, because libjitdump would not write most of these:
 *
 *     frame-first      as perf has it: a record per function, .eh_frame first, relative to the
 *                      place that perf imagines
 *     header-first     the same with the header first, as the specification's text has it
 *     mapped-size-0    frame-first with mapped_size 0
 *     no-end           frame-first without the zero length that ends an .eh_frame
 *     absolute-header  as LLVM's ORC: one blob for all functions, relative to where it was in
 *                      memory, behind a header whose pointer to it is absolute and that has no
 *                      table
 *     one-blob         the same without a header
 *     blobs-before     a record per function, all in front of all loads
 *     blobs-swapped    the same, in another order than the loads
 *     empty-header     an empty .eh_frame and a header without FDEs, as V8 says "use frame
 *                      pointers"; outer keeps rbp sound
 *     none             no unwind tables at all; outer keeps rbp sound
 *     garbage          frame-first, but middle's table is noise
 *     garbage-length   frame-first, but middle's CIE claims to be longer than the record
 *     high-cfa         frame-first, but middle's CFA is 16 too high, so that 0x1234 is its return
 *                      address
 *     low-cfa          the same 16 too low
 *     astray           high-cfa, but what is taken for its return address is in the midst of solo,
 *                      behind no call
 *     zero             high-cfa, but what is taken for its return address is 0, as where a thread
 *                      begins
 *     bare             frame-first, but middle has no table
 *     pointer          bare, but middle spins itself, with solo's address on top of its stack
 */
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/eh_frame.h"
#include "jitdump/format/jitdump_format.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ARENA_BYTES = 1 << 16, STEP_BYTES = 512, TABLE_BYTES = 4096 };

enum { OUTER, MIDDLE, INNER, SOLO, FUNCTIONS };

enum { NO_CODE = 0x1234 }; /* an address where none is */

/* A function: its code, and its CFI as bytes of DWARF instructions. */
struct function {
    const char *name;
    uint8_t code[96];
    size_t code_bytes;
    uint8_t cfi[32];
    size_t cfi_bytes;
    uint64_t addr;
};

struct shape {
    const char *name;
    bool header_first, mapped_size_0, no_end, absolute_header, one_blob, blobs_before, swapped,
        empty, none;
    bool noise, wrong_length, bare, pointer;
    int shift;                                           /* of middle's CFA */
    enum { NO_ADDRESS, NULL_ADDRESS, IN_SOLO } leads_to; /* what is found there */
};

static const struct shape shapes[] = {
    {.name = "frame-first"},
    {.name = "header-first", .header_first = true},
    {.name = "mapped-size-0", .mapped_size_0 = true},
    {.name = "no-end", .no_end = true},
    {.name = "absolute-header", .header_first = true, .absolute_header = true, .one_blob = true},
    {.name = "one-blob", .one_blob = true},
    {.name = "blobs-before", .blobs_before = true},
    {.name = "blobs-swapped", .blobs_before = true, .swapped = true},
    {.name = "empty-header", .empty = true},
    {.name = "none", .none = true},
    {.name = "garbage", .noise = true},
    {.name = "garbage-length", .wrong_length = true},
    {.name = "high-cfa", .shift = 16},
    {.name = "low-cfa", .shift = -16},
    {.name = "astray", .shift = 16, .leads_to = IN_SOLO},
    {.name = "zero", .shift = 16, .leads_to = NULL_ADDRESS},
    {.name = "bare", .bare = true},
    {.name = "pointer", .bare = true, .pointer = true},
};

static struct function functions[FUNCTIONS];
static struct byte_sink dump;
static uint8_t dump_bytes[1 << 16];
static uint8_t tables[TABLE_BYTES]; /* where one-blob's tables really are */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- The code ---- */

static void add(uint8_t *to, size_t *count, const void *bytes, size_t size)
{
    memcpy(to + *count, bytes, size);
    *count += size;
}

#define CODE(function, ...)                                                                        \
    add((function)->code, &(function)->code_bytes, (const uint8_t[]){__VA_ARGS__},                 \
        sizeof(const uint8_t[]){__VA_ARGS__})
#define CFI(function, ...)                                                                         \
    add((function)->cfi, &(function)->cfi_bytes, (const uint8_t[]){__VA_ARGS__},                   \
        sizeof(const uint8_t[]){__VA_ARGS__})

/* DW_CFA_advance_loc N, def_cfa_offset N, offset rbp / rbx at CFA - 16 */
#define ADVANCE(n)    (0x40 + (n))
#define CFA_OFFSET(n) 0x0e, (n)
#define RBP_AT_16     0x86, 2
#define RBX_AT_16     0x83, 2

static void code_call(struct function *function, uint64_t target)
{
    CODE(function, 0x48, 0xb8); /* mov rax, target */
    add(function->code, &function->code_bytes, &target, 8);
    CODE(function, 0xff, 0xd0); /* call rax */
}

/* What a CFA that is 16 off takes for middle's return address: VALUE, into outer's frame, and
 * behind it NO_CODE. */
static void plant(struct function *function, uint64_t value)
{
    CODE(function, 0x48, 0xb8); /* mov rax, value */
    add(function->code, &function->code_bytes, &value, 8);
    CODE(function, 0x48, 0x89, 0x44, 0x24, 0x08); /* mov [rsp + 8], rax */
    CODE(function, 0x48, 0xc7, 0x44, 0x24, 0x28, NO_CODE & 0xff, NO_CODE >> 8, 0, 0);
}

static uint64_t planted_value(const struct shape *shape)
{
    enum { IN_ITS_LOOP = 11 };
    if (shape->leads_to == NULL_ADDRESS)
        return 0;
    return shape->leads_to == IN_SOLO ? functions[SOLO].addr + IN_ITS_LOOP : NO_CODE;
}

static void make_outer(struct function *function, uint64_t middle, const struct shape *shape,
                       bool rubbish)
{
    enum { PLANTED_BYTES = 24 };
    CODE(function, 0x55);             /* push rbp */
    CODE(function, 0x48, 0x89, 0xe5); /* mov rbp, rsp */
    if (rubbish)
        CODE(function, 0xbd, 0x11, 0, 0, 0); /* mov ebp, 0x11 */
    CODE(function, 0x48, 0x83, 0xec, 0x40);  /* sub rsp, 0x40 */
    CFI(function, ADVANCE(1), CFA_OFFSET(16), RBP_AT_16, ADVANCE(rubbish ? 12 : 7), CFA_OFFSET(80));
    if (shape->shift)
        plant(function, planted_value(shape));
    code_call(function, middle);
    CODE(function, 0x48, 0x83, 0xc4, 0x40, 0x5d, 0xc3); /* add rsp, 0x40; pop rbp; ret */
    CFI(function, ADVANCE(16 + (shape->shift ? PLANTED_BYTES : 0)), CFA_OFFSET(16), ADVANCE(1),
        CFA_OFFSET(8));
}

/* With frame pointers for the shapes that say so, without otherwise. */
static void make_middle(struct function *function, uint64_t inner, int shift, bool frame_pointer)
{
    if (frame_pointer) {
        CODE(function, 0x55, 0x48, 0x89, 0xe5);
        code_call(function, inner);
        CODE(function, 0x5d, 0xc3);
        return;
    }
    CODE(function, 0x53, 0x48, 0x83, 0xec, 0x20); /* push rbx; sub rsp, 0x20 */
    CODE(function, 0xbb, 0x22, 0, 0, 0);          /* mov ebx, 0x22 */
    CODE(function, 0x48, 0xc7, 0x44, 0x24, 0x18, NO_CODE & 0xff, NO_CODE >> 8, 0, 0);
    CFI(function, ADVANCE(1), CFA_OFFSET(16), RBX_AT_16, ADVANCE(4),
        CFA_OFFSET((uint8_t)(48 + shift)));
    code_call(function, inner);
    CODE(function, 0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3); /* add rsp, 0x20; pop rbx; ret */
    CFI(function, ADVANCE(30), CFA_OFFSET(16), ADVANCE(1), CFA_OFFSET(8));
}

/* No word on its stack but the return address, far up, is behind a call. */
static void make_middle_with_pointer(struct function *function, uint64_t solo)
{
    CODE(function, 0x53, 0x48, 0x83, 0xec, 0x20); /* push rbx; sub rsp, 0x20 */
    CODE(function, 0x48, 0xb8);                   /* mov rax, solo */
    add(function->code, &function->code_bytes, &solo, 8);
    CODE(function, 0x48, 0x89, 0x04, 0x24);             /* mov [rsp], rax */
    CODE(function, 0xb9, 0x80, 0x84, 0x1e, 0);          /* mov ecx, 2000000 */
    CODE(function, 0xff, 0xc9, 0x75, 0xfc);             /* dec ecx; jnz */
    CODE(function, 0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3); /* add rsp, 0x20; pop rbx; ret */
}

static void make_spinner(struct function *function, bool frame_pointer)
{
    if (frame_pointer) {
        CODE(function, 0x55, 0x48, 0x89, 0xe5);
        CODE(function, 0xb9, 0x80, 0x84, 0x1e, 0, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3);
        return;
    }
    CODE(function, 0x48, 0x83, 0xec, 0x18);       /* sub rsp, 0x18 */
    CODE(function, 0xb9, 0x80, 0x84, 0x1e, 0);    /* mov ecx, 2000000 */
    CODE(function, 0xff, 0xc9, 0x75, 0xfc);       /* dec ecx; jnz */
    CODE(function, 0x48, 0x83, 0xc4, 0x18, 0xc3); /* add rsp, 0x18; ret */
    CFI(function, ADVANCE(4), CFA_OFFSET(32), ADVANCE(13), CFA_OFFSET(8));
}

static void make_code(uint8_t *arena, const struct shape *shape)
{
    static const char *const names[FUNCTIONS] = {"outer", "middle", "inner", "solo"};
    bool frame_pointer = shape->empty || shape->none;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        functions[i].name = names[i];
        functions[i].addr = (uint64_t)(uintptr_t)(arena + i * STEP_BYTES);
    }
    make_outer(&functions[OUTER], functions[MIDDLE].addr, shape, !frame_pointer);
    if (shape->pointer)
        make_middle_with_pointer(&functions[MIDDLE], functions[SOLO].addr);
    else
        make_middle(&functions[MIDDLE], functions[INNER].addr, shape->shift, frame_pointer);
    make_spinner(&functions[INNER], frame_pointer);
    make_spinner(&functions[SOLO], frame_pointer);
    for (size_t i = 0; i < FUNCTIONS; i++)
        memcpy(arena + i * STEP_BYTES, functions[i].code, functions[i].code_bytes);
}

/* ---- The tables ---- */

static const uint8_t initial_rules[] = {0x0c, 7, 8, 0x90,
                                        1}; /* def_cfa rsp+8; return address at CFA - 8 */

static size_t put_eh_frame(struct byte_sink *sink, uint64_t place, const struct function *first,
                           size_t count, bool end, struct eh_frame_hdr_entry *entries)
{
    struct eh_cie cie = {.code_align = 1,
                         .data_align = -8,
                         .return_register = 16,
                         .instructions = initial_rules,
                         .instructions_bytes = sizeof initial_rules};
    struct eh_frame_writer writer = {sink, sink->size, place};
    size_t offset = jd_eh_frame_put_cie(&writer, &cie);
    for (size_t i = 0; i < count; i++) {
        const struct function *function = &first[i];
        size_t fde = jd_eh_frame_put_fde(&writer, offset, function->addr, function->code_bytes,
                                         function->cfi, function->cfi_bytes);
        entries[i] = (struct eh_frame_hdr_entry){function->addr, place + fde};
    }
    if (end)
        jd_eh_frame_put_end(&writer);
    return sink->size - writer.start;
}

static void put_absolute_header(struct byte_sink *sink, uint64_t place)
{
    sink_u8(sink, 1);
    sink_u8(sink, 0x0c); /* eh_frame_ptr: absolute sdata8 */
    sink_u8(sink, EH_PE_omit);
    sink_u8(sink, EH_PE_omit);
    sink_u64(sink, place);
}

/* Put header and frames for COUNT functions in the shape's order; returns the header's size. */
static size_t put_tables(struct byte_sink *sink, const struct shape *shape,
                         const struct function *first, size_t count)
{
    static uint8_t frame_bytes[1024], hdr_bytes[256];
    struct eh_frame_hdr_entry entries[FUNCTIONS];
    struct byte_sink frame = byte_sink_over(frame_bytes, sizeof frame_bytes);
    struct byte_sink hdr = byte_sink_over(hdr_bytes, sizeof hdr_bytes);
    uint64_t behind = first->addr + (first->code_bytes + 7) / 8 * 8;
    size_t table_bytes = EH_FRAME_HDR_BYTES + count * EH_FRAME_HDR_ENTRY_BYTES;
    uint64_t place = shape->one_blob       ? (uint64_t)(uintptr_t)tables
                     : shape->header_first ? behind + table_bytes
                                           : behind;
    size_t size = put_eh_frame(&frame, place, first, count, !shape->no_end, entries);
    if (shape->absolute_header)
        put_absolute_header(&hdr, place);
    else if (!shape->one_blob)
        jd_eh_frame_hdr_put(&hdr, shape->header_first ? behind : place + size, place, entries,
                            count);
    const struct byte_sink *parts[2] = {&frame, &hdr};
    for (size_t i = 0; i < 2; i++) {
        const struct byte_sink *part = parts[shape->header_first ? 1 - i : i];
        sink_bytes(sink, part->data, part->size);
    }
    return hdr.size;
}

/* ---- The records ---- */

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
    struct byte_sink size = byte_sink_over(dump.data + start + 4, 4);
    sink_u32(&size, (uint32_t)(dump.size - start));
}

static void put_unwinding_info(const struct shape *shape, const struct function *first,
                               size_t count)
{
    static uint8_t bytes[1024];
    struct byte_sink blob = byte_sink_over(bytes, sizeof bytes);
    size_t hdr_size;
    if (shape->empty) {
        sink_bytes(&blob, (const uint8_t[]){1, 0xff, 0xff, 0xff},
                   4); /* V8: version, nothing else encoded */
        sink_zeros(&blob, 16);
        hdr_size = 20;
    } else {
        hdr_size = put_tables(&blob, shape, first, count);
    }
    if (first == &functions[MIDDLE] && shape->noise)
        for (size_t i = 0; i < blob.size; i++)
            bytes[i] = (uint8_t)(i * 167 + 13);
    if (first == &functions[MIDDLE] && shape->wrong_length)
        bytes[1] = 0x7f;
    size_t start = begin_record(JIT_CODE_UNWINDING_INFO);
    sink_u64(&dump, blob.size);
    sink_u64(&dump, hdr_size);
    sink_u64(&dump, shape->empty || shape->mapped_size_0 ? 0 : blob.size);
    sink_bytes(&dump, bytes, blob.size);
    sink_align(&dump, 8);
    end_record(start);
}

static void put_load(const struct function *function, uint64_t code_index)
{
    size_t start = begin_record(JIT_CODE_LOAD);
    sink_u32(&dump, (uint32_t)getpid());
    sink_u32(&dump, (uint32_t)getpid());
    sink_u64(&dump, function->addr);
    sink_u64(&dump, function->addr);
    sink_u64(&dump, function->code_bytes);
    sink_u64(&dump, code_index);
    sink_cstr(&dump, function->name);
    sink_bytes(&dump, function->code, function->code_bytes);
    end_record(start);
}

static void put_dump(const struct shape *shape)
{
    sink_u32(&dump, JITDUMP_MAGIC);
    sink_u32(&dump, JITDUMP_FILE_VERSION);
    sink_u32(&dump, JITHEADER_BYTES);
    sink_u32(&dump, EM_X86_64);
    sink_u32(&dump, 0);
    sink_u32(&dump, (uint32_t)getpid());
    sink_u64(&dump, now_ns());
    sink_u64(&dump, 0);
    if (shape->one_blob)
        put_unwinding_info(shape, functions, FUNCTIONS);
    for (size_t i = 0; shape->blobs_before && i < FUNCTIONS; i++)
        put_unwinding_info(shape, &functions[shape->swapped ? FUNCTIONS - 1 - i : i], 1);
    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (!shape->one_blob && !shape->blobs_before && !shape->none &&
            !(shape->bare && i == MIDDLE))
            put_unwinding_info(shape, &functions[i], 1);
        put_load(&functions[i], i);
    }
}

static bool write_dump(const char *directory)
{
    char *path;
    if (asprintf(&path, "%s/jit-%d.dump", directory, (int)getpid()) < 0)
        return false;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    free(path);
    if (fd < 0 || write(fd, dump.data, dump.size) != (ssize_t)dump.size)
        return false;
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED;
}

int main(int argc, char **argv)
{
    const struct shape *shape = NULL;
    for (size_t i = 0; argc == 4 && i < sizeof shapes / sizeof shapes[0]; i++)
        if (strcmp(argv[1], shapes[i].name) == 0)
            shape = &shapes[i];
    uint8_t *arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!shape || arena == MAP_FAILED) {
        fprintf(stderr, "usage: unwind_shapes SHAPE DIR SECONDS\n");
        return 2;
    }
    dump = byte_sink_over(dump_bytes, sizeof dump_bytes);
    make_code(arena, shape);
    put_dump(shape);
    if (dump.overflow || !write_dump(argv[2]))
        return 1;
    clock_t end = clock() + (clock_t)(atof(argv[3]) * CLOCKS_PER_SEC); /* of its own time */
    while (clock() < end) {
        void (*calls[2])(void) = {(void (*)(void))(uintptr_t)functions[OUTER].addr,
                                  (void (*)(void))(uintptr_t)functions[SOLO].addr};
        calls[0]();
        calls[1]();
    }
    return 0;
}
