/* every_record: a small JIT that makes libjitdump write each kind of record that it can write.
 *
 *     PERFJIT=dump every_record [SECONDS]
 *
 *     slot   first half of the time        second half
 *       0    plain                         plain
 *       1    with_lines                    with_lines
 *       2    with_unwinding                with_unwinding
 *       3    moved                         -
 *       4    unloaded                      in_place_of_unloaded
 *       5    replaced                      in_place_of_replaced
 *       6    -                             moved
 *       7    with_inlines                  with_inlines
 *
 * The functions from slot 8 on never run: their names try the patience of whoever prints them.
 */
#include "jitdump/jitdump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    SLOT_BYTES = 64,
    SLOTS = 64,
    FIRST_ODD_SLOT = 8,
    EH_FRAME_BYTES = 48,
    EH_FRAME_HDR_BYTES = 20,
    FDE_OFF = 24,
    PC_BEGIN_OFF = 32,
};

typedef void function_code(void);

struct jit {
    struct jitdump *dump;
    uint8_t *arena;
};

static const char *const odd_names[] = {
    "",
    "say \"hello\"",
    "back\\slash",
    "two\nlines",
    "a\ttab and an escape \033[31m",
    "gr\xc3\xb6\xc3\x9f"
    "e \xf0\x9f\x98\x80",
    "not UTF-8: \xff \xc3( \xed\xa0\x80 \xc0\x80",
    "cut off \xe2\x82",
};

enum { ODD_NAMES = sizeof odd_names / sizeof odd_names[0] };

static void fail(const char *what)
{
    fprintf(stderr, "every_record: %s\n", what);
    exit(EXIT_FAILURE);
}

static void check(const struct jit *jit, int result)
{
    if (result)
        fail(jitdump_error(jit->dump));
}

/* ---- Code ---- */

static uint8_t *slot(const struct jit *jit, size_t number)
{
    return jit->arena + number * SLOT_BYTES;
}

/* A function that counts down from ROUNDS.  Returns its size. */
static size_t emit_loop(uint8_t *to, uint16_t rounds)
{
#if defined(__x86_64__) || defined(__i386__)
    uint8_t code[] = {0xb9, 0,    0, 0, 0, /* mov ecx, ROUNDS */
                      0xff, 0xc9,          /* dec ecx */
                      0x75, 0xfc,          /* jnz to the dec */
                      0xc3};               /* ret */
    memcpy(code + 1, &rounds, sizeof rounds);
#elif defined(__aarch64__)
    const uint32_t code[] = {0x52800000 | (uint32_t)rounds << 5, /* mov w0, ROUNDS */
                             0x71000400,                         /* subs w0, w0, 1 */
                             0x54ffffe1,                         /* b.ne to the subs */
                             0xd65f03c0};                        /* ret */
#elif defined(__riscv)
    const uint32_t high = (rounds + 0x800u) & 0xfffff000;
    const uint32_t code[] = {high | 0x537,                              /* lui a0 */
                             (uint32_t)(rounds - high) << 20 | 0x50513, /* addi a0 */
                             0xfff50513,                                /* addi a0, a0, -1 */
                             0xfe051ee3,                                /* bnez a0, to that */
                             0x8067};                                   /* ret */
#else
#error "no loop for this machine yet"
#endif
    memcpy(to, code, sizeof code);
    __builtin___clear_cache((char *)to, (char *)to + sizeof code);
    return sizeof code;
}

static struct jitdump_code new_code(const struct jit *jit, size_t number, const char *name)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.bytes = slot(jit, number);
    code.code_addr = (uintptr_t)code.bytes;
    code.code_size = emit_loop(slot(jit, number), (uint16_t)(30000 + number));
    return code;
}

static uint64_t load(const struct jit *jit, size_t number, const char *name)
{
    struct jitdump_code code = new_code(jit, number, name);
    uint64_t code_index;
    check(jit, jitdump_add_code(jit->dump, &code, &code_index));
    return code_index;
}

static void load_with_lines(const struct jit *jit, size_t number)
{
    struct jitdump_code code = new_code(jit, number, "with_lines");
    const struct jitdump_line lines[] = {{code.code_addr, "every_record.src", 10, 1},
                                         {code.code_addr + 4, "every_record.src", 11, 5},
                                         {code.code_addr + 8, "other.src", 3, 0}};
    code.lines = lines;
    code.line_count = sizeof lines / sizeof lines[0];
    check(jit, jitdump_add_code(jit->dump, &code, NULL));
}

/* A function that holds the body of middle() from byte 5 on, and in that the one of inner() from
 * byte 7 on, up to the return, which is its own again. */
static void load_with_inlines(const struct jit *jit, size_t number)
{
    struct jitdump_code code = new_code(jit, number, "with_inlines");
    const struct jitdump_line lines[] = {{code.code_addr, "every_record.src", 20, 1},
                                         {code.code_addr + 5, "every_record.src", 41, 5},
                                         {code.code_addr + 7, "inner.src", 31, 7},
                                         {code.code_addr + 9, "every_record.src", 22, 1}};
    const uint32_t line_inlines[] = {JITDUMP_NOT_INLINED, 0, 1, JITDUMP_NOT_INLINED};
    const struct jitdump_inline inlines[] = {
        {"middle", "every_record.src", "every_record.src", 21, 9, 40, JITDUMP_NOT_INLINED},
        {"inner", "every_record.src", "inner.src", 42, 0, 30, 0}};
    code.lines = lines;
    code.line_count = sizeof lines / sizeof lines[0];
    code.line_inlines = line_inlines;
    code.inlines = inlines;
    code.inline_count = sizeof inlines / sizeof inlines[0];
    check(jit, jitdump_add_code(jit->dump, &code, NULL));
}

/* ---- Unwinding ---- */

/* The common part for functions that save nothing and do not move the stack pointer. */
static const uint8_t cie[FDE_OFF] = {
#if defined(__x86_64__)
    20,   0,    0,  0, /* length */
    0,    0,    0,  0, /* it is a CIE */
    1,                 /* version */
    'z',  'R',  0,     /* augmentation: FDE pointers are encoded */
    1,    0x78, 16,    /* code factor 1, data factor -8, return address in column 16 */
    1,    0x1b,        /* encoded as pcrel, sdata4 */
    0x0c, 7,    8,     /* DW_CFA_def_cfa: rsp + 8 */
    0x90, 1,           /* DW_CFA_offset: column 16 at CFA - 8 */
#else
    20,   0,    0,  0,                                           /* length */
    0,    0,    0,  0,                                           /* it is a CIE */
    1,                                                           /* version */
    'z',  'R',  0,  /* augmentation: FDE pointers are encoded */
    4,    0x78, 30, /* code factor 4, data factor -8, return address in x30 */
    1,    0x1b,     /* encoded as pcrel, sdata4 */
    0x0c, 31,   0,  /* DW_CFA_def_cfa: sp + 0 */
#endif
};

static void put_i32(uint8_t *table, size_t offset, int32_t value)
{
    memcpy(table + offset, &value, sizeof value);
}

/* Fill TABLE with .eh_frame and .eh_frame_hdr as perf lays them out: behind the code, rounded up to
 * 8 bytes. */
static void fill_unwinding(uint8_t *table, int32_t code_size)
{
    int32_t text_bytes = (code_size + 7) / 8 * 8;
    static const uint8_t hdr_start[4] = {1, 0x1b, 0x03, 0x3b};
    uint8_t *hdr = table + EH_FRAME_BYTES;
    memset(table, 0, EH_FRAME_BYTES + EH_FRAME_HDR_BYTES);
    memcpy(table, cie, sizeof cie);
    put_i32(table, FDE_OFF, 16);              /* length */
    put_i32(table, FDE_OFF + 4, FDE_OFF + 4); /* back to the CIE */
    put_i32(table, PC_BEGIN_OFF, -(text_bytes + PC_BEGIN_OFF));
    put_i32(table, PC_BEGIN_OFF + 4, code_size);
    memcpy(hdr, hdr_start, sizeof hdr_start);
    put_i32(hdr, 4, -(EH_FRAME_BYTES + 4)); /* eh_frame_ptr */
    put_i32(hdr, 8, 1);                     /* fde_count */
    put_i32(hdr, 12, -(EH_FRAME_BYTES + text_bytes));
    put_i32(hdr, 16, -(EH_FRAME_BYTES - FDE_OFF));
}

static void load_with_unwinding(const struct jit *jit, size_t number)
{
    uint8_t table[EH_FRAME_BYTES + EH_FRAME_HDR_BYTES];
    struct jitdump_code code = new_code(jit, number, "with_unwinding");
    struct jitdump_unwind unwind = {table, sizeof table, EH_FRAME_HDR_BYTES, sizeof table};
    fill_unwinding(table, (int32_t)code.code_size);
    code.unwind = &unwind;
    check(jit, jitdump_add_code(jit->dump, &code, NULL));
}

/* ---- The program ---- */

/* For SECONDS of the CPU, so that on a busy machine there are as many samples. */
static void run(const struct jit *jit, const size_t *slots, size_t count, double seconds)
{
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    while (clock() < end)
        for (size_t i = 0; i < count; i++)
            ((function_code *)(uintptr_t)slot(jit, slots[i]))();
}

static void load_odd_names(const struct jit *jit)
{
    for (size_t i = 0; i < ODD_NAMES; i++)
        load(jit, FIRST_ODD_SLOT + i, odd_names[i]);
    struct jitdump_code code = new_code(jit, FIRST_ODD_SLOT + ODD_NAMES, "without_bytes");
    code.bytes = NULL;
    check(jit, jitdump_add_code(jit->dump, &code, NULL));
}

static void first_half(const struct jit *jit, double seconds, uint64_t *moved, uint64_t *unloaded)
{
    static const size_t slots[] = {0, 1, 2, 3, 4, 5, 7};
    load(jit, 0, "plain");
    load_with_lines(jit, 1);
    load_with_unwinding(jit, 2);
    *moved = load(jit, 3, "moved");
    *unloaded = load(jit, 4, "unloaded");
    load(jit, 5, "replaced");
    load_odd_names(jit);
    load_with_inlines(jit, 7);
    run(jit, slots, sizeof slots / sizeof slots[0], seconds);
}

static void second_half(const struct jit *jit, double seconds, uint64_t moved, uint64_t unloaded)
{
    static const size_t slots[] = {0, 1, 2, 4, 5, 6, 7};
    size_t bytes = emit_loop(slot(jit, 6), 30003);
    check(jit, jitdump_move_code(jit->dump, moved, (uintptr_t)slot(jit, 3), (uintptr_t)slot(jit, 6),
                                 bytes));
    check(jit, jitdump_unload_code(jit->dump, unloaded, (uintptr_t)slot(jit, 4), bytes));
    load(jit, 4, "in_place_of_unloaded");
    load(jit, 5, "in_place_of_replaced");
    run(jit, slots, sizeof slots / sizeof slots[0], seconds);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.6;
    struct jit jit;
    uint64_t moved, unloaded;
    jit.arena = mmap(NULL, SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (jit.arena == MAP_FAILED)
        fail("there is no memory to write and run code in");
    check(&jit, jitdump_open(&jit.dump, NULL));
    first_half(&jit, seconds / 2, &moved, &unloaded);
    second_half(&jit, seconds / 2, moved, unloaded);
    if (jitdump_close(jit.dump)) /* which frees the text, too */
        fail("jitdump_close failed");
    return EXIT_SUCCESS;
}
