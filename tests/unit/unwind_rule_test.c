/* Steps from frame to frame: by short rules, and without a table by what the instructions tell; and
 * what must end a stack. */
#include "injector/unwind/unwind_rule.h"
#include "tests/unit/scratch.h"

#include <elf.h>

enum { STACK = 0x7000, WORDS = 32, CODE = 0x1000 };
enum { RBX = 3, RBP = 6, RSP = 7, RA = 16 };

/* A stack of words at STACK, and a step over it. */
struct world {
    uint64_t words[WORDS];
    struct user_stack stack;
    struct unwind_budget budget;
    struct unwind_frame frame;
    struct unwind_step step;
};

/* Addresses below CODE are nothing; odd ones are not behind a call. */
static bool returns_to(void *context, uint64_t addr)
{
    (void)context;
    return addr >= CODE && addr % 2 == 0;
}

static void make_world(struct world *world, uint16_t elf_mach)
{
    *world = (struct world){.budget = {1000}};
    world->stack = (struct user_stack){(const uint8_t *)world->words, STACK, sizeof world->words};
    world->step = (struct unwind_step){.machine = machine_numbered(elf_mach),
                                       .stack = &world->stack,
                                       .budget = &world->budget,
                                       .returns_to = returns_to,
                                       .cfa = STACK};
    world->frame = (struct unwind_frame){.pc = CODE, .exact = true, .innermost = true};
    unwind_frame_set(&world->frame, world->step.machine->sp, STACK);
    unwind_frame_set(&world->frame, world->step.machine->fp, STACK + 64);
}

/* CFA = register + offset, return address at CFA - 8, rbp at CFA - 16 if saved. */
static struct unwind_rule rule_of(uint8_t reg, int32_t offset, bool saved)
{
    struct unwind_rule rule = {.kind = RULE_SHORT, .cfa_register = reg, .cfa_offset = offset};
    for (size_t i = 0; i < UNWIND_SAVED; i++)
        rule.slots[i] = SLOT_SAME;
    rule.slots[0] = -1;
    if (saved)
        rule.slots[1] = -2;
    return rule;
}

/* ---- By rules ---- */

static void test_rule(void **state)
{
    struct world world;
    (void)state;
    make_world(&world, EM_X86_64);
    world.words[2] = 0x4444;
    world.words[3] = CODE + 2;
    const struct unwind_rule rule = rule_of(RSP, 32, true);
    assert_int_equal(unwind_by_rule(&world.step, &rule, &world.frame), UNWIND_CALLER);
    assert_int_equal(world.frame.pc, CODE + 2);
    assert_int_equal(world.frame.registers[RSP], STACK + 32);
    assert_int_equal(world.frame.registers[RBP], 0x4444);
    assert_false(world.frame.exact);
}

/* In an epilogue tables go on saying where registers were saved, below the stack pointer. */
static void test_popped_register_is_kept(void **state)
{
    struct world world;
    (void)state;
    make_world(&world, EM_X86_64);
    world.words[0] = CODE + 2;
    const struct unwind_rule rule = rule_of(RSP, 8, true);
    assert_int_equal(unwind_by_rule(&world.step, &rule, &world.frame), UNWIND_CALLER);
    assert_int_equal(world.frame.registers[RBP], STACK + 64);
}

static void expect_step(int32_t offset, uint64_t word, enum unwind_result wanted)
{
    struct world world;
    make_world(&world, EM_X86_64);
    if (offset > 0 && offset / 8 <= WORDS)
        world.words[offset / 8 - 1] = word;
    const struct unwind_rule rule = rule_of(RSP, offset, false);
    assert_int_equal(unwind_by_rule(&world.step, &rule, &world.frame), wanted);
}

static void test_ends(void **state)
{
    (void)state;
    expect_step(8 * WORDS, CODE, UNWIND_CALLER);
    expect_step(8 * WORDS + 8, CODE, UNWIND_CUT);
    expect_step(-8, CODE, UNWIND_WRONG); /* a stack that goes down */
    expect_step(16, 0, UNWIND_END);
}

/* A frame that has called another has at least a return address. */
static void test_stack_that_stands_still(void **state)
{
    struct world world;
    (void)state;
    make_world(&world, EM_X86_64);
    const struct unwind_rule rule = rule_of(RSP, 0, false);
    world.frame.innermost = false;
    assert_int_equal(unwind_by_rule(&world.step, &rule, &world.frame), UNWIND_WRONG);
}

/* A row may have a rule of the stack pointer's own; by that the stack must not go down either. */
static void test_stack_pointer_of_its_own(void **state)
{
    const uint64_t places[] = {STACK + 32, STACK - 8, STACK + 8};
    const enum unwind_result wanted[] = {UNWIND_CALLER, UNWIND_WRONG, UNWIND_CALLER};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct world world;
        make_world(&world, EM_X86_64);
        world.words[0] = CODE;
        world.words[1] = places[i];
        struct cfi_row row = {.cfa_register = RSP, .return_register = RA};
        row.cfa = (struct register_rule){.kind = REGISTER_IS_OFFSET, .offset = 16};
        row.registers[RA] = (struct register_rule){.kind = REGISTER_AT_OFFSET, .offset = -16};
        row.registers[RSP] = (struct register_rule){.kind = REGISTER_AT_OFFSET, .offset = -8};
        world.frame.innermost = false;
        assert_int_equal(unwind_by_row(&world.step, &row, &world.frame), wanted[i]);
        row.signal_frame = true; /* which may have interrupted another stack */
        make_world(&world, EM_X86_64);
        world.words[0] = CODE;
        world.words[1] = places[i];
        assert_int_equal(unwind_by_row(&world.step, &row, &world.frame), UNWIND_CALLER);
    }
}

static void test_undefined_return_address_is_the_end(void **state)
{
    struct world world;
    (void)state;
    make_world(&world, EM_X86_64);
    struct unwind_rule rule = rule_of(RSP, 8, false);
    rule.slots[0] = SLOT_UNDEFINED;
    assert_int_equal(unwind_by_rule(&world.step, &rule, &world.frame), UNWIND_END);
}

/* aarch64: the innermost function's return address may be in x30 alone, and signed. */
static void test_link_register(void **state)
{
    struct world world;
    (void)state;
    make_world(&world, EM_AARCH64);
    unwind_frame_set(&world.frame, 30, CODE + 8 + (UINT64_C(0x5a) << 48));
    struct unwind_rule rule = rule_of(31, 0, false);
    rule.slots[0] = SLOT_SAME;
    assert_int_equal(unwind_by_rule(&world.step, &rule, &world.frame), UNWIND_CALLER);
    assert_int_equal(world.frame.pc, CODE + 8);
    assert_int_equal(unwind_by_rule(&world.step, &rule, &world.frame), UNWIND_WRONG);
}

/* ---- Without a table ---- */

static enum unwind_result step_by(struct world *world, enum code_place place)
{
    const struct unwind_rule rule = {.kind = RULE_PLACE, .place = (uint8_t)place};
    return unwind_by_place(&world->step, &rule, &world->frame);
}

static void expect_place(enum code_place place, bool innermost, uint64_t pc)
{
    struct world world;
    make_world(&world, EM_X86_64);
    world.frame.innermost = world.frame.exact = innermost;
    world.words[0] = CODE + 10; /* on top of the stack */
    world.words[1] = CODE + 20; /* behind what was pushed */
    world.words[9] = CODE + 30; /* behind the frame pointer */
    assert_int_equal(step_by(&world, place), UNWIND_CALLER);
    assert_int_equal(world.frame.pc, CODE + pc);
}

static void test_places(void **state)
{
    (void)state;
    expect_place(PLACE_IN_FRAME, true, 30);
    expect_place(PLACE_BEFORE, true, 10);
    expect_place(PLACE_PUSHED, true, 20);
    expect_place(PLACE_FRAMELESS, true, 10);
}

/* What stands between the stack pointer and the frame record may be a caller's return address:
 * then the frame pointer is that caller's, and it would be left out. */
static void test_the_frame_pointer_of_a_caller(void **state)
{
    struct world world;
    (void)state;
    for (int word = 0; word <= 7; word += 7) {
        make_world(&world, EM_X86_64);
        world.frame.innermost = false;
        world.words[word] = CODE + 10;
        world.words[9] = CODE + 30;
        struct unwind_rule rule = rule_of(RSP, 32, false); /* leads nowhere */
        world.words[3] = CODE + 11;
        rule.followed = true;
        rule.place = PLACE_FRAMELESS;
        assert_int_equal(unwind_by_place(&world.step, &rule, &world.frame), UNWIND_WRONG);
        assert_false(world.step.doubted);
        assert_int_equal(world.frame.pc, CODE);
        assert_int_equal(step_by(&world, word ? PLACE_UNKNOWN : PLACE_FRAMELESS), UNWIND_CALLER);
        assert_true(world.step.doubted);
        assert_int_equal(world.frame.pc, CODE + 30);
    }
    for (int place = PLACE_UNKNOWN; place <= PLACE_FRAMELESS; place++) {
        make_world(&world, EM_X86_64);
        world.frame.innermost = false;
        world.words[0] = world.words[7] = CODE + 11; /* is not behind a call */
        world.words[9] = CODE + 30;
        assert_int_equal(step_by(&world, (enum code_place)place), UNWIND_CALLER);
        assert_int_equal(world.frame.pc, CODE + 30);
        assert_false(world.step.doubted);
    }
}

/* aarch64: a function that has pushed nothing has its return address in x30. */
static void test_the_frame_pointer_of_a_caller_of_a_leaf(void **state)
{
    struct world world;
    (void)state;
    for (int leaf = 0; leaf < 2; leaf++) {
        make_world(&world, EM_AARCH64);
        unwind_frame_set(&world.frame, 30, CODE + 10 + !leaf);
        world.words[9] = CODE + 30;
        assert_int_equal(step_by(&world, PLACE_UNKNOWN), UNWIND_CALLER);
        assert_int_equal(world.step.doubted, leaf);
    }
}

/* Code that was followed is believed if it leads behind a call. */
static void test_followed_code(void **state)
{
    struct world world;
    struct unwind_rule rule = rule_of(RSP, 24, false);
    (void)state;
    rule.kind = RULE_PLACE;
    rule.place = PLACE_FRAMELESS;
    rule.followed = true;
    rule.slots[1] = SLOT_LOST;
    for (int right = 0; right < 2; right++) {
        make_world(&world, EM_X86_64);
        world.frame.innermost = false;
        world.words[0] = CODE + 11;
        world.words[2] = CODE + 40 + !right;
        world.words[9] = CODE + 30;
        assert_int_equal(unwind_by_place(&world.step, &rule, &world.frame), UNWIND_CALLER);
        assert_int_equal(world.frame.pc, right ? CODE + 40 : CODE + 30);
        assert_int_equal(unwind_frame_knows(&world.frame, RBP), !right);
        assert_int_equal(world.step.cfa, right ? STACK + 24 : STACK + 80);
    }
}

/* What is on top of the stack may be anything: only what stands behind a call is a return
 * address. */
static void test_only_behind_calls(void **state)
{
    struct world world;
    (void)state;
    make_world(&world, EM_X86_64);
    world.words[0] = CODE + 11;
    world.words[9] = CODE + 30;
    assert_int_equal(step_by(&world, PLACE_FRAMELESS), UNWIND_CALLER);
    assert_int_equal(world.frame.pc, CODE + 30);
    world.words[9] = CODE + 31;
    make_world(&world, EM_X86_64);
    world.words[9] = CODE + 31;
    assert_int_equal(step_by(&world, PLACE_IN_FRAME), UNWIND_WRONG);
}

static bool begins_at(void *context, uint64_t addr)
{
    (void)context;
    return addr == CODE + 31;
}

/* A frame that V8's deoptimizer made goes on at the start of a function, if that is known. */
static void test_a_frame_that_was_made(void **state)
{
    struct world world;
    (void)state;
    make_world(&world, EM_X86_64);
    world.step.begins_at = begins_at;
    world.words[9] = CODE + 31;
    assert_int_equal(step_by(&world, PLACE_IN_FRAME), UNWIND_CALLER);
    assert_int_equal(world.frame.pc, CODE + 31);
    assert_true(world.frame.exact);
    assert_false(world.frame.innermost);
    make_world(&world, EM_X86_64);
    world.step.begins_at = begins_at;
    world.words[9] = CODE + 33;
    assert_int_equal(step_by(&world, PLACE_IN_FRAME), UNWIND_WRONG);
}

/* Frame pointers that lead in a circle, or down, or nowhere. */
static void test_cyclic_frames(void **state)
{
    struct world world;
    (void)state;
    make_world(&world, EM_X86_64);
    world.words[8] = STACK + 64;
    world.words[9] = CODE + 30;
    assert_int_equal(step_by(&world, PLACE_IN_FRAME), UNWIND_CALLER);
    assert_int_equal(step_by(&world, PLACE_IN_FRAME), UNWIND_WRONG);
    for (uint64_t fp = STACK - 16; fp < STACK; fp += 8) {
        make_world(&world, EM_X86_64);
        unwind_frame_set(&world.frame, RBP, fp);
        assert_int_equal(step_by(&world, PLACE_IN_FRAME), UNWIND_WRONG);
    }
    make_world(&world, EM_X86_64);
    unwind_frame_set(&world.frame, RBP, STACK + 8 * WORDS);
    assert_int_equal(step_by(&world, PLACE_IN_FRAME), UNWIND_CUT);
    unwind_frame_set(&world.frame, RBP, UINT64_MAX - 7);
    assert_int_equal(step_by(&world, PLACE_IN_FRAME), UNWIND_WRONG);
    unwind_frame_set(&world.frame, RBP,
                     0); /* as when a thread begins, but here is no proof of it */
    assert_int_equal(step_by(&world, PLACE_IN_FRAME), UNWIND_WRONG);
    make_world(&world, EM_X86_64);
    assert_int_equal(step_by(&world, PLACE_IN_FRAME), UNWIND_END);
}

/* ---- Instructions ---- */

static enum code_place place_of(const char *hex, size_t offset, bool calls)
{
    uint8_t code[64];
    size_t size = 0;
    for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2 + (hex[2] == ' '))
        code[size++] = (uint8_t)byte;
    return code_place_of(machine_numbered(EM_X86_64), code, size, offset, calls);
}

static void test_prologues(void **state)
{
    /* test; push rbp; mov rbp,rsp; push rsi; call; leave; ret */
    static const char code[] = "85c0 55 4889e5 56 e800000000 c9 c3";
    static const enum code_place places[] = {
        [0] = PLACE_BEFORE,   [2] = PLACE_BEFORE,    [3] = PLACE_PUSHED, [6] = PLACE_IN_FRAME,
        [7] = PLACE_IN_FRAME, [12] = PLACE_IN_FRAME, [13] = PLACE_BEFORE};
    static const size_t offsets[] = {0, 2, 3, 6, 7, 12, 13};
    (void)state;
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++)
        assert_int_equal(place_of(code, offsets[i], false), places[offsets[i]]);
    assert_int_equal(place_of(code, 11, true), PLACE_IN_FRAME);
    assert_int_equal(place_of("4883ec18 e800000000 c3", 4, false), PLACE_FRAMELESS);
    assert_int_equal(place_of("55 488bec 90 c3", 4, false), PLACE_IN_FRAME);
    assert_int_equal(place_of("55 55 4889e5", 1, false), PLACE_BEFORE);
    /* push rbp; mov rsi,[rsi]; mov rbp,rsp; ret: gcc */
    assert_int_equal(place_of("55 488b36 4889e5 c3", 0, false), PLACE_BEFORE);
    assert_int_equal(place_of("55 488b36 4889e5 c3", 1, false), PLACE_PUSHED);
    assert_int_equal(place_of("55 488b36 4889e5 c3", 4, false), PLACE_PUSHED);
    assert_int_equal(place_of("55 488b36 4889e5 90 c3", 7, false), PLACE_IN_FRAME);
    assert_int_equal(place_of("488b36 4889e5 90 c3", 6, false), PLACE_FRAMELESS);
    assert_int_equal(code_place_of(machine_numbered(EM_X86_64), NULL, 0, 0, false), PLACE_UNKNOWN);
}

/* gcc -O2 puts what is left to do between pop rbp and ret. */
static void test_moves_between_the_frames_end_and_the_return(void **state)
{
    /* push rbp; movslq; mov rbp,rsp; call; pop rbp; add rax,1; mov [rip+n],rax; ret */
    static const char code[] = "55 4863ff 4889e5 e8a4ffffff 5d 4883c001 48890518290100 c3";
    (void)state;
    assert_int_equal(place_of(code, 7, false), PLACE_IN_FRAME);
    assert_int_equal(place_of(code, 12, false), PLACE_IN_FRAME);
    assert_int_equal(place_of(code, 13, false), PLACE_BEFORE);
    assert_int_equal(place_of(code, 17, false), PLACE_BEFORE);
    assert_int_equal(place_of(code, 24, false), PLACE_BEFORE);
    /* As debugger_runtimes.bats has them for gdb: of perfjit_gdb.py the same is asked. */
    static const char popping[] = "55 4889e5 b801000000 5d 4883c001 4863ff 488d1438 0fb6c0 0f28c1 "
                                  "4c892540000000 f3c3";
    static const char leaving[] =
        "55 4889e5 4883ec10 bf01000000 c9 89f8 41bd02000000 4189c5 c20000";
    static const size_t after_pop[] = {10, 14, 17, 21, 24, 27, 34},
                        after_leave[] = {14, 16, 22, 25};
    for (size_t i = 0; i < sizeof after_pop / sizeof after_pop[0]; i++)
        assert_int_equal(place_of(popping, after_pop[i], false), PLACE_BEFORE);
    for (size_t i = 0; i < sizeof after_leave / sizeof after_leave[0]; i++)
        assert_int_equal(place_of(leaving, after_leave[i], false), PLACE_BEFORE);
    assert_int_equal(place_of(popping, 9, false), PLACE_IN_FRAME);
    assert_int_equal(place_of(leaving, 13, false), PLACE_IN_FRAME);
    /* lea rsp,[rbp-8], a call, a jump and another register's pop are not passed over. */
    assert_int_equal(place_of("55 4889e5 488d65f8 5d c3", 4, false), PLACE_IN_FRAME);
    assert_int_equal(place_of("55 4889e5 e800000000 c3", 4, false), PLACE_IN_FRAME);
    assert_int_equal(place_of("55 4889e5 eb00 c3", 4, false), PLACE_IN_FRAME);
    assert_int_equal(place_of("55 4889e5 5b c3", 4, false), PLACE_IN_FRAME);
}

static size_t read_hex(const char *hex, uint8_t code[32])
{
    size_t size = 0;
    for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2)
        code[size++] = (uint8_t)byte;
    return size;
}

static bool ends_in_call(uint16_t elf_mach, const char *hex)
{
    uint8_t code[32];
    size_t size = read_hex(hex, code);
    return code_ends_in_call(machine_numbered(elf_mach), code, size);
}

static void test_calls(void **state)
{
    static const char *const calls[] = {
        "e811223344", "ffd0",           "41ffd2",           "ff10",
        "ff5008",     "ff9011223344",   "ff1511223344",     "ff14c8",
        "ff54c808",   "ff94c811223344", "41ff94c911223344", "ff142511223344"};
    static const char *const others[] = {"",           "c3",         "90", "ffe0", "ff2511223344",
                                         "e911223344", "9090909090", "ff"};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (!ends_in_call(EM_X86_64, calls[i]))
            fail_msg("%s is a call", calls[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (ends_in_call(EM_X86_64, others[i]))
            fail_msg("%s is no call", others[i]);
    assert_true(ends_in_call(EM_AARCH64, "00000094"));  /* bl */
    assert_true(ends_in_call(EM_AARCH64, "00013fd6"));  /* blr x8 */
    assert_true(ends_in_call(EM_AARCH64, "1f093fd6"));  /* blraaz x8 */
    assert_false(ends_in_call(EM_AARCH64, "c0035fd6")); /* ret */
    assert_false(ends_in_call(EM_AARCH64, "00011fd6")); /* br x8 */
}

static size_t padding(uint16_t elf_mach, const char *hex)
{
    uint8_t code[32];
    size_t size = read_hex(hex, code);
    return code_padding_bytes(machine_numbered(elf_mach), code, size);
}

static void test_padding(void **state)
{
    (void)state;
    assert_int_equal(padding(EM_X86_64, "c3"), 0);
    assert_int_equal(padding(EM_X86_64, "90c3"), 1);
    assert_int_equal(padding(EM_X86_64, "6690c3"), 2);
    assert_int_equal(padding(EM_X86_64, "0f1f00c3"), 3);
    assert_int_equal(padding(EM_X86_64, "0f1f4000c3"), 4);
    assert_int_equal(padding(EM_X86_64, "0f1f440000c3"), 5);
    assert_int_equal(padding(EM_X86_64, "660f1f8400000000000f1f8000000000f3c3"), 16);
    assert_int_equal(padding(EM_X86_64, "66662e0f1f8400000000006690c3"), 13);
    assert_int_equal(padding(EM_X86_64, "4190c3"), 0);   /* xchg r8,rax */
    assert_int_equal(padding(EM_X86_64, "0f1f8000"), 0); /* cut short */
    assert_int_equal(padding(EM_X86_64, "9090"), 0);     /* nothing is known of what follows */
    assert_int_equal(padding(EM_X86_64, "90cccc"), 1);
    assert_int_equal(padding(EM_AARCH64, "1f2003d51f2003d5c0035fd6"), 8);
    assert_int_equal(padding(EM_AARCH64, "c0035fd6"), 0);
    assert_int_equal(padding(EM_AARCH64, "1f2003d5"), 0);
}

static bool is_signal_return(uint16_t elf_mach, const uint8_t *code, size_t size)
{
    return code_is_signal_return(machine_numbered(elf_mach), code, size);
}

static void test_signal_returns(void **state)
{
    static const uint8_t glibc[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
    static const uint8_t other_call[] = {0x48, 0xc7, 0xc0, 16, 0, 0, 0, 0x0f, 0x05};
    static const uint8_t narrow[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
    static const uint8_t vdso[] = {0x68, 0x11, 0x80, 0xd2, 1, 0, 0, 0xd4};
    (void)state;
    assert_true(is_signal_return(EM_X86_64, glibc, sizeof glibc));
    assert_false(is_signal_return(EM_X86_64, glibc, sizeof glibc - 1));
    assert_false(is_signal_return(EM_X86_64, other_call, sizeof other_call));
    assert_true(is_signal_return(EM_X86_64, narrow, sizeof narrow));
    assert_false(is_signal_return(EM_X86_64, vdso, sizeof vdso));
    assert_true(is_signal_return(EM_AARCH64, vdso, sizeof vdso));
    assert_false(is_signal_return(EM_AARCH64, vdso, sizeof vdso - 1));
}

/* The calls of HEX, each as where it ends and where it leads. */
static void assert_calls(uint16_t elf_mach, const char *hex, const char *calls)
{
    const struct machine *machine = machine_numbered(elf_mach);
    uint8_t code[32];
    size_t size = read_hex(hex, code);
    char found[64] = "";
    int64_t target;
    for (size_t at = 0; (at = code_next_call(machine, code, size, at, &target));)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%zu:%d ", at, (int)target);
    assert_string_equal(found, calls);
}

static bool jumps_to(uint16_t elf_mach, const char *hex, int64_t target)
{
    uint8_t code[32];
    size_t size = read_hex(hex, code);
    return code_jumps_to(machine_numbered(elf_mach), code, size, target);
}

static void test_branches(void **state)
{
    (void)state;
    assert_calls(EM_X86_64, "90e80a000000", "6:16 ");
    assert_calls(EM_X86_64, "e8f6ffffff", "5:-5 ");
    assert_calls(EM_X86_64, "e80a0000", "");
    /* 0xe8 is mov's operand, and a call is in what that would be a call of */
    assert_calls(EM_X86_64, "b8e80000e801000000", "6:31981574 9:10 ");
    assert_calls(EM_AARCH64, "1f2003d503000094feffff97", "8:16 12:0 ");
    assert_calls(EM_AARCH64, "03000014", "");
    assert_true(jumps_to(EM_X86_64, "90eb05", 8));
    assert_true(jumps_to(EM_X86_64, "90ebfd", 0));
    assert_true(jumps_to(EM_X86_64, "74f0", -14));
    assert_true(jumps_to(EM_X86_64, "90e900010000", 0x106));
    assert_true(jumps_to(EM_X86_64, "0f84f0ffffff", -10));
    assert_false(jumps_to(EM_X86_64, "e900010000", 0x104));
    assert_false(jumps_to(EM_X86_64, "e800010000", 0x105));
    assert_false(jumps_to(EM_X86_64, "e9000100", 0x105));
    assert_true(jumps_to(EM_AARCH64, "1f2003d5ffffff17", 0));
    assert_false(jumps_to(EM_AARCH64, "1f2003d5ffffff97", 0));
}

static void assert_direct(uint16_t elf_mach, const char *hex, bool wanted, int64_t target)
{
    uint8_t code[32];
    size_t size = read_hex(hex, code);
    int64_t by;
    assert_int_equal(code_ends_in_direct_call(machine_numbered(elf_mach), code, size, &by), wanted);
    if (wanted)
        assert_int_equal(by, target);
}

static void test_direct_calls(void **state)
{
    (void)state;
    assert_direct(EM_X86_64, "90e800010000", true, 0x100);
    assert_direct(EM_X86_64, "e8fbffffff", true, -5);
    assert_direct(EM_X86_64, "00000000ffd0", false, 0);
    assert_direct(EM_X86_64, "e8000000", false, 0);
    assert_direct(EM_AARCH64, "02000094", true, 4);
    assert_direct(EM_AARCH64, "00003fd6", false, 0);
}

/* ---- Return addresses that nobody saved ---- */

/* By a table that says that a frame has saved no return address. */
static enum unwind_result step_unsaved(uint16_t elf_mach, bool innermost, bool by_row)
{
    struct world world;
    make_world(&world, elf_mach);
    const struct machine *machine = world.step.machine;
    world.frame.innermost = innermost;
    unwind_frame_set(&world.frame, machine->return_register, CODE + 8);
    struct unwind_rule rule = rule_of(machine->sp, 32, false);
    rule.slots[0] = SLOT_SAME;
    struct cfi_row row = {.cfa_register = machine->sp, .return_register = machine->return_register};
    row.cfa = (struct register_rule){.kind = REGISTER_IS_OFFSET, .offset = 32};
    return by_row ? unwind_by_row(&world.step, &row, &world.frame)
                  : unwind_by_rule(&world.step, &rule, &world.frame);
}

/* On aarch64 x30 has it, but of who has called nobody. */
static void test_unsaved_return_address_of_an_outer_frame_of_aarch64(void **state)
{
    (void)state;
    for (int by_row = 0; by_row < 2; by_row++) {
        assert_int_equal(step_unsaved(EM_AARCH64, true, by_row), UNWIND_CALLER);
        assert_int_equal(step_unsaved(EM_AARCH64, false, by_row), UNWIND_WRONG);
    }
}

static void test_unsaved_return_address_of_x86_64(void **state)
{
    (void)state;
    for (int by_row = 0; by_row < 2; by_row++) {
        assert_int_equal(step_unsaved(EM_X86_64, true, by_row), UNWIND_WRONG);
        assert_int_equal(step_unsaved(EM_X86_64, false, by_row), UNWIND_WRONG);
    }
}

/* CFA = rsp + OFFSET, in a frame that has called another or not. */
static enum unwind_result step_of_growth(uint16_t elf_mach, int32_t offset, bool innermost)
{
    struct world world;
    make_world(&world, elf_mach);
    world.words[0] = world.words[1] = CODE + 8;
    world.frame.innermost = innermost;
    struct unwind_rule rule = rule_of(world.step.machine->sp, offset, false);
    if (offset < 16)
        rule.slots[0] = 0;
    return unwind_by_rule(&world.step, &rule, &world.frame);
}

static void test_frames_that_have_called_another_are_as_large_as_a_call_makes_them(void **state)
{
    (void)state;
    uint8_t least = machine_numbered(EM_X86_64)->least_growth;
    assert_true(least > 0);
    assert_int_equal(step_of_growth(EM_X86_64, least, false), UNWIND_CALLER);
    assert_int_equal(step_of_growth(EM_X86_64, least - 1, false), UNWIND_WRONG);
    assert_int_equal(step_of_growth(EM_X86_64, 0, true), UNWIND_CALLER);
}

/* ---- The edges of steps ---- */

/* What has been popped is less than a page away; what is further down is nowhere. */
static void test_a_register_saved_4088_and_4096_bytes_below_the_stack(void **state)
{
    (void)state;
    for (int below = 4088; below <= 4096; below += 8) {
        struct world world;
        make_world(&world, EM_X86_64);
        world.words[1] = CODE + 2;
        struct unwind_rule rule = rule_of(RSP, 16, false);
        rule.slots[1] = (int16_t)((-below - 16) / 8);
        assert_int_equal(unwind_by_rule(&world.step, &rule, &world.frame), UNWIND_CALLER);
        assert_int_equal(unwind_frame_knows(&world.frame, RBP), below < 4096);
    }
}

/* The copy ends within the return address. */
static void test_a_frame_that_was_made_of_which_half_is_in_the_copy(void **state)
{
    struct world world;
    (void)state;
    make_world(&world, EM_X86_64);
    world.step.begins_at = begins_at;
    world.stack.size -= 4;
    world.words[WORDS - 1] = CODE + 31;
    unwind_frame_set(&world.frame, RBP, STACK + 8 * (WORDS - 2));
    assert_int_equal(step_by(&world, PLACE_IN_FRAME), UNWIND_WRONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_popped_register_is_kept),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_stack_that_stands_still),
        cmocka_unit_test(test_stack_pointer_of_its_own),
        cmocka_unit_test(test_undefined_return_address_is_the_end),
        cmocka_unit_test(test_link_register),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_the_frame_pointer_of_a_caller),
        cmocka_unit_test(test_the_frame_pointer_of_a_caller_of_a_leaf),
        cmocka_unit_test(test_followed_code),
        cmocka_unit_test(test_only_behind_calls),
        cmocka_unit_test(test_a_frame_that_was_made),
        cmocka_unit_test(test_cyclic_frames),
        cmocka_unit_test(test_prologues),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_moves_between_the_frames_end_and_the_return),
        cmocka_unit_test(test_signal_returns),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_direct_calls),
        cmocka_unit_test(test_unsaved_return_address_of_an_outer_frame_of_aarch64),
        cmocka_unit_test(test_unsaved_return_address_of_x86_64),
        cmocka_unit_test(test_frames_that_have_called_another_are_as_large_as_a_call_makes_them),
        cmocka_unit_test(test_a_register_saved_4088_and_4096_bytes_below_the_stack),
        cmocka_unit_test(test_a_frame_that_was_made_of_which_half_is_in_the_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
