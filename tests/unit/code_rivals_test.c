/* Which functions keep their names in a recording without times. */
#include "injector/log/code/code_rivals.h"

#include "tests/unit/space_world.h"

/* A recording of PID and its child, in which both have code. */
static void make_family(void)
{
    put_memory(PID, ARENA, 100);
    put_fork(CHILD, PID, 200);
    put_memory(CHILD, ARENA, 300);
    put_fork(OTHER, PID, 200);
    put_memory(OTHER, ARENA, 300);
    read_lives();
    assert_int_equal(make_process(PID, 100), 0);
    assert_int_equal(make_process(CHILD, 300), 1);
    assert_int_equal(make_process(OTHER, 300), 2);
    processes.items[1].parent = processes.items[2].parent = &processes.items[0];
}

static void add_sized(size_t process, uint64_t addr, uint64_t size, const char *name)
{
    add_function(process, addr, name);
    struct code_log *log = &processes.items[process].log;
    log->functions[log->function_count - 1].size = size;
}

static void move_function(size_t process, uint32_t index, uint64_t to)
{
    struct code_log *log = &processes.items[process].log;
    const struct jit_function old = log->functions[index];
    struct jit_function *moved = code_log_add_function(log, NO_DUMP);
    assert_non_null(moved);
    moved->addr = to;
    moved->size = old.size;
    moved->code_index = old.code_index;
    assert_int_equal(array_reserve(log->moves, log->move_count, log->move_capacity), 0);
    log->moves[log->move_count] = (struct code_move){old.addr, (uint32_t)(log->function_count - 1)};
    assert_int_equal(code_log_add_event(log, 1, CODE_EVENT_MOVE, log->move_count++), 0);
}

/* The names of what PROCESS loads, in their order. */
static void expect_loads(size_t process, const char *names)
{
    const struct code_log *log = &processes.items[process].log;
    char text[256] = "";
    for (size_t i = 0, at = 0; i < log->event_count; i++, at = strlen(text)) {
        assert_int_equal(log->events[i].kind, CODE_EVENT_LOAD);
        snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "",
                 log->functions[log->events[i].index].name);
    }
    assert_string_equal(text, names);
}

static void test_who_was_alone_stays_and_unloads_are_forgotten(void **state)
{
    (void)state;
    make_family();
    add_function(0, ARENA, "alone");
    add_function(0, ARENA + SLOT, "next");
    unload_function(0, 1, 0);
    assert_int_equal(code_rivals_drop(&processes), 0);
    expect_loads(0, "alone next");
    assert_false(processes.items[0].log.functions[0].rival);
}

static void test_neither_of_two_at_an_address_stays(void **state)
{
    (void)state;
    make_family();
    add_function(0, ARENA, "first");
    add_function(0, ARENA + 3 * SLOT, "alone");
    unload_function(0, 1, 0);
    add_function(0, ARENA, "second");
    assert_int_equal(code_rivals_drop(&processes), 0);
    expect_loads(0, "alone");
    assert_true(processes.items[0].log.functions[0].rival);
    assert_true(processes.items[0].log.functions[2].rival);
}

/* The large one reaches over all that begin before its end, in whichever order they were loaded. */
static void test_parts_of_addresses_are_enough(void **state)
{
    (void)state;
    make_family();
    add_function(0, ARENA + SLOT, "one");
    add_sized(0, ARENA, 3 * SLOT, "large");
    add_function(0, ARENA + 2 * SLOT, "two");
    add_function(0, ARENA + 3 * SLOT, "alone");
    assert_int_equal(code_rivals_drop(&processes), 0);
    expect_loads(0, "alone");
}

static void test_the_same_again_is_one(void **state)
{
    (void)state;
    make_family();
    add_function(0, ARENA, "same");
    add_function(0, ARENA, "same");
    add_function(0, ARENA + SLOT, "again");
    add_function(0, ARENA + SLOT, "again");
    add_function(0, ARENA + SLOT, "other");
    assert_int_equal(code_rivals_drop(&processes), 0);
    expect_loads(0, "same same");
}

static void test_code_that_moved_was_at_both_places(void **state)
{
    (void)state;
    make_family();
    add_function(0, ARENA, "moved");
    move_function(0, 0, ARENA + SLOT);
    move_function(0, 1, ARENA + 2 * SLOT);
    add_function(0, ARENA + 2 * SLOT, "there");
    assert_int_equal(code_rivals_drop(&processes), 0);
    expect_loads(0, "moved moved");
    assert_string_equal(processes.items[0].log.functions[2].name, "moved");
}

static void test_what_a_child_inherits_is_its_rival_and_a_sibling_is_none(void **state)
{
    (void)state;
    make_family();
    add_function(0, ARENA, "parent's");
    add_function(0, ARENA + SLOT, "left");
    add_function(1, ARENA, "child's");
    add_function(1, ARENA + 2 * SLOT, "child's own");
    add_function(2, ARENA + 2 * SLOT, "sibling's own");
    assert_int_equal(code_rivals_drop(&processes), 0);
    expect_loads(0, "left");
    expect_loads(1, "child's own");
    expect_loads(2, "sibling's own");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPACE_TEST(test_who_was_alone_stays_and_unloads_are_forgotten),
        SPACE_TEST(test_neither_of_two_at_an_address_stays),
        SPACE_TEST(test_parts_of_addresses_are_enough),
        SPACE_TEST(test_the_same_again_is_one),
        SPACE_TEST(test_code_that_moved_was_at_both_places),
        SPACE_TEST(test_what_a_child_inherits_is_its_rival_and_a_sibling_is_none),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
