/* Callers of frames of which nothing is known: which words are taken for return addresses. */
#include "injector/unwind/return_slot.h"
#include "tests/unit/scratch.h"

#include <elf.h>

enum { STACK = 0x7000, WORDS = 16 };
enum { CALLED = 0x1000, ELSEWHERE = 0x2000, RSP = 7 };

static enum call_evidence calls(void *context, uint64_t addr)
{
    (void)context;
    return addr == CALLED ? CALL_POSSIBLE : addr == ELSEWHERE ? CALL_DOUBTFUL : CALL_NONE;
}

struct world {
    uint64_t words[WORDS];
    struct user_stack stack;
    struct unwind_frame frame;
    struct unwind_step step;
};

/* A frame that begins at word FIRST and has called another; WHAT stands in word AT. */
static void make_world(struct world *world, size_t first, size_t at, uint64_t what)
{
    *world = (struct world){.frame = {.pc = 0x3000}};
    world->words[at] = what;
    world->stack = (struct user_stack){(const uint8_t *)world->words, STACK, sizeof world->words};
    world->step = (struct unwind_step){
        .machine = machine_numbered(EM_X86_64), .stack = &world->stack, .calls = calls};
    unwind_frame_set(&world->frame, RSP, STACK + 8 * first);
}

static void assert_found(size_t first, size_t at)
{
    struct world world;
    make_world(&world, first, at, CALLED);
    assert_int_equal(unwind_by_slot(&world.step, &world.frame), UNWIND_CALLER);
    assert_int_equal(world.frame.pc, CALLED);
    assert_int_equal(world.frame.registers[RSP], STACK + 8 * (at + 1));
    assert_int_equal(world.step.cfa, STACK + 8 * (at + 1));
    assert_false(world.frame.exact);
}

static void assert_not_found(struct world *world)
{
    assert_int_equal(unwind_by_slot(&world->step, &world->frame), UNWIND_WRONG);
    assert_int_equal(world->frame.pc, 0x3000);
}

/* The stack was aligned at the call: every second word can be the return address. */
static void test_words_that_a_call_writes(void **state)
{
    (void)state;
    for (size_t at = 1; at <= 7; at += 2)
        assert_found(0, at);
    for (size_t at = 1; at <= 7; at += 2)
        assert_found(1, at); /* called with a stack that is not aligned */
    struct world world;
    for (size_t at = 0; at < WORDS; at += at < 8 ? 2 : 1) {
        make_world(&world, 0, at, CALLED);
        assert_not_found(&world);
    }
}

/* A call that leads elsewhere shows that words are left from other calls. */
static void test_doubt(void **state)
{
    (void)state;
    struct world world;
    make_world(&world, 0, 1, ELSEWHERE);
    world.words[3] = CALLED;
    assert_not_found(&world);
    make_world(&world, 0, 3, ELSEWHERE);
    world.words[1] = CALLED;
    assert_int_equal(unwind_by_slot(&world.step, &world.frame), UNWIND_CALLER);
}

static void test_what_is_not_asked(void **state)
{
    (void)state;
    struct world world;
    make_world(&world, 0, 1, CALLED);
    world.frame.innermost = true; /* it may be anywhere in its prologue */
    assert_not_found(&world);
    make_world(&world, 0, 1, CALLED);
    world.step.calls = NULL;
    assert_not_found(&world);
    make_world(&world, 0, 1, CALLED);
    unwind_frame_set(&world.frame, RSP, STACK + 4);
    assert_not_found(&world);
    make_world(&world, 0, 1, CALLED);
    unwind_frame_set(&world.frame, RSP, STACK - 4096); /* not in the copy */
    assert_not_found(&world);
    make_world(&world, 0, 1, CALLED);
    world.step.machine = machine_numbered(EM_AARCH64); /* x30 holds it */
    unwind_frame_set(&world.frame, world.step.machine->sp, STACK);
    assert_not_found(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_that_a_call_writes),
        cmocka_unit_test(test_doubt),
        cmocka_unit_test(test_what_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
