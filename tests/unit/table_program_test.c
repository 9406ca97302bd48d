/* The programs by which other unwinders search a function table, run operation by operation, while
 * the table is changed between any two of them. */
#include "tests/unit/jitunwind_test.h"

#include "jitunwind/arena_list.h"

#include <stdbool.h>
#include <sys/mman.h>

#if defined(__x86_64__)

/* Have the linker take libgcc's unwinder in, as it does for any program in C++. */
extern void __register_frame(void *eh_frame);
static void (*volatile const libgcc)(void *eh_frame) = __register_frame;

enum { STACK = 64, PAGE = 4096, FP_NOW = 0x10000 };

/* The stack that is unwound: two words below the boundary of two pages, and two above it. */
static _Alignas(PAGE) uint8_t stack_pages[2 * PAGE];
static uint64_t sp_now;

static uint64_t page_boundary(void)
{
    return (uint64_t)(uintptr_t)stack_pages + PAGE;
}

struct evaluation {
    const uint8_t *at, *end;
    uint64_t stack[STACK];
    unsigned depth;
    uint64_t ip;    /* register 16 */
    bool is_signed; /* as libgcc compares; LLVM's libunwind: not */
};

static uint64_t take(struct evaluation *run, unsigned bytes)
{
    uint64_t value = 0;
    memcpy(&value, run->at, bytes);
    run->at += bytes;
    return value;
}

static void push(struct evaluation *run, uint64_t value)
{
    assert_true(run->depth < STACK);
    run->stack[run->depth++] = value;
}

static uint64_t pop(struct evaluation *run)
{
    assert_true(run->depth > 0);
    return run->stack[--run->depth];
}

static uint64_t picked(const struct evaluation *run, unsigned from_top)
{
    assert_true(from_top < run->depth);
    return run->stack[run->depth - 1 - from_top];
}

static uint64_t register_now(const struct evaluation *run, unsigned reg)
{
    return reg == JITDUMP_RIP ? run->ip : reg == JITDUMP_RSP ? sp_now : FP_NOW;
}

static void load_from(struct evaluation *run, unsigned bytes)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)(uintptr_t)pop(run), bytes);
    push(run, value);
}

static uint64_t compared(const struct evaluation *run, unsigned opcode, uint64_t left,
                         uint64_t right)
{
    const bool less = run->is_signed ? (int64_t)left < (int64_t)right : left < right;
    switch (opcode) {
    case 0x29: /* eq */
        return left == right;
    case 0x2c: /* le */
        return less || left == right;
    case 0x2d: /* lt */
        return less;
    default: /* ne */
        assert_int_equal(opcode, 0x2e);
        return left != right;
    }
}

static uint64_t combined(const struct evaluation *run, unsigned opcode, uint64_t left,
                         uint64_t right)
{
    switch (opcode) {
    case 0x1a:
        return left & right;
    case 0x1c:
        return left - right;
    case 0x1e:
        return left * right;
    case 0x22:
        return left + right;
    case 0x24:
        return left << right;
    case 0x25:
        return left >> right;
    case 0x26:
        return (uint64_t)((int64_t)left >> right);
    default:
        return compared(run, opcode, left, right);
    }
}

static void branch_by(struct evaluation *run, bool taken)
{
    int16_t by = (int16_t)take(run, sizeof by);
    if (taken)
        run->at += by;
}

static void rotate(struct evaluation *run)
{
    uint64_t first = pop(run), second = pop(run), third = pop(run);
    push(run, first);
    push(run, third);
    push(run, second);
}

/* Returns false for what takes two values and pushes one. */
static bool step_alone(struct evaluation *run, unsigned opcode)
{
    uint64_t top;
    if (opcode >= 0x30 && opcode < 0x50)
        push(run, opcode - 0x30);
    else if (opcode >= 0x70 && opcode < 0x90)
        push(run,
             register_now(run, opcode - 0x70) + (uint64_t)((int64_t)(take(run, 1) << 57) >> 57));
    else if (opcode == 0x06 || opcode == 0x94)
        load_from(run, opcode == 0x06 ? 8 : (unsigned)take(run, 1));
    else if (opcode == 0x08 || opcode == 0x0a || opcode == 0x0e)
        push(run, take(run, opcode == 0x08 ? 1 : opcode == 0x0a ? 2 : 8));
    else if (opcode == 0x12 || opcode == 0x14 || opcode == 0x15)
        push(run, picked(run, opcode == 0x15 ? (unsigned)take(run, 1) : opcode == 0x14));
    else if (opcode == 0x13)
        pop(run);
    else if (opcode == 0x16) {
        top = pop(run);
        uint64_t below = pop(run);
        push(run, top);
        push(run, below);
    } else if (opcode == 0x17)
        rotate(run);
    else if (opcode == 0x23) {
        top = pop(run);
        push(run, top + take(run, 1));
    } else if (opcode == 0x28 || opcode == 0x2f)
        branch_by(run, opcode == 0x2f || pop(run));
    else
        return false;
    return true;
}

static void step(struct evaluation *run)
{
    const unsigned opcode = (unsigned)take(run, 1);
    if (step_alone(run, opcode))
        return;
    uint64_t right = pop(run), left = pop(run);
    push(run, combined(run, opcode, left, right));
}

/* Of the CFA: the first instruction of the FDE.  The call in front of PC + 1 has been made, and
 * returned to there. */
static void begin(struct evaluation *run, const struct jitunwind *arena, uint64_t pc,
                  bool is_signed)
{
    enum { FDE_HEAD = 24 };
    const uint8_t *at = (const uint8_t *)arena->runtime_entry + FDE_HEAD;
    assert_int_equal(at[0], CFA_def_cfa_expression);
    const unsigned bytes = (at[1] & 0x7fu) | (unsigned)at[2] << 7;
    *run = (struct evaluation){
        .at = at + 3, .end = at + 3 + bytes, .ip = pc + 1, .is_signed = is_signed};
    sp_now = page_boundary() + 16;
    memcpy((void *)(uintptr_t)(sp_now - 8), &run->ip, sizeof run->ip);
}

/* ---- The table ---- */

enum { PASSER = 64 * 5, NEAR = PASSER + 32, FUNCTION = PASSER + 36, FAR = 64 * 900 };

static struct jitunwind *open_with_functions(void)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind *arena;
    options.start = ARENA_START;
    options.bytes = ARENA_BYTES;
    options.flags = JITUNWIND_EXCEPTIONS;
    assert_int_equal(jitunwind_open(&arena, &options), 0);
    assert_int_equal(add_framed(arena, ARENA_START + FUNCTION, 24, NULL), 0);
    assert_int_equal(add_plain(arena, ARENA_START + PASSER, 24, NULL), 0);
    return arena;
}

/* The number of what stands in front of the function in its list is used for another at AT. */
static void change(struct jitunwind *arena, uint64_t at)
{
    const struct table_function *passer =
        ju_function_table_find(&arena->table, ARENA_START + PASSER);
    assert_int_equal(jitunwind_remove(arena, ARENA_START + PASSER), 0);
    assert_int_equal(add_plain(arena, ARENA_START + at, 4, NULL), 0);
    assert_ptr_equal(ju_function_table_find(&arena->table, ARENA_START + at), passer);
}

/* Change the table before operation WHEN.  Returns whether there was one. */
static bool search(uint64_t at, unsigned when, bool is_signed)
{
    struct jitunwind *arena = open_with_functions();
    struct evaluation run;
    unsigned steps = 0;
    begin(&run, arena, ARENA_START + FUNCTION + 1, is_signed);
    for (; run.at != run.end; steps++) {
        if (steps == when)
            change(arena, at);
        step(&run);
    }
    assert_int_equal(run.depth, 1);
    assert_int_equal(run.stack[0], sp_now + 16);
    jitunwind_close(arena);
    return steps > when;
}

static void search_at_each(uint64_t at)
{
    for (unsigned is_signed = 0; is_signed < 2; is_signed++) {
        unsigned when = 0;
        while (search(at, when, is_signed))
            when++;
        assert_true(when > 50);
    }
}

/* Its list goes on elsewhere now. */
static void test_a_number_used_in_another_granule(void **state)
{
    (void)state;
    search_at_each(FAR);
}

/* With its size from before it would have the program counter. */
static void test_a_number_used_right_in_front(void **state)
{
    (void)state;
    search_at_each(NEAR);
}

static void test_no_function_ends(void **state)
{
    struct jitunwind *arena = open_with_functions();
    struct evaluation run;
    (void)state;
    for (uint64_t at = 0; at < ARENA_BYTES; at += at < 1024 ? 1 : 4099) {
        begin(&run, arena, ARENA_START + at, at & 1);
        while (run.at != run.end)
            step(&run);
        assert_int_equal(run.depth, 1);
        if (at < FUNCTION || at >= FUNCTION + 24)
            assert_int_equal(run.stack[0], FP_NOW + 16);
    }
    jitunwind_close(arena);
}

/* ---- Whether the instruction is the call's ---- */

/* From CHANGE on the CFA is not 8 but 24 bytes above the stack pointer. */
static int add_widening(struct jitunwind *arena, uint64_t addr, uint64_t bytes, uint64_t change)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    jitdump_cfi_def_cfa_offset(cfi, change, 24);
    return add_described(arena, cfi, addr, bytes, NULL);
}

enum { CHANGE = 20 };

/* The distance from the stack pointer to the CFA.  Register 16 is at the place where it changes:
 * behind CODE, and AT bytes behind the begin of two pages.  The stack pointer is SP.  BELOW, unless
 * it is 0, stands where a call leaves its return address.  Code in another page than that byte
 * can't be read. */
static uint64_t distance(const void *code, size_t code_bytes, size_t at, uint64_t sp,
                         uint64_t below)
{
    static _Alignas(PAGE) uint8_t pages[2 * PAGE];
    uint8_t *function = pages + at - CHANGE;
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind *arena;
    struct evaluation run;
    memset(function, 0x90, 2 * CHANGE);
    memcpy(function + CHANGE - code_bytes, code, code_bytes);
    options.start = (uint64_t)(uintptr_t)pages;
    options.bytes = sizeof pages;
    options.flags = JITUNWIND_EXCEPTIONS;
    assert_int_equal(jitunwind_open(&arena, &options), 0);
    assert_int_equal(add_widening(arena, (uint64_t)(uintptr_t)function, 2 * CHANGE, CHANGE), 0);
    begin(&run, arena, (uint64_t)(uintptr_t)function + CHANGE - 1, true);
    sp_now = sp;
    memcpy((void *)(uintptr_t)(page_boundary() + 8), below ? &below : &run.ip, sizeof below);
    assert_int_equal(mprotect(pages, PAGE, at < PAGE ? PROT_READ | PROT_WRITE : PROT_NONE), 0);
    while (run.at != run.end)
        step(&run);
    assert_int_equal(mprotect(pages, PAGE, PROT_READ | PROT_WRITE), 0);
    jitunwind_close(arena);
    return run.stack[0] - sp_now;
}

static uint64_t distance_at_20(const void *code, size_t code_bytes, uint64_t sp, uint64_t below)
{
    return distance(code, code_bytes, 64 + CHANGE, sp, below);
}

static void test_the_return_address_tells_a_call_from_an_interruption(void **state)
{
    (void)state;
    assert_int_equal(distance_at_20("", 0, page_boundary() + 16, 0), 8);
    assert_int_equal(distance_at_20("", 0, page_boundary() + 16, 1), 24);
}

/* Nothing below the stack pointer is read then. */
static void test_where_the_stack_begins_a_page_the_code_tells(void **state)
{
    static const struct {
        const char *code;
        size_t bytes;
    } calls[] = {{"\xff\xd0", 2},
                 {"\xff\x13", 2},
                 {"\xff\xd3", 2},
                 {"\xff\x14\xd8", 3},
                 {"\xff\x50\x08", 3},
                 {"\xff\x54\x24\x08", 4},
                 {"\xe8\0\0\0\0", 5},
                 {"\xff\x15\0\0\0\0", 6},
                 {"\xff\x93\0\1\0\0", 6},
                 {"\xff\x94\x24\0\1\0\0", 7},
                 {"\xff\x14\x25\0\0\0\0", 7}};
    /* Among them a call, and what is no call's length behind it: call *0x30(%rdi); pop; pop. */
    static const struct {
        const char *code;
        size_t bytes;
    } others[] = {{"\x55", 1},
                  {"\x48\x83\xec\x18", 4},
                  {"\xff\xe0", 2},
                  {"\xff\x73\x08", 3},
                  {"\xff\xd0\x58", 3},
                  {"\xff\x50\x08\x58", 4},
                  {"\xff\x57\x30\x41\x58\x59", 6},
                  {"\xff\x57\x30\x41\x59\x41\x58", 7}};
    (void)state;
    assert_int_equal(mprotect(stack_pages, PAGE, PROT_NONE), 0);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        assert_int_equal(distance_at_20(calls[i].code, calls[i].bytes, page_boundary(), 1), 8);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (size_t in_page = 0; in_page < 10; in_page++)
            assert_int_equal(
                distance(calls[i].code, calls[i].bytes, PAGE + in_page, page_boundary(), 1),
                in_page >= calls[i].bytes ? 8 : 24);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(distance_at_20(others[i].code, others[i].bytes, page_boundary(), 1), 24);
    assert_int_equal(mprotect(stack_pages, PAGE, PROT_READ | PROT_WRITE), 0);
}

int main(void)
{
    assert_non_null(libgcc);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_return_address_tells_a_call_from_an_interruption),
        cmocka_unit_test(test_where_the_stack_begins_a_page_the_code_tells),
        cmocka_unit_test(test_a_number_used_in_another_granule),
        cmocka_unit_test(test_a_number_used_right_in_front),
        cmocka_unit_test(test_no_function_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
